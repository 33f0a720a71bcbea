/**
 * Writes the tree file: the hashes of all complete nodes, as they become final.
 *
 * Nothing here is a promise. The file is derived from the log's entries, and is
 * written without a sync: a crash may leave it too long (cut off on open), too
 * short or wrong anywhere (typed errors, and the caller writes it again from the
 * entries). The order of the hashes is in tree-layout.ts; reading is in
 * tree-reader.ts, repair while others read in tree-mender.ts.
 */
import { dirname } from 'node:path'
import { type DiskFile, fileExists, openFile, syncDirectory } from './disk.ts'
import { CompactRange, HASH_BYTES, LEVELS_MAX } from './merkle.ts'
import { nodesIn, TreeFileShort, TreeFileWrong } from './tree-layout.ts'

/** Leaves in one append at most: the write stays below 4.2 MB, and so does the buffer kept for it. */
export const APPEND_LEAVES_MAX = 65_536

/** Leaves whose nodes are recomputed at once on open: 256 KiB of the file. */
const CHECK_LEAVES = 4_096

/** The one writer of a tree file. */
export class TreeWriter {
  readonly #file: DiskFile
  readonly #range: CompactRange
  #buffer = Buffer.allocUnsafe(64 * 1024)
  #broken: unknown

  private constructor(file: DiskFile, range: CompactRange) {
    this.#file = file
    this.#range = range
  }

  /**
   * Opens the file to go on after `size` leaves, or makes it when `size` is 0.
   * What follows those leaves is cut off: open with size 0 to begin again.
   *
   * Every node is recomputed from the leaves' hashes, which costs one hash a
   * leaf: 35 ms for 68,000 leaves, 0.45 s for a million. Whether those are the
   * right ones {@link root} says: compare it with the signed one.
   *
   * @throws TreeFileShort when the file is missing or has not all nodes of `size` leaves;
   *   TreeFileWrong when a node is not the hash of its children
   */
  static open(path: string, size: number): TreeWriter {
    const expected = nodesIn(size) * HASH_BYTES
    const exists = fileExists(path)
    if (!exists && size > 0) throw new TreeFileShort({ path, expected, found: 0 })
    const file = openFile(path, exists ? 'write' : 'create')
    try {
      if (!exists) syncDirectory(dirname(path))
      const found = file.size()
      if (found < expected) throw new TreeFileShort({ path, expected, found })
      if (found > expected) file.truncate(expected)
      return new TreeWriter(file, recomputed(file, size))
    } catch (error) {
      file.close()
      throw error
    }
  }

  /** Leaves in the tree. */
  get size(): number {
    return this.#range.size
  }

  /**
   * Appends leaf hashes and the nodes they complete, in one write.
   *
   * @param leaves 32-byte leaf hashes, in a list or one after the other; at most {@link APPEND_LEAVES_MAX}
   * @throws the disk's error. The writer is of no use then: open it again at the last good size.
   */
  append(leaves: Buffer | readonly Uint8Array[]): void {
    if (this.#broken !== undefined) throw this.#broken
    const hashes = Buffer.isBuffer(leaves) ? leaves : joined(leaves)
    const count = hashes.length / HASH_BYTES
    if (!Number.isInteger(count)) throw new RangeError(`${hashes.length} bytes are not a list of 32-byte leaf hashes`)
    if (count > APPEND_LEAVES_MAX) throw new RangeError(`${count} leaves in one append, ${APPEND_LEAVES_MAX} at most`)
    if (count === 0) return
    const room = (2 * count + LEVELS_MAX) * HASH_BYTES
    if (this.#buffer.length < room) this.#buffer = Buffer.allocUnsafe(room)
    const position = nodesIn(this.#range.size) * HASH_BYTES
    const length = this.#range.append(hashes, this.#buffer)
    try {
      this.#file.writeAt(this.#buffer.subarray(0, length), position)
    } catch (error) {
      // The edge in memory is ahead of the file now. Nobody may build on it.
      this.#broken = error
      throw error
    }
  }

  /** The root of all leaves: 32 bytes. */
  root(): Buffer {
    return this.#range.root()
  }

  /** Makes the file durable. Nothing depends on it; it saves a rebuild after a power cut. */
  sync(): void {
    this.#file.sync()
  }

  close(): void {
    this.#file.close()
  }
}

/** One buffer of many hashes. A hash of another length would shift all that follow it. */
function joined(leaves: readonly Uint8Array[]): Buffer {
  const odd = leaves.find((leaf) => leaf.length !== HASH_BYTES)
  if (odd !== undefined) throw new RangeError(`a leaf hash has ${HASH_BYTES} bytes, not ${odd.length}`)
  return Buffer.concat(leaves)
}

/** The right edge of the first `size` leaves in the file, after every node of theirs was made again and compared. */
function recomputed(file: DiskFile, size: number): CompactRange {
  const range = new CompactRange()
  const found = Buffer.allocUnsafe((2 * CHECK_LEAVES + LEVELS_MAX) * HASH_BYTES)
  const expected = Buffer.allocUnsafe(found.length)
  const leaves = Buffer.allocUnsafe(CHECK_LEAVES * HASH_BYTES)
  while (range.size < size) {
    const start = range.size
    const end = Math.min(size, start + CHECK_LEAVES)
    const nodes = found.subarray(0, (nodesIn(end) - nodesIn(start)) * HASH_BYTES)
    file.readAt(nodes, nodesIn(start) * HASH_BYTES)
    for (let index = start; index < end; index += 1) {
      const at = (nodesIn(index) - nodesIn(start)) * HASH_BYTES
      nodes.copy(leaves, (index - start) * HASH_BYTES, at, at + HASH_BYTES)
    }
    const length = range.append(leaves.subarray(0, (end - start) * HASH_BYTES), expected)
    if (!expected.subarray(0, length).equals(nodes)) throw new TreeFileWrong({ path: file.path, leaves: start })
  }
  return range
}
