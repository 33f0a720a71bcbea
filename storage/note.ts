/**
 * Signed notes: a short text and the signatures on it
 * (C2SP signed-note v1.0.0, the format of the Go checksum database).
 *
 *   <text>                              ends with LF; may have empty lines
 *                                       one empty line: the last one of the note
 *   — <name> <base64>                   one line or more: U+2014, space, name, space
 *
 * The base64 contains 4 bytes of key id (big-endian) and the signature. The signed bytes are the text including its
 * last LF. A key is identified by its name and its id:
 *
 *   key id   first 4 bytes of SHA-256(name || 0x0A || type || public key)
 *   vkey     <name>+<key id, 8 hex digits>+<base64 of type || public key>
 *
 *   type     signature in the line                     signed
 *   0x01     64 bytes Ed25519                          the text
 *   0x04     u64 seconds, big-endian || 64 Ed25519     "cosignature/v1\ntime <seconds>\n" || the text
 */
import { hash, type KeyObject, verify } from 'node:crypto'
import { decodeBase64, encodeBase64 } from './base64.ts'
import { publicKeyOf } from './ed25519.ts'
import { type Parsed, unreadable } from './parsed.ts'

/** Notes are read whole; one with post-quantum cosignatures of 5 kB each still fits. */
export const NOTE_BYTES_MAX = 64 * 1024
/** C2SP requires at least 16; Go reads 100. */
export const SIGNATURE_LINES_MAX = 100

/** One signature on a note: the claimed signer and key. The signature is not interpreted here. */
export type SignatureLine = { readonly name: string; readonly keyId: number; readonly signature: Buffer }

/** A parsed note. Nothing is verified yet. */
type Note = { readonly text: string; readonly lines: readonly SignatureLine[] }

/** Key types whose signatures can be verified here. */
export const KEY_TYPE = { ed25519: 0x01, cosignature: 0x04 } as const

/** A public key that the caller trusts, from a vkey. */
export type VerifierKey = {
  readonly name: string
  readonly keyId: number
  readonly type: (typeof KEY_TYPE)[keyof typeof KEY_TYPE]
  /** 32 bytes. */
  readonly publicKey: Buffer
  readonly key: KeyObject
}

/** A signer; the key itself stays with the code that created it. */
export type Signer = {
  readonly name: string
  readonly keyId: number
  /** Signs the bytes of a text. Returns the part of the line after the key id. */
  sign(text: Uint8Array): Uint8Array
}

const SEPARATOR = '\n\n'
const LINE_START = '\u2014 '
const ED25519_KEY_BYTES = 32
const ED25519_SIGNATURE_BYTES = 64
const COSIGNATURE_BYTES = 8 + ED25519_SIGNATURE_BYTES

/** The id of a key. It has only 32 bits, so it tells keys apart but proves nothing. */
export function keyIdOf(name: string, type: number, publicKey: Uint8Array): number {
  const input = Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(type), publicKey])
  return hash('sha256', input, 'buffer').readUInt32BE(0)
}

/** Whether a key may have this name: not empty, no white space, no '+', and nothing that a note cannot contain. */
export function isKeyName(name: string): boolean {
  return name !== '' && name.isWellFormed() && !/[\p{White_Space}+\x00-\x1f]/u.test(name)
}

/** A public key as one line that clients can pin. */
export function formatVkey(key: {
  readonly name: string
  readonly type: number
  readonly publicKey: Uint8Array
}): string {
  if (!isKeyName(key.name)) throw new RangeError(`${JSON.stringify(key.name)} is not a valid key name`)
  const keyId = keyIdOf(key.name, key.type, key.publicKey)
  return `${key.name}+${hex32(keyId)}+${encodeBase64(Buffer.concat([Buffer.of(key.type), key.publicKey]))}`
}

/** Parses a vkey and recomputes its id: an id that does not match the key is refused. */
export function parseVkey(vkey: string): Parsed<VerifierKey> {
  // The base64 may contain '+', so only the first two are separators.
  const [, name, id, material] = /^([^+]*)\+([^+]*)\+(.*)$/su.exec(vkey) ?? []
  if (name === undefined || id === undefined || material === undefined)
    return unreadable('a vkey must have the form <name>+<id>+<key>')
  if (!isKeyName(name)) return unreadable('the name in the vkey is not a valid key name')
  const bytes = decodeBase64(material)
  const type = bytes?.[0]
  if (bytes === undefined || type === undefined) return unreadable('the key in the vkey is not canonical base64')
  if (type !== KEY_TYPE.ed25519 && type !== KEY_TYPE.cosignature) return unreadable(`the vkey has unknown type ${type}`)
  if (bytes.length !== 1 + ED25519_KEY_BYTES) return unreadable('the key in the vkey is not 32 bytes')
  const publicKey = bytes.subarray(1)
  const keyId = keyIdOf(name, type, publicKey)
  if (id !== hex32(keyId)) return unreadable('the id in the vkey does not match its key')
  return { ok: true, value: { name, keyId, type, publicKey, key: publicKeyOf(publicKey) } }
}

/**
 * Formats a note.
 *
 * @throws RangeError if parsing the result would fail or give another text
 */
