/**
 * Immutable rows of 32-bit numbers on disk, each found by its number or by the 16-byte key that it begins with. They
 * are derived: their owner rebuilds a missing or damaged file. File, little-endian:
 *
 *   offset  bytes  field
 *        0      4  magic         "BSR" and version 1
 *        4      4  n             rows, a power of two, at least 16
 *        8      4  w             words of a row, four of them the key
 *       12      4  seed          for the hashes of keys
 *       16      4  crc           CRC-32 (IEEE) of the head (everything before the cells) without this field
 *       20      4  largest       largest value of one chosen word over all rows
 *       24      8                zeros
 *       32      …  CRCs of the row blocks, 64 rows each, or all rows if fewer
 *        +      …  CRCs of the cell blocks, 1,024 cells each, or all cells if fewer
 *        +     2n  filter        Bloom filter, 16 bits per key in blocks of 32 bytes: whether the file can have a key
 *        +     8n  cells         u32: row number + 1 in the low bits, bits of the hash of its key above them; 0: empty
 *        +    4wn  rows
 *
 * The cell of a key is its hash modulo 2n, or the next free one after that. CRCs and filter are in memory; the other
 * blocks are read and cached on demand.
 */
import { crc32 } from 'node:zlib'
import type { BlockCache } from './block-cache.ts'

const magicAndVersion = Buffer.from('BSR\x01', 'latin1')
const headerBytes = 32
const crcAt = 16
const largestAt = 20
export const keyWords = 4
const rowsEach = 64
const cellsEach = 1_024
/** Words of a filter block; a key sets one bit in each. */
const filterWords = 8
const salts = [
  0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31,
] as const
/** Rows added to a file in one step: less than a millisecond. */
const rowsPerStep = 4_096

/** Size of a cached block of rows or cells, if rows have at most 16 words. */
export const shelvedBlockBytes = 4 * cellsEach
/** Block numbers reserved for each file in a shared cache. */
const blocksMax = 0x10_0000

/** The bytes of a file. */
export type RowSource = {
  /** Throws the system error. */
  readonly readAt: (into: Uint8Array, position: number) => number
  /** See DiskFile. */
  readonly prefetch: (position: number, bytes: number) => void
  /** Called if the file cannot be read, or is not as it was written: never open it again. */
  readonly onDamage: (problem: Error) => void
}

/** A file cannot be read, or is not as it was written. */
export class DamagedRows extends Error {
  override readonly name = 'DamagedRows'
}

type Layout = {
  readonly rowsPerBlock: number
  readonly rowBlocks: number
  readonly cellBlocks: number
  readonly cellsPerBlock: number
  readonly filterAt: number
  readonly cellsAt: number
  readonly rowsAt: number
}

function layoutOf(rows: number): Layout {
  const [rowsPerBlock, cellsPerBlock] = [Math.min(rowsEach, rows), Math.min(cellsEach, 2 * rows)]
  const [rowBlocks, cellBlocks] = [rows / rowsPerBlock, (2 * rows) / cellsPerBlock]
  const filterAt = headerBytes + 4 * (rowBlocks + cellBlocks)
  const cellsAt = filterAt + 2 * rows
  return { rowsPerBlock, rowBlocks, cellBlocks, cellsPerBlock, filterAt, cellsAt, rowsAt: cellsAt + 8 * rows }
}

/** `rows`: a power of two, at least 16. `largestOf`: the word whose largest value is recorded. */
type RowsPlan = { readonly rows: number; readonly words: number; readonly seed: number; readonly largestOf: number }

/** Builds the bytes of a file, step by step. `fill` writes row `n` into `row`, whose first four words are the key. */
export function* shelvedRows(
  { rows, words, seed, largestOf }: RowsPlan,
  fill: (n: number, row: Uint32Array) => void,
): Generator<void, Buffer> {
  const { rowsPerBlock, rowBlocks, cellBlocks, cellsPerBlock, filterAt, cellsAt, rowsAt } = layoutOf(rows)
  const bytes = Buffer.from(new ArrayBuffer(rowsAt + 4 * words * rows))
  magicAndVersion.copy(bytes)
  const numbers = new Uint32Array(bytes.buffer)
  numbers.set([rows, words, seed], 1)
  const filter = numbers.subarray(filterAt / 4, cellsAt / 4)
  const cells = numbers.subarray(cellsAt / 4, rowsAt / 4)
  const low = lowBits(rows)
  for (let n = 0; n < rows; n++) {
    const at = rowsAt / 4 + n * words
    const row = numbers.subarray(at, at + words)
    fill(n, row)
    if (row[largestOf]! > numbers[largestAt / 4]!) numbers[largestAt / 4] = row[largestOf]!
    const [first, second] = [firstHash(seed, row), secondHash(seed, row)]
    note(filter, first, second)
    let cell = first & (cells.length - 1)
    while (cells[cell] !== 0) cell = (cell + 1) & (cells.length - 1)
    cells[cell] = (n + 1) | (second & ~low)
    if ((n + 1) % rowsPerBlock === 0)
      numbers[headerBytes / 4 + (n + 1) / rowsPerBlock - 1] = crc32(
        bytes.subarray(rowsAt + 4 * words * (n + 1 - rowsPerBlock), rowsAt + 4 * words * (n + 1)),
      )
    if (n % rowsPerStep === rowsPerStep - 1) yield
  }
  for (let block = 0; block < cellBlocks; block++) {
    const from = cellsAt + 4 * cellsPerBlock * block
    numbers[headerBytes / 4 + rowBlocks + block] = crc32(bytes.subarray(from, from + 4 * cellsPerBlock))
  }
  bytes.writeUInt32LE(headCrc(bytes.subarray(0, cellsAt)), crcAt)
  return bytes
}

