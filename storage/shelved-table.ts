/**
 * An immutable table on disk from 52-bit fingerprints to numbers above 0. It is derived: its owner rebuilds a missing
 * or damaged file. File, little-endian:
 *
 *   offset  bytes  field
 *        0      4  magic         "BST" and version 1
 *        4      4  n             cells, a power of two
 *        8      4  crc           CRC-32 (IEEE) of everything after this field
 *       12      4               zeros
 *       16     8n  fingerprints  float64 of each cell
 *          +   4n  values        u32 of each cell; 0: the cell is empty
 *
 * The cell of a fingerprint is its value modulo n, or the next free one after that. A Bloom filter in memory, 8 bits
 * per cell, rules out nearly every absent fingerprint; the file is read only for the others.
 */
import { crc32 } from 'node:zlib'
import type { Disk, DiskFile } from './disk.ts'

const magicAndVersion = Buffer.from('BST\x01', 'latin1')
const headerBytes = 16
const crcEnd = 12
const cellsRead = 32
const probes = 4
const twoTo20 = 0x10_0000

/** The cells of a table: both arrays have the same power-of-two length, and some cells are empty. */
export type Cells = { readonly fingerprints: Float64Array; readonly values: Uint32Array }

/** The bytes of a file. */
export function shelvedBytes({ fingerprints, values }: Cells): Buffer {
  const bytes = Buffer.alloc(headerBytes + 12 * values.length)
  magicAndVersion.copy(bytes)
  bytes.writeUInt32LE(values.length, 4)
  bytes.set(bytesOf(fingerprints), headerBytes)
  bytes.set(bytesOf(values), headerBytes + 8 * values.length)
  bytes.writeUInt32LE(crc32(bytes.subarray(crcEnd)), 8)
  return bytes
}

export class ShelvedTable {
  readonly #file: DiskFile
  readonly #cells: number
  readonly #filter: Uint8Array

  private constructor(file: DiskFile, { fingerprints, values }: Cells) {
    this.#file = file
    this.#cells = values.length
    this.#filter = new Uint8Array(values.length)
    for (let cell = 0; cell < values.length; cell++) if (values[cell] !== 0) this.#note(fingerprints[cell]!)
  }

  /** Opens a file that was just written with these cells. */
  static of(disk: Disk, path: string, cells: Cells): ShelvedTable {
    return new ShelvedTable(disk.openFile(path, 'read'), cells)
  }

  /** Undefined if there is no such file, or it is not as it was written. */
  static open(disk: Disk, path: string): ShelvedTable | undefined {
    if (!disk.fileExists(path)) return undefined
    const file = disk.openFile(path, 'read')
    const bytes = Buffer.from(new ArrayBuffer(file.size()))
    const isWhole = file.readAt(bytes, 0) === bytes.length && isIntact(bytes)
    if (!isWhole) {
      file.close()
      return undefined
    }
    const cells = bytes.readUInt32LE(4)
    const values = new Uint32Array(bytes.buffer, headerBytes + 8 * cells, cells)
    return new ShelvedTable(file, { fingerprints: new Float64Array(bytes.buffer, headerBytes, cells), values })
  }

  /** Calls `each` with the value of every cell of this fingerprint until a call returns true; returns whether one did. */
  find(fingerprint: number, each: (value: number) => boolean): boolean {
    if (!this.#mayHave(fingerprint)) return false
    let cell = fingerprint % this.#cells
    for (;;) {
      const count = Math.min(cellsRead, this.#cells - cell)
      const fingerprints = new Float64Array(count)
      const values = new Uint32Array(count)
      this.#file.readAt(bytesOf(fingerprints), headerBytes + 8 * cell)
      this.#file.readAt(bytesOf(values), headerBytes + 8 * this.#cells + 4 * cell)
      for (let n = 0; n < count; n++) {
        if (values[n] === 0) return false
        if (fingerprints[n] === fingerprint && each(values[n]!)) return true
      }
      cell = (cell + count) % this.#cells
    }
  }

  close(): void {
    this.#file.close()
  }

  #note(fingerprint: number): void {
    for (let probe = 0; probe < probes; probe++) {
      const bit = this.#bit(fingerprint, probe)
      this.#filter[bit >>> 3]! |= 1 << (bit & 7)
    }
  }

  #mayHave(fingerprint: number): boolean {
    for (let probe = 0; probe < probes; probe++) {
      const bit = this.#bit(fingerprint, probe)
      if ((this.#filter[bit >>> 3]! & (1 << (bit & 7))) === 0) return false
    }
    return true
  }

  #bit(fingerprint: number, probe: number): number {
    const high = Math.floor(fingerprint / twoTo20)
    const low = fingerprint % twoTo20
    return (Math.imul(high, 0x9e37_79b1) + Math.imul(probe, (low << 1) | 1)) & (8 * this.#cells - 1)
  }
}

function isIntact(bytes: Buffer): boolean {
  if (bytes.length < headerBytes || !bytes.subarray(0, 4).equals(magicAndVersion)) return false
  if (bytes.length !== headerBytes + 12 * bytes.readUInt32LE(4)) return false
  return bytes.readUInt32LE(8) === crc32(bytes.subarray(crcEnd))
}

function bytesOf({ buffer, byteOffset, byteLength }: Float64Array | Uint32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength)
}
