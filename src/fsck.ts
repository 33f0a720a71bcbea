/**
 * The full check of a data directory: everything that the log has signed is recomputed from the files.
 *
 * Each segment's bytes, chain and index; each log frame's entries against the records they were made from; every record
 * against the bytes its author signed; every root and checkpoint; every node hash. Nothing is changed here.
 */
import { createHash } from 'node:crypto'
import { parseEntry } from '../actors/entry.ts'
import { decodeLogFrame, entriesOf, type LogFrame } from '../actors/log-frame.ts'
import {
  commandSha,
  frameEntries,
  frameEntry,
  frameKey,
  fromFrame,
  isStub,
  joined,
  LEAF,
  PUBLIC,
  RecordType,
} from '../actors/record.ts'
import { openCheckpoint } from '../storage/checkpoint.ts'
import { type DiskFile, fileExists, openFile } from '../storage/disk.ts'
import { verifyJournal } from '../storage/fsck-journal.ts'
import { type Frame, JournalReader } from '../storage/journal.ts'
import { CompactRange, HASH_BYTES, writeLeafHash } from '../storage/merkle.ts'
import { parseVkey, type VerifierKey } from '../storage/note.ts'
import { createNoteKey } from '../storage/note-signer.ts'
import {
  blobsDirectory,
  logDirectory,
  logKeyFile,
  nodesFile,
  readFacts,
  readSecret,
  shardDirectory,
} from './board-directory.ts'
import { BlobCheck } from './fsck-blobs.ts'

const nothing = Buffer.alloc(0)

export type Finding = {
  /** `damage`: what was promised is not there. `derived`: made again at the next start. */
  readonly kind: 'damage' | 'derived'
  readonly where: string
  readonly what: string
}

export type FsckOptions = {
  readonly path: string
  readonly onFinding: (finding: Finding) => void
  readonly onProgress: (leaves: number, total: number) => void
  /** Checks an author's signature; left out, signatures are not checked. */
  readonly verify: ((signature: Uint8Array, message: Uint8Array, key: Uint8Array) => boolean) | undefined
}

export type FsckResult = {
  readonly frames: number
  readonly bytes: number
  readonly leaves: number
  readonly damages: number
}

export function checkBoard(options: FsckOptions): FsckResult {
  const facts = readFacts(options.path)
  let damages = 0
  const tell = (finding: Finding): void => {
    if (finding.kind === 'damage') damages++
    options.onFinding(finding)
  }
  const directories = [
    ...Array.from({ length: facts.shards }, (_, shard) => shardDirectory(options.path, shard)),
    logDirectory(options.path),
  ]
  let frames = 0
  let bytes = 0
  const ends: number[] = []
  for (const directory of directories) {
    const check = verifyJournal(directory, ({ kind, path, offset, expected, found }) =>
      tell({
        kind: kind === 'damage' ? 'damage' : 'derived',
        where: `${path} at byte ${offset}`,
        what: `${kind}: expected ${expected}, found ${found}`,
      }),
    )
    frames += check.frames
    bytes += check.bytes
    ends.push(check.nextSeq - 1)
  }
  if (damages > 0) return { frames, bytes, leaves: 0, damages }
  const vkey = parseVkey(createNoteKey(facts.origin, readSecret(logKeyFile(options.path))).vkey)
  if (!vkey.ok) throw new Error(vkey.problem)
  const leaves = new LogCheck(options, { ends, vkey: vkey.value, tell }).run()
  return { frames, bytes, leaves, damages }
}

type Setting = {
  readonly ends: readonly number[]
  readonly vkey: VerifierKey
  readonly tell: (finding: Finding) => void
}

class LogCheck {
  readonly #options: FsckOptions
  readonly #setting: Setting
  readonly #shards: JournalReader[]
  readonly #range = new CompactRange()
  readonly #covered: number[]
  readonly #blobs: BlobCheck
  readonly #nodes: DiskFile | undefined
  #nodesAt = 0
  #nodesAgree = true

