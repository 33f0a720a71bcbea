/** Time: the only file that reads a clock. Everything else is handed one. */

let newestRead = 0

/** The clock of this machine. Its timers keep no process alive. */
export const systemClock = {
  /** Wall clock, Unix seconds. Can jump; never used to measure how long something took. */
  wallSeconds: (): number => Math.floor(Date.now() / 1000),
  /** Wall clock, Unix milliseconds. */
  wallMilliseconds: (): number => Date.now(),
  /**
   * Wall clock for readers, Unix seconds: never less than this thread has read before, so that a text which has expired
   * stays gone when the clock is set back.
   */
  readingSeconds: (): number => {
    newestRead = Math.max(newestRead, Math.floor(Date.now() / 1000))
    return newestRead
  },
  /** Monotonic milliseconds, for deadlines and durations. */
  monotonicMs: (): number => performance.now(),
  /** Calls back once, after so many milliseconds. */
  later: (callback: () => void, ms: number): (() => void) => {
    const timer = setTimeout(callback, ms).unref()
    return () => clearTimeout(timer)
  },
  every: (callback: () => void, ms: number): (() => void) => {
    const timer = setInterval(callback, ms).unref()
    return () => clearInterval(timer)
  },
  /** Calls back once, when the thread has looked at other work. */
  soon: (callback: () => void): (() => void) => {
    const next = setImmediate(callback)
    return () => clearImmediate(next)
  },
}

/** Time as a part is handed it; its timers are those of actors/kernel/timers.ts. */
export type Clock = Readonly<typeof systemClock>

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
