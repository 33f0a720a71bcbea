/** The interface for timers; the real ones are in src/clock.ts. */

/** Cancels a timer; does nothing if it has already run. */
export type Cancel = () => void

/** Timers as they are passed to a component. They do not keep the process alive. */
export type Timers = {
  /** Calls back once, after this many milliseconds. */
  readonly later: (callback: () => void, ms: number) => Cancel
  readonly every: (callback: () => void, ms: number) => Cancel
  /** Calls back once, after the thread has handled other pending work. */
  readonly soon: (callback: () => void) => Cancel
}
