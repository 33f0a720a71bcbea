/** How many connections are open, in memory that all threads of a board share: the bound holds for all of them together. */
import { httpThreadsMax } from '../config.ts'

export class ConnectionCount {
  /** One for each thread that holds connections. */
  readonly slots: Int32Array<SharedArrayBuffer>
  readonly #own: number

  /** `own`: the slot of this thread. */
  constructor(slots = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT * httpThreadsMax)), own = 0) {
    this.slots = slots
    this.#own = own
  }

  /** Of all threads. */
  get open(): number {
    return this.slots.reduce((sum, count) => sum + count, 0)
  }

  /** Connections of this thread that came, or went where it is negative. */
  add(change: number): void {
    Atomics.add(this.slots, this.#own, change)
  }

  /** That thread has died, and its connections with it. */
  forget(slot: number): void {
    Atomics.store(this.slots, slot, 0)
  }
}
