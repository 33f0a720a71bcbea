/**
 * An open-addressed table of numbers, assigned from 0 in the order they are added, each in the first empty cell at or after its
 * hash.
 *
 * It grows incrementally: once it is half full, each add prepares a few cells of the next table. The next table takes over when
 * it has all numbers, at 2/3 full. Rehashing in one go would block the thread, for seconds at ten million numbers.
 */

/** An empty cell. */
export const none = 0xffff_ffff

/** Cells of the next table that each add clears. Once all are clear, each add moves that many numbers. */
const cellsEach = 64
const numbersEach = 5

export class NumberTable {
  /** Read by look-ups of the owner, which knows what is equal. */
  cells: Uint32Array<ArrayBuffer>
  readonly #hashOf: (number: number) => number
  #next: Uint32Array<ArrayBuffer> | undefined
  /** Cells of the next table below this one are cleared. */
  #empty = 0
  /** Numbers below this one are in the next table. */
  #moved = 0

  /** `cells`: how many, a power of two. `hashOf`: the hash of a number in the table. */
  constructor(cells: number, hashOf: (number: number) => number) {
    this.cells = new Uint32Array(cells).fill(none)
    this.#hashOf = hashOf
  }

  /** Puts the next number into the empty cell where its look-up ended. */
  put(cell: number, number: number): void {
    this.cells[cell] = number
    const count = number + 1
    if (this.#next !== undefined) this.#grow(this.#next, count)
    else if (count * 2 > this.cells.length) this.#next = new Uint32Array(2 * this.cells.length)
  }

  /** Restores cells that were stored with `count` numbers, and removes numbers added later. */
  restore(cells: Uint32Array<ArrayBuffer>, count: number): void {
    this.cells = cells
    // No older number sits behind a newer one, so clearing these cells breaks no probe sequence.
    for (let cell = 0; cell < cells.length; cell++) if (cells[cell]! >= count) cells[cell] = none
    // Older releases filled their tables to three quarters.
    if (count * 8 > cells.length * 5) this.fill(2 * cells.length, count)
  }

  /** Allocates this many cells and inserts `count` numbers. */
  fill(cells: number, count: number): void {
    this.cells = new Uint32Array(cells).fill(none)
    for (let number = 0; number < count; number++) this.#place(this.cells, number)
  }

  #grow(next: Uint32Array<ArrayBuffer>, count: number): void {
    if (this.#empty < next.length) {
      next.fill(none, this.#empty, this.#empty + cellsEach)
      this.#empty += cellsEach
      return
    }
    const end = Math.min(count, this.#moved + numbersEach)
    for (; this.#moved < end; this.#moved++) this.#place(next, this.#moved)
    if (this.#moved < count) return
    this.cells = next
    this.#next = undefined
    this.#empty = 0
    this.#moved = 0
  }

  #place(cells: Uint32Array<ArrayBuffer>, number: number): void {
    const mask = cells.length - 1
    let cell = this.#hashOf(number) & mask
    while (cells[cell] !== none) cell = (cell + 1) & mask
    cells[cell] = number
  }
}
