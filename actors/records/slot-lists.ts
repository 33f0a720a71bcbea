/**
 * Many append-only lists of slots, numbered from 0, packed into one array. Most are short. A list of one slot takes 8 bytes. A
 * longer list also has a block of slots whose size is a power of two; when the block is full, the list moves to one twice as
 * large.
 */
import { bytesOf, type Columns, grown, type Kept } from './columns.ts'

/** Slots in ascending order. */
export type Slots = {
  readonly length: number
  at(position: number): number
  /** Position of the first slot that is at least `slot`. */
  lowerBound(slot: number): number
}

export const noSlots: Slots = { length: 0, at: () => noBlock, lowerBound: () => 0 }

const initialLists = 64
const noBlock = 0xffff_ffff
/** Blocks of 2, 4, 8 … slots. */
const sizes = 31

export type PackedSlotLists = readonly [
  count: number,
  begins: Kept,
  lengths: Kept,
  used: number,
  pool: Kept,
  free: Kept,
]

export class SlotLists {
  #count = 0
  /** For a list of one slot, that slot; for a longer one, the offset of its block. */
  #begins = new Uint32Array(initialLists)
  #lengths = new Uint32Array(initialLists)
  #used = 0
  #pool = new Uint32Array(initialLists)
  /** Heads of the free lists, one per block size. The first cell of a free block points to the next free one. */
  #free = new Uint32Array(sizes).fill(noBlock)

  /** Adds an empty list and returns its number. */
  add(): number {
    if (this.#count === this.#lengths.length) {
      this.#begins = grown(this.#begins, new Uint32Array(this.#count * 2))
      this.#lengths = grown(this.#lengths, new Uint32Array(this.#count * 2))
    }
    return this.#count++
  }

  lengthOf(list: number): number {
    return this.#lengths[list]!
  }

  at(list: number, position: number): number {
    const begin = this.#begins[list]!
    return this.#lengths[list] === 1 ? begin : this.#pool[begin + position]!
  }

  push(list: number, slot: number): void {
    const length = this.#lengths[list]!
    if (length === 0) this.#begins[list] = slot
    else {
      // A block is full when its length is a power of two.
      if ((length & (length - 1)) === 0) this.#move(list, length)
      this.#pool[this.#begins[list]! + length] = slot
    }
    this.#lengths[list] = length + 1
  }

  of(list: number): Slots {
    return new SlotsOf(this, list)
  }

  pack(columns: Columns): PackedSlotLists {
    const keep = (array: Uint32Array, count: number) => columns.put(bytesOf(array, count))
    const [begins, lengths] = [keep(this.#begins, this.#count), keep(this.#lengths, this.#count)]
    return [this.#count, begins, lengths, this.#used, keep(this.#pool, this.#used), keep(this.#free, sizes)]
  }

  /** Restores what `pack` returned. */
  restore([count, begins, lengths, used, pool, free]: PackedSlotLists, columns: Columns): void {
    const taken = (kept: Kept) => new Uint32Array(columns.take(kept, initialLists * 4).buffer)
    this.#count = count
    this.#begins = taken(begins)
    this.#lengths = taken(lengths)
    this.#used = used
    this.#pool = taken(pool)
    this.#free.set(taken(free).subarray(0, sizes))
  }

  /** Moves the list into a block of twice the size, a free one if there is any. */
  #move(list: number, length: number): void {
    const from = this.#begins[list]!
    const size = Math.log2(length)
    let to = this.#free[size]!
    if (to === noBlock) {
      to = this.#used
      this.#used += 2 * length
      while (this.#used > this.#pool.length) this.#pool = grown(this.#pool, new Uint32Array(this.#pool.length * 2))
    } else this.#free[size] = this.#pool[to]!
    if (length === 1) this.#pool[to] = from
    else {
      this.#pool.copyWithin(to, from, from + length)
      this.#pool[from] = this.#free[size - 1]!
      this.#free[size - 1] = from
    }
    this.#begins[list] = to
  }
}

class SlotsOf implements Slots {
  readonly #lists: SlotLists
  readonly #list: number

  constructor(lists: SlotLists, list: number) {
    this.#lists = lists
    this.#list = list
  }

  get length(): number {
    return this.#lists.lengthOf(this.#list)
  }

  at(position: number): number {
    return this.#lists.at(this.#list, position)
  }

  lowerBound(slot: number): number {
    return lowerBound(this, slot)
  }
}

/** Position of the first slot that is at least `slot`. Slots are assigned in order, so every list of them is sorted. */
export function lowerBound(slots: Pick<Slots, 'length' | 'at'>, slot: number): number {
  let low = 0
  let high = slots.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (slots.at(middle) < slot) low = middle + 1
    else high = middle
  }
  return low
}

/** Whether the list contains the slot; a missing list is empty. */
export function has(slots: Slots | undefined, slot: number): boolean {
  if (slots === undefined) return false
  const position = slots.lowerBound(slot)
  return position < slots.length && slots.at(position) === slot
}
