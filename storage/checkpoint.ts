/**
 * Checkpoints: what a log signs about itself (C2SP tlog-checkpoint v1.0.0).
 *
 *   <origin>          the name of the log, and of its key
 *   <size>            leaves, decimal, no leading zero
 *   <root>            standard base64 of 32 bytes
 *   [extension]...    lines that cannot be audited: read, never written
 *
 * Every line ends with LF. That text, signed, is a note (note.ts).
 */
import { decodeBase64, encodeBase64 } from './base64.ts'
import { EMPTY_ROOT, HASH_BYTES } from './merkle.ts'
import { isKeyName, parseNote, type VerifierKey, verifyNote } from './note.ts'
import { type Parsed, unreadable } from './parsed.ts'

/** Maximum bytes of an origin: the cosignature formats store its length in one byte. */
const ORIGIN_BYTES_MAX = 255

/** One state of one log. */
type Checkpoint = {
  readonly origin: string
  /** Leaves, below 2^53. */
  readonly size: number
  /** 32 bytes. */
  readonly root: Buffer
}

/** A checkpoint as parsed from another program's text. */
export type ParsedCheckpoint = Checkpoint & { readonly extensions: readonly string[] }

/**
 * Whether a log may have this origin. It is also the name of a key (no white space, no '+'), and must fit into 255
 * bytes. C2SP only advises against spaces; but a log whose origin has spaces cannot name its key after itself, and is
 * not supported here.
 */
export function isOrigin(origin: string): boolean {
  return isKeyName(origin) && Buffer.byteLength(origin) <= ORIGIN_BYTES_MAX
}

/**
 * The text to sign.
 *
 * @throws RangeError if no log can have this state
 */
export function formatCheckpoint(checkpoint: { origin: string; size: number; root: Uint8Array }): string {
  const { origin, size, root } = checkpoint
  if (!isOrigin(origin)) throw new RangeError(`${JSON.stringify(origin)} is not a valid log origin`)
  if (!Number.isSafeInteger(size) || size < 0) throw new RangeError(`${size} is not a valid log size`)
  if (root.length !== HASH_BYTES) throw new RangeError(`a root must have ${HASH_BYTES} bytes, not ${root.length}`)
  if (size === 0 && !EMPTY_ROOT.equals(root))
    throw new RangeError('the root of an empty log must be that of an empty tree')
  return `${origin}\n${size}\n${encodeBase64(root)}\n`
}

/** Parses the text of a checkpoint, strictly. Nothing is verified yet: see {@link openCheckpoint}. */
export function parseCheckpoint(text: string): Parsed<ParsedCheckpoint> {
  if (!text.endsWith('\n')) return unreadable('a checkpoint must end with a line feed')
  const [origin, count, root64, ...extensions] = text.slice(0, -1).split('\n')
  if (origin === undefined || count === undefined || root64 === undefined)
    return unreadable('a checkpoint must have at least three lines')
  if (!isOrigin(origin)) return unreadable('the first line is not a valid origin')
  const size = parseCount(count)
  if (size === undefined) return unreadable('the second line is not a valid size')
  const root = decodeBase64(root64)
  if (root?.length !== HASH_BYTES) return unreadable('the third line is not a valid root')
  if (extensions.includes('')) return unreadable('a checkpoint must not have empty lines')
  return { ok: true, value: { origin, size, root, extensions } }
}

/** A checkpoint with a verified signature of the log, and the trusted keys that signed it. */
export type OpenCheckpoint = ParsedCheckpoint & { readonly signedBy: readonly VerifierKey[] }

/**
 * Reads a signed checkpoint of the log that has this key.
 *
 * @param witnesses further trusted keys: those that signed are listed in the result, and an invalid signature of one of
 *   them invalidates the note
 */
export function openCheckpoint(
  note: Uint8Array | string,
  logKey: VerifierKey,
  witnesses: readonly VerifierKey[] = [],
): Parsed<OpenCheckpoint> {
  const parsed = parseNote(note)
  if (!parsed.ok) return parsed
  const checkpoint = parseCheckpoint(parsed.value.text)
  if (!checkpoint.ok) return checkpoint
  if (checkpoint.value.origin !== logKey.name) return unreadable('the checkpoint belongs to another log')
  const signedBy = verifyNote(parsed.value, [logKey, ...witnesses])
  if (!signedBy.ok) return signedBy
  if (!signedBy.value.includes(logKey)) return unreadable('the log itself has not signed the checkpoint')
  return { ok: true, value: { ...checkpoint.value, signedBy: signedBy.value } }
}

/** A decimal number below 2^53 without sign, leading zeros or surrounding characters. */
export function parseCount(text: string): number | undefined {
  const value = /^(?:0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : undefined
  return Number.isSafeInteger(value) ? value : undefined
}
