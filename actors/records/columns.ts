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

  /** `all`: as they were read, each with room to grow; none for a snapshot that is being made. */
  constructor(all: readonly Uint8Array[] = []) {
    this.all = [...all]
  }

  put(bytes: Uint8Array): Kept {
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
