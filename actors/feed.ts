/**
 * The feed: the read model of everything public, in the log's order.
 *
 * It follows the log's journal after its own cursor and reads each covered range from the shards' journals, so it shows a
 * record only when the frame that signs it is durable, and a lost hint costs a moment, never a record. Whoever asks names
 * the change it has already seen; the feed catches up to that before it answers, so a reader never reads the past.
 */
import type { Frame, JournalReader } from '../storage/journal.ts'
import { HASH_BYTES } from '../storage/merkle.ts'
import { decodeLogFrame, entriesOf } from './log.ts'
import { leafBatches } from './log-tree.ts'
import { advanceTo, publicRecords } from './public-records.ts'
import { type BoardRecord, frameKey, fromFrame } from './record.ts'
import type { Head } from './shard.ts'
import { State } from './state.ts'

export type FeedOptions = {
  readonly log: JournalReader
  /** Readers of the shards' journals, by shard number. */
  readonly shards: readonly JournalReader[]
  /** State at a position of the log to begin with, as `pack` gave it. */
  readonly snapshot: { readonly seq: number; readonly bytes: Uint8Array } | undefined
  /** Called for each public record after it is applied, in order of `change`. */
  readonly onRecord: (record: BoardRecord, frame: Frame, change: number) => void
}

type PackedFeed = readonly [size: number, checkpoint: string, sizes: readonly number[], frames: readonly number[]]

export class Feed {
  readonly state: State
  readonly #options: FeedOptions
  #next = 1
  /** The newest head applied. */
  head: Head = { size: 0, checkpoint: '' }
  /** Every size that was signed, and the log frame that carries it. */
  readonly #sizes: number[] = []
  readonly #frames: number[] = []

  constructor(options: FeedOptions) {
    this.#options = options
    const kept = options.snapshot === undefined ? undefined : State.unpack(options.snapshot.bytes, 'reading')
    this.state = kept?.state ?? new State(undefined, 'reading')
    if (kept === undefined) return
    const [size, checkpoint, sizes, frames] = kept.more as PackedFeed
    this.#next = options.snapshot!.seq + 1
    this.head = { size, checkpoint }
    for (const each of sizes) this.#sizes.push(each)
    for (const each of frames) this.#frames.push(each)
    advanceTo(options.snapshot!.seq, options.log, options.shards)
  }

  /** Newest log frame applied. */
  get applied(): number {
    return this.#next - 1
  }

  /** The state after frame `applied` of the log. */
  pack(): Buffer {
    const more: PackedFeed = [this.head.size, this.head.checkpoint, this.#sizes, this.#frames]
    return this.state.pack(more)
  }

  /** Applies the log's frames up to `through` (its journal's numbers), which are durable. */
  follow(through: number): void {
    if (through < this.#next) return
    const { log } = this.#options
    log.advance(through)
    for (const frame of log.scan(this.#next, through)) {
      this.#apply(frame)
      this.#next = frame.seq + 1
    }
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

  /** The signed head of exactly this size, or undefined when none was signed. */
  headOf(size: number): Head | undefined {
    const at = this.#firstOf(size)
    if (this.#sizes[at] !== size) return undefined
    const frame = this.#options.log.read(this.#frames[at]!)
    return frame === undefined ? undefined : { size, checkpoint: decodeLogFrame(frame).checkpoint }
  }

  /** The hashes of leaves start..end-1, one after the other, made from the log's entries. 0 <= start <= end <= head.size. */
  leafHashes(start: number, end: number): Buffer {
    const hashes = Buffer.allocUnsafe((end - start) * HASH_BYTES)
    if (start === end) return hashes
    for (const { leaves, size } of leafBatches(this.#options.log.scan(this.#frames[this.#firstOf(start + 1)]!))) {
      const first = size - leaves.length / HASH_BYTES
      const from = Math.max(start, first)
      leaves.copy(hashes, (from - start) * HASH_BYTES, (from - first) * HASH_BYTES, (end - first) * HASH_BYTES)
      if (size >= end) break
    }
    return hashes
  }

  /** Entries start..end-1 with their u16 big-endian lengths, as a C2SP bundle has them. 0 <= start <= end <= head.size. */
  entries(start: number, end: number): Buffer {
    const parts: Buffer[] = []
    let at = start
    while (at < end) {
      const frame = decodeLogFrame(this.#options.log.read(this.#frames[this.#firstOf(at + 1)]!)!)
      let index = frame.firstLeaf
      for (const entry of entriesOf(frame)) {
        if (index >= start && index < end) parts.push(lengthOf(entry), entry)
        index++
      }
      at = index
    }
    return Buffer.concat(parts)
  }

  /** Index of the first signed size that is not smaller. */
  #firstOf(size: number): number {
    let low = 0
    let high = this.#sizes.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#sizes[middle]! < size) low = middle + 1
      else high = middle
    }
    return low
  }

  #apply(logFrame: Frame): void {
    for (const { frame, shard, change, leaf } of publicRecords(logFrame, this.#options.shards)) {
      const record = fromFrame(frame)
      this.state.apply(record, frameKey(frame), { shard, seq: frame.seq, change, leaf })
      this.#options.onRecord(record, frame, change)
    }
    const { size, checkpoint } = decodeLogFrame(logFrame)
    this.head = { size, checkpoint }
    if (this.#sizes.at(-1) === size) return
    this.#sizes.push(size)
    this.#frames.push(logFrame.seq)
  }
}

function lengthOf(entry: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(2)
  bytes.writeUInt16BE(entry.length)
  return bytes
}
