/**
 * Describes what is wrong with a refused JSON text, and where: a plain parser of RFC 8259 with our extra rules, one function per rule of
 * the grammar.
 *
 * Slow, and used only for refusals. It agrees with strict-json.ts on every text: it finds a fault exactly when that refuses, which a
 * property test checks.
 */
/** A command is flat and `data` a few levels deep; anything deeper is an attack on recursive code. */
export const nestingMax = 32

/**
 * Number of `{ [ : ,` outside strings. Each is a byte, so a text of 64 KiB, the largest `data` apart from a blob, never reaches this. A
 * body of 2 MiB full of brackets would cost 0.3 s and is stopped here.
 */
export const structureMarksMax = 65_536

export type JsonLimits = {
  /** Number of `{ [ : ,` outside strings. */
  readonly marksMax: number
  /** Items of an array that is a member of the outermost object. Anything after an array that is too long is not read. */
  readonly itemsMax: number
}

export const anyJson: JsonLimits = { marksMax: structureMarksMax, itemsMax: structureMarksMax }

/** `at` counts UTF-16 units from the start of the text. */
export type JsonFault = {
  readonly message: string
  readonly at: number
  /** The key of the outermost object whose array is too long. */
  readonly member?: string
}

/** The first fault in reading order; undefined if there is none. */
export function findFault(text: string, limits = anyJson): JsonFault | undefined {
  try {
    new FaultReader(text, limits).read()
    return undefined
  } catch (error) {
    if (error instanceof Fault) return error.fault
    throw error
  }
}

/** Unwinds the reader; never leaves this file. */
class Fault extends Error {
  readonly fault: JsonFault
  constructor(message: string, at: number, member?: string) {
    super(message)
    this.fault = { message, at, ...(member === undefined ? {} : { member }) }
  }
}

const number = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y
const escapable = new Set([...'"\\/bfnrt'].map((character) => character.charCodeAt(0)))
const letterU = 0x75
const quote = 0x22
const backslash = 0x5c
const space = 0x20
const literals = ['true', 'false', 'null'] as const

class FaultReader {
  readonly #text: string
  readonly #limits: JsonLimits
  #at = 0
  #marks = 0

  constructor(text: string, limits: JsonLimits) {
    this.#text = text
    this.#limits = limits
  }

  read(): void {
    if (this.#text.startsWith('\ufeff')) throw new Fault('a byte order mark', 0)
    this.#value(0)
    this.#skip()
    if (this.#at < this.#text.length) throw new Fault('something follows the JSON value', this.#at)
  }

  /** `member`: its key in the enclosing object. */
  #value(depth: number, member?: string): void {
    this.#skip()
    const first = this.#text[this.#at]
    if (first === undefined) throw new Fault('the text ends where a value should be', this.#at)
    if (first === '{' || first === '[') {
      if (depth === nestingMax) throw new Fault(`nested more than ${nestingMax} deep`, this.#at)
      this.#at += 1
      this.#countMark()
      if (first === '{') this.#object(depth + 1)
      else this.#array(depth + 1, member)
    } else if (first === '"') this.#string()
    else if (first === '-' || (first >= '0' && first <= '9')) this.#number()
    else this.#literal()
  }

  #object(depth: number): void {
    const keys = new Set<string>()
    if (this.#takes('}')) return
    do {
      this.#skip()
      const at = this.#at
      if (this.#text[at] !== '"') throw new Fault('a key in double quotes should be here', at)
      const key = this.#string()
      if (keys.has(key)) throw new Fault(`key ${shown(key)} is given twice`, at)
      keys.add(key)
      if (!this.#takes(':')) throw new Fault("':' should be here", this.#at)
      this.#value(depth, key)
    } while (this.#takes(','))
    if (!this.#takes('}')) throw new Fault("',' or '}' should be here", this.#at)
  }

  #array(depth: number, member: string | undefined): void {
    const itemsMax = depth === 2 ? this.#limits.itemsMax : Number.POSITIVE_INFINITY
    if (this.#takes(']')) return
    let items = 0
    do {
      if (items === itemsMax) throw new Fault(`an array has more than ${itemsMax} items`, this.#at - 1, member)
      items += 1
      this.#value(depth)
    } while (this.#takes(','))
    if (!this.#takes(']')) throw new Fault("',' or ']' should be here", this.#at)
  }

  #string(): string {
    const start = this.#at
    this.#at += 1
    this.#passCharacters()
    const next = this.#text[this.#at]
    if (next === undefined) throw new Fault('a string without an end begins', start)
    if (next === '\\') throw new Fault('an escape that JSON does not have', this.#at)
    if (next !== '"') throw new Fault('a control character that must be written as an escape', this.#at)
    this.#at += 1
    const value: string = JSON.parse(this.#text.slice(start, this.#at))
    if (!value.isWellFormed()) throw new Fault('half a surrogate pair in the string that begins', start)
    return value
  }

  /** Advances to the quote that ends the string, or to an invalid character. A megabyte of escapes takes some milliseconds. */
  #passCharacters(): void {
    const text = this.#text
    let at = this.#at
    for (;;) {
      const unit = text.charCodeAt(at)
      if (unit === backslash) {
        const length = escapeLength(text, at)
        if (length === 0) break
        at += length
      } else if (unit === quote || !(unit >= space)) break
      else at += 1
    }
    this.#at = at
  }

  #number(): void {
    const start = this.#at
    const parts = this.#match(number)
    if (parts === null) throw new Fault('a number without digits', start)
    if (parts[1] !== undefined || parts[2] !== undefined) {
      throw new Fault(`${shown(parts[0])}: a number must be a plain integer, without fraction or exponent,`, start)
    }
    const value = Number(parts[0])
    if (Object.is(value, -0)) throw new Fault('-0 (write 0)', start)
    if (!Number.isSafeInteger(value)) {
      throw new Fault(`${shown(parts[0])}: an integer lies between -9007199254740991 and 9007199254740991,`, start)
    }
  }

  #literal(): void {
    for (const literal of literals) {
      if (this.#text.startsWith(literal, this.#at)) {
        this.#at += literal.length
        return
      }
    }
    throw new Fault('a value should be here', this.#at)
  }

  /** Consumes this character, after white space, if it is next. */
  #takes(character: string): boolean {
    this.#skip()
    if (this.#text[this.#at] !== character) return false
    this.#at += 1
    if (character === ':' || character === ',') this.#countMark()
    return true
  }

  #countMark(): void {
    this.#marks += 1
    const { marksMax } = this.#limits
    if (this.#marks > marksMax) throw new Fault(`more than ${marksMax} of { [ : ,`, this.#at - 1)
  }

  /** Skips white space. */
  #skip(): void {
    for (;;) {
      const unit = this.#text.charCodeAt(this.#at)
      if (unit !== space && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return
      this.#at += 1
    }
  }

  /** Consumes a match at the current position. */
  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#text)
    if (match !== null) this.#at += match[0].length
    return match
  }
}

/** Length of the escape that begins at a backslash; 0 if JSON has no such escape. */
function escapeLength(text: string, at: number): number {
  const unit = text.charCodeAt(at + 1)
  if (escapable.has(unit)) return 2
  if (unit !== letterU) return 0
  for (let digit = at + 2; digit < at + 6; digit += 1) if (!isHex(text.charCodeAt(digit))) return 0
  return 6
}

function isHex(unit: number): boolean {
  const lower = unit | 0x20
  return (unit >= 0x30 && unit <= 0x39) || (lower >= 0x61 && lower <= 0x66)
}

/** A stranger's text made safe for an error message: short, quoted, control characters escaped. */
function shown(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)
}
