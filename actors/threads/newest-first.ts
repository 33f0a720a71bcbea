/**
 * Places of threads, newest first, found only as far down as someone reads: of a board of millions that is usually the first pages.
 */

import { noSlots, type Slots } from '../records/slot-lists.ts'
import { Ordered } from './ordered.ts'

/** Slots that are looked at before the next place is given. */
const looksAtOnce = 32

/** How many slots one reader may have looked at, and where that ended. */
export class Looks {
  /** All places from here on were given; undefined: it did not end early. */
  reached: number | undefined
  #left: number

  constructor(most: number) {
    this.#left = most
  }

  /** False: there were enough, and nothing below this place is known yet. */
  mayLook(floor: number): boolean {
    if (this.#left <= 0) this.reached = floor
    return this.#left > 0
  }

  looked(slots: number): void {
    this.#left -= slots
  }
}

export class NewestFirst {
  /** All places from `#floor` on, and some below it. */
  readonly #places = Ordered.slots(new Uint32Array())
  readonly #slots: Slots
  readonly #isPlace: (slot: number) => boolean
  /** How many of the slots have not been looked at: the first ones. */
  #left: number
  #floor: number

  /**
   * @param slots where the places are; those added later are not looked at
   * @param limit places from this slot on are not looked for
   * @param places those that are not among the slots
   */
  constructor(slots: Slots, limit: number, isPlace: (slot: number) => boolean, places: readonly number[]) {
    this.#slots = slots
    this.#isPlace = isPlace
    this.#left = slots.lowerBound(limit)
    this.#floor = this.#left === 0 ? 0 : limit
    for (const place of places) this.#places.add(place)
  }

  /** All places of a list. */
  static of(places: readonly number[]): NewestFirst {
    return new NewestFirst(noSlots, 0, () => false, places)
  }

  /** Whether nothing above this place has yet to be looked at. */
  hasFound(place: number): boolean {
    return place >= this.#floor
  }

  /** Of a place that may be there already. */
  add(place: number): void {
    this.#places.add(place)
  }

  remove(place: number): void {
    this.#places.remove(place)
  }

  /** Those below a number, the greatest first, as far as the looks go. Nothing may be added or removed meanwhile. */
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

  /** How many slots it looked at. */
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
