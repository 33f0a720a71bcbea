/**
 * JSON with one meaning: what two readers could interpret differently is refused.
 *
 * Refused in addition to what JSON.parse refuses (RFC 8259): invalid UTF-8, a byte order mark, duplicate keys in an object at any depth,
 * nesting over 32, a number that is not written as a plain safe integer, -0, a lone surrogate.
 *
 * JSON.parse does the parsing. Before it, one scan over the characters outside strings checks what JSON.parse discards: depth (so that it
 * never meets a million brackets), how numbers were written, and how many members there are. If the parsed value has fewer keys than the
 * text had members, a key was given twice. A command of 600 bytes takes 1.9 to 2.7 us, of which JSON.parse is two thirds. Only a refused
 * text is parsed again, slowly, to say where and why (json-fault.ts).
 *
 * A key `__proto__` becomes an own property like any other, to be refused as unknown.
 */
import { isUtf8 } from 'node:buffer'
import { anyJson, findFault, type JsonFault, type JsonLimits, nestingMax } from './json-fault.ts'

export type StrictJson =
  | { readonly ok: true; readonly value: unknown; readonly text: string }
  /** `member`: the key in the outermost object of the array that is too long, if that is the fault. */
  | { readonly ok: false; readonly message: string; readonly member?: string | undefined }

/** Parses a request body. Never throws, and takes time linear in the length. */
export function parseStrictJson(bytes: Uint8Array, limits = anyJson): StrictJson {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!isUtf8(body)) return { ok: false, message: `invalid UTF-8 at or just before byte ${firstBadByte(body)}` }
  return parseStrictText(body.toString(), limits)
}

/** The same for JSON inside a string, such as a command's `data`. */
export function parseStrictText(text: string, limits = anyJson): StrictJson {
  const members = countMembers(text, limits)
  if (members === undefined) return refuse(text, limits)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return refuse(text, limits)
  }
  // A lone surrogate comes from an escape, or is in a text that was never UTF-8.
  if ((text.includes('\\u') || !text.isWellFormed()) && !isWellFormedJson(value)) return refuse(text, limits)
  return countKeys(value) === members ? { ok: true, value, text } : refuse(text, limits)
}

function refuse(text: string, limits: JsonLimits): StrictJson {
  return new Refused(text, limits)
}

/** The reason for a refusal is computed only when it is read. */
class Refused {
  readonly ok = false
  readonly #text: string
  readonly #limits: JsonLimits
  #fault: JsonFault | undefined

  constructor(text: string, limits: JsonLimits) {
    this.#text = text
    this.#limits = limits
  }

  get message(): string {
    const { message, at } = this.#found()
    return `${message} at byte ${Buffer.byteLength(this.#text.slice(0, at))}`
  }

  get member(): string | undefined {
    return this.#found().member
  }

  #found(): JsonFault {
    this.#fault ??= findFault(this.#text, this.#limits) ?? { message: 'not strict JSON', at: 0 }
    return this.#fault
  }
}

const quote = 0x22
const comma = 0x2c
const minus = 0x2d
const digit0 = 0x30
const digit9 = 0x39
const colon = 0x3a
const bracketOpen = 0x5b
const backslash = 0x5c
const bracketClose = 0x5d
const braceOpen = 0x7b
const braceClose = 0x7d

/** Number of colons outside strings, which equals the number of members; undefined if the scan finds something to refuse. */
function countMembers(text: string, { marksMax, itemsMax }: JsonLimits): number | undefined {
  let members = 0
  let otherMarks = 0
  let depth = 0
  let at = 0
  /** Commas that the array on the second level may still have. */
  let commasLeft = marksMax
  while (at < text.length) {
    const unit = text.charCodeAt(at)
    if (unit === quote) {
      at = endOfString(text, at + 1)
      if (at === 0) return undefined
    } else if (unit === colon) {
      members += 1
      at += 1
    } else if (unit === braceOpen || unit === bracketOpen) {
      depth += 1
      if (depth > nestingMax) return undefined
      if (depth === 2) commasLeft = unit === bracketOpen ? itemsMax - 1 : marksMax
      otherMarks += 1
      at += 1
    } else if (unit === comma) {
      otherMarks += 1
      if (depth === 2 && --commasLeft < 0) return undefined
      at += 1
    } else if (unit === braceClose || unit === bracketClose) {
      depth -= 1
      at += 1
    } else if (unit === minus || (unit >= digit0 && unit <= digit9)) {
      at = endOfInteger(text, at)
      if (at === 0) return undefined
    } else {
      at += 1
    }
  }
  return members + otherMarks <= marksMax ? members : undefined
}

/** Index after the closing quote; 0 when there is none. `indexOf` runs at memory speed, so long texts cost little. */
function endOfString(text: string, start: number): number {
  let at = start
  for (;;) {
    const end = text.indexOf('"', at)
    if (end === -1) return 0
    let before = end - 1
    while (before >= at && text.charCodeAt(before) === backslash) before -= 1
    // An even number of backslashes escape each other; with an odd number the last one escapes the quote.
    if ((end - before) % 2 === 1) return end + 1
    at = end + 1
  }
}

/** Index after a plain safe integer; 0 if there is none. */
function endOfInteger(text: string, start: number): number {
  let at = start + 1
  let unit = text.charCodeAt(at)
  while (unit >= digit0 && unit <= digit9) {
    at += 1
    unit = text.charCodeAt(at)
  }
  if (unit === 0x2e || unit === 0x65 || unit === 0x45) return 0 // '.', 'e', 'E'
  if (text.charCodeAt(start) === minus && text.charCodeAt(start + 1) === digit0) return 0
  // Fifteen digits are always safe; more need a closer look.
  return at - start <= 15 || Number.isSafeInteger(Number(text.slice(start, at))) ? at : 0
}

/** Number of members in all objects of the value. Fewer than in the text if a key was given twice. */
export function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (const element of value) if (typeof element === 'object') count += countKeys(element)
    return count
  }
  for (const key in value) {
    count += 1
    const member = (value as Record<string, unknown>)[key]
    if (typeof member === 'object') count += countKeys(member)
  }
  return count
}

function isWellFormedJson(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  if (typeof value !== 'object' || value === null) return true
  if (Array.isArray(value)) return value.every(isWellFormedJson)
  return Object.entries(value).every(([key, member]) => key.isWellFormed() && isWellFormedJson(member))
}

/** Decoding replaces bad bytes with U+FFFD, so the first byte that differs marks the place. */
function firstBadByte(body: Buffer): number {
  const reencoded = Buffer.from(body.toString())
  let at = 0
  while (at < body.length && body[at] === reencoded[at]) at += 1
  return at
}
