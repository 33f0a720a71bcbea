/**
 * A map with a maximum size that evicts the oldest entry. If reads use `touch`, it evicts the least recently used entry
 * instead. For caches, and for facts where a flood of new keys must not become a flood of memory.
 */

/** Entries moved or removed, beyond the size of the map, after which the map is rebuilt. */
const movedMin = 1_024

export class BoundedMap<Key, Value> {
  #entries = new Map<Key, Value>()
  readonly #max: number
  /**
   * Iterator positioned before the oldest entry. A new iterator would first have to skip the slots of deleted entries,
   * which makes an eviction 20 times as slow in a map of 8,192. It retains every table that the map outgrew, and old
   * tables retain their entries (storage/turnover-map.ts), so both are rebuilt now and then.
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

  /** Does not change the position of the entry. */
  get(key: Key): Value | undefined {
    return this.#entries.get(key)
  }

  /** Returns the value and makes its entry the newest. */
  touch(key: Key): Value | undefined {
    const value = this.#entries.get(key)
    if (value !== undefined) this.set(key, value)
    return value
  }

  /** Makes this entry the newest; returns the value that was evicted for it, if any. */
  set(key: Key, value: Value): Value | undefined {
    this.delete(key)
    if (this.#moved > movedMin + this.#entries.size) this.#renew()
    const evicted = this.evictIfFull()
    this.#entries.set(key, value)
    return evicted
  }

  /** If the map is full, removes the oldest entry and returns its value. */
  evictIfFull(): Value | undefined {
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