export function formatNote(text: string, lines: readonly SignatureLine[]): string {
  const signatures = lines.map((line) => {
    const id = Buffer.alloc(4)
    id.writeUInt32BE(line.keyId)
    return `${LINE_START}${line.name} ${encodeBase64(Buffer.concat([id, line.signature]))}\n`
  })
  const note = `${text}\n${signatures.join('')}`
  const parsed = parseNote(note)
  if (!parsed.ok) throw new RangeError(parsed.problem)
  if (parsed.value.text !== text) throw new RangeError('the text of a note must end with a line feed')
  return note
}

/** Signs a text and returns the whole note with this one signature. Throws like {@link formatNote}. */
export function signNote(text: string, signer: Signer): string {
  return formatNote(text, [signatureLine(text, signer)])
}

/** Signs a text and returns only the signature line, to be added to those of other signers. */
export function signatureLine(text: string, signer: Signer): SignatureLine {
  return { name: signer.name, keyId: signer.keyId, signature: Buffer.from(signer.sign(Buffer.from(text))) }
}

/** Parses a note, strictly: a text that is not exactly a note is refused. */
export function parseNote(note: Uint8Array | string): Parsed<Note> {
  const read = readText(note)
  if (!read.ok) return read
  const whole = read.value
  const split = whole.lastIndexOf(SEPARATOR)
  if (split < 0) return unreadable('a note must have an empty line before its signatures')
  const text = whole.slice(0, split + 1)
  const rest = whole.slice(split + SEPARATOR.length)
  if (!rest.endsWith('\n')) return unreadable('a note must end with signature lines')
  const rows = rest.slice(0, -1).split('\n')
  if (rows.length > SIGNATURE_LINES_MAX) return unreadable(`a note must have at most ${SIGNATURE_LINES_MAX} signatures`)
  const lines: SignatureLine[] = []
  for (const row of rows) {
    const line = parseLine(row)
    if (!line.ok) return line
    lines.push(line.value)
  }
  return { ok: true, value: { text, lines } }
}

/**
 * Which of these keys signed the note. Lines of other keys are ignored, and several lines of one key count once. One
 * line of a known key that does not verify invalidates the whole note. Without any good signature there is no result.
 */
export function verifyNote(note: Note, keys: readonly VerifierKey[]): Parsed<readonly VerifierKey[]> {
  const text = Buffer.from(note.text)
  const signedBy = new Set<VerifierKey>()
  for (const line of note.lines) {
    const key = keys.find((candidate) => candidate.name === line.name && candidate.keyId === line.keyId)
    if (key === undefined) continue
    if (!verifySignature(text, line.signature, key)) return unreadable(`the signature of ${key.name} is not valid`)
    signedBy.add(key)
  }
  return signedBy.size === 0 ? unreadable('no known key has signed the note') : { ok: true, value: [...signedBy] }
}

function verifySignature(text: Buffer, signature: Buffer, key: VerifierKey): boolean {
  if (key.type === KEY_TYPE.ed25519) {
    return signature.length === ED25519_SIGNATURE_BYTES && verify(null, text, key.key, signature)
  }
  if (signature.length !== COSIGNATURE_BYTES) return false
  const signed = cosignedBytes(text, signature.readBigUInt64BE(0))
  return verify(null, signed, key.key, signature.subarray(8))
}

/** The bytes that a witness signs for a checkpoint (C2SP tlog-cosignature v1). */
export function cosignedBytes(text: Uint8Array, seconds: bigint): Buffer {
  return Buffer.concat([Buffer.from(`cosignature/v1\ntime ${seconds}\n`), text])
}

function parseLine(row: string): Parsed<SignatureLine> {
  const [, name, base64] = /^\u2014 ([^ ]*) ([^ ]*)$/u.exec(row) ?? []
  if (name === undefined || base64 === undefined)
    return unreadable('a signature line must have the form "\u2014 <name> <base64>"')
  if (!isKeyName(name)) return unreadable('the name in a signature line is not a valid key name')
  const bytes = decodeBase64(base64)
  if (bytes === undefined) return unreadable('a signature is not canonical base64')
  if (bytes.length < 5) return unreadable('a signature is too short to have a key id')
  return { ok: true, value: { name, keyId: bytes.readUInt32BE(0), signature: bytes.subarray(4) } }
}

/** A note as text: valid UTF-8 of bounded length, without control characters except LF. */
function readText(note: Uint8Array | string): Parsed<string> {
  // A string has at least one byte of UTF-8 per code unit, so this bounds the work in both cases.
  if (note.length > NOTE_BYTES_MAX) return unreadable(`a note must have at most ${NOTE_BYTES_MAX} bytes`)
  const text = typeof note === 'string' ? note : decodeUtf8(note)
  if (text === undefined || !text.isWellFormed()) return unreadable('a note must be valid UTF-8')
  if (typeof note === 'string' && Buffer.byteLength(note) > NOTE_BYTES_MAX) {
    return unreadable(`a note must have at most ${NOTE_BYTES_MAX} bytes`)
  }
  return /[\x00-\x09\x0b-\x1f]/.test(text)
    ? unreadable('a note must not have control characters')
    : { ok: true, value: text }
}

/** A byte order mark is treated like any other character: signatures cover the exact bytes. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

function hex32(value: number): string {
  return value.toString(16).padStart(8, '0')
}
