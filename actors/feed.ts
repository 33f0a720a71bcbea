/**
 * The feed: the read model of everything public, in the log's order.
 *
 * It follows the log's journal with its own cursor and reads each covered range from the shards' journals. So it shows
 * a record only once the frame that signs it is durable, and a lost hint costs time, never a record. A caller names the
 * newest change it has seen; the feed catches up to that before it answers, so no reader sees a state older than one it
 * has already seen.
 */

import { Damage, type Frame, type JournalReader } from '../storage/journal.ts'
import { HASH_BYTES, leafHash } from '../storage/merkle.ts'
import type { Image } from '../storage/snapshot.ts'
import type { BookedLog, LogBook } from './log/book.ts'
import { decodeLogFrame, entriesIn, entriesOf, type LogFrame } from './log/frame.ts'
import {
  advanceTo,
  type CoveredRecord,
  entriesBetween,
  noLeaf,
  publicRecords,
  recordsOrDamage,
} from './log/public-records.ts'
import { leafBatches } from './log/tree.ts'
import type { Head } from './records/answer.ts'
import { Columns } from './records/columns.ts'
import { type BoardRecord, frameKey, fromFrame } from './records/record.ts'
import { State } from './state.ts'

type FeedOptions = {
  readonly log: JournalReader
  /** Readers of the shards' journals, by shard number. */
  readonly shards: readonly JournalReader[]
  /** The hash of a log's leaf, from its tree file. It may throw, or return a wrong hash. */
  readonly leaf: (log: BookedLog, index: number) => Uint8Array
  /** Saved state after a frame of the log to start from. */
  readonly kept: { readonly seq: number; readonly state: State } | undefined
  /** Called for each frame of the log after it is applied. */
  readonly onFollowed?: (seq: number) => void
  /** Called for each public record after it is applied, in order of `change`. */
  readonly onRecord: (record: BoardRecord, frame: Frame, change: number) => void
}

/**
 * Maximum damaged frames of the log that are rebuilt together, on each side of the requested one: some 300 KiB if each
 * covers one record. A bad sector holds eight such frames.
 */
const damagedTogetherMax = 1_024

export class Feed {
  readonly state: State
  readonly #options: FeedOptions
  #next = 1
  constructor(options: FeedOptions) {
    this.#options = options
    const { kept, log, shards } = options
    this.state = kept?.state ?? new State(undefined, 'reading')
    if (kept === undefined) return
    this.#next = kept.seq + 1
    advanceTo(kept.seq, log, shards)
  }

  /** Newest log frame applied. */
  get applied(): number {
    return this.#next - 1
  }

  /** The state after frame `applied` of the log. `isLive`: the state keeps changing before the image is written. */
  pack(isLive = false): Image {
    return this.state.pack(null, new Columns([], isLive))
  }

