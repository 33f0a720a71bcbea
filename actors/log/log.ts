/**
 * The log actor: turns every public record into a leaf of one Merkle tree, and signs each new size.
 *
 * Only this actor holds the log's key. Messages are only hints; the files are authoritative. A shard says how far its
 * journal is durable, and this actor reads the journal from where its own newest frame stopped. One batch is one frame
 * in the log's own journal: entries, new size, new root, the signed checkpoint and, per shard, the covered journal
 * range. After a failed sync the process exits.
 *
 * With several shards that frame is the commit point. It alone determines the order in which their records became
 * leaves, and nothing computed for it leaves this actor before its sync has returned. With one shard the order is that
 * of its journal, which is durable before this actor reads it. If a power cut removes frames from the end of the log,
 * they are rebuilt from that journal: the same leaves, and so the same root for every size that was signed. Therefore
 * the shard is notified of a frame when it is written, and a write is answered after only one sync. All others
 * (readers, witnesses, the mark, search, webhooks) are notified once the frame is synced.
 */

import type { Journal, JournalReader, NewFrame } from '../../storage/journal.ts'
import type { TreeWriter } from '../../storage/tree.ts'
import type { Cancel, Timers } from '../kernel/timers.ts'
import type { Head } from '../records/answer.ts'
import { entryText, textBytesMax, writeLogged } from '../records/entry.ts'
import { frameKey, keptEntries, PUBLIC } from '../records/record.ts'
import { encodeLogFrame, type LogFrame, logFrameType, type Range } from './frame.ts'

export type LogOptions = Pick<Timers, 'soon' | 'later'> & {
  readonly journal: Journal
  readonly tree: TreeWriter
  /** Readers of the shards' journals, by shard number. */
  readonly shards: readonly JournalReader[]
  /** Signs the checkpoint of a size and root; returns the whole signed note. */
  readonly sign: (size: number, root: Uint8Array) => string
  /** Writes the leaf hash of the entry (RFC 9162 2.1.1) into `into` at `at`. */
  readonly leafHash: (entry: Uint8Array, into: Buffer, at: number) => void
  /** Tells a shard what is covered now. */
  readonly confirm: (
    shard: number,
    range: { through: number; firstChange: number; firstLeaf: number; head: Head },
  ) => void
  /** Tells readers of the log, at a limited rate, that its journal is durable up to `seq`. */
  readonly published: (seq: number, head: Head, change: number) => void
  readonly entriesPerFrameMax: number
  /** Sync every frame before a shard is notified of it. Needed if other machines copy frames, which must then not be rebuilt after a crash. */
  readonly syncsFirst?: boolean
  /** The state after the newest frame, from `stateAfter`. */
  readonly start: LogState
}

/**
 * Pause between two syncs: a message that wakes a thread costs more than its contents, and a sync slows down those of
 * the shards. Readers follow the files, so they miss nothing.
 */
const publishPauseMs = 3
/**
 * Up to this many changes are made durable and published immediately, with the pause afterward. If the last sync
 * covered more, the pause comes first, so that readers get more with each message.
 */
const fewChangesMax = 2

export type LogState = {
  readonly size: number
  readonly change: number
  readonly checkpoint: string
  readonly covered: readonly number[]
}

/** State after a frame. Every frame names the position of every shard, so the newest one is sufficient. */
export function stateAfter(frame: LogFrame): LogState {
  const change = frame.ranges.reduce((sum, { changes }) => sum + changes, frame.firstChange - 1)
  return { size: frame.size, change, checkpoint: frame.checkpoint, covered: frame.ranges.map(({ last }) => last) }
}

export class Log {
  readonly #options: LogOptions
  readonly #durable: number[]
  readonly #covered: number[]
  #size: number
  #change: number
  #checkpoint: string
  #scheduled = false
  /** Frames are being made durable, or it is a pause: frames written now must wait. */
  #isHeld = false
  #cancelPause: Cancel | undefined
  /** The newest change that readers were notified of, and whether many came with it. */
  #published: number
  #cameMany = false
  readonly #batch: Batch

