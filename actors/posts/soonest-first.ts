/** Slots by when they expire, the soonest first: a binary heap. */

export class SoonestFirst {
  readonly #slots: number[] = []
  readonly #endOf: (slot: number) => number

  /** `endOf`: Unix seconds; of a slot that is in here it never changes. */
  constructor(endOf: (slot: number) => number) {
    this.#endOf = endOf
  }

  /** The one that expires next, if there is one. */
  get first(): number | undefined {
    return this.#slots[0]
  }

  add(slot: number): void {
    const slots = this.#slots
    const end = this.#endOf(slot)
    let place = slots.length
    slots.push(slot)
    while (place > 0) {
      const above = (place - 1) >>> 1
      if (this.#endOf(slots[above]!) <= end) break
      slots[place] = slots[above]!
      place = above
    }
    slots[place] = slot
  }

  removeFirst(): void {
    const slots = this.#slots
    const slot = slots.pop()
    if (slot === undefined || slots.length === 0) return
    const end = this.#endOf(slot)
    let place = 0
    for (;;) {
      let below = 2 * place + 1
      if (below >= slots.length) break
      if (below + 1 < slots.length && this.#endOf(slots[below + 1]!) < this.#endOf(slots[below]!)) below++
      if (this.#endOf(slots[below]!) >= end) break
      slots[place] = slots[below]!
      place = below
    }
    slots[place] = slot
  }
}
