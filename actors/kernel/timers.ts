/** Timers as a part is handed them: the machine's own are in src/clock.ts. */

/** Ends a timer; nothing happens where it has run. */
export type Cancel = () => void

/** Timers as a part is handed them. They keep no process alive. */
export type Timers = {
  /** Calls back once, after so many milliseconds. */
  readonly later: (callback: () => void, ms: number) => Cancel
  readonly every: (callback: () => void, ms: number) => Cancel
  /** Calls back once, when the thread has looked at other work. */
  readonly soon: (callback: () => void) => Cancel
}
