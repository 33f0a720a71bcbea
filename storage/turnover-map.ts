/**
 * A map, in the order of insertion, whose entries come and go: requests without an answer, asks on their way.
 *
 * A table that a Map of V8 has outgrown points to the next one, and a Map from which is deleted gets a new table again and again. Once one of
 * them has become old, all that follow are held by it, with the entries that they had: everything that was ever in the map survives each
 * young collection until the next full one. A new Map after some deletions ends the chain. (3 million entries of 500 bytes, 16 at a time, in a
 * map that had lived through two collections: 5,060 ms and 51 full collections; with this 600 ms and 3.)
 */

/** Deletions after which the map is made anew; as many more as it has entries, so that copying them costs each deletion the same. */
const deletionsMin = 1_024

export class TurnoverMap<Key, Value> {
  #entries = new Map<Key, Value>()
  #deletions = 0

  get size(): number {
    return this.#entries.size
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key)
  }

  has(key: Key): boolean {
    return this.#entries.has(key)
  }

  /** An iterator from before may miss what is set from now on. */
  set(key: Key, value: Value): this {
    if (this.#deletions >= deletionsMin + this.#entries.size) {
      this.#entries = new Map(this.#entries)
      this.#deletions = 0
    }
    this.#entries.set(key, value)
    return this
  }

  delete(key: Key): boolean {
    if (!this.#entries.delete(key)) return false
    this.#deletions++
    return true
  }

  clear(): void {
    this.#entries = new Map()
    this.#deletions = 0
  }

  keys(): MapIterator<Key> {
    return this.#entries.keys()
  }

  values(): MapIterator<Value> {
    return this.#entries.values()
  }

  /** Oldest first. */
  [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.#entries.entries()
  }
}
