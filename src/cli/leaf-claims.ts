/**
 * Which leaf each line of an export claims to be, stored until the leaves themselves arrive at the end of the file.
 *
 * 48 bytes per line in flat arrays, whatever the lines claim: indexes may be sparse, huge, or out of order.
 */

const hashBytes = 32
const firstCapacity = 4096

export class LeafClaims {
  #indexes = new Float64Array(firstCapacity)
  #lines = new Float64Array(firstCapacity)
  #hashes = Buffer.alloc(firstCapacity * hashBytes)
  #count = 0
  /** Claims in ascending order of index, once `sort` ran; the next to be compared is at `#next`. */
  #order: Uint32Array | undefined
  #next = 0

  get count(): number {
    return this.#count
  }

  add(index: number, leafHash: Uint8Array, line: number): void {
    if (this.#count === this.#indexes.length) this.#grow()
    this.#indexes[this.#count] = index
    this.#lines[this.#count] = line
    this.#hashes.set(leafHash, this.#count * hashBytes)
    this.#count += 1
  }

  /** Call after the last `add`. */
  sort(): void {
    const indexes = this.#indexes
    const order = Uint32Array.from({ length: this.#count }, (_, k) => k)
    // A valid export is in order already, so sorting costs only if it is not.
    let isSorted = true
    for (let k = 1; k < this.#count; k += 1) isSorted &&= indexes[k - 1]! <= indexes[k]!
    if (!isSorted) order.sort((a, b) => indexes[a]! - indexes[b]!)
    this.#order = order
  }

  /**
   * Compares the claims on leaves [start, start + hashes.length / 32), which must ascend from call to call. Returns the number of those
   * leaves that a line claims correctly; `differs` is called with each that differs.
   */
  compare(start: number, hashes: Buffer, differs: (line: number, index: number) => void): number {
    const order = this.#order!
    const end = start + hashes.length / hashBytes
    let named = 0
    let before = -1
    for (; this.#next < order.length; this.#next += 1) {
      const claim = order[this.#next]!
      const index = this.#indexes[claim]!
      if (index >= end) break
      const at = claim * hashBytes
      const leaf = (index - start) * hashBytes
      if (this.#hashes.compare(hashes, leaf, leaf + hashBytes, at, at + hashBytes) !== 0) {
        differs(this.#lines[claim]!, index)
      } else if (index !== before) named += 1
      before = index
    }
    return named
  }

  /** Numbers of the tiles, `width` leaves each, that contain a claimed leaf below `size`, ascending. Call after `sort`. */
  *tiles(width: number, size: number): Generator<number, void, undefined> {
    let before = -1
    for (const claim of this.#order!) {
      const index = this.#indexes[claim]!
      const tile = Math.floor(index / width)
      if (index < size && tile !== before) yield tile
      before = tile
    }
  }

  /** Claims on leaves beyond those compared. */
  remaining(beyond: (line: number, index: number) => void): void {
    const order = this.#order!
    for (; this.#next < order.length; this.#next += 1)
      beyond(this.#lines[order[this.#next]!]!, this.#indexes[order[this.#next]!]!)
  }

  #grow(): void {
    const capacity = this.#indexes.length * 2
    const indexes = new Float64Array(capacity)
    indexes.set(this.#indexes)
    const lines = new Float64Array(capacity)
    lines.set(this.#lines)
    const hashes = Buffer.alloc(capacity * hashBytes)
    hashes.set(this.#hashes)
    this.#indexes = indexes
    this.#lines = lines
    this.#hashes = hashes
  }
}
