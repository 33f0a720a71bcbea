/**
 * Positions of threads, newest first, searched only as far down as someone reads: on a board of millions, usually just the
 * first pages.
 */

import { noSlots, type Slots } from '../records/slot-lists.ts'
import { Ordered } from './ordered.ts'

/** Slots examined before the next position is returned. */
const looksAtOnce = 32

/** A reader's budget of slots to examine, and where it ran out. */
export class Looks {
  /** All positions from here on were returned; undefined if the budget did not run out. */
  reached: number | undefined
  #left: number

  constructor(most: number) {
    this.#left = most
  }

  /** False if the budget is used up; nothing below this position is known yet. */
  mayLook(floor: number): boolean {
    if (this.#left <= 0) this.reached = floor
    return this.#left > 0
  }

  looked(slots: number): void {
    this.#left -= slots
  }
}

export class NewestFirst {
  /** All positions from `#floor` on, and some below it. */
  readonly #places = Ordered.slots(new Uint32Array())
  readonly #slots: Slots
  readonly #isPlace: (slot: number) => boolean
  /** Slots that have not been examined: the first ones. */
  #left: number
  #floor: number

  /**
   * @param slots contain the positions; slots added later are not examined
   * @param limit positions from this slot on are not searched for
   * @param places positions that are not among the slots
   */
  constructor(slots: Slots, limit: number, isPlace: (slot: number) => boolean, places: readonly number[]) {
    this.#slots = slots
    this.#isPlace = isPlace
    this.#left = slots.lowerBound(limit)
    this.#floor = this.#left === 0 ? 0 : limit
    for (const place of places) this.#places.add(place)
  }

  /** All positions of a list. */
  static of(places: readonly number[]): NewestFirst {
    return new NewestFirst(noSlots, 0, () => false, places)
  }

  /** Whether everything above this position has been examined. */
  hasFound(place: number): boolean {
    return place >= this.#floor
  }

  /** Adds a position, which may be there already. */
  add(place: number): void {
    this.#places.add(place)
  }

  remove(place: number): void {
    this.#places.remove(place)
  }

  /** Positions below a number, highest first, as far as the budget goes. Nothing may be added or removed meanwhile. */
  *below(limit: number, looks: Looks): Generator<number> {
    let last = limit
    for (;;) {
      for (const place of this.#places.below(last)) {
        if (place < this.#floor) break
        last = place
        yield place
      }
      if (this.#floor === 0 || !looks.mayLook(this.#floor)) return
      looks.looked(this.#look())
    }
  }

  /** Examines some slots; returns how many. */
  #look(): number {
    const from = this.#left
    const end = Math.max(0, from - looksAtOnce)
    while (this.#left > end) {
      this.#left--
      const slot = this.#slots.at(this.#left)
      if (this.#isPlace(slot)) this.#places.add(slot)
    }
    this.#floor = this.#left === 0 ? 0 : this.#slots.at(this.#left)
    return from - end
  }
}
