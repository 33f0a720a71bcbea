/**
 * The journal: a sequence of segments read as one list of frames, numbered from 1 without gaps, with a single writer
 * thread.
 *
 * A batch is one write and one fdatasync; when `append` returns, the batch survives a power cut. Only data that can be
 * rebuilt from durable bytes may be written without a sync (`appendUnsynced`). Each frame states how far the journal
 * was synced when the frame was written; recovery cuts a damaged tail if no frame vouches for it. When the active
 * segment is full, a roll writes: footer -> index of the sealed segment (derived) -> header of the next segment and its
 * name -> the batch. Each is durable before the next, so a crash between any two leaves a valid state.
 *
 * Some batches are followed by zeros that reserve space for later ones: syncing a file that does not grow has no new
 * size and no new blocks to record. The newest segment of a running or killed board may therefore end in zeros; sealing
 * and closing cut them off.
 *
 * A decision is acknowledged only when it is on disk. After a failed write or sync the journal is poisoned permanently.
 * Its owner must reopen it with `Journal.open`, which trusts only what is on disk.
 */
import { randomBytes } from 'node:crypto'
import { Chain } from './chain.ts'
import { type CompactionStep, compactSegment, removeUnfinished } from './compaction.ts'
import { Damage, type Disk, type DiskFile, DiskFull, isUnreadable } from './disk.ts'
import { type Durable, markedDurable, newestDurable } from './durable-mark.ts'
import {
  encodeFrame,
  FRAME_BYTES_LIMIT,
  FRAME_HEADER_BYTES,
  type Frame,
  frameRefusal,
  KEY_BYTES,
  type NewFrame,
} from './frame.ts'
import { LiveIndex } from './live-index.ts'
import { type ActiveSegment, type Recovered, type RecoveryEvent, recover, removeSavedTails } from './recovery.ts'
import { scanFrames } from './scan.ts'
import { buildIndex, type SealedFacts } from './sealed-index.ts'
import { type ScanPlace, SealedSegments } from './sealed-segments.ts'
import {
  encodeFooter,
  encodeSegmentHeader,
  FOOTER_BYTES,
  indexPath,
  readFrameAt,
  SEGMENT_BYTES_LIMIT,
  seedOf,
  segmentPath,
} from './segment.ts'

export { Damage, DiskFull, SyncFailed } from './disk.ts'
export { type Frame, KEYED, type NewFrame, STUB } from './frame.ts'
export { JournalReader, journalIdIn } from './journal-reader.ts'

/** A segment is the unit of sealing, indexing and scrubbing. Reading 64 MiB takes a fraction of a second. */
const segmentBytesDefault = 64 * 1024 * 1024
const frameBytesDefault = 8 * 1024 * 1024

/** A whole batch is built in memory; a larger one is a bug in the caller. */
const batchBytesMax = 256 * 1024 * 1024

/**
 * Bounds on preallocated space, which otherwise equals the current size of the segment. A small journal gets little. In
 * a large one, only one sync in fifty pays for allocation.
 */
const preallocatedBytesMin = 64 * 1024
const preallocatedBytesMax = 1024 * 1024
const zeros = Buffer.alloc(preallocatedBytesMax)

/** The batch buffer is retained up to this size; a rare larger one is released. */
const batchBytesKept = 4 * 1024 * 1024

export type JournalEvent =
  | RecoveryEvent
  /** An index was missing or did not match its segment, and was rebuilt. */
  | { readonly kind: 'index-rebuilt'; readonly path: string }
  /** The index could not be written (disk full or failing). It stays in memory and is rebuilt when needed. */
  | { readonly kind: 'index-not-kept'; readonly path: string }
  | { readonly kind: 'segment-sealed'; readonly path: string; readonly firstSeq: number; readonly count: number }

