/**
 * Large arrays of a snapshot, kept beside what msgpack holds of it: they are written from where they lie, and read into the
 * very memory that continues to grow. Copying and decoding them would be most of a start.
 */

import { roomFor } from '../../storage/snapshot.ts'

/** An array in a snapshot: small ones are its bytes, a large one is the number of its column. */
export type Kept = Uint8Array | number

/** A board of few events has everything in one piece. */
const columnBytesMin = 16 * 1024

export class Columns {
  readonly all: Uint8Array[]
  readonly #isLive: boolean

  /**
   * `all`: as they were read, each with room to grow; none for a snapshot that is being made. `isLive`: the state goes on while
   * the snapshot is written, and what may change is copied.
   */
  constructor(all: readonly Uint8Array[] = [], isLive = false) {
    this.all = [...all]
    this.#isLive = isLive
  }

  put(bytes: Uint8Array): Kept {
    if (bytes.length < columnBytesMin) return bytes
    return this.all.push(this.#isLive ? bytes.slice() : bytes) - 1
  }

  /** The same of an array that only grows: no number in it is ever another one, or its owner passes over what came later. */
  putGrowing(bytes: Uint8Array): Kept {
    return bytes.length < columnBytesMin ? bytes : this.all.push(bytes) - 1
  }

  /**
   * The array that was put, at the beginning of a power of two of bytes, at least `roomMin`. The memory of a column goes over to
   * the caller: an image is unpacked once, and never by a caller that continues with the state that it was packed from.
   *
   * @throws RangeError when there is no such column
   */
  take(kept: Kept, roomMin = 8): { readonly buffer: ArrayBuffer; readonly length: number } {
    const bytes = typeof kept === 'number' ? this.all[kept] : kept
    if (bytes === undefined) throw new RangeError(`the snapshot has no column ${kept}`)
    const { length } = bytes
    const room = Math.max(roomMin, roomFor(length))
    if (typeof kept === 'number' && bytes.byteOffset === 0 && bytes.buffer.byteLength === room)
      return { buffer: bytes.buffer as ArrayBuffer, length }
    const buffer = new ArrayBuffer(room)
    new Uint8Array(buffer).set(bytes)
    return { buffer, length }
  }
}

/** The beginning of a typed array as bytes: a view. */
export function bytesOf(array: Float64Array | Uint32Array | Uint16Array | Uint8Array, count: number): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, count * array.BYTES_PER_ELEMENT)
}

/** Another array, with what the smaller one holds at its beginning. */
export function grown<Column extends Float64Array | Uint32Array | Uint16Array | Uint8Array>(
  from: Column,
  to: Column,
): Column {
  to.set(from)
  return to
}

/** Longer columns are begun late, when 1/16 is free, as both take memory; they are filled before that is used up, some rows at a time. */
const freeShare = 16
const rowsBetween = 256
const rowsAtOnce = 20 * rowsBetween

/** Columns of twice as many rows, filled beside the work: copied at once, they would hold up everything else of their thread. */
export class Doubling<Column extends Uint32Array | Int32Array | Uint8Array> {
  readonly columns: readonly Column[]
  readonly #from: readonly Column[]
  readonly #rows: number
  #copied = 0

  /** `from`: columns of `rows` rows each; `make`: one of so many numbers, all zero. */
  constructor(from: readonly Column[], rows: number, make: (length: number) => Column) {
    this.columns = from.map(({ length }) => make(2 * length))
    this.#from = from
    this.#rows = rows
  }

  /** With `count` rows in use some are to be copied. */
  static isDue(count: number, rows: number): boolean {
    return count % rowsBetween === 0 && count * freeShare >= rows * (freeShare - 1)
  }

  /** Rows below this one are in the longer columns: who changes one of them changes it there too. */
  get copied(): number {
    return this.#copied
  }

  /** Some more rows, of `count` in use. */
  copySome(count: number): void {
    this.#copyTo(Math.min(count, this.#copied + rowsAtOnce))
  }

  /** The longer columns, with all rows. */
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

/** Whole numbers from 0, as narrow as the largest of them: the column widens when a larger one comes. */
export type Narrow = Uint8Array | Uint16Array | Uint32Array

/** The same column, or a wider one, that can hold `value`. */
export function wideEnough(column: Narrow, value: number): Narrow {
  if (value < 2 ** (8 * column.BYTES_PER_ELEMENT)) return column
  return remade(column, value < 0x1_0000 ? 2 : 4, column.length)
}

/** A column of the same width with more room. */
export function longer(column: Narrow, count: number): Narrow {
  return remade(column, column.BYTES_PER_ELEMENT, count)
}

/** The first `count` of a column that only grows; one that is all zeros is nothing. */
export function keepNarrow(column: Narrow, count: number, columns: Columns): Kept {
  return columns.putGrowing(bytesOf(column, isZero(column, count) ? 0 : count))
}

/** The column that was kept with `count` numbers, with room for so many, and at least `roomMin`, a power of two. */
export function takeNarrow(kept: Kept, count: number, roomMin: number, columns: Columns): Narrow {
  const room = Math.max(roomMin, roomFor(count))
  const { buffer, length } = columns.take(kept)
  if (length === 0) return new Uint8Array(room)
  const column = over(buffer, length / count)
  return column.length < room ? longer(column, room) : column
}

/** What is zero is not written, and takes no memory until it is. */
function remade(column: Narrow, bytesEach: number, count: number): Narrow {
  const to = over(new ArrayBuffer(count * bytesEach), bytesEach)
  if (!isZero(column, column.length)) to.set(column)
  return to
}

function over(buffer: ArrayBuffer, bytesEach: number): Narrow {
  return bytesEach === 1 ? new Uint8Array(buffer) : bytesEach === 2 ? new Uint16Array(buffer) : new Uint32Array(buffer)
}

/** Looks at four bytes at once: all of a large column is looked at before a snapshot. */
function isZero(column: Narrow, count: number): boolean {
  const bytes = column.subarray(0, count)
  const isAligned = bytes.byteOffset % 4 === 0
  const words = isAligned ? new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2) : []
  for (let at = words.length - 1; at >= 0; at--) if (words[at] !== 0) return false
  for (let at = Math.floor((4 * words.length) / column.BYTES_PER_ELEMENT); at < count; at++)
    if (column[at] !== 0) return false
  return true
}
