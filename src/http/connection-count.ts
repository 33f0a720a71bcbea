/** The number of open connections, in memory that all threads of a board share: the bound applies to all of them together. */
import { httpThreadsMax } from '../config.ts'

export class ConnectionCount {
  /** One slot per thread that holds connections. */
  readonly slots: Int32Array<SharedArrayBuffer>
  readonly #own: number

  /** `own`: the slot of this thread. */
  constructor(slots = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT * httpThreadsMax)), own = 0) {
    this.slots = slots
    this.#own = own
  }

  /** The total over all threads. */
  get open(): number {
    return this.slots.reduce((sum, count) => sum + count, 0)
  }

  /** Adds to this thread's count; `change` is negative when connections close. */
  add(change: number): void {
    Atomics.add(this.slots, this.#own, change)
  }

  /** The thread with this slot has died, and its connections with it. */
  forget(slot: number): void {
    Atomics.store(this.slots, slot, 0)
  }
}
