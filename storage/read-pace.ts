/**
 * Detects whether this thread's reads wait for the disk, judging by how long short ones take.
 *
 * A read from the page cache takes a few microseconds; one from the disk takes a tenth of a millisecond or more. A read
 * that takes much longer counts no more than that, because its thread may have waited for a core.
 */
const slowMs = 0.04
const countedMsMax = 0.08
/** Weight of the newest read in the average. */
const share = 1 / 8
/** A scan reads a MiB at a time, which takes long even from memory. */
const shortBytesMax = 16 * 1024
const slowPeriodMs = 1_000

export class ReadPace {
  #averageMs = 0
  #slowUntil = Number.NEGATIVE_INFINITY

  /** Records a read of `bytes` bytes from `begun` to `ended` (monotonic milliseconds). */
  note(bytes: number, begun: number, ended: number): void {
    if (bytes > shortBytesMax) return
    this.#averageMs += (Math.min(ended - begun, countedMsMax) - this.#averageMs) * share
    if (this.#averageMs > slowMs) this.#slowUntil = ended + slowPeriodMs
  }

  isSlow(now: number): boolean {
    return now < this.#slowUntil
  }
}

/** For all files that this thread reads. */
export const readPace = new ReadPace()
