/**
 * Follows the log into the search index, a transaction at a time. Whatever ails the index, it is derived: it is thrown away and made
 * again from the journals. What is damaged in these is left out of it.
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
  /** Called when the index is damaged and is made again. */
  readonly onBad: (problem: string) => void
  /** Called with what of the journals is damaged, and not in the index. */
  readonly onLeftOut: (problem: string) => void
  /** Called when the journals cannot be read, and the index waits. */
  readonly onUnreadable: (problem: string) => void
  /** Newest durable frame of the log. */
  readonly durable: number
}

/** Records of one transaction: about 50 ms of work, and asks are answered between them. */
const recordsPerStep = 1_000
/** Time spent on it after which the pace of an index that is being made is known. */
const paceMs = 1_000
/** Until what could not be read is tried again. */
const againMs = 5_000

export class Follower {
  readonly #options: FollowerOptions
  #index: SearchIndex
  #durable: number
  /** Since it last lagged the log: frames that it has taken in, and how long that took. */
  #frames = 0
  #spentMs = 0
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
  hear(durable: number): void {
    this.#durable = Math.max(this.#durable, durable)
  }

  /**
   * One transaction's worth of the log, and what has expired by `now` leaves. False: the disk does not give what the log covers. The index
   * stays as it is, and it is tried again later.
   */
  step(now: number): boolean {
    if (this.#options.monotonicMs() >= this.#triesAgainAt && this.#take(now)) return true
    if (this.#index.isDue(now)) this.#index.settle(this.#index.applied, now)
    return false
  }

  #take(now: number): boolean {
    try {
      this.#follow(now)
      return true
    } catch (error) {
      if (!(error instanceof Damage) && !isUnreadable(error)) throw error
      this.#index.takeBack()
      this.#triesAgainAt = this.#options.monotonicMs() + againMs
      this.#options.onUnreadable(String(error))
      return false
    }
  }

  #follow(now: number): void {
    if (!this.isBehind && !this.#index.isDue(now)) return
    const { log, shards, onLeftOut } = this.#options
    const since = this.#options.monotonicMs()
    const before = this.#index.applied
    log.advance(this.#durable)
    let records = 0
    let applied = before
    const wanted = { log, shards, from: applied + 1, through: this.#durable }
    for (const batch of readableRecords({ ...wanted, onDamage: ({ message }) => onLeftOut(message) })) {
      for (const { frame, change } of batch.records) {
        this.#index.add(fromFrame(frame), frameKey(frame), change)
        records++
      }
      applied = batch.seq
      if (records >= recordsPerStep) break
    }
    this.#index.settle(applied, now)
    this.#frames = this.isBehind ? this.#frames + applied - before : 0
    this.#spentMs = this.isBehind ? this.#spentMs + this.#options.monotonicMs() - since : 0
  }

  /** How long it takes to catch up at the pace so far; undefined: not known yet. */
  get leftMs(): number | undefined {
    if (this.#spentMs < paceMs) return undefined
    return (this.#spentMs * (this.#durable - this.#index.applied)) / this.#frames
  }

  /** How far an index is that is being made; `otherwise`: seconds that are said where its pace is not known yet. */
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
