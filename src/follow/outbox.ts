/**
 * Sends to thousands of clients in slices, between which other work gets its turn. Tails and long polls share one queue, so that tails need
 * not wait for polls: every answered poll brings a new request.
 */
import type { Timers } from '../../actors/kernel/timers.ts'

/** Sends to at most this many, and returns to how many it sent. If fewer, it is done. */
type Job = (most: number) => number

/** Clients per turn: about 10 ms of work. */
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