export type JournalOptions = {
  readonly disk: Disk
  readonly directory: string
  /** A segment is sealed before a batch that would exceed this size; a batch never spans two segments. Default 64 MiB. */
  readonly segmentBytesMax?: number
  /** Largest accepted frame, header plus payload. Default 8 MiB, at most FRAME_BYTES_LIMIT. */
  readonly frameBytesMax?: number
  readonly report?: (event: JournalEvent) => void
  /** Accepts frames copied from another journal, including stubs. */
  readonly takesStubs?: boolean
  /** This journal copies one on another machine, including stubs: segments end only where those of the original do, by `roll`. */
  readonly isCopy?: boolean
  /** Generates the id of a new journal; random by default. */
  readonly random?: (bytes: number) => Buffer
  /** The newest frame of the journal with this id that some source outside its directory says was durable. */
  readonly knownDurable?: (journalId: Buffer) => Durable
}

const nothingDurable: Durable = { seq: 0, by: '' }

/** An earlier append failed (`cause`): what is on disk is unknown until the journal is reopened. */
class Poisoned extends Error {
  constructor(directory: string, cause: unknown) {
    super(`the journal in ${directory} is poisoned by an earlier failure; open it again`, { cause })
    this.name = 'Poisoned'
  }
}

export class Journal {
  /** 16 random bytes, the same in every segment header of this journal. */
  readonly id: Buffer
  readonly #directory: string
  readonly #segmentBytesMax: number
  readonly #frameBytesMax: number
  readonly #takesStubs: boolean
  readonly #isCopy: boolean
  readonly #disk: Disk
  readonly #report: (event: JournalEvent) => void
  readonly #sealed: SealedSegments
  #active: ActiveSegment | undefined
  /** Chain hash of the segments before the active one. */
  #chainBefore: Buffer
  #nextSeq: number
  /** Newest frame covered by a sync. */
  #durableSeq: number
  /**
   * Newest frame known to be durable in the journal that this one is checked against; 0 if none is. Recorded in every
   * frame written from now on.
   */
  peerSeq = 0
  /** The file being synced in the background. */
  #syncing: DiskFile | undefined
  /** The position up to which the active segment has been written, including preallocated zeros. */
  #filled = 0
  #batch = Buffer.allocUnsafe(64 * 1024)
  #poison: Poisoned | undefined
  #isAppending = false
  readonly #whenIdle: (() => void)[] = []

