/**
 * The feed: the read model of everything public, in the log's order.
 *
 * It follows the log's journal after its own cursor and reads each covered range from the shards' journals, so it shows a
 * record only when the frame that signs it is durable, and a lost hint costs time, never a record. A caller names
 * the change it has already seen; the feed catches up to that before it answers, so a reader never reads the past.
 */

import { Damage, type Frame, type JournalReader } from '../storage/journal.ts'
import { HASH_BYTES, leafHash } from '../storage/merkle.ts'
import type { Image } from '../storage/snapshot.ts'
import type { BookedLog, LogBook } from './log/book.ts'
import { decodeLogFrame, entriesIn, entriesOf, type LogFrame } from './log/frame.ts'
import { advanceTo, entriesBetween, noLeaf, type PublicRecord, publicRecords } from './log/public-records.ts'
import { leafBatches } from './log/tree.ts'
import type { Head } from './records/answer.ts'
import { Columns } from './records/columns.ts'
import { type BoardRecord, frameKey, fromFrame } from './records/record.ts'
import { State } from './state.ts'

type FeedOptions = {
  readonly log: JournalReader
  /** Readers of the shards' journals, by shard number. */
  readonly shards: readonly JournalReader[]
  /** The hash of a leaf of a log as its tree file has it. It may throw, or be wrong. */
  readonly leaf: (log: BookedLog, index: number) => Uint8Array
  /** State after a frame of the log to begin with. */
  readonly kept: { readonly seq: number; readonly state: State } | undefined
  /** Told of each frame of the log that is applied. */
  readonly onFollowed?: (seq: number) => void
  /** Called for each public record after it is applied, in order of `change`. */
  readonly onRecord: (record: BoardRecord, frame: Frame, change: number) => void
}

/**
 * Frames of the log that are made again together at most, to each side of the one that is asked for: some 300 KiB where each covers one
 * record. A bad sector has eight.
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

  /** The state after frame `applied` of the log. `isLive`: it goes on before the image is written. */
  pack(isLive = false): Image {
    return this.state.pack(null, new Columns([], isLive))
  }

  /** Applies the log's frames up to `through` (its journal's numbers), which are durable. */
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

  /** The public records that frame `seq` of the log, which is applied, covers; their frames are views that the next one overwrites. */
  recordsOf(seq: number): Generator<PublicRecord, void, void> {
    const { log, shards } = this.#options
    return publicRecords(log.read(seq)!, shards)
  }

  /** Sealed segments of this shard were rewritten. */
  reopen(shard: number): void {
    this.#options.shards[shard]?.reopen()
  }

  /** The frame that holds the body of an event. */
  body(shard: number, place: number): Frame {
    const frame = this.#options.shards[shard]?.read(place)
    if (frame === undefined) throw new Error(`journal ${shard} has no frame ${place}`)
    return frame
  }

  /** These events will be read next, with their records. */
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

  /** The newest head of the log that grows. */
  get head(): Head {
    return this.book.newest.head
  }

  /** The signed head of exactly this size of a log, or undefined when none was signed. */
  headOf(log: BookedLog, size: number): Head | undefined {
    const seq = log.frameOfSize(size)
    const frame = seq === undefined ? undefined : this.#options.log.read(seq)
    return frame === undefined ? undefined : { size, checkpoint: decodeLogFrame(frame).checkpoint }
  }

  /** The hashes of leaves start..end-1 of a log, one after the other, made from its entries. 0 <= start <= end <= its size. */
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

  /** Entries start..end-1 of a log with their u16 big-endian lengths, as a C2SP bundle has them. 0 <= start <= end <= its size. */
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
   * Those of the entries `start` to before `end` of a log that its frame with `start` has; where it is damaged, made again from the records
   * that it covers, with those of the damaged frames beside it. Throws Damage.
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
