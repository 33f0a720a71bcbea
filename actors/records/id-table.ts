/**
 * Ids of a fixed number of bytes, numbered from 0 in the order they were added, with an open-addressed hash table (linear
 * probing, at most 2/3 full): 6 to 8 bytes per id in addition to the id itself. Numbers are never freed.
 */

import { randomInt } from 'node:crypto'
import { mixed } from '../../storage/shelved-rows.ts'
import { capacityFor } from '../../storage/snapshot.ts'
import { bytesOf, type Columns, Doubling, type Kept } from './columns.ts'
import { NumberTable, none } from './number-table.ts'

export { none }

const initialCapacity = 64
/** Ids copied to another table in one step, in between other work: 2 ms. */
const idsInStep = 8_192

export type PackedIds = readonly [count: number, seed: number, ids: Kept, table: Kept]

export class IdTable {
  readonly #bytes: number
  #count = 0
  #capacity: number
  #ids: Uint8Array
  #longerIds: Doubling<Uint8Array> | undefined
  readonly #table: NumberTable
  #seed = processSeed

  /**
   * `bytes`: of each id, at least 8. Ids are hashes, so their first bytes serve as the hash for the table. `capacity`: how many ids
   * fit before anything grows.
   */
  constructor(bytes: number, capacity = 0) {
    this.#bytes = bytes
    this.#capacity = Math.max(initialCapacity, capacityFor(capacity))
    this.#ids = new Uint8Array(this.#capacity * bytes)
    const hashAt = (number: number): number => hashOf(this.#seed, this.#ids, number * this.#bytes)
    this.#table = new NumberTable(this.#capacity * 2, hashAt)
  }

  get count(): number {
    return this.#count
  }

  /**
   * Everything, for a snapshot, cut to the ids in use. Ids may be added while the table is being written: `restore` ignores the
   * numbers that got into its empty cells meanwhile.
   */
  pack(columns: Columns): PackedIds {
    const ids = columns.putGrowing(this.#ids.subarray(0, this.#count * this.#bytes))
    return [this.#count, this.#seed, ids, columns.putGrowing(bytesOf(this.#table.cells, this.#table.cells.length))]
  }

  /** Restores what `pack` returned. */
  restore([count, seed, ids, table]: PackedIds, columns: Columns): void {
    this.#count = count
    this.#seed = seed
    this.#ids = new Uint8Array(columns.take(ids, initialCapacity * this.#bytes).buffer)
    this.#capacity = Math.floor(this.#ids.length / this.#bytes)
    this.#table.restore(new Uint32Array(columns.take(table).buffer), count)
  }

  /** Builds a table without the first `first` ids: number `first` becomes 0. Ids added between two steps are included. */
  *after(first: number): Generator<void, IdTable> {
    const later = new IdTable(this.#bytes, this.#count - first)
    for (;;) {
      later.addRest(this, first, idsInStep)
      if (later.#count === this.#count - first) return later
      yield
    }
  }

  /** On a table that another one's `after(first)` returned: copies what was added there since, at most `max` ids. */
  addRest(from: IdTable, first: number, max = Number.POSITIVE_INFINITY): void {
    const end = Math.min(from.#count - first, this.#count + max)
    while (this.#count < end) this.add(from.id(first + this.#count))
  }

  /** Number of this id, or `none`. */
  find(id: Uint8Array): number {
    return this.#table.cells[this.#cellOf(id, 0)]!
  }

  /** Adds an id that is not present yet and returns its number. */
  add(id: Uint8Array): number {
    this.#ensureCapacity()
    const number = this.#count++
    this.#ids.set(id, number * this.#bytes)
    this.#table.put(this.#cellOf(id, 0), number)
    return number
  }

  /** The bytes of an id, as a view that is valid until the next `add`. */
  id(number: number): Buffer {
    return Buffer.from(this.#ids.buffer, number * this.#bytes, this.#bytes)
  }

  hex(number: number): string {
    return this.id(number).toString('hex')
  }

  #ensureCapacity(): void {
    const isFull = this.#count === this.#capacity
    if (!isFull && !Doubling.isDue(this.#count, this.#capacity)) return
    this.#longerIds ??= new Doubling([this.#ids], this.#capacity, (length) => new Uint8Array(length))
    if (!isFull) return this.#longerIds.copySome(this.#count)
    this.#ids = this.#longerIds.finish()[0]!
    this.#longerIds = undefined
    this.#capacity *= 2
  }

  /** The cell with the id at `offset` of `ids`, or the empty cell where it would go. */
  #cellOf(ids: Uint8Array, offset: number): number {
    const { cells } = this.#table
    const mask = cells.length - 1
    let cell = hashOf(this.#seed, ids, offset) & mask
    for (let number = cells[cell]!; number !== none; number = cells[cell]!) {
      if (this.#equals(number * this.#bytes, ids, offset)) return cell
      cell = (cell + 1) & mask
    }
    return cell
  }

  #equals(own: number, ids: Uint8Array, offset: number): boolean {
    for (let i = 0; i < this.#bytes; i++) if (this.#ids[own + i] !== ids[offset + i]) return false
    return true
  }
}

/**
 * Signers can choose ids by trying nonces: a secret seed keeps them from crowding one cell. A snapshot stores the seed with the
 * table.
 */
const processSeed = randomInt(0x1_0000_0000 - 1)

function hashOf(seed: number, bytes: Uint8Array, at: number): number {
  const first = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
  const second = bytes[at + 4]! | (bytes[at + 5]! << 8) | (bytes[at + 6]! << 16) | (bytes[at + 7]! << 24)
  return mixed(first ^ seed, second)
}
