/** Time: the only file that reads a clock. Everything else is handed one. */
import type { Timers } from '../actors/kernel/timers.ts'

/** Time as a part is handed it. */
export type Clock = Timers & {
  /** Wall clock, Unix seconds. Can jump; never used to measure how long something took. */
  readonly wallSeconds: () => number
  /** Wall clock, Unix milliseconds. */
  readonly wallMilliseconds: () => number
  /**
   * Wall clock for readers, Unix seconds: never less than this thread has read before, so that a text which has expired
   * stays gone when the clock is set back.
   */
  readonly readingSeconds: () => number
  /** Monotonic milliseconds, for deadlines and durations. */
  readonly monotonicMs: () => number
}

let newestRead = 0

/** The clock of this machine. */
export const systemClock: Clock = {
  wallSeconds: () => Math.floor(Date.now() / 1000),
  wallMilliseconds: () => Date.now(),
  readingSeconds: () => {
    newestRead = Math.max(newestRead, systemClock.wallSeconds())
    return newestRead
  },
  monotonicMs: () => performance.now(),
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
export async function drained(
  clock: Pick<Clock, 'later' | 'monotonicMs'>,
  isQuiet: () => boolean,
  withinMs: number,
): Promise<void> {
  const until = clock.monotonicMs() + withinMs
  while (!isQuiet() && clock.monotonicMs() < until) await pause(clock, 5)
}
