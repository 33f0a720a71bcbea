/** Time: the only file that reads a clock. Everything else is handed one of these. */

/** Wall clock, Unix seconds. Can jump; never used to measure how long something took. */
export function wallSeconds(): number {
  return Math.floor(Date.now() / 1000)
}

/** Wall clock, Unix milliseconds. */
export function wallMilliseconds(): number {
  return Date.now()
}

/** Monotonic milliseconds, for deadlines and durations. */
export function monotonicMs(): number {
  return performance.now()
}