  /** Applies the log's frames up to `through` (a seq of its journal), which are durable. */
  follow(through: number): void {
    if (through < this.#next) return
    const { log } = this.#options
    log.advance(through)
    for (const frame of log.scan(this.#next, through)) {
      this.#apply(frame)
      this.#next = frame.seq + 1
      this.#options.onFollowed?.(frame.seq)
    }
  }

  /**
   * The public records covered by frame `seq` of the log, which is already applied, with damage in the place of those
   * that are damaged; their frames are views that the next one overwrites.
   */
  recordsOf(seq: number): Iterable<CoveredRecord> {
    const { log, shards } = this.#options
    return recordsOrDamage(seq, log, shards)
  }

  /** Call after sealed segments of this shard were rewritten. */
  reopen(shard: number): void {
    this.#options.shards[shard]?.reopen()
  }

  /** The frame that holds the body of an event. */
  body(shard: number, place: number): Frame {
    const frame = this.#options.shards[shard]?.read(place)
    if (frame === undefined) throw new Error(`journal ${shard} has no frame ${place}`)
    return frame
  }

  /** Hints that these events will be read next, with their records. */
  prefetch(slots: readonly number[]): void {
    const { events } = this.state.board
    events.prefetch(slots)
    const ofShards = Map.groupBy(slots, (slot) => events.shard(slot))
    for (const [shard, held] of ofShards) this.#options.shards[shard]?.prefetch(held.map((slot) => events.place(slot)))
  }

  /** Every log of the board, with the heads that were signed. */
  get book(): LogBook {
    return this.state.book
  }

  /** The newest head of the newest log. */
  get head(): Head {
    return this.book.newest.head
  }

  /** The signed head of a log at exactly this size, or undefined if none was signed. */
  headOf(log: BookedLog, size: number): Head | undefined {
    const seq = log.frameOfSize(size)
    const frame = seq === undefined ? undefined : this.#options.log.read(seq)
    return frame === undefined ? undefined : { size, checkpoint: decodeLogFrame(frame).checkpoint }
  }

  /** The hashes of leaves start..end-1 of a log, back to back, computed from its entries. 0 <= start <= end <= its size. */
  leafHashes(log: BookedLog, start: number, end: number): Buffer {
    try {
      return this.#leafHashes(log, start, end)
    } catch (error) {
      if (!(error instanceof Damage)) throw error
      const entries = entriesIn(this.entries(log, start, end))
      return Buffer.concat(entries.map((entry) => leafHash(entry)))
    }
  }

  #leafHashes(log: BookedLog, start: number, end: number): Buffer {
    const hashes = Buffer.allocUnsafe((end - start) * HASH_BYTES)
    if (start === end) return hashes
    const frames = this.#options.log.scan(log.frameOf(start), log.frameOf(end - 1))
    for (const { leaves, size } of leafBatches(frames)) {
      const first = size - leaves.length / HASH_BYTES
      const from = Math.max(start, first)
      leaves.copy(hashes, (from - start) * HASH_BYTES, (from - first) * HASH_BYTES, (end - first) * HASH_BYTES)
    }
    return hashes
  }

  /** Entries start..end-1 of a log with their u16 big-endian lengths, in the format of a C2SP bundle. 0 <= start <= end <= its size. */
  entries(log: BookedLog, start: number, end: number): Buffer {
    const parts: Buffer[] = []
    let at = start
    while (at < end) {
      const entries = this.#entriesOf(log, at, end)
      for (const entry of entries) parts.push(lengthOf(entry), entry)
      at += entries.length
    }
    return Buffer.concat(parts)
  }

  /**
   * The entries in the range from `start` to before `end` that are in the log frame with `start`. If that frame is
   * damaged, its entries are rebuilt from the records it covers, together with those of adjacent damaged frames. Throws
   * Damage.
   */
  #entriesOf(log: BookedLog, start: number, end: number): readonly Buffer[] {
    const seq = log.frameOf(start)
    try {
      const frame = this.#logFrame(seq)
      return [...entriesOf(frame, start - frame.firstLeaf, end - frame.firstLeaf)]
    } catch (error) {
      if (!(error instanceof Damage)) throw error
      const at = log.frames.indexOf(seq)
      const before = this.#firstReadable(log.frames.slice(Math.max(0, at - damagedTogetherMax), at).reverse())
      const after = this.#firstReadable(log.frames.slice(at + 1, at + 1 + damagedTogetherMax))
      if (before === undefined || after === undefined) throw error
      const found =
        entriesBetween({ before, after, leaf: (index) => this.#options.leaf(log, index) }, this.#options.shards) ??
        raise(error)
      return found.entries.slice(start - found.firstLeaf, end - found.firstLeaf)
    }
  }

  #firstReadable(seqs: readonly number[]): LogFrame | undefined {
    for (const seq of seqs)
      try {
        return this.#logFrame(seq)
      } catch (error) {
        if (!(error instanceof Damage)) throw error
      }
    return undefined
  }

  #logFrame(seq: number): LogFrame {
    return decodeLogFrame(this.#options.log.read(seq)!)
  }

  #apply(logFrame: Frame): void {
    const base = this.book.take(decodeLogFrame(logFrame), logFrame.seq)
    for (const { frame, shard, change, leaf } of publicRecords(logFrame, this.#options.shards)) {
      const record = fromFrame(frame)
      const place = { shard, seq: frame.seq, change, leaf: leaf === noLeaf ? leaf : base + leaf }
      this.state.apply(record, frameKey(frame), place)
      this.#options.onRecord(record, frame, change)
    }
  }
}

function raise(error: Damage): never {
  throw error
}

function lengthOf(entry: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(2)
  bytes.writeUInt16BE(entry.length)
  return bytes
}
