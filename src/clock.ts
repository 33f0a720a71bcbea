/** Time: the only file that reads a clock. Everything else is handed one of these. */

/** Wall clock, Unix seconds. Can jump; never used to measure how long something took. */
export function wallSeconds(): number {
  return Math.floor(Date.now() / 1000)
}

let newestRead = 0

/**
 * Wall clock for readers, Unix seconds: never less than this thread has read before, so that a text which has expired
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

/** Ends a timer; nothing happens where it has run. */
export type Cancel = () => void

/** Time as a part is handed it. Its timers keep no process alive. */
export type Clock = {
  readonly wallSeconds: () => number
  readonly monotonicMs: () => number
  /** Calls back once, after so many milliseconds. */
  readonly later: (callback: () => void, ms: number) => Cancel
  readonly every: (callback: () => void, ms: number) => Cancel
  /** Calls back when the thread has looked at other work. Keeps the process alive until then. */
  readonly soon: (callback: () => void) => Cancel
}

export type Timers = Pick<Clock, 'later' | 'every' | 'soon'>

/** The clock of this machine. */
export const systemClock: Clock = {
  wallSeconds,
  monotonicMs,
  later: (callback, ms) => {
    const timer = setTimeout(callback, ms).unref()
    return () => clearTimeout(timer)
  },
  every: (callback, ms) => {
    const timer = setInterval(callback, ms).unref()
    return () => clearInterval(timer)
  },
  soon: (callback) => {
    const next = setImmediate(callback)
    return () => clearImmediate(next)
  },
}

/** Resolves after so many milliseconds; keeps no process alive. */
export function pause(clock: Pick<Clock, 'later'>, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.later(resolve, ms))
}

/** Waits until nothing is under way, at most so long. */
export async function drained(isQuiet: () => boolean, withinMs: number): Promise<void> {
  const until = monotonicMs() + withinMs
  while (!isQuiet() && monotonicMs() < until) await new Promise((resolve) => setTimeout(resolve, 5))
}
