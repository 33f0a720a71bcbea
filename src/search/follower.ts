/**
 * Follows the log into the search index, one transaction at a time. The index is derived: if anything is wrong with it, it is discarded and
 * rebuilt from the journals. Damaged parts of the journals are left out of it.
 */
import { advanceTo, readableRecords } from '../../actors/log/public-records.ts'
import { frameKey, fromFrame } from '../../actors/records/record.ts'
import { Damage, isUnreadable } from '../../storage/disk.ts'
import type { JournalReader } from '../../storage/journal.ts'
import type { Indexing } from './search.ts'
import { SearchIndex, wipe } from './search-index.ts'

type FollowerOptions = {
  readonly monotonicMs: () => number
  /** Of the index. */
  readonly directory: string
  /** Id of the log's journal, hex. */
  readonly logId: string
  readonly log: JournalReader
  readonly shards: readonly JournalReader[]
  /** Called when the index is damaged and is being rebuilt. */
  readonly onBad: (problem: string) => void
  /** Called with damage in the journals that is therefore missing from the index. */
  readonly onLeftOut: (problem: string) => void
  /** Called when the journals cannot be read, and the index starts to wait. */
  readonly onUnreadable: (problem: string) => void
  /** Newest durable frame of the log. */
  readonly durable: number
}

/** Records per transaction: about 50 ms of work. Queries are answered between transactions. */
const recordsPerStep = 1_000
/** Time spent on an index being built after which its pace is known. */
const paceMs = 1_000
/** Delay before a failed read is retried. */
const againMs = 5_000

export class Follower {
  readonly #options: FollowerOptions
  #index: SearchIndex
  #durable: number
  /** Since it last fell behind the log: frames that it has indexed, and the time that took. */
  #frames = 0
  #spentMs = 0
  /** 0 if it is not waiting. */
  #triesAgainAt = 0

  constructor(options: FollowerOptions) {
    this.#options = options
    this.#durable = options.durable
    this.#index = this.#open()
  }

  get index(): SearchIndex {
    return this.#index
  }

  get isBehind(): boolean {
    return this.#index.applied < this.#durable
  }

  /** The log is durable up to this frame. */
  advance(durable: number): void {
    this.#durable = Math.max(this.#durable, durable)
  }

  /** The disk cannot read what the log covers. The index stays as it is, and the read is retried later. */
  get isWaiting(): boolean {
    return this.#triesAgainAt > 0
  }

  /** Indexes one transaction's worth of the log, and removes what has expired by `now`. */
  step(now: number): void {
    const { monotonicMs } = this.#options
    const mayTry = monotonicMs() >= this.#triesAgainAt
    if (!(mayTry && this.isBehind) && !this.#index.isDue(now)) return
    const since = monotonicMs()
    const before = this.#index.applied
    const applied = mayTry ? this.#take(before) : before
    this.#index.settle(applied, now)
    this.#frames = this.isBehind ? this.#frames + applied - before : 0
    this.#spentMs = this.isBehind ? this.#spentMs + monotonicMs() - since : 0
  }

  /** Indexes what the log's frames after `before` and up to `through` cover, as much as fits in one step; returns the last frame. */
  #take(before: number, through = this.#durable): number {
    let applied = before
    try {
      for (const seq of this.#added(before, through)) applied = seq
      if (through === this.#durable) this.#triesAgainAt = 0
      return applied
    } catch (error) {
      if (!(error instanceof Damage) && !isUnreadable(error)) throw error
      if (!this.isWaiting) this.#options.onUnreadable(String(error))
      this.#triesAgainAt = this.#options.monotonicMs() + againMs
    }
    for (const reader of this.#options.shards) reader.reopen()
    // Part of what the next frame covers was added. Roll back, and add what the frames before it cover without that part.
    this.#index.takeBack()
    return applied === before ? before : this.#take(before, applied)
  }

  /** Indexes what each of these frames covers, and then yields the frame's number. */
  *#added(before: number, through: number): Generator<number, void, void> {
    const { log, shards, onLeftOut } = this.#options
    log.advance(through)
    let records = 0
    const wanted = { log, shards, from: before + 1, through }
    for (const batch of readableRecords({ ...wanted, onDamage: ({ message }) => onLeftOut(message) })) {
      for (const { frame, change } of batch.records) {
        this.#index.add(fromFrame(frame), frameKey(frame), change)
        records++
      }
      yield batch.seq
      if (records >= recordsPerStep) return
    }
  }

  /** Estimated time to catch up at the current pace; undefined if not known yet. */
  get leftMs(): number | undefined {
    if (this.#spentMs < paceMs) return undefined
    return (this.#spentMs * (this.#durable - this.#index.applied)) / this.#frames
  }

  /** Progress of an index being built; `otherwise`: the seconds to report while its pace is not known yet. */
  progress(otherwise = 5): Indexing {
    const percent = Math.min(99, Math.floor((100 * this.#index.applied) / this.#durable))
    return { percent, seconds: Math.max(1, Math.ceil((this.leftMs ?? otherwise * 1_000) / 1_000)) }
  }

  startOver(): void {
    this.#index.close()
    wipe(this.#options.directory)
    this.#frames = 0
    this.#spentMs = 0
    this.#index = this.#open()
  }

  #open(): SearchIndex {
    const { directory, logId, log, shards, onBad } = this.#options
    const opened = SearchIndex.open(directory, logId, this.#durable, undefined, onBad)
    if (opened.applied > 0) advanceTo(opened.applied, log, shards)
    return opened
  }
}