  constructor(options: LogOptions) {
    this.#options = options
    this.#batch = new Batch(options.entriesPerFrameMax)
    this.#size = options.start.size
    this.#change = options.start.change
    this.#published = this.#change
    this.#checkpoint = options.start.checkpoint
    this.#covered = [...options.start.covered]
    this.#durable = [...options.start.covered]
    if (options.tree.size !== this.#size)
      throw new Error(`the tree has ${options.tree.size} leaves, but the head covers ${this.#size}`)
  }

  get head(): Head {
    return { size: this.#size, checkpoint: this.#checkpoint }
  }

  get change(): number {
    return this.#change
  }

  covered(shard: number): number {
    return this.#covered[shard] ?? 0
  }

  /** How far each shard's journal is durable, according to the hints. */
  get hinted(): readonly number[] {
    return [...this.#durable]
  }

  /** A shard's journal is durable up to `through`. */
  hint(shard: number, through: number): void {
    if (through > (this.#durable[shard] ?? 0)) this.#durable[shard] = through
    if (this.#scheduled) return
    this.#scheduled = true
    this.#options.soon(() => this.#turn())
  }

  /** Reads everything hinted so far, in frames of at most `entriesPerFrameMax` entries, makes it durable, and notifies readers. */
  catchUp(): void {
    this.#cancelPause?.()
    this.#isHeld = true
    while (this.#behind()) this.#commit(this.#seal())
    this.#isHeld = false
    const { journal } = this.#options
    journal.sync()
    if (this.#hasNews()) this.#publish(journal.nextSeq - 1, this.head, this.#change)
  }

  /** Stops taking turns. Resolves when everything hinted is covered, durable and published to readers. */
  async stop(): Promise<void> {
    await this.#options.journal.idle()
    this.catchUp()
  }

  #turn(): void {
    this.#scheduled = false
    if (!this.#behind()) return
    this.#commit(this.#seal())
    if (!this.#behind()) return
    this.#scheduled = true
    this.#options.soon(() => this.#turn())
  }

  /** Whether frames were written that readers have not been notified of: each frame has a change. */
  #hasNews(): boolean {
    return this.#published < this.#change
  }

  #behind(): boolean {
    return this.#durable.some((through, shard) => through > (this.#covered[shard] ?? 0))
  }

  #commit(sealed: Sealed): void {
    const { journal, shards, syncsFirst } = this.#options
    if (sealed.frame === undefined) return this.#confirm(sealed)
    if (shards.length === 1 && syncsFirst !== true) journal.appendUnsynced([sealed.frame])
    else journal.append([sealed.frame])
    this.#confirm(sealed)
    if (this.#isHeld) return
    if (this.#cameMany) this.#pause()
    else this.#settle()
  }

  /** Makes the written frames durable in the background, then notifies readers. */
  #settle(): void {
    const { journal } = this.#options
    const seq = journal.nextSeq - 1
    const { head } = this
    const change = this.#change
    this.#isHeld = true
    journal.syncLater((failed) => {
      if (failed !== undefined) throw failed
      this.#cameMany = change - this.#published > fewChangesMax
      this.#publish(seq, head, change)
      if (this.#hasNews() || !this.#cameMany) this.#pause()
      else this.#isHeld = false
    })
  }

  #pause(): void {
    this.#isHeld = true
    this.#cancelPause = this.#options.later(() => {
      this.#isHeld = false
      if (this.#hasNews()) this.#settle()
    }, publishPauseMs)
  }

  #publish(seq: number, head: Head, change: number): void {
    this.#published = change
    this.#options.published(seq, head, change)
  }

  /** Appends what was hinted to the tree, signs the new size, and builds the frame that commits it. */
  #seal(): Sealed {
    const batch = this.#gather()
    const size = this.#size + batch.leaves
    const { tree } = this.#options
    if (batch.leaves > 0) tree.append(batch.hashes.subarray(0, batch.leaves * 32))
    const checkpoint = batch.leaves > 0 ? this.#options.sign(size, tree.root()) : this.#checkpoint
    // A turn that found only private frames advances the position without a frame: the next frame will record it.
    if (batch.changes === 0) return { batch, size, checkpoint, frame: undefined }
    const frame = encodeLogFrame({
      type: logFrameType,
      firstLeaf: this.#size,
      firstChange: this.#change + 1,
      size,
      root: tree.root(),
      ranges: batch.ranges,
      bundle: batch.bundle.subarray(0, batch.bundleLength),
      entries: batch.leaves,
      checkpoint,
    })
    return { batch, size, checkpoint, frame }
  }

  #confirm({ batch, size, checkpoint }: Sealed): void {
    let leaf = this.#size
    let change = this.#change + 1
    this.#size = size
    this.#checkpoint = checkpoint
    this.#change += batch.changes
    const head = this.head
    for (const range of batch.ranges) {
      this.#covered[range.shard] = range.last
      if (range.last < range.first) continue
      this.#options.confirm(range.shard, { through: range.last, firstChange: change, firstLeaf: leaf, head })
      leaf += range.leaves
      change += range.changes
    }
  }

  /** Reads the journals from where the newest frame stopped, in order of shard number. */
  #gather(): Batch {
    const batch = this.#batch
    batch.clear()
    for (const [shard, through] of this.#durable.entries()) {
      const first = (this.#covered[shard] ?? 0) + 1
      if (first > through || batch.full) {
        batch.range({ shard, first, last: first - 1, changes: 0, leaves: 0 })
        continue
      }
      const reader = this.#options.shards[shard]!
      reader.advance(through)
      let last = first - 1
      let changes = 0
      const leavesBefore = batch.leaves
      for (const frame of reader.scan(first, through)) {
        last = frame.seq
        if ((frame.flags & PUBLIC) === 0) continue
        changes++
        const key = frameKey(frame)
        for (const kept of keptEntries(frame)) batch.add(kept, key, this.#options.leafHash)
        if (batch.full) break
      }
      batch.range({ shard, first, last, changes, leaves: batch.leaves - leavesBefore })
    }
    return batch
  }
}

/** What a turn has gathered, and the frame that covers it; undefined if nothing public. */
type Sealed = {
  readonly batch: Batch
  readonly size: number
  readonly checkpoint: string
  readonly frame: NewFrame | undefined
}

/** A bundle buffer up to this size is reused for the next frame; a rare larger one is released. */
const bundleBytesKept = 4 * 1024 * 1024

/** Entries and leaf hashes gathered for one frame; its memory is reused for the next. */
class Batch {
  ranges: Range[] = []
  bundle = Buffer.allocUnsafe(64 * 1024)
  bundleLength = 0
  hashes = Buffer.allocUnsafe(256 * 32)
  leaves = 0
  changes = 0
  readonly #leavesMax: number
  #text = Buffer.allocUnsafe(1_024)

  constructor(leavesMax: number) {
    this.#leavesMax = leavesMax
  }

  clear(): void {
    this.ranges = []
    this.bundleLength = 0
    this.leaves = 0
    this.changes = 0
    if (this.bundle.length > bundleBytesKept) this.bundle = Buffer.allocUnsafe(64 * 1024)
  }

  get full(): boolean {
    return this.leaves >= this.#leavesMax
  }

  /** `kept`: an entry as stored in the record with this key. */
  add(kept: Buffer, key: Uint8Array, leafHash: LogOptions['leafHash']): void {
    if (this.bundleLength + 2 + kept.length + key.length > this.bundle.length) this.bundle = doubled(this.bundle)
    if ((this.leaves + 1) * 32 > this.hashes.length) this.hashes = doubled(this.hashes)
    const length = writeLogged(kept, key, this.bundle, this.bundleLength + 2)
    this.bundle.writeUInt16BE(length, this.bundleLength)
    this.bundleLength += 2 + length
    if (kept.length + textBytesMax > this.#text.length) this.#text = Buffer.allocUnsafe(kept.length + textBytesMax)
    leafHash(entryText(kept, key, this.#text), this.hashes, this.leaves * 32)
    this.leaves++
  }

  range(range: Range): void {
    this.ranges.push(range)
    this.changes += range.changes
  }
}

function doubled(buffer: Buffer<ArrayBuffer>): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafe(buffer.length * 2)
  larger.set(buffer)
  return larger
}
