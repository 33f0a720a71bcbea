/**
 * Numbers in the order of their latest change. Each change appends a row, so the oldest come first. Outdated rows are skipped,
 * and dropped when the list would otherwise have to grow. 16 to 40 bytes per number.
 */
import { bytesOf, type Columns, grown, type Kept } from './columns.ts'

const initialRows = 64

export type PackedOrder = readonly [rows: number, numbers: Kept, versions: Kept, count: number, places: Kept]

export class ByVersion {
  #rows = 0
  #numbers = new Uint32Array(initialRows)
  #versions = new Float64Array(initialRows)
  #count = 0
  /** Number -> the index of its newest row plus one; 0 if it has none. */
  #places = new Uint32Array(initialRows)

  /** Versions never decrease. */
  touch(number: number, version: number): void {
    while (number >= this.#places.length) this.#places = grown(this.#places, new Uint32Array(this.#places.length * 2))
    const place = this.#places[number]!
    if (place === 0) this.#count++
    else if (this.#versions[place - 1] === version) return
    if (place === this.#rows && place > 0) {
      this.#versions[place - 1] = version
      return
    }
    if (this.#rows === this.#numbers.length) this.#ensureCapacity()
    this.#numbers[this.#rows] = number
    this.#versions[this.#rows] = version
    this.#places[number] = ++this.#rows
  }

  /** The version of a number that was touched. */
  versionOf(number: number): number {
    return this.#versions[this.#places[number]! - 1]!
  }

  /** Numbers with a version below `below`, newest first. */
  *below(below: number): Generator<number> {
    let [from, to] = [0, this.#rows]
    while (from < to) {
      const middle = (from + to) >>> 1
      if (this.#versions[middle]! < below) from = middle + 1
      else to = middle
    }
    for (let row = from - 1; row >= 0; row--) if (this.#isCurrent(row)) yield this.#numbers[row]!
  }

  pack(columns: Columns): PackedOrder {
    this.#compact()
    const [numbers, versions] = [bytesOf(this.#numbers, this.#rows), bytesOf(this.#versions, this.#rows)]
    const places = bytesOf(this.#places, this.#count)
    return [this.#rows, columns.put(numbers), columns.put(versions), this.#count, columns.put(places)]
  }

  /** Restores what `pack` returned. */
  restore([rows, numbers, versions, count, places]: PackedOrder, columns: Columns): void {
    this.#rows = rows
    this.#count = count
    this.#numbers = new Uint32Array(columns.take(numbers, initialRows * 4).buffer)
    this.#versions = new Float64Array(columns.take(versions, initialRows * 8).buffer)
    this.#places = new Uint32Array(columns.take(places, initialRows * 4).buffer)
  }

  #isCurrent(row: number): boolean {
    return this.#places[this.#numbers[row]!] === row + 1
  }

  /** Doubles the capacity if less than a quarter of the rows are outdated; otherwise drops those. */
  #ensureCapacity(): void {
    if (this.#count * 4 <= this.#rows * 3) return this.#compact()
    this.#numbers = grown(this.#numbers, new Uint32Array(this.#rows * 2))
    this.#versions = grown(this.#versions, new Float64Array(this.#rows * 2))
  }

  #compact(): void {
    if (this.#rows === this.#count) return
    let to = 0
    for (let row = 0; row < this.#rows; row++) {
      if (!this.#isCurrent(row)) continue
      const number = this.#numbers[row]!
      this.#numbers[to] = number
      this.#versions[to] = this.#versions[row]!
      this.#places[number] = ++to
    }
    this.#rows = to
  }
}