/** Distinguishes a file from every other of the same length. */
export function markOf(bytes: Buffer): number {
  return bytes.readUInt32LE(crcAt)
}

/** The suffix that a mark adds to the name of its file, before the extension. */
export function markEnding(mark: number): string {
  return `-${mark.toString(16).padStart(8, '0')}`
}

/** Whether all of these bytes are as they were written. */
export function areIntact(bytes: Buffer): boolean {
  if (bytes.length < headerBytes || !bytes.subarray(0, 4).equals(magicAndVersion)) return false
  const [rows, words] = [bytes.readUInt32LE(4), bytes.readUInt32LE(8)]
  const { rowsPerBlock, rowBlocks, cellsPerBlock, cellBlocks, cellsAt, rowsAt } = layoutOf(rows)
  if (bytes.length !== rowsAt + 4 * words * rows || markOf(bytes) !== headCrc(bytes.subarray(0, cellsAt))) return false
  const isBlock = (number: number, at: number, length: number): boolean =>
    crc32(bytes.subarray(at, at + length)) === bytes.readUInt32LE(headerBytes + 4 * number)
  const [rowBytes, cellBytes] = [4 * words * rowsPerBlock, 4 * cellsPerBlock]
  for (let n = 0; n < rowBlocks; n++) if (!isBlock(n, rowsAt + rowBytes * n, rowBytes)) return false
  for (let n = 0; n < cellBlocks; n++) if (!isBlock(rowBlocks + n, cellsAt + cellBytes * n, cellBytes)) return false
  return true
}

export class ShelvedRows {
  readonly #rows: number
  readonly #words: number
  readonly #source: RowSource
  readonly #cache: BlockCache
  readonly #firstBlock: number
  readonly #seed: number
  readonly #layout: Layout
  /** Header, CRCs and filter. */
  readonly #head: Uint32Array
  readonly #filter: Uint32Array

  private constructor(source: RowSource, head: Uint32Array, cache: BlockCache, file: number) {
    this.#source = source
    this.#cache = cache
    this.#firstBlock = blocksMax * file
    this.#head = head
    const [, rows, words, seed] = head
    this.#rows = rows!
    this.#words = words!
    this.#seed = seed!
    this.#layout = layoutOf(this.#rows)
    this.#filter = head.subarray(this.#layout.filterAt / 4)
  }

  /**
   * `file`: its number among the files that share the cache. Undefined if it does not have `rows` rows of `words`
   * words, or is not as it was written.
   */
  static open(
    source: RowSource,
    { rows, words }: { readonly rows: number; readonly words: number },
    cache: BlockCache,
    file: number,
  ): ShelvedRows | undefined {
    const { cellsAt } = layoutOf(rows)
    const head = Buffer.from(new ArrayBuffer(cellsAt))
    if (source.readAt(head, 0) !== head.length) return undefined
    const isOurs =
      head.subarray(0, 4).equals(magicAndVersion) && head.readUInt32LE(4) === rows && head.readUInt32LE(8) === words
    if (!isOurs || head.readUInt32LE(crcAt) !== headCrc(head)) return undefined
    return new ShelvedRows(source, new Uint32Array(head.buffer), cache, file)
  }

  /** See markOf. */
  get mark(): number {
    return this.#head[crcAt / 4]!
  }

  get largest(): number {
    return this.#head[largestAt / 4]!
  }

  /** A word of a row. Throws DamagedRows. */
  word(row: number, word: number): number {
    return this.#rowBlock(row)[this.#inBlock(row) + word]!
  }

