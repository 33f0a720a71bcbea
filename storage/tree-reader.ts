/**
 * Reads proofs, roots and node hashes of every past size from the tree file while it grows.
 *
 * {@link TreeReader.advance} says how far it may read. Up to there no byte of the file ever changes, so everything read
 * can be cached. The lowest levels are cached in chunks of a 256-leaf subtree, one read each; the nodes above, which
 * are between chunks, one by one.
 */
import { BoundedMap } from './bounded-map.ts'
import { type Disk, type DiskFile, unlessUnreadable } from './disk.ts'
import {
  consistencyPathOf,
  type EdgeHashes,
  EMPTY_ROOT,
  edgeHashesOf,
  HASH_BYTES,
  inclusionPathOf,
  type NodeReader,
} from './merkle.ts'
import { CHUNK_BYTES, CHUNK_LEAVES, CHUNK_LEVELS, nodePosition, nodesIn, TreeFileShort } from './tree-layout.ts'

/** Maximum hashes in one answer of {@link TreeReader.hashes}: 2 MiB. */
export const HASHES_MAX = 65_536

/** Cache sizes. */
type TreeReaderLimits = {
  /** Chunks of 16,352 bytes. */
  readonly chunksMax: number
  /** Single hashes of the upper levels: about 150 bytes each, including the map entry. */
  readonly nodesMax: number
}

/** 8 MiB of chunks, and all upper nodes of a log of 4 million entries in 5 MiB. */
const usualLimits: TreeReaderLimits = { chunksMax: 512, nodesMax: 32_768 }

/** The start of a chunk: the `length` bytes of it that were final when read. */
type Chunk = { readonly bytes: Buffer; length: number }

/** A read-only view of a tree file that one {@link TreeWriter} appends to, in this thread or another. */
export class TreeReader {
  readonly #disk: Disk
  readonly #path: string
  /** Undefined if the disk could not open it. */
  #file: DiskFile | undefined
  readonly #chunks: BoundedMap<number, Chunk>
  readonly #nodes: BoundedMap<number, Buffer>
  #size = 0
  /** For the size last requested: most proofs are in the tree of the newest head. */
  #edges: { readonly size: number; readonly hashes: EdgeHashes } = { size: 0, hashes: [] }

  private constructor(disk: Disk, path: string, limits: TreeReaderLimits) {
    this.#disk = disk
    this.#path = path
    this.#file = this.#opened()
    this.#chunks = new BoundedMap(limits.chunksMax)
    this.#nodes = new BoundedMap(limits.nodesMax)
  }

  /** Opens the file. Nothing can be read until {@link advance} says how many leaves are in it. */
  static open(disk: Disk, path: string, limits: TreeReaderLimits = usualLimits): TreeReader {
    return new TreeReader(disk, path, limits)
  }

  /** Number of leaves that may be read. */
  get size(): number {
    return this.#size
  }

