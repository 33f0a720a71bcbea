/**
 * Up to where writes may be answered: as far as the stream has the journals, and where it is wanted, as far as a follower has them too.
 *
 * A start waits for no follower, because those wait for it: what is written until then has to be in the stream alone.
 */
import type { Clock } from '../clock.ts'
import type { Ends } from './journals-out.ts'

type AcknowledgmentsOptions = {
  /** As far as the journals are durable at the start. */
  readonly ends: Ends
  readonly waitsForCopy: boolean
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly tell: (ends: Ends) => void
}

/** What is on its way is no problem. */
const stuckMs = 2_000

export class Acknowledgments {
  readonly #options: AcknowledgmentsOptions
  #isStarted = false
  #durable: Ends
  #stream: Ends | undefined
  /** Of each journal as much as some follower has of it; until the start as much as the stream has. */
  #copied: Ends | undefined
  #told: Ends | undefined
  /** Since when writes wait and none is answered; undefined: none waits. */
  #stuckSince: number | undefined

  constructor(options: AcknowledgmentsOptions) {
    this.#options = options
    this.#durable = options.ends
  }

  /** The board answers from now on. */
  started(): void {
    this.#isStarted = true
  }

  /** The journals are on the disk here, up to these ends. */
  durable(ends: Ends): void {
    this.#durable = ends
    if (this.#isWaiting) this.#stuckSince ??= this.#options.clock.monotonicMs()
  }

  stream(ends: Ends): void {
    this.#stream = ends
    if (!this.#isStarted) this.#copied = ends
    this.#tellOn()
  }

  /** Only where a copy is waited for. */
  copy(ends: Ends): void {
    this.#copied = this.#copied === undefined ? ends : byJournal(Math.max, this.#copied, ends)
    this.#tellOn()
  }

  /** What writes wait for that does not come, as a sentence; undefined: they are answered. */
  get problem(): string | undefined {
    const since = this.#stuckSince
    if (!this.#isStarted || since === undefined || this.#options.clock.monotonicMs() - since < stuckMs) return undefined
    return isReached(this.#durable, this.#stream)
      ? 'No follower has said that it has the newest writes. They wait for one.'
      : 'The stream has not acknowledged the newest writes. They wait for it.'
  }

  get #isWaiting(): boolean {
    return !isReached(this.#durable, this.#told)
  }

  #tellOn(): void {
    if (this.#stream === undefined) return
    if (!this.#options.waitsForCopy) this.#tell(this.#stream)
    else if (this.#copied !== undefined) this.#tell(byJournal(Math.min, this.#stream, this.#copied))
  }

  #tell(ends: Ends): void {
    const isNew = !isReached(ends, this.#told)
    this.#told = ends
    if (!this.#isWaiting) this.#stuckSince = undefined
    else if (isNew) this.#stuckSince = this.#options.clock.monotonicMs()
    this.#options.tell(ends)
  }
}

function isReached(wanted: Ends, there: Ends | undefined): boolean {
  if (there === undefined) return false
  return wanted.log <= there.log && wanted.shards.every((end, shard) => end <= (there.shards[shard] ?? 0))
}

function byJournal(chosen: (a: number, b: number) => number, some: Ends, others: Ends): Ends {
  return {
    log: chosen(some.log, others.log),
    shards: some.shards.map((end, shard) => chosen(end, others.shards[shard] ?? 0)),
  }
}
