/**
 * Decides up to where writes may be answered: as far as the stream has the journals and, if that is required, a follower has
 * them too.
 *
 * A start does not wait for a follower, because followers wait for the start: what is written until then must only be in the
 * stream.
 */
import type { Clock } from '../clock.ts'
import type { Ends } from './journals-out.ts'

type AcknowledgmentsOptions = {
  /** How far the journals are durable at the start. */
  readonly ends: Ends
  readonly waitsForCopy: boolean
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly tell: (ends: Ends) => void
}

/** A shorter delay is normal and not reported as a problem. */
const stuckMs = 2_000

export class Acknowledgments {
  readonly #options: AcknowledgmentsOptions
  #isStarted = false
  #durable: Ends
  #stream: Ends | undefined
  /** The most that any follower has of each journal; until the start, as much as the stream has. */
  #copied: Ends | undefined
  #reported: Ends | undefined
  /** Since when writes have been waiting with none answered; undefined if none is waiting. */
  #stuckSince: number | undefined

  constructor(options: AcknowledgmentsOptions) {
    this.#options = options
    this.#durable = options.ends
  }

  /** The board answers from now on. */
  started(): void {
    this.#isStarted = true
  }

  /** The journals are on disk here, up to these ends. */
  durable(ends: Ends): void {
    this.#durable = ends
    if (this.#isWaiting) this.#stuckSince ??= this.#options.clock.monotonicMs()
  }

  stream(ends: Ends): void {
    this.#stream = ends
    if (!this.#isStarted) this.#copied = ends
    this.#reportReached()
  }

  /** Only called if writes wait for a copy. */
  copy(ends: Ends): void {
    this.#copied = this.#copied === undefined ? ends : byJournal(Math.max, this.#copied, ends)
    this.#reportReached()
  }

  /** Why writes are waiting, as a sentence; undefined if they are being answered. */
  get problem(): string | undefined {
    const since = this.#stuckSince
    if (!this.#isStarted || since === undefined || this.#options.clock.monotonicMs() - since < stuckMs) return undefined
    return isReached(this.#durable, this.#stream)
      ? 'No follower has confirmed the newest writes, so they are waiting. Start one, or see /healthz of those that run.'
      : 'The stream has not acknowledged the newest writes, so they are waiting.'
  }

  get #isWaiting(): boolean {
    return !isReached(this.#durable, this.#reported)
  }

  #reportReached(): void {
    if (this.#stream === undefined) return
    if (!this.#options.waitsForCopy) this.#report(this.#stream)
    else if (this.#copied !== undefined) this.#report(byJournal(Math.min, this.#stream, this.#copied))
  }

  #report(ends: Ends): void {
    const isNew = !isReached(ends, this.#reported)
    this.#reported = ends
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
