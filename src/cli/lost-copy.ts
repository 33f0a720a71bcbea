/**
 * What a copy of a lost board knows that a backup does not. The copy is a mirror of its log, or an export, verified with the key of the log
 * that the backup has. Redactions are in the log of the lost board; key changes are in an export, with both signatures.
 */
import { statSync } from 'node:fs'
import { parseEntry } from '../../actors/records/entry.ts'
import { CompactRange, HASH_BYTES, LEVELS_MAX } from '../../storage/merkle.ts'
import { parseVkey, type VerifierKey } from '../../storage/note.ts'
import { TILE_WIDTH } from '../../storage/tile-path.ts'
import { readOnThisThread } from '../export-check/readers.ts'
import { type Fields, openPayload, recordOf, textOf } from '../export-check/signed-line.ts'
import { foreignJson } from '../format/foreign-json.ts'
import type { MovedKey } from '../lost-acts-file.ts'
import { CommandFailed, Unverified } from './command-line.ts'
import { openLines } from './lines.ts'
import { entriesIn, MirrorStore } from './mirror-store.ts'
import { verifyMirror } from './verify.ts'
import { verifyExport } from './verify-export.ts'

/** The log as in the backup. */
type OldLog = { readonly origin: string; readonly vkey: string; readonly size: number; readonly root: Uint8Array }

export type LostCopy = {
  /** Newest log in the copy, and its size there. */
  readonly origin: string
  readonly size: number
  /** Origins of all logs in the copy. */
  readonly origins: readonly string[]
  readonly redacted: readonly string[]
  /**
   * SHA-256 of files that were taken down, which only a mirror names. It includes files whose takedown ended; an operator must decide about
   * those.
   */
  readonly takenDown: readonly string[]
  readonly moved: readonly MovedKey[]
  /** Key changes that it names without the signed command. */
  readonly movedUnknown: number
  /** Tombstones of hidden texts. */
  readonly hidden: number
}

/** Throws CommandFailed, and Unverified if it is not a sound copy of this log. */
export async function readLostCopy(path: string, log: OldLog): Promise<LostCopy> {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new CommandFailed(`There is no copy ${path}.`)
  const key = parseVkey(log.vkey)
  if (!key.ok) throw new CommandFailed(key.problem)
  return found.isDirectory() ? fromMirror(path, log, key.value) : fromExport(path, log, key.value)
}

function fromMirror(path: string, { origin, vkey, size: from, root }: OldLog, key: VerifierKey): LostCopy {
  const store = new MirrorStore(path)
  const kept = store.text('vkey').trim()
  if (kept !== vkey)
    throw new CommandFailed(
      `${path} is ${kept === '' ? 'not a mirror' : `a mirror of another log (${kept})`}. Give a mirror of ${origin}, or an export, which has all logs of the board.`,
    )
  const { size } = verifyMirror(store, key, () => {})
  if (size >= from && !rootAt(store, from, size).equals(root))
    throw new Unverified(`The first ${from} entries of ${path} are not those of the backup, though both are signed.`)
  const redacted: string[] = []
  const takenDown = new Set<string>()
  let movedUnknown = 0
  for (let index = Math.floor(from / TILE_WIDTH); index * TILE_WIDTH < size; index++) {
    const width = Math.min(TILE_WIDTH, size - index * TILE_WIDTH)
    const entries = entriesIn(store.read({ kind: 'entries', level: 0, index, width })!)!
    for (const [n, entry] of entries.entries()) {
      if (index * TILE_WIDTH + n < from) continue
      const lines = parseEntry(entry)
      if (lines?.get('kind') === 'redact') redacted.push(lines.get('target')!)
      if (lines?.get('kind') === 'rotate') movedUnknown++
      if (lines?.get('action') === 'blob.takedown') takenDown.add(lines.get('target')!)
    }
  }
  return { origin, size, origins: [origin], redacted, takenDown: [...takenDown], moved: [], movedUnknown, hidden: 0 }
}

/** The root of the first `size` entries of a verified mirror of `of` entries. */
function rootAt(store: MirrorStore, size: number, of: number): Buffer {
  const range = new CompactRange()
  const nodes = Buffer.alloc(TILE_WIDTH * HASH_BYTES * 2 + LEVELS_MAX * HASH_BYTES)
  for (let index = 0; index * TILE_WIDTH < size; index++) {
    const width = Math.min(TILE_WIDTH, of - index * TILE_WIDTH)
    const hashes = store.read({ kind: 'hashes', level: 0, index, width })!
    range.append(hashes.subarray(0, (size - index * TILE_WIDTH) * HASH_BYTES), nodes)
  }
  return range.root()
}

async function fromExport(path: string, { origin, size: from }: OldLog, logKey: VerifierKey): Promise<LostCopy> {
  const report = await verifyExport({
    lines: openLines(path).lines(),
    reader: readOnThisThread(),
    logKey,
    progress: () => {},
  })
  if (report.first !== undefined)
    throw new Unverified(`${path}, line ${report.first.line}: ${report.first.reason}. Nothing from this copy is used.`)
  const { checkpoint, isSignedByLog } = report
  if (checkpoint === undefined || isSignedByLog !== true)
    throw new Unverified(
      `${path} has no end line that a log of this board signed. Give a complete export, made by "broadside export" or /v1/export.`,
    )
  const isNewer = (log: Fields): boolean =>
    log.state === 'included' && (log.origin !== origin || Number(log.index) >= from)
  const origins = new Set<string>([checkpoint.origin])
  const redacted: string[] = []
  const moved: MovedKey[] = []
  let hidden = 0
  for await (const { bytes } of openLines(path).lines()) {
    const line = recordOf(foreignJson(bytes.toString('utf8')))
    if (line.type === 'leaves') origins.add(textOf(line.origin))
    if (line.type === 'rotation' && isNewer(recordOf(line.log))) moved.push(moveIn(line))
    if (line.type !== 'tombstone') continue
    const redaction = recordOf(line.redaction)
    // Posts from after the backup are not in it, so they need no redaction.
    if (isNewer(recordOf(line.log))) continue
    if (line.redaction === undefined && line.hidden_by !== undefined) hidden++
    if (isNewer(recordOf(redaction.log))) redacted.push(textOf(line.event_id))
  }
  const { size } = checkpoint
  return {
    origin: checkpoint.origin,
    size,
    origins: [...origins],
    redacted,
    takenDown: [],
    moved,
    movedUnknown: 0,
    hidden,
  }
}

/** The command as sent, from a verified line. */
function moveIn(line: Fields): MovedKey {
  const payload = openPayload(line)
  if (typeof payload === 'string') throw new Unverified(payload)
  return { ...payload.command, signature: textOf(line.signature), proof: textOf(line.proof) } as MovedKey
}