  constructor(options: FsckOptions, setting: Setting) {
    this.#options = options
    this.#setting = setting
    const shards = setting.ends.length - 1
    this.#covered = Array<number>(shards).fill(0)
    this.#blobs = new BlobCheck(blobsDirectory(options.path), (where, what) => this.#damage(where, what))
    this.#shards = Array.from({ length: shards }, (_, shard) => {
      const reader = JournalReader.open(shardDirectory(options.path, shard))
      reader.advance(setting.ends[shard]!)
      return reader
    })
    const path = nodesFile(logDirectory(options.path))
    if (fileExists(path)) this.#nodes = openFile(path, 'read')
    else setting.tell({ kind: 'derived', where: path, what: 'missing: it is made again at the next start' })
  }

  /** Leaves checked. */
  run(): number {
    const { path, onProgress } = this.#options
    const through = this.#setting.ends.at(-1)!
    const log = JournalReader.open(logDirectory(path))
    log.advance(through)
    for (const frame of log.scan(1, through)) {
      this.#frame(frame)
      onProgress(frame.seq, through)
    }
    this.#blobs.end()
    log.close()
    for (const shard of this.#shards) shard.close()
    this.#nodes?.close()
    if (!this.#nodesAgree)
      this.#setting.tell({
        kind: 'derived',
        where: nodesFile(logDirectory(path)),
        what: 'node hashes differ from the recomputed ones: it is made again at the next start',
      })
    return this.#range.size
  }

  #frame(frame: Frame): void {
    const where = `log frame ${frame.seq}`
    const log = decodeLogFrame(frame)
    if (log.firstLeaf !== this.#range.size)
      this.#damage(where, `begins at leaf ${log.firstLeaf} after ${this.#range.size}`)
    const entries = [...entriesOf(log)]
    const made = this.#entriesFromShards(log, where)
    if (made.length !== entries.length || made.some((entry, i) => !entry.equals(entries[i]!)))
      this.#damage(where, 'its entries are not those of the records it covers')
    const hashes = Buffer.alloc(entries.length * HASH_BYTES)
    for (const [i, entry] of entries.entries()) writeLeafHash(entry, hashes, i * HASH_BYTES)
    const nodes = Buffer.alloc(hashes.length * 2 + HASH_BYTES * 54)
    this.#compareNodes(nodes.subarray(0, this.#range.append(hashes, nodes)))
    if (log.size !== this.#range.size || !log.root.equals(this.#range.root()))
      this.#damage(where, `its root at size ${log.size} is not that of its entries`)
    const opened = openCheckpoint(log.checkpoint, this.#setting.vkey)
    if (!opened.ok) this.#damage(where, `its checkpoint is not good: ${opened.problem}`)
    else if (opened.value.size !== log.size || !opened.value.root.equals(log.root))
      this.#damage(where, 'its checkpoint names another size or root')
  }

  #entriesFromShards(log: LogFrame, where: string): Buffer[] {
    const entries: Buffer[] = []
    for (const { shard, first, last, changes } of log.ranges) {
      const reader = this.#shards[shard]
      if (reader === undefined || last > this.#setting.ends[shard]!) {
        this.#damage(
          where,
          `it covers frame ${last} of shard ${shard}, whose journal ends at ${this.#setting.ends[shard] ?? 0}`,
        )
        continue
      }
      this.#covered[shard] = last
      let found = 0
      for (const frame of last < first ? [] : reader.scan(first, last)) {
        this.#record(frame, shard)
        if ((frame.flags & PUBLIC) !== 0) found++
        for (const entry of frameEntries(frame)) entries.push(Buffer.from(entry))
      }
      if (found !== changes)
        this.#damage(where, `it counts ${changes} changes of shard ${shard}, the journal has ${found}`)
    }
    return entries
  }

  /** A record must be what its author signed. */
  #record(frame: Frame, shard: number): void {
    const record = fromFrame(frame)
    if (record.by === undefined) return
    const where = `shard ${shard} frame ${frame.seq}`
    const file = this.#blobs.take(record, frameKey(frame).toString('hex'), where)
    const { by } = record
    // Of a command whose text or file is gone its hash is what is left.
    const isGone = isStub(frame) || (by.cut !== undefined && file === undefined)
    const bytes = isGone ? undefined : joined(by, file ?? nothing)
    const sha = bytes === undefined ? commandSha(by) : createHash('sha256').update(bytes).digest()
    if (!sha.subarray(0, 16).equals(frameKey(frame))) this.#damage(where, 'its id is not the hash of its signed bytes')
    if (record.type === RecordType.event && (frame.flags & LEAF) !== 0) {
      const entry = parseEntry(frameEntry(frame))
      const agrees =
        entry?.get('command') === sha.toString('hex') &&
        entry.get('room') === record.room &&
        entry.get('seq') === String(record.seq)
      if (!agrees) this.#damage(where, 'its log entry does not fit the record')
    }
    const { verify } = this.#options
    if (verify !== undefined && bytes !== undefined && !verify(by.sig, bytes, by.key))
      this.#damage(where, 'its signature is not good')
  }

  #compareNodes(expected: Buffer): void {
    if (this.#nodes === undefined || !this.#nodesAgree) return
    const found = Buffer.alloc(expected.length)
    const count = this.#nodes.readAt(found, this.#nodesAt)
    this.#nodesAt += expected.length
    if (count < expected.length || !found.equals(expected)) this.#nodesAgree = false
  }

  #damage(where: string, what: string): void {
    this.#setting.tell({ kind: 'damage', where, what })
  }
}
