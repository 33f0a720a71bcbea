/**
 * Whether reads of a disk have to be waited for, judged by how long short ones take.
 *
 * What the page cache holds takes a few microseconds to read, and what it lacks a tenth of a millisecond or more. A read that takes much
 * longer counts no more than that: its thread may have waited for a core.
 */
const slowMs = 0.04
const countedMsMax = 0.08
/** Of the newest read in the average. */
const share = 1 / 8
/** A scan reads a MiB at a time, which takes long from memory too. */
const shortBytesMax = 16 * 1024
const slowForMs = 1_000

export class ReadPace {
  #averageMs = 0
  #slowUntil = Number.NEGATIVE_INFINITY

  /** `bytes` were asked for, and read from `begun` to `ended` (monotonic milliseconds). */
  note(bytes: number, begun: number, ended: number): void {
    if (bytes > shortBytesMax) return
    this.#averageMs += (Math.min(ended - begun, countedMsMax) - this.#averageMs) * share
    if (this.#averageMs > slowMs) this.#slowUntil = ended + slowForMs
  }

  /** At this time. */
  isSlow(now: number): boolean {
    return now < this.#slowUntil
  }
}

/** Of all files that this thread reads. */
export const readPace = new ReadPace()
