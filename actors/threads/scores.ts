/**
 * Scores of threads: upvotes minus downvotes in each time window. Each vote has the hour in which it was cast, and leaves a
 * window when that hour does.
 */

import type { Counted } from '../posts/votes.ts'

/** Hours back, including the current one. */
export const voteWindows = { day: 24, week: 168, month: 720, all: Number.POSITIVE_INFINITY } as const
export type VoteWindow = keyof typeof voteWindows
const windows = Object.keys(voteWindows) as VoteWindow[]
/** Votes older than this are in no window but `all`. */
const hoursMax = voteWindows.month

/** Thread, by the slot of its root -> score; scores of 0 are left out. */
type Scores = Map<number, number>

type OnChange = (window: VoteWindow, root: number, before: number, after: number) => void

export class ThreadScores {
  readonly #in: Readonly<Record<VoteWindow, Scores>> = {
    day: new Map(),
    week: new Map(),
    month: new Map(),
    all: new Map(),
  }
  readonly #hours = new Map<number, Scores>()
  #hour: number
  readonly #onChange: OnChange

  /**
   * @param casts all votes so far
   * @param hour the current one, since 1970
   * @param onChange called for each later change of a score
   */
  constructor(
    casts: Iterable<Counted & { readonly event: number }>,
    rootOf: (event: number) => number,
    hour: number,
    onChange: OnChange,
  ) {
    this.#hour = hour
    this.#onChange = onChange
    for (const { event, value, hour: cast } of casts) {
      if (value === 0) continue
      const root = rootOf(event)
      this.#remember(root, cast, value)
      for (const window of windows) if (this.#isIn(window, cast)) addTo(this.#in[window], root, value)
    }
  }

  of(window: VoteWindow, root: number): number {
    return this.#in[window].get(root) ?? 0
  }

  /** Scores of the threads whose score is not 0. */
  all(window: VoteWindow): ReadonlyMap<number, number> {
    return this.#in[window]
  }

  /** A vote on the thread changed from `before` to `after`. */
  voted(root: number, before: Counted, after: Counted): void {
    if (before.value !== 0) this.#add(root, before.hour, -before.value)
    if (after.value !== 0) this.#add(root, after.hour, after.value)
  }

  /** Advances to this hour: votes that are now too old leave their windows. */
  turn(hour: number): void {
    if (hour <= this.#hour) return
    const before = this.#hour
    this.#hour = hour
    for (const window of windows) {
      const hours = voteWindows[window]
      if (hours === Number.POSITIVE_INFINITY) continue
      for (let old = before - hours + 1; old <= hour - hours; old++)
        for (const [root, sum] of this.#hours.get(old) ?? []) this.#change(window, root, -sum)
    }
    for (const old of this.#hours.keys()) if (old <= hour - hoursMax) this.#hours.delete(old)
  }

  /** Adds to the votes on a thread that were cast in this hour. */
  #add(root: number, hour: number, more: number): void {
    this.turn(hour)
    this.#remember(root, hour, more)
    for (const window of windows) if (this.#isIn(window, hour)) this.#change(window, root, more)
  }

  #remember(root: number, hour: number, more: number): void {
    if (hour <= this.#hour - hoursMax) return
    let cast = this.#hours.get(hour)
    if (cast === undefined) {
      cast = new Map()
      this.#hours.set(hour, cast)
    }
    cast.set(root, (cast.get(root) ?? 0) + more)
  }

  #isIn(window: VoteWindow, hour: number): boolean {
    return hour > this.#hour - voteWindows[window]
  }

  #change(window: VoteWindow, root: number, more: number): void {
    if (more === 0) return
    const before = this.of(window, root)
    addTo(this.#in[window], root, more)
    this.#onChange(window, root, before, before + more)
  }
}

function addTo(scores: Scores, root: number, more: number): void {
  const after = (scores.get(root) ?? 0) + more
  if (after === 0) scores.delete(root)
  else scores.set(root, after)
}
