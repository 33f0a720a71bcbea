/**
 * Numbers in the order of their latest change: a list of what was touched, oldest first, of which the rows that are out of date
 * are skipped, and dropped when they would make it larger. 16 to 40 bytes a number.
 */
import { bytesOf, type Columns, grown, type Kept } from './columns.ts'

const initialRows = 64

export type PackedOrder = readonly [rows: number, numbers: Kept, versions: Kept, count: number, places: Kept]

export class ByVersion {
  #rows = 0
  #numbers = new Uint32Array(initialRows)
  #versions = new Float64Array(initialRows)
  #count = 0
  /** Number -> one more than its newest row; 0: it has none. */
  #places = new Uint32Array(initialRows)

  /** Versions never fall. */
  touch(number: number, version: number): void {
    while (number >= this.#places.length) this.#places = grown(this.#places, new Uint32Array(this.#places.length * 2))
    const place = this.#places[number]!
    if (place === 0) this.#count++
    else if (this.#versions[place - 1] === version) return
    if (place === this.#rows && place > 0) {
      this.#versions[place - 1] = version
      return
    }
    if (this.#rows === this.#numbers.length) this.#makeRoom()
    this.#numbers[this.#rows] = number
    this.#versions[this.#rows] = version
    this.#places[number] = ++this.#rows
  }

  /** Of a number that was touched. */
  versionOf(number: number): number {
    return this.#versions[this.#places[number]! - 1]!
  }

  /** Newest first, those whose version is below `below`. */
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

  /** Takes over what `pack` gave. */
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

  /** Twice the room, where less than a quarter of the rows are out of date. */
  #makeRoom(): void {
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
