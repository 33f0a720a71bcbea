/**
 * What a page does not show, counted as it comes: nothing that was counted is walked again.
 *
 * Three kinds: events that bear a mark (hidden, redacted), those that bear none and have expired, and those that will expire. A
 * reader's time never goes back (src/clock.ts), so what has expired once stays so: it is counted when a reader first asks after
 * its time, and not before, because what a state holds must follow from the records alone.
 */
import type { Page } from '../records/board.ts'
import { SoonestFirst } from './soonest-first.ts'

/** What a page has to know of its events. */
export type MarkedEvents = {
  /** Unix seconds; 0: never. */
  endOf(slot: number): number
  isMarked(slot: number): boolean
  beginsThread(slot: number): boolean
}

type Sum = { count: number; threads: number }

export class PageMarks {
  readonly #page: Page
  readonly #events: MarkedEvents
  readonly #marked: Sum = { count: 0, threads: 0 }
  readonly #expired: Sum = { count: 0, threads: 0 }
  /** Unix seconds: what expires until then has expired. */
  #passed = 0
  /** All that will expire. */
  readonly #waiting: SoonestFirst
  /** Among them those that bear no mark, and some that do. */
  readonly #shown: SoonestFirst
  /** Positions of which nothing is shown, up to the newest when a reader last asked for it. */
  #gone = { from: 0, to: 0 }

  constructor(page: Page, events: MarkedEvents) {
    this.#page = page
    this.#events = events
    this.#waiting = new SoonestFirst((slot) => events.endOf(slot))
    this.#shown = new SoonestFirst((slot) => events.endOf(slot))
  }

  /** Not shown: by a mark, or expired. */
  get hidden(): Readonly<Sum> {
    return {
      count: this.#marked.count + this.#expired.count,
      threads: this.#marked.threads + this.#expired.threads,
    }
  }

  hasExpired(slot: number): boolean {
    const end = this.#events.endOf(slot)
    return end !== 0 && end <= this.#passed
  }

  /** An event that will expire, newest of the page. True: its time is over already. */
  add(slot: number): boolean {
    if (this.hasExpired(slot)) {
      if (!this.#events.isMarked(slot)) this.#count(this.#expired, slot, 1)
      return true
    }
    this.#waiting.add(slot)
    this.#shown.add(slot)
    return false
  }

  /** An event bears a mark from now on (`more` 1), or none any more (-1). */
  marked(slot: number, more: 1 | -1): void {
    this.#count(this.#marked, slot, more)
    if (this.hasExpired(slot)) return this.#count(this.#expired, slot, -more)
    if (more === 1) return
    if (this.#events.endOf(slot) !== 0) this.#shown.add(slot)
    const position = this.#page.events.lowerBound(slot)
    this.#gone.from = Math.max(this.#gone.from, position + 1)
  }

  /** Counts what has expired until `now`, and names each. */
  pass(now: number, expired: (slot: number) => void): void {
    for (let slot = this.#waiting.first; slot !== undefined; slot = this.#waiting.first) {
      if (this.#events.endOf(slot) > now) break
      this.#waiting.removeFirst()
      if (!this.#events.isMarked(slot)) this.#count(this.#expired, slot, 1)
      expired(slot)
    }
    this.#passed = Math.max(this.#passed, now)
  }

  /** When the next event that is shown expires, as of the last `pass`; 0: none will. */
  get until(): number {
    const { endOf, isMarked } = this.#events
    for (let slot = this.#shown.first; slot !== undefined; slot = this.#shown.first) {
      if (endOf(slot) > this.#passed && !isMarked(slot)) return endOf(slot)
      this.#shown.removeFirst()
    }
    return 0
  }

  /** The newest event that is shown, of a page that shows one. What was found gone is not examined again. */
  newest(isGone: (slot: number) => boolean): number {
    const { events } = this.#page
    const { from, to } = this.#gone
    let position = events.length - 1
    while (position >= 0) {
      if (position >= from && position < to) position = from - 1
      else if (isGone(events.at(position))) position--
      else break
    }
    this.#gone = { from: position + 1, to: events.length }
    return events.at(position)
  }

  #count(sum: Sum, slot: number, more: number): void {
    sum.count += more
    if (this.#events.beginsThread(slot)) sum.threads += more
  }
}
