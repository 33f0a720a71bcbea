/**
 * An open-addressed table of numbers, from 0 in the order in which they came, each in the first empty cell from that of its hash on.
 *
 * It grows beside the adds: from half full on, the next table is made a few cells at each of them, and takes the place of the one before
 * when it has all numbers, at 2/3 full. Made at once, it would hold up everything else of its thread, at ten million numbers for seconds.
 */

/** An empty cell. */
export const none = 0xffff_ffff

/** Cells of the next table that an add makes empty; as many numbers go over at each add once all are. */
const cellsEach = 64
const numbersEach = 5

export class NumberTable {
  /** For look-ups, whose owner knows what is equal. */
  cells: Uint32Array<ArrayBuffer>
  readonly #hashOf: (number: number) => number
  #next: Uint32Array<ArrayBuffer> | undefined
  /** Cells of the next one below this one are ready. */
  #empty = 0
  /** Numbers below this one are in the next one. */
  #moved = 0

  /** `cells`: how many, a power of two. `hashOf`: of a number that is there. */
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

  /** Takes over cells that were kept with `count` numbers, and forgets what came into them later. */
  restore(cells: Uint32Array<ArrayBuffer>, count: number): void {
    this.cells = cells
    // No number of before stands behind one that came later, so those cells may be empty again.
    for (let cell = 0; cell < cells.length; cell++) if (cells[cell]! >= count) cells[cell] = none
    // Older releases filled their tables to three quarters.
    if (count * 8 > cells.length * 5) this.fill(2 * cells.length, count)
  }

  /** Makes so many cells, and puts `count` numbers into them. */
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
