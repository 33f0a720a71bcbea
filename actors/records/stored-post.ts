/**
 * A stored post read where it lies: what its answer shows is found in the bytes of its frame, and nothing else is decoded.
 *
 * What was signed is compact JSON that `signingBytes` wrote (src/format/signing.ts), so a text in it is, character for character, the text
 * in an answer. A record with anything else in it than most posts have is left to `fromFrame`, which reads all of them.
 */
import type { Frame } from '../../storage/journal.ts'
import { textIn, toUtf8, type Utf8 } from '../kernel/utf8.ts'
import { bodyOffset, isStub } from './record.ts'

/** What most posts are: signed by the author's own key, whole, with no attachments. */
export type StoredPost = {
  /** 43 characters of base64url. */
  readonly publicKey: string
  /** 86 characters of base64url. */
  readonly signature: string
  /** The signing bytes. */
  readonly signed: Utf8
  /** JSON texts in the signed command, quoted. */
  readonly text: Utf8
  readonly to: Utf8 | undefined
  readonly data: Utf8 | undefined
  /** 64 hex: the identity of the handle in `to`. */
  readonly toId: string | undefined
  readonly via: string
}

/** Undefined: it has to be decoded as a whole, as every later version of another post has. */
export function storedPost(frame: Frame): StoredPost | undefined {
  if (isStub(frame)) return undefined
  const found = new Walk(frame.payload, bodyOffset(frame)).post()
  if (found === undefined || found.signed === '') return undefined
  const { text, to, data, isPlain } = signedTexts(found.signed)
  return isPlain && text !== undefined ? { ...found, text, to, data } : undefined
}

type Found = Pick<StoredPost, 'publicKey' | 'signature' | 'signed' | 'toId' | 'via'>

/** A short name as a number, which no text has to be made for. */
function numberOf(name: string): number {
  let number = 0
  for (let at = 0; at < name.length; at++) number = number * 256 + name.charCodeAt(at)
  return number
}

const names = {
  ...{ by: numberOf('by'), via: numberOf('via'), to: numberOf('to') },
  ...{ blobs: numberOf('blobs'), format: numberOf('format') },
  ...{ key: numberOf('key'), sig: numberOf('sig'), signed: numberOf('signed') },
}
const namedMax = 6

