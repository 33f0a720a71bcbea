/**
 * The next table of an open-addressed table of numbers, from 0 in the order in which they came: it is made beside the adds, from half full
 * on, and takes the place of the one before when it has all numbers, at 2/3 full. Made at once, it would hold up everything else of its
 * thread, at ten million numbers for seconds.
 */

/** An empty cell. */
export const none = 0xffff_ffff

/** Cells that a step makes empty; as many numbers go over in each step once all are. */
const cellsEach = 64
const numbersEach = 5

export class NextTable {
  readonly #cells: Uint32Array<ArrayBuffer>
  /** Cells below this one are ready. */
  #empty = 0
  /** Numbers below this one are in it. */
  #moved = 0

  /** In place of a table of so many cells. */
  constructor(cells: number) {
    this.#cells = new Uint32Array(2 * cells)
  }

  /** It is time to begin one. */
  static isDue(count: number, cells: number): boolean {
    return count * 2 > cells
  }

  /** One step, at each add, of `count` numbers in all; gives the table once it has all of them. */
  step(count: number, hashOf: (number: number) => number): Uint32Array<ArrayBuffer> | undefined {
    if (this.#empty < this.#cells.length) {
      this.#cells.fill(none, this.#empty, this.#empty + cellsEach)
      this.#empty += cellsEach
      return undefined
    }
    const end = Math.min(count, this.#moved + numbersEach)
    for (; this.#moved < end; this.#moved++) place(this.#cells, this.#moved, hashOf(this.#moved))
    return this.#moved < count ? undefined : this.#cells
  }
}

/** A table of so many cells, a power of two, that has all of `count` numbers. */
export function tableOf(cells: number, count: number, hashOf: (number: number) => number): Uint32Array<ArrayBuffer> {
  const table = new Uint32Array(cells).fill(none)
  for (let number = 0; number < count; number++) place(table, number, hashOf(number))
  return table
}

/** Puts a number that is not there yet into the first empty cell from that of its hash on. */
function place(cells: Uint32Array, number: number, hash: number): void {
  const mask = cells.length - 1
  let cell = hash & mask
  while (cells[cell] !== none) cell = (cell + 1) & mask
  cells[cell] = number
}