  /** The 16 bytes of a key, as a read-only view that is valid until another row is read. Throws as `word` does. */
  key(row: number): Buffer {
    const { buffer, byteOffset } = this.#rowBlock(row)
    return Buffer.from(buffer, byteOffset + 4 * this.#inBlock(row), 4 * keyWords)
  }

  /** Hints that these rows will be read next. */
  prefetch(rows: readonly number[]): void {
    const { rowsAt, rowsPerBlock } = this.#layout
    const bytes = 4 * this.#words * rowsPerBlock
    let newest = -1
    for (const row of rows) {
      const block = Math.floor(row / rowsPerBlock)
      if (block !== newest && !this.#cache.has(this.#firstBlock + block))
        this.#source.prefetch(rowsAt + bytes * block, bytes)
      newest = block
    }
  }

  /** The row with this key, or undefined. Throws as `word` does. */
  find(key: Uint32Array): number | undefined {
    const [first, second] = [firstHash(this.#seed, key), secondHash(this.#seed, key)]
    if (!mayHave(this.#filter, first, second)) return undefined
    const { cellsPerBlock } = this.#layout
    const low = lowBits(this.#rows)
    const mask = 2 * this.#rows - 1
    for (let cell = first & mask; ; cell = (cell + 1) & mask) {
      const found = this.#cellBlock(Math.floor(cell / cellsPerBlock))[cell % cellsPerBlock]!
      if (found === 0) return undefined
      const row = (found & low) - 1
      if ((found & ~low) === (second & ~low) && this.#hasKey(row, key)) return row
    }
  }

  #hasKey(row: number, key: Uint32Array): boolean {
    const block = this.#rowBlock(row)
    const at = this.#inBlock(row)
    for (let word = 0; word < keyWords; word++) if (block[at + word] !== key[word]) return false
    return true
  }

  #rowBlock(row: number): Uint32Array {
    const { rowsAt, rowsPerBlock } = this.#layout
    const block = Math.floor(row / rowsPerBlock)
    return this.#block(block, rowsAt, rowsPerBlock * this.#words, block)
  }

  /** Where a row begins in its block, in words. */
  #inBlock(row: number): number {
    return (row % this.#layout.rowsPerBlock) * this.#words
  }

  #cellBlock(block: number): Uint32Array {
    const { rowBlocks, cellsAt, cellsPerBlock } = this.#layout
    return this.#block(rowBlocks + block, cellsAt, cellsPerBlock, block)
  }

  /** `number`: index of its CRC; `block`: index among the blocks of its kind, which begin at `from` and have `count` words each. */
  #block(number: number, from: number, count: number, block: number): Uint32Array {
    const inCache = this.#firstBlock + number
    const read = (into: Buffer): void => this.#readBlock(number, from + 4 * count * block, into)
    return this.#cache.get(inCache) ?? this.#cache.read(inCache, 4 * count, read)
  }

  #readBlock(number: number, at: number, into: Buffer): void {
    const problem = this.#problemOf(number, at, into)
    if (problem === undefined) return
    this.#source.onDamage(problem)
    throw problem
  }

  /** Fills `read` from position `at`; returns what is wrong, if anything. */
  #problemOf(number: number, at: number, read: Buffer): Error | undefined {
    try {
      const isWhole = this.#source.readAt(read, at) === read.length
      if (isWhole && crc32(read) === this.#head[headerBytes / 4 + number]) return undefined
      return new DamagedRows(`the checksum of block ${number} does not match`)
    } catch (error) {
      return new DamagedRows(`block ${number} cannot be read: ${(error as Error).message}`)
    }
  }
}

/** The bits of a cell that hold a row number. */
function lowBits(rows: number): number {
  return 2 * rows - 1
}

function headCrc(head: Buffer): number {
  return crc32(head.subarray(largestAt), crc32(head.subarray(0, crcAt)))
}

function firstHash(seed: number, key: Uint32Array): number {
  return mixed(key[0]! ^ seed, key[1]!)
}

function secondHash(seed: number, key: Uint32Array): number {
  return mixed(key[2]! ^ seed, key[3]!)
}

/** A hash of two 32-bit numbers. To seed it, XOR a seed into the first. */
export function mixed(first: number, second: number): number {
  const both = Math.imul(first, 0x9e37_79b1) ^ second
  return (Math.imul(both ^ (both >>> 15), 0x85eb_ca6b) ^ (both >>> 13)) >>> 0
}

function note(filter: Uint32Array, first: number, second: number): void {
  const at = filterBlock(filter, first)
  for (let n = 0; n < filterWords; n++) filter[at + n]! |= 1 << (Math.imul(second, salts[n]!) >>> 27)
}

function mayHave(filter: Uint32Array, first: number, second: number): boolean {
  const at = filterBlock(filter, first)
  for (let n = 0; n < filterWords; n++)
    if ((filter[at + n]! & (1 << (Math.imul(second, salts[n]!) >>> 27))) === 0) return false
  return true
}

/** Uses the high bits of the hash: the low ones choose the cell. */
function filterBlock(filter: Uint32Array, first: number): number {
  const blocks = filter.length / filterWords
  return Math.floor((first / 0x1_0000_0000) * blocks) * filterWords
}
