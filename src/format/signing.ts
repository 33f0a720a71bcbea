/**
 * The exact bytes that are signed for a command, and the ids derived from them.
 *
 * `{"version":1,"service":"<service_id>","command":{...}}`: compact UTF-8 JSON without a newline, the command's fields in one fixed order.
 * `signature` and `proof` are left out, as are empty strings, zeros and empty arrays (`operation` always stays). Strings are escaped as
 * JSON.stringify does (ECMA-262, QuoteJSONString), and U+2028 and U+2029 as \u2028 and \u2029.
 *
 * The bytes are written from the checked command, never taken from the wire: key order and white space of the request don't matter, and
 * what was signed is what was understood.
 */

import { hash } from 'node:crypto'

/** Published at /capabilities. Adding a field, or moving one, is a new signing version. */
export const FIELD_ORDER = [
  'operation',
  'room',
  'page',
  'text',
  'kind',
  'reply_to',
  'to',
  'request_id',
  'public_key',
  'timestamp',
  'nonce',
  'handle',
  'visibility',
  'members',
  'target',
  'amount',
  'ttl',
  'event_id',
  'cursor',
  'limit',
  'query',
  'before',
  'reason',
  'data',
  'filename',
  'media_type',
  'attachments',
] as const

const signingVersion = 1

type SignedField = (typeof FIELD_ORDER)[number]
export type FieldValue = string | number | readonly string[]

/**
 * A command as far as signing is concerned; field types are checked elsewhere. Strings must not contain lone surrogates, and numbers must
 * be safe integers.
 */
export type SignableCommand = { readonly operation: string } & {
  readonly [field in Exclude<SignedField, 'operation'> | 'signature' | 'proof']?: FieldValue | undefined
}

/** `,"field":` for each field, computed once. */
const labels: Readonly<Record<string, string>> = Object.fromEntries(
  FIELD_ORDER.map((field) => [field, `${field === 'operation' ? '' : ','}"${field}":`]),
)

/** The bytes that Ed25519 signs. Throws TypeError for a number that is not a safe integer. */
export function signingBytes(serviceId: string, command: SignableCommand): Buffer {
  const start = `{"version":${signingVersion},"service":${JSON.stringify(serviceId)},"command":`
  return toBytes(`${start}${orderedJson(command)}}`)
}

/** The id of what a command creates, and the hash from which it is cut; both lowercase hex. */
export function commandId(bytes: Uint8Array): { readonly eventId: string; readonly sha256: string } {
  const sha256 = hash('sha256', bytes, 'hex')
  return { eventId: sha256.slice(0, 32), sha256 }
}

function orderedJson(command: SignableCommand): string {
  let json = '{'
  for (const field of FIELD_ORDER) {
    const value = command[field]
    if (typeof value === 'string') {
      if (value !== '' || field === 'operation') json += labels[field]! + JSON.stringify(value)
    } else if (typeof value === 'number') {
      if (value !== 0) json += labels[field]! + integerText(field, value)
    } else if (value !== undefined && value.length > 0) {
      json += labels[field]! + JSON.stringify(value)
    }
  }
  return `${json}}`
}

function integerText(field: string, value: number): string {
  // String() would write 1e21 for such a number, and the signature would cover a text that the signer did not mean.
  if (!Number.isSafeInteger(value)) throw new TypeError(`${field}: ${value} is not a safe integer`)
  return String(value)
}

/** JSON has no U+2028 outside strings, so both characters can be escaped in the whole text. */
function toBytes(json: string): Buffer {
  if (!json.includes('\u2028') && !json.includes('\u2029')) return Buffer.from(json)
  return Buffer.from(json.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029'))
}

/** 258 bits in 43 characters: the last one carries 4 bits of the key and two zeros. */
const key43 = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/
/** 516 bits in 86 characters: the last one carries 2 bits of the signature and four zeros. */
const signature86 = /^[A-Za-z0-9_-]{85}[AQgw]$/
const hex32 = /^[0-9a-f]{32}$/
const hex64 = /^[0-9a-f]{64}$/

/**
 * Decodes 43 characters of base64url to 32 bytes; undefined if the text is not canonical.
 *
 * Each byte sequence has exactly one text on the wire (RFC 4648, 3.5 and 5). Node's decoder accepts padding, `+/`, spaces and stray bits in
 * the last character, so two texts could name one key.
 */
export function decodeBytes32(text: string): Buffer | undefined {
  return key43.test(text) ? Buffer.from(text, 'base64url') : undefined
}

/** 86 characters to 64 bytes; undefined if the text is not canonical. */
export function decodeBytes64(text: string): Buffer | undefined {
  return signature86.test(text) ? Buffer.from(text, 'base64url') : undefined
}

/** Any length, including the empty text; undefined if the text is not canonical. */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}

/** An event id: 32 lowercase hex characters. */
export function isHex32(text: string): boolean {
  return hex32.test(text)
}

/** An identity id or a whole SHA-256: 64 lowercase hex characters. */
export function isHex64(text: string): boolean {
  return hex64.test(text)
}

/** The identity of a key: hex SHA-256 of its 32 raw bytes. */
export function identityId(publicKey: Uint8Array): string {
  return hash('sha256', publicKey, 'hex')
}

/** More than a room may require (28), and small enough that the count stays a safe integer. */
const proofBitsMax = 40

/** No leading zeros, no sign: one text for each pair. 16 digits may exceed the safe integers; `parseProof` checks. */
const proofText = /^([1-9][0-9]?)\.(0|[1-9][0-9]{0,15})$/

type Proof = { readonly bits: number; readonly counter: number }

/** Undefined if the text is not a proof at all. Does not say whether the work was done. */
export function parseProof(text: string): Proof | undefined {
  const parts = proofText.exec(text)
  if (parts === null) return undefined
  const proof = { bits: Number(parts[1]), counter: Number(parts[2]) }
  return proof.bits <= proofBitsMax && Number.isSafeInteger(proof.counter) ? proof : undefined
}

/**
 * The number of bits of work that a `proof` shows for this command; 0 if the work was not done. `commandSha256`: 64 lowercase hex.
 *
 * `proof` is "<bits>.<counter>", both plain decimals, such that SHA-256("broadside-proof-v1\n<command_sha256>\n<counter>") begins with that
 * many zero bits. It covers the hash of the command, so a proof cannot be used twice, and checking it costs one hash.
 */
export function provenBits(text: string, commandSha256: string): number {
  const proof = parseProof(text)
  return proof !== undefined && zeroBits(commandSha256, proof.counter) >= proof.bits ? proof.bits : 0
}

/**
 * Does the work on this thread, starting at `counter`: 2^bits tries on average. Undefined after 64 times as many (a chance of one in e^64),
 * so that the loop ends.
 */
export function solveProof(commandSha256: string, bits: number, counter = 0): string | undefined {
  if (!Number.isInteger(bits) || bits < 1 || bits > proofBitsMax) throw new RangeError(`bits: 1 to ${proofBitsMax}`)
  const end = counter + 64 * 2 ** bits
  for (let tried = counter; tried < end; tried += 1) {
    if (zeroBits(commandSha256, tried) >= bits) return `${bits}.${tried}`
  }
  return undefined
}

/** Leading zero bits of the proof hash, 0 to 48: more is never required. */
function zeroBits(commandSha256: string, counter: number): number {
  const digest = hash('sha256', `broadside-proof-v1\n${commandSha256}\n${counter}`, 'buffer')
  const high = digest.readUInt32BE(0)
  return high !== 0 ? Math.clz32(high) : 32 + Math.clz32(digest.readUInt16BE(4)) - 16
}
