/**
 * Splits an answer that is too long into parts. The longest text of the answer is cut after a complete character (after a complete line, if
 * one ends nearby) and says how to continue: `text_truncated`, `text_bytes` and `text_next_offset` next to `text`. A value other than a
 * text is read as its JSON text. Only the last part comes with `text_sha256`, so a caller that knows it has been shown the end.
 */
import { createHash } from 'node:crypto'
import type { Json } from '../format/plain-schema.ts'
import { shareWithin, tokensAtMost } from './tokens.ts'

type Parted =
  | { readonly ok: true; readonly data: Json; readonly cuts: readonly Cut[] }
  /** The requested part begins after the end of the texts. */
  | { readonly ok: false; readonly bytes: number }

export type Cut = {
  /** The object whose text was cut. */
  readonly of: Json
  /** Where the next part begins; undefined if this was the last. */
  readonly next: number | undefined
}

/** A member of an object, and its length in JSON characters. */
type Place = { readonly of: Record<string, unknown>; readonly name: string; readonly length: number }

/** Tokens of the members next to a cut text. */
const besideTokens = 150
/** If less than this is left for a text, another text is cut too. */
const partTokensMin = 500
/** Shorter members are not worth cutting. */
const cutCharsMin = 200
/** A part ends after a line if one ends this close to its end. */
const lineWithin = 0.2
/** No token has more characters than this: the cheapest are blanks. */
const charsPerTokenMax = 10

/** `offset`: bytes of the long texts to skip. */
export function inParts(data: Json, tokensMax: number, offset = 0): Parted {
  const shown = structuredClone(data) as Record<string, unknown>
  const long: (Place & { readonly text: string; readonly isText: boolean })[] = []
  let left = 0
  do {
    const place = longestIn(shown)
    if (place === undefined || place.length < cutCharsMin) break
    const value = place.of[place.name]
    const isText = typeof value === 'string'
    long.push({ ...place, text: isText ? value : JSON.stringify(value), isText })
    place.of[place.name] = ''
    left = tokensMax - tokensAtMost(JSON.stringify(shown), tokensMax) - long.length * besideTokens
  } while (left < partTokensMin)
  const bytes = Math.max(0, ...long.map(({ text }) => Buffer.byteLength(text)))
  if (offset > 0 && offset >= bytes) return { ok: false, bytes }
  const tokens = Math.max(1, Math.floor(left / long.length))
  const cuts = long.map(({ of, name, text, isText }) => {
    const part = partOf(Buffer.from(text), offset, tokens)
    // A document states the hash of its text; it is shown only with the end of the text.
    if (part.next !== undefined && of.sha256 === part.sha256) delete of.sha256
    Object.assign(of, {
      [name]: part.text,
      [`${name}_truncated`]: true,
      [`${name}_bytes`]: part.bytes,
      ...(isText ? {} : { [`${name}_is_json_text`]: true }),
      ...(offset === 0 ? {} : { [`${name}_offset`]: part.from }),
      ...(part.next === undefined ? { [`${name}_sha256`]: part.sha256 } : { [`${name}_next_offset`]: part.next }),
    })
    return { of, next: part.next }
  })
  return { ok: true, data: shown, cuts }
}

/** If a value has more members than this, all about equally long, no single one is worth cutting. */
const membersMax = 8

/** The member to cut: the longest or, if it has few members, the longest inside it. */
function longestIn(value: unknown): Place | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const members = Object.entries(value).map(([name, member]) => ({
    name,
    member,
    length: JSON.stringify(member).length,
  }))
  const [longest] = members.sort((a, b) => b.length - a.length)
  if (longest === undefined) return undefined
  const within = longestIn(longest.member)
  if (within !== undefined && within.length * membersMax > longest.length) return within
  // A list has no place for the members that describe a part.
  return Array.isArray(value) ? undefined : { of: value as Record<string, unknown>, ...longest }
}

type Part = {
  readonly text: string
  readonly from: number
  readonly bytes: number
  readonly next: number | undefined
  readonly sha256: string
}

/** The part starting at this byte that takes at most this many tokens as JSON. */
function partOf(all: Buffer, offset: number, tokens: number): Part {
  const from = wholeCharacter(all, offset)
  let text = all.toString('utf8', from, wholeCharacter(all, from + tokens * charsPerTokenMax))
  for (;;) {
    const share = shareWithin(JSON.stringify(text), tokens)
    if (share === 1 || text.length <= 2) break
    // Without half a surrogate pair at its end.
    text = text.slice(0, Math.max(2, Math.floor(text.length * share * 0.98))).replace(/[\ud800-\udbff]$/, '')
  }
  const line = text.lastIndexOf('\n') + 1
  if (from + Buffer.byteLength(text) < all.length && line > text.length * (1 - lineWithin)) text = text.slice(0, line)
  const end = from + Buffer.byteLength(text)
  const sha256 = createHash('sha256').update(all).digest('hex')
  return { text, from, bytes: all.length, next: end < all.length ? end : undefined, sha256 }
}

/** The given byte, or the first byte of the character that it is in the middle of. */
function wholeCharacter(bytes: Buffer, index: number): number {
  let start = Math.min(index, bytes.length)
  while (start > 0 && start < bytes.length && (bytes[start]! & 0xc0) === 0x80) start--
  return start
}
