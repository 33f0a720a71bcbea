/**
 * JSON written by other people's programs. Unlike commands (strict-json.ts), other protocols may use fractions and exponents. Text nested
 * too deeply to be serialized again is refused before it is parsed: JSON.parse accepts a million brackets, but later code does not.
 */
import { isUtf8 } from 'node:buffer'
import { countKeys } from './strict-json.ts'

type ForeignJson =
  | { readonly ok: true; readonly value: unknown }
  /** What is wrong, as the rest of a sentence. */
  | { readonly ok: false; readonly fault: string }

type ForeignLimits = {
  readonly depthMax: number
  /** Number of `{ [ : ,` outside strings. */
  readonly marksMax?: number
}

const handedOnDepthMax = 64

/**
 * Nesting depth of an MCP message: that of `data` and its envelope, and room for clients that add details about themselves. Marks: those of
 * the largest `data`, given as an object. More would take longer to read than to send.
 */
const messageLimits = { depthMax: 64, marksMax: 32_768 }

/** JSON to be read or passed on. Undefined if the text is not JSON, or nests too deeply. */
export function foreignJson(text: string): unknown {
  if (marksOf(text).depth > handedOnDepthMax) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * JSON to be passed on as a value. Undefined also if that would change it: an integer that JavaScript rounds, such as a 64-bit id, a number
 * beyond its range, or a key that an object has twice.
 */
export function exactJson(text: string): unknown {
  const value = foreignJson(text)
  if (value === undefined || countKeys(value) !== marksOf(text).members) return undefined
  const doubtful = text.replace(/"(?:[^"\\]|\\.)*"/g, '').match(longOrWithExponent) ?? []
  return doubtful.every(isExact) ? value : undefined
}

/** The only numbers that may change. */
const longOrWithExponent = /-?\d[\d.]*[eE][\d+-]+|-?\d[\d.]{15,}/g

/** Fractions are those of IEEE 754 in JSON (RFC 7493, 2.2), so their last digits may differ. */
function isExact(number: string): boolean {
  const parsed = Number(number)
  return Number.isFinite(parsed) && (/[.eE]/.test(number) || BigInt(parsed) === BigInt(number))
}

/** A message of another protocol with one meaning: what two readers could interpret differently is refused. */
export function parseMessage(body: Buffer): ForeignJson {
  return isUtf8(body) ? parseForeign(body.toString('utf8'), messageLimits) : { ok: false, fault: 'is not UTF-8' }
}

/** JSON with one meaning: no object has duplicate keys (I-JSON, RFC 7493). */
export function parseForeign(
  text: string,
  { depthMax, marksMax = Number.POSITIVE_INFINITY }: ForeignLimits,
): ForeignJson {
  const { depth, members, marks } = marksOf(text)
  if (depth > depthMax) return { ok: false, fault: `nests deeper than ${depthMax}` }
  if (marks > marksMax) return { ok: false, fault: `has more than ${marksMax} of { [ : , outside strings` }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { ok: false, fault: `is not JSON: ${(error as Error).message.slice(0, 200)}` }
  }
  return countKeys(value) === members ? { ok: true, value } : { ok: false, fault: 'has a key twice in one object' }
}

/**
 * The nesting depth of a JSON text, the number of members in its objects, and the number of `{ [ : ,` outside strings. The numbers are
 * meaningless if the text is not JSON.
 */
function marksOf(text: string): { depth: number; members: number; marks: number } {
  let depth = 0
  let deepest = 0
  let members = 0
  let others = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (inString) {
      if (char === 0x5c) at++
      else if (char === 0x22) inString = false
    } else if (char === 0x22) inString = true
    else if (char === 0x7b || char === 0x5b) {
      deepest = Math.max(deepest, ++depth)
      others++
    } else if (char === 0x7d || char === 0x5d) depth--
    else if (char === 0x3a) members++
    else if (char === 0x2c) others++
  }
  return { depth: deepest, members, marks: members + others }
}
