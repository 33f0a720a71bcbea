/**
 * Reads a stored post for an answer without decoding it: the texts are taken straight from the signed bytes.
 *
 * The signed bytes are compact JSON that `signingBytes` wrote (src/format/signing.ts), so a text in them is, character for
 * character, the text in an answer. A record with anything unusual is left to the full decoder.
 */
import type { Frame } from '../../storage/journal.ts'
import { hex } from '../kernel/hex.ts'
import { textIn, toUtf8, type Utf8 } from '../kernel/utf8.ts'
import { bodyOffset, fromFrame, isStub, postIn, viaUsual } from './record.ts'

/** A typical post: signed with the author's own key, complete, without attachments. */
export type StoredPost = {
  /** 43 characters of base64url. */
  readonly publicKey: string
  /** 86 characters of base64url. */
  readonly signature: string
  /** The signing bytes. */
  readonly signed: Utf8
  /** JSON texts from the signed command, in quotes. */
  readonly text: Utf8
  readonly to: Utf8 | undefined
  readonly data: Utf8 | undefined
  /** 64 hex: the identity of the handle in `to`. */
  readonly toId: string | undefined
  readonly via: string
}

/** Undefined if the record has anything more, or is a stub. */
export function storedPost(frame: Frame): StoredPost | undefined {
  const found = isStub(frame) ? undefined : (listed(frame) ?? decoded(frame))
  if (found === undefined) return undefined
  const { isPlain, text, to, data } = signedTexts(found.signed)
  return isPlain && text !== undefined ? { ...found, text, to, data } : undefined
}

type Found = Pick<StoredPost, 'publicKey' | 'signature' | 'signed' | 'toId' | 'via'>

/** The first byte of a list of twelve. A list of thirteen has more than a typical post. */
const listOfTwelve = 0x9c
const nil = 0xc0

/** Reads only these four fields of a list body, the usual kind. Undefined for any other body. */
function listed(frame: Frame): Found | undefined {
  const { payload } = frame
  const at = bodyOffset(frame)
  if (payload[at] !== listOfTwelve) return undefined
  // Room, page, kind, number in the room, time, author.
  let next = at + 1
  for (let field = 0; field < 6; field++) next = endOfValue(payload, next)
  const key = endOfValue(payload, next)
  const sig = endOfValue(payload, key)
  const signed = endOfValue(payload, sig)
  return {
    publicKey: payload.toString('base64url', next + 2, key),
    signature: payload.toString('base64url', key + 2, sig),
    signed: payload.toString('latin1', sig + headOf(payload, sig), signed),
    toId: undefined,
    via: payload[signed] === nil ? viaUsual : payload.toString('latin1', signed + 1, endOfValue(payload, signed)),
  }
}

/** End of the msgpack value that begins at `at`: nil, a number, text or bytes. */
function endOfValue(bytes: Buffer, at: number): number {
  const type = bytes[at]!
  if (type < 0x80 || type === nil) return at + 1
  if ((type & 0xe0) === 0xa0) return at + 1 + (type & 0x1f)
  const sizeBytes = headOf(bytes, at) - 1
  return type >= 0xca && type <= 0xcf
    ? at + numberBytes[type - 0xca]!
    : at + 1 + sizeBytes + bytes.readUIntBE(at + 1, sizeBytes)
}

/** Bytes of type and length before text or bytes that have a separate length. */
function headOf(bytes: Buffer, at: number): number {
  const type = bytes[at]!
  return type === 0xc4 || type === 0xd9 ? 2 : type === 0xc5 || type === 0xda ? 3 : 5
}

/** Sizes, with the type byte, of float 32 and 64, and of integers of 1, 2, 4 and 8 bytes. */
const numberBytes = [5, 9, 2, 3, 5, 9]

/** The same, from the decoded record: for a post with an addressee, or a map from release 1.0. */
function decoded(frame: Frame): Found | undefined {
  const { by, via, to, blobs, format } = postIn(fromFrame(frame))
  if (by.for !== undefined || by.cut !== undefined || blobs !== undefined || format !== undefined) return undefined
  return {
    publicKey: Buffer.from(by.key).toString('base64url'),
    signature: Buffer.from(by.sig).toString('base64url'),
    signed: Buffer.from(by.signed).toString('latin1'),
    toId: to && hex(to),
    via,
  }
}

type SignedTexts = { text?: Utf8; to?: Utf8; data?: Utf8; isPlain: boolean }

const begin = '"command":{'
const quote = 0x22
const backslash = 0x5c

/**
 * The JSON texts of a command in its signing bytes. `isPlain` is false if there is a list in it, or anything that
 * `signingBytes` does not write.
 */
function signedTexts(signed: Utf8): SignedTexts {
  const found: SignedTexts = { isPlain: false }
  let at = signed.indexOf(begin) + begin.length
  while (signed.charCodeAt(at) === quote) {
    const nameEnd = signed.indexOf('":', at + 1)
    const start = nameEnd + 2
    const end = nameEnd < 0 ? -1 : endOf(signed, start)
    if (end < 0) return found
    const name = signed.slice(at + 1, nameEnd)
    if (name === 'text' || name === 'to' || name === 'data') found[name] = unescapedSeparators(signed.slice(start, end))
    if (signed[end] === '}') return { ...found, isPlain: end + 2 === signed.length }
    at = end + 1
  }
  return found
}

/** Position after the text or number that begins here; -1 if neither does. */
function endOf(signed: Utf8, start: number): number {
  if (signed.charCodeAt(start) !== quote) {
    let at = start
    while (isOfNumber(signed.charCodeAt(at))) at++
    return at === start ? -1 : at
  }
  for (let at = signed.indexOf('"', start + 1); at >= 0; at = signed.indexOf('"', at + 1)) {
    let escapes = 0
    while (signed.charCodeAt(at - 1 - escapes) === backslash) escapes++
    if (escapes % 2 === 0) return at + 1
  }
  return -1
}

function isOfNumber(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || code === 0x2d
}

/** Signing bytes escape U+2028 and U+2029; answers do not. */
function unescapedSeparators(text: Utf8): Utf8 {
  return text.includes('\\u202') ? toUtf8(JSON.stringify(textIn(text))) : text
}