/** Goes through the msgpack map of a body. `#at` < 0: it met something that no such map has. */
class Walk {
  readonly #bytes: Buffer
  #at: number

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes
    this.#at = at
  }

  post(): Found | undefined {
    let [via, toId, signer]: [string, string | undefined, ReturnType<Walk['signer']>] = ['', undefined, undefined]
    for (let left = this.#mapLength(); left > 0; left--) {
      const name = this.#name()
      if (name === names.by) {
        signer = this.signer()
        if (signer === undefined) return undefined
      } else if (name === names.via) via = this.#text() ?? ''
      else if (name === names.to) toId = this.#binary('hex')
      else if (name === names.blobs || name === names.format) return undefined
      else this.#skip()
      if (this.#at < 0) return undefined
    }
    return signer === undefined || via === '' ? undefined : { ...signer, toId, via }
  }

  /** Undefined where a delegate signed, or where something was cut out. */
  signer(): Pick<StoredPost, 'publicKey' | 'signature' | 'signed'> | undefined {
    let [publicKey, signature, signed] = ['', '', '']
    for (let left = this.#mapLength(); left > 0; left--) {
      const name = this.#name()
      if (name === names.key) publicKey = this.#binary('base64url') ?? ''
      else if (name === names.sig) signature = this.#binary('base64url') ?? ''
      else if (name === names.signed) signed = this.#binary('latin1') ?? ''
      else return undefined
    }
    return this.#at < 0 ? undefined : { publicKey, signature, signed }
  }

  /** Pairs of the map that begins here; 0: none begins. */
  #mapLength(): number {
    const type = this.#bytes[this.#at++]!
    if ((type & 0xf0) === 0x80) return type & 0x0f
    if (type !== 0xde) return 0
    this.#at += 2
    return this.#bytes.readUInt16BE(this.#at - 2)
  }

  /** The number of the name that begins here; 0: it is a longer one, which none of these is. */
  #name(): number {
    const length = this.#textLength()
    if (length < 0) {
      this.#at = -1
      return 0
    }
    const start = this.#at + 1
    this.#at = start + length
    if (length > namedMax) return 0
    let number = 0
    for (let at = start; at < this.#at; at++) number = number * 256 + this.#bytes[at]!
    return number
  }

  /** Of the short text that begins here; -1: none begins. */
  #textLength(): number {
    const type = this.#bytes[this.#at]!
    return (type & 0xe0) === 0xa0 ? type & 0x1f : -1
  }

  #text(): string | undefined {
    const length = this.#textLength()
    if (length < 0) return undefined
    const start = this.#at + 1
    this.#at = start + length
    return this.#bytes.toString('latin1', start, this.#at)
  }

  #binary(encoding: 'hex' | 'base64url' | 'latin1'): string | undefined {
    const start = this.#binaryStart()
    return start === undefined ? undefined : this.#bytes.toString(encoding, start, this.#at)
  }

  /** Goes past the bytes that begin here. */
  #binaryStart(): number | undefined {
    const type = this.#bytes[this.#at]!
    const sizeBytes = type === 0xc4 ? 1 : type === 0xc5 ? 2 : type === 0xc6 ? 4 : 0
    if (sizeBytes === 0) return undefined
    const start = this.#at + 1 + sizeBytes
    this.#at = start + this.#bytes.readUIntBE(this.#at + 1, sizeBytes)
    return start
  }

  /** A number, a text of up to 255 bytes, bytes or a boolean: with anything else the walk is at its end. */
  #skip(): void {
    const type = this.#bytes[this.#at]!
    const length = this.#textLength()
    const fixed = type < 0x80 ? 1 : fixedBytes.get(type)
    if (length >= 0) this.#at += 1 + length
    else if (fixed !== undefined) this.#at += fixed
    else if (type === 0xd9) this.#at += 2 + this.#bytes[this.#at + 1]!
    else if (this.#binaryStart() === undefined) this.#at = -1
  }
}

/** Type and value of msgpack's booleans, floats and integers. */
const fixedBytes: ReadonlyMap<number, number> = new Map([
  [0xc2, 1],
  [0xc3, 1],
  [0xca, 5],
  [0xcb, 9],
  [0xcc, 2],
  [0xcd, 3],
  [0xce, 5],
  [0xcf, 9],
])

type SignedTexts = { text?: Utf8; to?: Utf8; data?: Utf8; isPlain: boolean }

const begin = '"command":{'
const quote = 0x22
const backslash = 0x5c

/** The JSON texts of a command in its signing bytes. Not plain: it holds a list, or is not what `signingBytes` writes. */
function signedTexts(signed: Utf8): SignedTexts {
  const found: SignedTexts = { isPlain: false }
  let at = signed.indexOf(begin) + begin.length
  while (signed.charCodeAt(at) === quote) {
    const nameEnd = signed.indexOf('":', at + 1)
    const start = nameEnd + 2
    const end = nameEnd < 0 ? -1 : endOf(signed, start)
    if (end < 0) return found
    const name = signed.slice(at + 1, nameEnd)
    if (name === 'text' || name === 'to' || name === 'data') found[name] = asAnswered(signed.slice(start, end))
    if (signed[end] === '}') return { ...found, isPlain: end + 2 === signed.length }
    at = end + 1
  }
  return found
}

/** Position after the text or the number that begins here; -1: neither does. */
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

/** Signing bytes escape U+2028 and U+2029, which no answer does. */
function asAnswered(text: Utf8): Utf8 {
  return text.includes('\\u202') ? toUtf8(JSON.stringify(textIn(text))) : text
}
