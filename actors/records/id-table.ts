/**
 * Ids of a fixed number of bytes, numbered from 0 in the order in which they came, and found by an open-addressed table (linear
 * probing, at most 3/4 full): 4 to 8 bytes a number beside the id itself. Numbers are never freed.
 */

import { randomInt } from 'node:crypto'
import { mixed } from '../../storage/shelved-rows.ts'
import { roomFor } from '../../storage/snapshot.ts'
import { bytesOf, type Columns, type Kept } from './columns.ts'

export const none = 0xffff_ffff

const initialCapacity = 64

export type PackedIds = readonly [count: number, seed: number, ids: Kept, table: Kept]

export class IdTable {
  readonly #bytes: number
  #count = 0
  #capacity = initialCapacity
  #ids: Buffer
  #table = new Uint32Array(initialCapacity * 2).fill(none)
  #seed = processSeed

  /** `bytes`: of each id, at least 8. Ids are hashes: their first bytes are the hash of the table. */
  constructor(bytes: number) {
    this.#bytes = bytes
    this.#ids = Buffer.alloc(initialCapacity * bytes)
  }

  get count(): number {
    return this.#count
  }

  /** Everything, for a snapshot, cut to the ids in use. */
  pack(columns: Columns): PackedIds {
    const ids = columns.putGrowing(this.#ids.subarray(0, this.#count * this.#bytes))
    return [this.#count, this.#seed, ids, columns.put(bytesOf(this.#table, this.#table.length))]
  }

  /** Takes over what `pack` gave. */
  restore([count, seed, ids, table]: PackedIds, columns: Columns): void {
    this.#count = count
    this.#seed = seed
    this.#ids = Buffer.from(columns.take(ids, initialCapacity * this.#bytes).buffer)
    this.#capacity = Math.floor(this.#ids.length / this.#bytes)
    this.#table = new Uint32Array(columns.take(table).buffer)
  }

  /** Without the first `first` ids: what was number `first` is 0. */
  after(first: number): IdTable {
    const later = new IdTable(this.#bytes)
    later.#count = this.#count - first
    later.#capacity = Math.max(initialCapacity, roomFor(later.#count))
    later.#ids = Buffer.alloc(later.#capacity * this.#bytes)
    later.#ids.set(this.#ids.subarray(first * this.#bytes, this.#count * this.#bytes))
    later.#rebuild(2 * later.#capacity)
    return later
  }

  /** Number of this id, or `none`. */
  find(id: Uint8Array): number {
    return this.#table[this.#cellOf(id, 0)]!
  }

  /** Adds an id that is not there yet; gives its number. */
  add(id: Uint8Array): number {
    if (this.#count === this.#capacity) {
      this.#capacity *= 2
      const ids = Buffer.alloc(this.#capacity * this.#bytes)
      ids.set(this.#ids)
      this.#ids = ids
    }
    const number = this.#count++
    this.#ids.set(id, number * this.#bytes)
    if (this.#count * 4 > this.#table.length * 3) this.#rebuild(2 * this.#table.length)
    else this.#table[this.#cellOf(id, 0)] = number
    return number
  }

  /** The bytes of an id, as a view that is good until the next `add`. */
  id(number: number): Buffer {
    return this.#ids.subarray(number * this.#bytes, (number + 1) * this.#bytes)
  }

  hex(number: number): string {
    return this.#ids.toString('hex', number * this.#bytes, (number + 1) * this.#bytes)
  }

  /** Where the id at `offset` of `ids` is, or the empty cell where it would be. */
  #cellOf(ids: Uint8Array, offset: number): number {
    const mask = this.#table.length - 1
    let cell = hashOf(this.#seed, ids, offset) & mask
    for (let number = this.#table[cell]!; number !== none; number = this.#table[cell]!) {
      if (this.#equals(number * this.#bytes, ids, offset)) return cell
      cell = (cell + 1) & mask
    }
    return cell
  }

  #equals(own: number, ids: Uint8Array, offset: number): boolean {
    for (let i = 0; i < this.#bytes; i++) if (this.#ids[own + i] !== ids[offset + i]) return false
    return true
  }

  #rebuild(cells: number): void {
    this.#table = new Uint32Array(cells).fill(none)
    const mask = this.#table.length - 1
    for (let number = 0; number < this.#count; number++) {
      let cell = hashOf(this.#seed, this.#ids, number * this.#bytes) & mask
      while (this.#table[cell] !== none) cell = (cell + 1) & mask
      this.#table[cell] = number
    }
  }
}

/** Signers choose ids by trying nonces: a secret seed keeps these from crowding one cell. A snapshot has it, and the table with it. */
const processSeed = randomInt(0x1_0000_0000 - 1)

function hashOf(seed: number, bytes: Uint8Array, at: number): number {
  const first = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
  const second = bytes[at + 4]! | (bytes[at + 5]! << 8) | (bytes[at + 6]! << 16) | (bytes[at + 7]! << 24)
  return mixed(first ^ seed, second)
}