  /**
   * Recovers and opens the journal. Cuts only a torn tail (first saved to `lost+tail/`). One process and thread at a
   * time: hold the lock (lock.ts). Throws Damage if durable bytes have changed, DiskFull, SyncFailed or a system error.
   */
  static open(options: JournalOptions): Journal {
    const report = options.report ?? (() => {})
    const { disk, directory, knownDurable = () => nothingDurable, random = randomBytes } = options
    const known = (id: Buffer) => newestDurable(knownDurable(id), markedDurable(disk, directory, id))
    const recovered = recover({ disk, random, directory, knownDurable: known, report })
    removeUnfinished(disk, directory)
    const journal = new Journal(options, recovered)
    try {
      journal.#sealed.checkIndexes()
      // The id must outlive this process even if nothing is ever appended.
      if (journal.#nextSeq === 1 && !journal.#active) journal.#startSegment()
    } catch (error) {
      journal.close()
      throw error
    }
    return journal
  }

  private constructor(options: JournalOptions, recovered: Recovered) {
    const { segmentBytesMax = segmentBytesDefault, frameBytesMax = frameBytesDefault } = options
    if (segmentBytesMax > SEGMENT_BYTES_LIMIT - batchBytesMax)
      throw new RangeError(`segmentBytesMax ${segmentBytesMax} is too large`)
    if (frameBytesMax > FRAME_BYTES_LIMIT) throw new RangeError(`frameBytesMax ${frameBytesMax} is too large`)
    this.id = recovered.journalId
    this.#directory = options.directory
    this.#segmentBytesMax = segmentBytesMax
    this.#frameBytesMax = frameBytesMax
    this.#isCopy = options.isCopy === true
    this.#takesStubs = options.takesStubs === true || this.#isCopy
    this.#disk = options.disk
    this.#report = options.report ?? (() => {})
    const keepIndex = (path: string, bytes: Buffer) => {
      this.#keepIndex(path, bytes)
      this.#report({ kind: 'index-rebuilt', path })
    }
    this.#sealed = new SealedSegments({ disk: this.#disk, directory: this.#directory, keepIndex })
    for (const { firstSeq, count } of recovered.sealed) this.#sealed.add(firstSeq, count)
    this.#active = recovered.active
    this.#filled = recovered.active?.live.end ?? 0
    this.#chainBefore = recovered.chain
    this.#nextSeq = recovered.active?.live.nextSeq ?? this.#sealed.nextSeq
    this.#durableSeq = this.#nextSeq - 1
  }

  /** Seq of the next frame; all before it are durable, except those written by `appendUnsynced`. */
  get nextSeq(): number {
    return this.#nextSeq
  }

  get durableSeq(): number {
    return this.#durableSeq
  }

  /**
   * Makes a batch durable as a whole and returns the seq of its first frame (`nextSeq` for an empty batch).
   *
   * Throws RangeError for an invalid frame and DiskFull when there is no space; in both cases nothing of the batch
   * remains and the journal stays usable. Any other error (SyncFailed, a system error) poisons it permanently: the
   * outcome of this batch is unknown, and every later append throws Poisoned. Reads work in all cases.
   */
  append(frames: readonly NewFrame[]): number {
    const firstSeq = this.#nextSeq
    if (frames.length === 0 && !this.#poison) return firstSeq
    const active = this.#write(frames)
    try {
      active.file.sync()
    } catch (error) {
      this.#afterFailure(error)
      throw error
    }
    this.#add(active, frames)
    this.#durableSeq = this.#nextSeq - 1
    return firstSeq
  }

  /**
   * Writes a batch that `syncLater` makes durable. It can be read immediately and survives the end of this process, but
   * not a power cut. Use it only for data that can be rebuilt identically from durable bytes. Throws as `append` does.
   */
  appendUnsynced(frames: readonly NewFrame[]): void {
    this.#add(this.#write(frames), frames)
  }

  /** Makes all frames written so far durable in the background; `done` as for `appendLater`. One call at a time. */
  syncLater(done: (failed?: Error) => void): void {
    if (this.#poison) throw this.#poison
    if (this.#syncing !== undefined) throw new Error('a sync of this journal is already pending')
    const file = this.#active?.file
    const seq = this.#nextSeq - 1
    if (file === undefined || this.#durableSeq === seq) return done()
    this.#syncing = file
    file.syncLater((failed) => {
      this.#syncing = undefined
      // A segment sealed in the meantime left its file open for this sync to close.
      if (file !== this.#active?.file) file.close()
      if (failed === undefined) this.#durableSeq = Math.max(this.#durableSeq, seq)
      else this.#afterFailure(failed)
      done(failed)
      this.#resolveIdle()
    })
  }

  /** Makes all frames written so far durable. Throws as `append` does. */
  sync(): void {
    if (this.#poison) throw this.#poison
    if (this.#durableSeq === this.#nextSeq - 1) return
    try {
      this.#active?.file.sync()
    } catch (error) {
      this.#afterFailure(error)
      throw error
    }
    this.#durableSeq = this.#nextSeq - 1
  }

  /**
   * `append` in the background: the batch is written immediately; `done` is called when it is durable, or with the
   * error that poisoned the journal. Throws as `append` does for errors before or during the write. Until `done`, the
   * batch cannot be read, and nothing else may be appended or compacted.
   */
  appendLater(frames: readonly NewFrame[], done: (failed?: Error) => void): void {
    const active = this.#write(frames)
    this.#isAppending = true
    active.file.syncLater((failed) => {
      this.#isAppending = false
      if (failed === undefined) {
        this.#add(active, frames)
        this.#durableSeq = this.#nextSeq - 1
      } else this.#afterFailure(failed)
      done(failed)
      this.#resolveIdle()
    })
  }

  /** A batch has been written but is not durable yet. */
  get isAppending(): boolean {
    return this.#isAppending
  }

  /** Resolves when no append and no sync is pending, after its `done`. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenIdle.push(resolve)
      this.#resolveIdle()
    })
  }

  #resolveIdle(): void {
    if (this.#isAppending || this.#syncing !== undefined) return
    for (const resolve of this.#whenIdle.splice(0)) resolve()
  }

  /** Writes a batch after the existing frames. It cannot be found until `#add`. */
  #write(frames: readonly NewFrame[]): ActiveSegment {
    if (this.#poison) throw this.#poison
    if (this.#isAppending) throw new Error('a batch is already being appended to this journal')
    const batchBytes = this.#measure(frames)
    try {
      const active = this.#segmentFor(batchBytes)
      const bytes = this.#encode(frames, batchBytes, active)
      active.file.writeAt(bytes, active.live.end)
      this.#preallocate(active, active.live.end + batchBytes)
      return active
    } catch (error) {
      this.#afterFailure(error)
      throw error
    } finally {
      if (this.#batch.length > batchBytesKept) this.#batch = Buffer.allocUnsafe(batchBytesKept)
    }
  }

  /** Makes a written batch readable. */
  #add(active: ActiveSegment, frames: readonly NewFrame[]): void {
    for (const [i, frame] of frames.entries()) {
      active.live.add(FRAME_HEADER_BYTES + frame.payload.length, frame.flags, frame.payload)
      active.chain.add(this.#nextSeq + i, frame.type, frame.flags, frame.payload)
    }
    this.#nextSeq += frames.length
  }

  #measure(frames: readonly NewFrame[]): number {
    let batchBytes = 0
    for (const frame of frames) {
      const refusal = frameRefusal(frame, this.#frameBytesMax, this.#takesStubs)
      if (refusal) throw new RangeError(refusal)
      batchBytes += FRAME_HEADER_BYTES + frame.payload.length
    }
    if (batchBytes > batchBytesMax)
      throw new RangeError(`a batch has ${batchBytes} bytes; the maximum is ${batchBytesMax}`)
    return batchBytes
  }

  #encode(frames: readonly NewFrame[], batchBytes: number, { seed, isOld }: ActiveSegment): Buffer {
    if (batchBytes > this.#batch.length) this.#batch = Buffer.allocUnsafe(Math.max(batchBytes, this.#batch.length * 2))
    const durableSeq = this.#durableSeq
    // An older release that reopens this segment would not understand the packed field.
    const peerSeq = isOld ? 0 : this.peerSeq
    let at = 0
    let seq = this.#nextSeq
    for (const frame of frames) {
      at = encodeFrame(this.#batch, at, frame, { seq, durableSeq, peerSeq, seed })
      seq++
    }
    return this.#batch.subarray(0, batchBytes)
  }

  /** Preallocates space after `end` if there is none. On a full disk it does nothing. */
  #preallocate({ file }: ActiveSegment, end: number): void {
    if (end <= this.#filled) return
    this.#filled = end
    const bytes = Math.min(Math.max(end, preallocatedBytesMin), preallocatedBytesMax, this.#segmentBytesMax - end)
    if (bytes <= 0) return
    try {
      file.writeAt(zeros.subarray(0, bytes), end)
      this.#filled += bytes
    } catch (error) {
      if (!(error instanceof DiskFull)) throw error
      file.truncate(end)
    }
  }

  /** Truncates the file after its last frame. */
  #cutToFrames({ file, live }: ActiveSegment): void {
    file.truncate(live.end)
    this.#filled = live.end
  }

  // Only a full disk leaves a known state: nothing was synced, so cutting back to the last frame undoes the write.
  #afterFailure(error: unknown): void {
    let cause = error
    if (error instanceof DiskFull) {
      try {
        if (this.#active) this.#cutToFrames(this.#active)
        return
      } catch (second) {
        cause = second
      }
    }
    this.#poison = new Poisoned(this.#directory, cause)
  }

  /** The segment for a batch of this size; seals a full one and starts the next. */
  #segmentFor(batchBytes: number): ActiveSegment {
    const active = this.#active
    if (active) {
      const { live } = active
      const fits = this.#isCopy || live.end + batchBytes + FOOTER_BYTES <= this.#segmentBytesMax
      if (live.count === 0 || (fits && !active.isOld)) return active
      this.#seal(active)
    }
    // With no active segment, an earlier roll stopped halfway: for lack of space, or because of a crash.
    return this.#startSegment()
  }

  #seal(active: ActiveSegment): void {
    const { file, live } = active
    const chain = active.chain.digest()
    // A footer states that everything before it was durable when it was written.
    this.sync()
    if (this.#filled > live.end) this.#cutToFrames(active)
    file.writeAt(encodeFooter({ count: live.count, chain }, live.nextSeq, active.seed), live.end)
    file.sync()
    // While a sync is pending, a closed descriptor's number could be reused for another file.
    if (this.#syncing !== file) file.close()
    this.#active = undefined
    this.#chainBefore = chain
    this.#sealed.add(live.firstSeq, live.count)
    const { firstSeq, count } = live
    const facts: SealedFacts = { journalId: this.id, firstSeq, count, segmentBytes: live.end + FOOTER_BYTES, chain }
    this.#keepIndex(indexPath(this.#directory, firstSeq), buildIndex(live, facts))
    this.#report({ kind: 'segment-sealed', path: file.path, firstSeq, count })
  }

  // An index is a cache: the journal works without it when there is no space.
  #keepIndex(path: string, bytes: Buffer): void {
    try {
      this.#disk.writeAtomic(path, bytes)
    } catch (error) {
      if (!(error instanceof DiskFull) && !isUnreadable(error)) throw error
      this.#report({ kind: 'index-not-kept', path })
    }
  }

  #startSegment(): ActiveSegment {
    const firstSeq = this.#nextSeq
    const path = segmentPath(this.#directory, firstSeq)
    const file = this.#disk.openFile(path, 'create')
    try {
      // Must be durable before any frame follows: recovery treats a file without a header as one that never began.
      file.writeAt(encodeSegmentHeader({ journalId: this.id, firstSeq, previousChain: this.#chainBefore }), 0)
      file.sync()
      this.#disk.syncDirectory(this.#directory)
    } catch (error) {
      file.close()
      if (error instanceof DiskFull) this.#disk.removeFile(path)
      throw error
    }
    const seed = seedOf(this.id)
    this.#active = { file, live: new LiveIndex(firstSeq), chain: new Chain(this.#chainBefore), seed, isOld: false }
    this.#filled = this.#active.live.end
    return this.#active
  }

  /** Deletes the tails that recovery cut off this journal and saved. */
  removeSavedTails(): void {
    removeSavedTails(this.#disk, this.#directory)
  }

  /** Seals the active segment, unless it is empty, and starts the next one. Throws as `append` does. */
  roll(): void {
    if (this.#poison) throw this.#poison
    if (this.#isAppending) throw new Error('cannot seal a segment while a batch is pending')
    try {
      if (this.#active !== undefined && this.#active.live.count > 0) this.#seal(this.#active)
      if (this.#active === undefined) this.#startSegment()
    } catch (error) {
      this.#afterFailure(error)
      throw error
    }
  }

  /** What `chain` will return after these frames are appended. `rolls`: the seqs at which a segment begins. */
  chainWith(frames: readonly NewFrame[], rolls: readonly number[]): Buffer {
    let chain = this.#active?.chain.copy() ?? new Chain(this.#chainBefore)
    for (const [i, { type, flags, payload }] of frames.entries()) {
      const seq = this.#nextSeq + i
      if (rolls.includes(seq)) chain = new Chain(chain.digest())
      chain.add(seq, type, flags, payload)
    }
    return chain.digest()
  }

  /** A copy never seals a segment on its own, so frames in its newest segment must wait. */
  mayCompact(seq: number): boolean {
    return !this.#isCopy || seq < (this.#active?.live.firstSeq ?? this.#nextSeq)
  }

  /** One frame in its own memory, or undefined if there is none with this seq. Throws Damage. */
  read(seq: number): Frame | undefined {
    if (!Number.isSafeInteger(seq) || seq < 1 || seq >= this.#nextSeq) return undefined
    if (!this.#active?.live.has(seq)) return this.#sealed.read(seq)
    const { file, live, seed } = this.#active
    return readFrameAt(file, { offset: live.offsetOf(seq), end: live.offsetOf(seq + 1), seq, seed })
  }

  /** Hints that these frames will be read next: see DiskFile.prefetch. */
  prefetch(seqs: readonly number[]): void {
    // Each frame is read separately.
    this.#sealed.prefetch(seqs, Number.NEGATIVE_INFINITY)
  }

  /**
   * Frames from `from` to `through` (inclusive; by default the newest frame now) in order, with large reads. Each
   * payload is a view that the next step overwrites: copy what you retain. Throws Damage.
   */
  scan(from: number, through: number = Infinity): Iterable<Frame> {
    const last = Math.min(through, this.#nextSeq - 1)
    return scanFrames({ disk: this.#disk, placeOf: (seq) => this.#placeOf(seq), from, through: last })
  }

  #placeOf(seq: number): ScanPlace {
    if (!this.#active?.live.has(seq)) return this.#sealed.placeOf(seq)
    const { file, live, seed } = this.#active
    return { path: file.path, offset: live.offsetOf(seq), end: live.end, lastSeq: live.nextSeq - 1, seed }
  }

  /** Newest seq of a KEYED frame with this 16-byte key. */
  findKey(key: Uint8Array): number | undefined {
    if (key.length !== KEY_BYTES) throw new RangeError(`a key must have ${KEY_BYTES} bytes, not ${key.length}`)
    const newest = this.#active?.live.find(key)
    return newest ?? this.#sealed.findKey(Buffer.from(key), this.#nextSeq - 1)
  }

  /**
   * Permanently replaces the payloads of these frames on disk with stubs, in steps of a few milliseconds; appends may
   * continue between steps. If the active segment holds one of the frames, it is sealed first. Returns how many frames
   * became stubs; existing stubs are skipped. Throws like compactSegment; frames not reached by then are unchanged. A
   * damaged segment keeps its frames, and compaction goes on with the other segments; `onDamage` receives the requested
   * frames in the damaged one.
   */
  *compact(
    seqs: ReadonlySet<number>,
    keep: (frame: Frame) => Uint8Array,
    onDamage: (damage: Damage, left: readonly number[]) => void,
  ): Generator<CompactionStep, number, undefined> {
    if (this.#poison) throw this.#poison
    if (this.#isAppending) throw new Error('cannot compact a journal while a batch is pending')
    const active = this.#active
    if (active !== undefined && [...seqs].some((seq) => active.live.has(seq))) this.roll()
    let stubs = 0
    for (const [firstSeq, held] of this.#sealed.holding(seqs)) {
      try {
        stubs += yield* compactSegment({
          disk: this.#disk,
          directory: this.#directory,
          firstSeq,
          keep: (frame) => (seqs.has(frame.seq) ? keep(frame) : undefined),
        })
      } catch (error) {
        if (!(error instanceof Damage)) throw error
        onDamage(error, held)
      }
      this.#sealed.reopen()
    }
    return stubs
  }

  /** Chain hash (32 bytes) over all frames, see chain.ts; 32 zero bytes for an empty journal. */
  chain(): Buffer {
    return this.#active?.chain.digest() ?? Buffer.from(this.#chainBefore)
  }

  close(): void {
    const active = this.#active
    try {
      if (!this.#poison) this.sync()
      if (active && !this.#poison && this.#filled > active.live.end) this.#cutToFrames(active)
    } finally {
      if (active?.file !== this.#syncing) active?.file.close()
      this.#active = undefined
      this.#sealed.close()
      this.#poison ??= new Poisoned(this.#directory, 'closed')
    }
  }
}