  /**
   * The writer has written the nodes of this many leaves.
   *
   * @throws RangeError if that is fewer than before: a log never shrinks
   */
  advance(size: number): void {
    if (!(size >= this.#size)) throw new RangeError(`a log of ${this.#size} leaves cannot shrink to ${size}`)
    this.#size = size
  }

  /** Clears the caches: the file was wrong and has been repaired. */
  forget(): void {
    this.#chunks.clear()
    this.#nodes.clear()
    this.#edges = { size: 0, hashes: [] }
  }

  /**
   * The audit path of a leaf in the tree of `size` leaves, leaf's sibling first.
   *
   * @throws RangeError unless 0 <= index < size <= the known size; TreeFileShort if the file is damaged
   */
  inclusionPath(index: number, size: number): Buffer[] {
    this.#allow(size)
    return inclusionPathOf(this.#node, index, size, this.#edgesOf(size))
  }

  /**
   * The consistency proof that the tree of `to` leaves begins with that of `from`. Empty if they are equal.
   *
   * @throws RangeError unless 1 <= from <= to <= the known size; TreeFileShort if the file is damaged
   */
  consistencyPath(from: number, to: number): Buffer[] {
    this.#allow(to)
    return consistencyPathOf(this.#node, from, to, this.#edgesOf(to))
  }

  /** The root of the first `size` leaves: 32 bytes. Throws like {@link inclusionPath}. */
  root(size: number): Buffer {
    this.#allow(size)
    return Buffer.from(this.#edgesOf(size).at(-1) ?? EMPTY_ROOT)
  }

  /** One leaf's hash: 32 bytes. Throws like {@link hashes}. */
  leaf(index: number): Buffer {
    return this.hashes(0, index, index + 1)
  }

  /** The hashes of leaves start..end-1, back to back. Throws like {@link hashes}. */
  leaves(start: number, end: number): Buffer {
    return this.hashes(0, start, end)
  }

  /**
   * The hashes of nodes start..end-1 of a level, back to back. A C2SP tile of level L contains nodes of level 8 * L.
   *
   * @throws RangeError unless 0 <= start <= end, the nodes are complete at the known size, and there are at most {@link
   *   HASHES_MAX} of them; TreeFileShort if the file is damaged
   */
  hashes(level: number, start: number, end: number): Buffer {
    const isRange = Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && start <= end
    if (!isRange || end * 2 ** level > this.#size || end - start > HASHES_MAX) {
      throw new RangeError(
        `nodes ${start} to ${end} of level ${level} cannot be read from a tree of ${this.#size} leaves`,
      )
    }
    const hashes = Buffer.allocUnsafe((end - start) * HASH_BYTES)
    for (let k = start; k < end; k += 1) hashes.set(this.#node(level, k), (k - start) * HASH_BYTES)
    return hashes
  }

  close(): void {
    this.#file?.close()
  }

  #allow(size: number): void {
    if (Number.isSafeInteger(size) && size >= 0 && size <= this.#size) return
    throw new RangeError(`${size} is not a valid size of a tree with ${this.#size} leaves`)
  }

  #edgesOf(size: number): EdgeHashes {
    if (this.#edges.size !== size) this.#edges = { size, hashes: edgeHashesOf(this.#node, size) }
    return this.#edges.hashes
  }

  /** A view of a hash that is valid until the next one is requested; callers copy what they retain. */
  readonly #node: NodeReader = (level, index) => {
    if (level >= CHUNK_LEVELS) return this.#upperNode(level, index)
    const nodesPerChunk = 2 ** (CHUNK_LEVELS - level)
    const at = nodePosition(level, index % nodesPerChunk) * HASH_BYTES
    return this.#chunk(Math.floor(index / nodesPerChunk), at + HASH_BYTES).subarray(at, at + HASH_BYTES)
  }

  #upperNode(level: number, index: number): Buffer {
    const position = nodePosition(level, index)
    const kept = this.#nodes.touch(position)
    if (kept !== undefined) return kept
    const hash = Buffer.allocUnsafe(HASH_BYTES)
    this.#readExactly(hash, position * HASH_BYTES)
    this.#nodes.set(position, hash)
    return hash
  }

  /** A chunk with at least `length` bytes; reads on if it has grown since it was cached. */
  #chunk(index: number, length: number): Buffer {
    const kept = this.#chunks.touch(index)
    if (kept !== undefined && kept.length >= length) return kept.bytes
    const leaves = Math.min(CHUNK_LEAVES, this.#size - index * CHUNK_LEAVES)
    const chunk = kept ?? this.#emptyChunk()
    const final = nodesIn(leaves) * HASH_BYTES
    const from = chunk.length
    this.#readExactly(chunk.bytes.subarray(from, final), nodesIn(index * CHUNK_LEAVES) * HASH_BYTES + from)
    chunk.length = final
    if (kept === undefined) this.#chunks.set(index, chunk)
    return chunk.bytes
  }

  /**
   * An empty chunk. Reuses the memory of an evicted one when the cache is full: otherwise proofs all over a log would
   * create 16 KiB of garbage each.
   */
  #emptyChunk(): Chunk {
    const bytes = this.#chunks.evictIfFull()?.bytes ?? Buffer.allocUnsafeSlow(CHUNK_BYTES)
    return { bytes, length: 0 }
  }

  /** Bytes that the disk fails to read count as missing. */
  #read(into: Buffer, position: number): number {
    this.#file ??= this.#opened()
    return unlessUnreadable(() => this.#file?.readAt(into, position)) ?? 0
  }

  #opened(): DiskFile | undefined {
    return unlessUnreadable(() => this.#disk.openFile(this.#path, 'read'))
  }

  #readExactly(into: Buffer, position: number): void {
    const read = this.#read(into, position)
    if (read !== into.length) {
      throw new TreeFileShort({ path: this.#path, expected: position + into.length, found: position + read })
    }
  }
}
