/**
 * What is sent to thousands at once goes in slices between which other work gets its turn. Tails and long polls have one queue:
 * texts of tails are there first, for every poll that is answered brings a new request, which the tails would wait for.
 */
import type { Timers } from '../../actors/kernel/timers.ts'

/** Sends to at most so many, and returns to how many; fewer than it may: it is done. */
type Job = (most: number) => number

/** Sent to in one turn: about 10 ms of work. */
const slice = 500

export class Outbox {
  readonly #timers: Pick<Timers, 'soon'>
  readonly #jobs: Job[] = []
  #isScheduled = false

  constructor(timers: Pick<Timers, 'soon'>) {
    this.#timers = timers
  }

  put(job: Job): void {
    this.#jobs.push(job)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#timers.soon(() => {
      this.#isScheduled = false
      this.#turn()
      if (this.#jobs.length > 0) this.#schedule()
    })
  }

  #turn(): void {
    for (let left = slice; left > 0; ) {
      const job = this.#jobs[0]
      if (job === undefined) return
      const sent = job(left)
      if (sent < left) this.#jobs.shift()
      left -= sent
    }
  }
}
