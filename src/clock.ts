/** Time: the only file that reads a clock. Everything else is handed one of these. */

/** Wall clock, Unix seconds. Can jump; never used to measure how long something took. */
export function wallSeconds(): number {
  return Math.floor(Date.now() / 1000)
}

let newestRead = 0

/**
 * Wall clock for readers, Unix seconds: never less than this thread was told before, so that a text which has expired
 * stays gone when the clock is set back.
 */
export function readingSeconds(): number {
  newestRead = Math.max(newestRead, wallSeconds())
  return newestRead
}

/** Wall clock, Unix milliseconds. */
export function wallMilliseconds(): number {
  return Date.now()
}

/** Monotonic milliseconds, for deadlines and durations. */
export function monotonicMs(): number {
  return performance.now()
}

/** Calls back after so many milliseconds; keeps no process alive. */
export function later(callback: () => void, ms: number): void {
  setTimeout(callback, ms).unref()
}

/** Resolves after so many milliseconds; keeps no process alive. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => later(resolve, ms))
}

/** Waits until nothing is under way, at most so long. */
export async function drained(isQuiet: () => boolean, withinMs: number): Promise<void> {
  const until = monotonicMs() + withinMs
  while (!isQuiet() && monotonicMs() < until) await new Promise((resolve) => setTimeout(resolve, 5))
}
