/** Places for what is under way at the same time: so many in all, fewer for one network, fewer still for one identity. */

/** Whose share is used up. */
export type Share = 'board' | 'network' | 'identity'
export type SlotsMax = Readonly<Record<Share, number>>
export type Holder = Readonly<Record<Exclude<Share, 'board'>, string>>

export class Slots {
  readonly #max: SlotsMax
  readonly #held = new Map<string, number>()
  #all = 0

  constructor(max: SlotsMax) {
    this.#max = max
  }

  /** The widest share that has no place left for this holder. */
  full({ network, identity }: Holder): Share | undefined {
    if (this.#all >= this.#max.board) return 'board'
    if (this.#heldBy(`network ${network}`) >= this.#max.network) return 'network'
    return this.#heldBy(`identity ${identity}`) >= this.#max.identity ? 'identity' : undefined
  }

  /** Takes a place, whether or not there is one left; what is returned gives it back, once. */
  take({ network, identity }: Holder): () => void {
    const keys = [`network ${network}`, `identity ${identity}`]
    let isHeld = true
    this.#add(keys, 1)
    return () => {
      if (isHeld) this.#add(keys, -1)
      isHeld = false
    }
  }

  #add(keys: readonly string[], places: 1 | -1): void {
    this.#all += places
    for (const key of keys) {
      const held = this.#heldBy(key) + places
      if (held === 0) this.#held.delete(key)
      else this.#held.set(key, held)
    }
  }

  #heldBy(key: string): number {
    return this.#held.get(key) ?? 0
  }
}
