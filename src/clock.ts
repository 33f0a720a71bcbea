/** Time: the only file that reads a clock. All other code gets a clock injected. */

let newestRead = 0

/** The clock of this machine. Its timers keep no process alive. */
export const systemClock = {
  /** Wall clock, Unix seconds. Can jump; never used to measure how long something took. */
  wallSeconds: (): number => Math.floor(Date.now() / 1000),
  /** Wall clock, Unix milliseconds. */
  wallMilliseconds: (): number => Date.now(),
  /**
   * Wall clock for readers, Unix seconds: never decreases within this thread, so that an expired text stays gone when the clock is set
   * back.
   */
  readingSeconds: (): number => {
    newestRead = Math.max(newestRead, Math.floor(Date.now() / 1000))
    return newestRead
  },
  /** Monotonic milliseconds, for deadlines and durations. */
  monotonicMs: (): number => performance.now(),
  /** Calls back once, after this many milliseconds. */
  later: (callback: () => void, ms: number): (() => void) => {
    const timer = setTimeout(callback, ms).unref()
    return () => clearTimeout(timer)
  },
  every: (callback: () => void, ms: number): (() => void) => {
    const timer = setInterval(callback, ms).unref()
    return () => clearInterval(timer)
  },
  /** Calls back once, after the thread has had a turn for other work. */
  soon: (callback: () => void): (() => void) => {
    const next = setImmediate(callback)
    return () => clearImmediate(next)
  },
}

/** The injected clock; its timers are those of actors/kernel/timers.ts. */
export type Clock = Readonly<typeof systemClock>

/** Resolves after this many milliseconds; does not keep the process alive. */
export function pause(clock: Pick<Clock, 'later'>, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.later(resolve, ms))
}

/** Waits until nothing is in progress, for a limited time. */
export async function drained(
  clock: Pick<Clock, 'later' | 'monotonicMs'>,
  isQuiet: () => boolean,
  withinMs: number,
): Promise<void> {
  const until = clock.monotonicMs() + withinMs
  while (!isQuiet() && clock.monotonicMs() < until) await pause(clock, 5)
}
