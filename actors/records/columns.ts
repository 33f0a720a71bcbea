/**
 * Large arrays of a snapshot, stored next to its msgpack part. They are written directly from memory, and read into the memory
 * that the running state then grows. Copying and decoding them would take most of a start.
 */

import { capacityFor } from '../../storage/snapshot.ts'

/** An array in a snapshot: the bytes of a small one, or the column number of a large one. */
export type Kept = Uint8Array | number

/** Smaller arrays stay in the msgpack part, so a board with few events has everything in one piece. */
const columnBytesMin = 16 * 1024

export class Columns {
  readonly all: Uint8Array[]
  readonly #isLive: boolean

  /**
   * `all`: the columns as read, each with room to grow; empty for a new snapshot. `isLive`: the state keeps changing while the
   * snapshot is written, so arrays that may change are copied.
   */
  constructor(all: readonly Uint8Array[] = [], isLive = false) {
    this.all = [...all]
    this.#isLive = isLive
  }

  put(bytes: Uint8Array): Kept {
    if (bytes.length < columnBytesMin) return bytes
    return this.all.push(this.#isLive ? bytes.slice() : bytes) - 1
  }

  /** The same for an array that only grows: its numbers never change, or its owner ignores what was added later. */
  putGrowing(bytes: Uint8Array): Kept {
    return bytes.length < columnBytesMin ? bytes : this.all.push(bytes) - 1
  }

  /**
   * The array that was put, at the start of a buffer whose size is a power of two, at least `capacityMin`. The caller takes over
   * the memory of the column. So an image is unpacked only once, and never by a caller that continues with the state it was
   * packed from.
   *
   * @throws RangeError if there is no such column
   */
  take(kept: Kept, capacityMin = 8): { readonly buffer: ArrayBuffer; readonly length: number } {
    const bytes = typeof kept === 'number' ? this.all[kept] : kept
    if (bytes === undefined) throw new RangeError(`the snapshot has no column ${kept}`)
    const { length } = bytes
    const capacity = Math.max(capacityMin, capacityFor(length))
    if (typeof kept === 'number' && bytes.byteOffset === 0 && bytes.buffer.byteLength === capacity)
      return { buffer: bytes.buffer as ArrayBuffer, length }
    const buffer = new ArrayBuffer(capacity)
    new Uint8Array(buffer).set(bytes)
    return { buffer, length }
  }
}

/** The beginning of a typed array, as a view of its bytes. */
export function bytesOf(array: Float64Array | Uint32Array | Uint16Array | Uint8Array, count: number): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, count * array.BYTES_PER_ELEMENT)
}

/** Copies the smaller array to the beginning of the other one, and returns that. */
export function grown<Column extends Float64Array | Uint32Array | Uint16Array | Uint8Array>(
  from: Column,
  to: Column,
): Column {
  to.set(from)
  return to
}

/**
 * Longer columns are started late, when only 1/16 is free, because both take memory. They are filled a few rows at a time
 * before that is used up.
 */
const freeShare = 16
const rowsBetween = 256
const rowsAtOnce = 20 * rowsBetween

/** Columns with twice as many rows, filled step by step in between other work: copying them in one go would block the thread. */
export class Doubling<Column extends Uint32Array | Int32Array | Uint8Array> {
  readonly columns: readonly Column[]
  readonly #from: readonly Column[]
  readonly #rows: number
  #copied = 0

  /** `from`: columns of `rows` rows each; `make`: returns a column of that many numbers, all zero. */
  constructor(from: readonly Column[], rows: number, make: (length: number) => Column) {
    this.columns = from.map(({ length }) => make(2 * length))
    this.#from = from
    this.#rows = rows
  }

  /** Whether rows should be copied now that `count` rows are in use. */
  static isDue(count: number, rows: number): boolean {
    return count % rowsBetween === 0 && count * freeShare >= rows * (freeShare - 1)
  }

  /** Rows below this one are already in the longer columns: callers that change one must change it there too. */
  get copied(): number {
    return this.#copied
  }

  /** Copies some more rows, out of `count` in use. */
  copySome(count: number): void {
    this.#copyTo(Math.min(count, this.#copied + rowsAtOnce))
  }

  /** Copies the remaining rows and returns the longer columns. */
  finish(): readonly Column[] {
    this.#copyTo(this.#rows)
    return this.columns
  }

  #copyTo(end: number): void {
    for (const [n, from] of this.#from.entries()) {
      const width = from.length / this.#rows
      this.columns[n]!.set(from.subarray(this.#copied * width, end * width), this.#copied * width)
    }
    this.#copied = end
  }
}

/** Integers from 0, in a column as narrow as the largest allows; it is widened when a larger one is added. */
export type Narrow = Uint8Array | Uint16Array | Uint32Array

/** The same column, or a wider one, that can hold `value`. */
export function widened(column: Narrow, value: number): Narrow {
  if (value < 2 ** (8 * column.BYTES_PER_ELEMENT)) return column
  return remade(column, value < 0x1_0000 ? 2 : 4, column.length)
}

/** A column of the same width with more room. */
export function longer(column: Narrow, count: number): Narrow {
  return remade(column, column.BYTES_PER_ELEMENT, count)
}

/** Stores the first `count` numbers of a column that only grows; if all are zero, nothing. */
export function keepNarrow(column: Narrow, count: number, columns: Columns): Kept {
  return columns.putGrowing(bytesOf(column, isZero(column, count) ? 0 : count))
}

/** The column that was stored with `count` numbers, with room for that many, and at least `capacityMin`, a power of two. */
export function takeNarrow(kept: Kept, count: number, capacityMin: number, columns: Columns): Narrow {
  const capacity = Math.max(capacityMin, capacityFor(count))
  const { buffer, length } = columns.take(kept)
  if (length === 0) return new Uint8Array(capacity)
  const column = over(buffer, length / count)
  return column.length < capacity ? longer(column, capacity) : column
}

/** Zeros are not written, so their pages take no memory. */
function remade(column: Narrow, bytesEach: number, count: number): Narrow {
  const to = over(new ArrayBuffer(count * bytesEach), bytesEach)
  if (!isZero(column, column.length)) to.set(column)
  return to
}

function over(buffer: ArrayBuffer, bytesEach: number): Narrow {
  return bytesEach === 1 ? new Uint8Array(buffer) : bytesEach === 2 ? new Uint16Array(buffer) : new Uint32Array(buffer)
}

/** Checks four bytes at a time: large columns are scanned in full before a snapshot. */
function isZero(column: Narrow, count: number): boolean {
  const bytes = column.subarray(0, count)
  const isAligned = bytes.byteOffset % 4 === 0
  const words = isAligned ? new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2) : []
  for (let at = words.length - 1; at >= 0; at--) if (words[at] !== 0) return false
  for (let at = Math.floor((4 * words.length) / column.BYTES_PER_ELEMENT); at < count; at++)
    if (column[at] !== 0) return false
  return true
}
