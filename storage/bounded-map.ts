/**
 * A map of at most so many entries: what was set longest ago makes room for what is new. Where reads go by `touch`, the entry that
 * was used longest ago goes instead. For caches and for facts that a flood of new keys must not turn into a flood of memory.
 */

/** Entries that are moved or removed until the map is made anew, besides as many as it has. */
const movedMin = 1_024

export class BoundedMap<Key, Value> {
  #entries = new Map<Key, Value>()
  readonly #max: number
  /**
   * Stands before the oldest entry: a new iterator would first pass the places that deleted entries have left, which makes an
   * eviction 20 times as slow in a map of 8,192. It holds every table that the map outgrew, and old tables hold what was in them
   * (storage/turnover-map.ts): both are made anew now and then.
   */
  #oldest: MapIterator<Key> | undefined
  #moved = 0

  /** `max`: at least 1. */
  constructor(max: number) {
    this.#max = max
  }

  get size(): number {
    return this.#entries.size
  }

  has(key: Key): boolean {
    return this.#entries.has(key)
  }

  /** Leaves the entry at its place. */
  get(key: Key): Value | undefined {
    return this.#entries.get(key)
  }

  /** Gives the value and makes its entry the newest. */
  touch(key: Key): Value | undefined {
    const value = this.#entries.get(key)
    if (value !== undefined) this.set(key, value)
    return value
  }

  /** Makes this entry the newest, and gives the value that had to make room for it. */
  set(key: Key, value: Value): Value | undefined {
    this.delete(key)
    if (this.#moved > movedMin + this.#entries.size) this.#renew()
    const evicted = this.makeRoom()
    this.#entries.set(key, value)
    return evicted
  }

  /** Removes the oldest entry where one more would be too many, and gives its value. */
  makeRoom(): Value | undefined {
    if (this.#entries.size < this.#max) return undefined
    this.#oldest ??= this.#entries.keys()
    const { value: key } = this.#oldest.next() as IteratorYieldResult<Key>
    const value = this.#entries.get(key)
    this.delete(key)
    return value
  }

  delete(key: Key): boolean {
    if (!this.#entries.delete(key)) return false
    this.#moved++
    return true
  }

  clear(): void {
    this.#entries.clear()
    this.#renew()
  }

  /** Oldest first. */
  [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.#entries.entries()
  }

  values(): MapIterator<Value> {
    return this.#entries.values()
  }

  #renew(): void {
    this.#entries = new Map(this.#entries)
    this.#oldest = undefined
    this.#moved = 0
  }
}
