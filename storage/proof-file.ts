/**
 * Proof files: everything needed to check, offline and at any later time, that an entry is in a log (C2SP tlog-proof,
 * extension .tlog-proof).
 *
 *   c2sp.org/tlog-proof@v1
 *   extra <base64>             at most once; not authenticated
 *   index <n>                  the leaf, from 0
 *   <base64 of 32 bytes>       the audit path, leaf's sibling first: 0 to 63 lines
 *                              one empty line
 *   <signed checkpoint>        a note, byte for byte
 */
import { decodeBase64, encodeBase64 } from './base64.ts'
import { type OpenCheckpoint, openCheckpoint, parseCheckpoint, parseCount } from './checkpoint.ts'
import { HASH_BYTES } from './merkle.ts'
import { verifyInclusion } from './merkle-verify.ts'
import { NOTE_BYTES_MAX, parseNote, type VerifierKey } from './note.ts'
import { type Parsed, unreadable } from './parsed.ts'

/** Maximum hashes in a path: C2SP's limit, enough for 2^63 leaves. */
export const PATH_HASHES_MAX = 63
/** Maximum bytes of `extra` before base64: an entry's signed bytes fit. */
export const EXTRA_BYTES_MAX = 64 * 1024
/** Maximum bytes of a whole file: the note, `extra` in base64, and the path. */
export const PROOF_FILE_BYTES_MAX = NOTE_BYTES_MAX + 96 * 1024

/** One leaf's proof, with the checkpoint that it is proved against. */
export type ProofFile = {
  readonly extra?: Uint8Array | undefined
  readonly index: number
  /** 32 bytes each, leaf's sibling first. */
  readonly path: readonly Uint8Array[]
  /** The signed note. */
  readonly checkpoint: string
}

const HEADER = 'c2sp.org/tlog-proof@v1'
const EXTRA = 'extra '
const INDEX = 'index '

/**
 * Formats a proof file.
 *
 * @throws RangeError if parsing the result would fail
 */
export function formatProofFile(proof: ProofFile): string {
  const lines = [HEADER]
  if (proof.extra !== undefined) lines.push(EXTRA + encodeBase64(proof.extra))
  lines.push(`${INDEX}${proof.index}`, ...proof.path.map(encodeBase64), '', proof.checkpoint)
  const file = lines.join('\n')
  const parsed = parseProofFile(file)
  if (!parsed.ok) throw new RangeError(parsed.problem)
  return file
}

/** Parses a proof file, strictly. Nothing is verified yet: see {@link verifyProofFile}. */
export function parseProofFile(file: Uint8Array | string): Parsed<ProofFile> {
  if (file.length > PROOF_FILE_BYTES_MAX)
    return unreadable(`a proof file must have at most ${PROOF_FILE_BYTES_MAX} bytes`)
  if (typeof file === 'string' && !file.isWellFormed()) return unreadable('a proof file must be valid UTF-8')
  // Bytes and Latin-1 lose nothing; parseNote decides whether the note is UTF-8.
  const bytes = typeof file === 'string' ? Buffer.from(file, 'utf8') : Buffer.from(file)
  const split = bytes.indexOf('\n\n')
  if (split < 0) return unreadable('a proof file must have an empty line before its checkpoint')
  const lines = bytes.toString('latin1', 0, split).split('\n')
  if (lines.shift() !== HEADER) return unreadable(`a proof file must begin with ${HEADER}`)
  const extra = lines[0]?.startsWith(EXTRA) ? decodeBase64(lines.shift()!.slice(EXTRA.length)) : null
  if (extra === undefined) return unreadable('the extra data is not canonical base64')
  if (extra !== null && extra.length > EXTRA_BYTES_MAX)
    return unreadable(`the extra data must have at most ${EXTRA_BYTES_MAX} bytes`)
  const indexLine = lines.shift() ?? ''
  const index = indexLine.startsWith(INDEX) ? parseCount(indexLine.slice(INDEX.length)) : undefined
  if (index === undefined) return unreadable('a proof file must have a line "index <n>"')
  const path = parsePath(lines)
  if (!path.ok) return path
  const checkpoint = parseSigned(bytes.subarray(split + 2))
  if (!checkpoint.ok) return checkpoint
  const proof = { index, path: path.value, checkpoint: checkpoint.value }
  return { ok: true, value: extra === null ? proof : { extra, ...proof } }
}

/**
 * Whether the leaf with this hash is in the log with this key. The result is the checkpoint that proves it.
 *
 * @param leafHash computed by the caller from their own entry, never taken from the file
 * @param witnesses as in {@link openCheckpoint}; how many of them are enough is the caller's policy
 */
export function verifyProofFile(
  proof: ProofFile,
  leafHash: Uint8Array,
  logKey: VerifierKey,
  witnesses: readonly VerifierKey[] = [],
): Parsed<OpenCheckpoint> {
  const checkpoint = openCheckpoint(proof.checkpoint, logKey, witnesses)
  if (!checkpoint.ok) return checkpoint
  const { size, root } = checkpoint.value
  const { index, path } = proof
  return verifyInclusion(index, size, leafHash, path, root)
    ? checkpoint
    : unreadable('the proof does not show that the entry is in the log')
}

function parsePath(lines: readonly string[]): Parsed<readonly Buffer[]> {
  if (lines.length > PATH_HASHES_MAX) return unreadable(`the path must have at most ${PATH_HASHES_MAX} hashes`)
  const path: Buffer[] = []
  for (const line of lines) {
    const hash = decodeBase64(line)
    if (hash?.length !== HASH_BYTES) return unreadable('a line of the path is not a valid hash')
    path.push(hash)
  }
  return { ok: true, value: path }
}

/** The note, if it has the form of a signed checkpoint. */
function parseSigned(bytes: Buffer): Parsed<string> {
  const note = parseNote(bytes)
  if (!note.ok) return note
  const checkpoint = parseCheckpoint(note.value.text)
  return checkpoint.ok ? { ok: true, value: bytes.toString() } : checkpoint
}
