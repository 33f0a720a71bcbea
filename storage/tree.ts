/**
 * Writes the tree file: the hashes of all complete nodes, as they become final.
 *
 * The file guarantees nothing. It is derived from the log's entries and is written without a sync. A crash may leave it
 * too long (truncated on open), too short (a typed error) or wrong anywhere (a different root, or a proof that does not
 * verify); the caller then rewrites it from the entries. tree-layout.ts defines the order of the hashes, tree-reader.ts
 * reads them, and tree-repairer.ts repairs the file while others read it.
 */
import { dirname } from 'node:path'
import { type Disk, type DiskFile, isUnreadable } from './disk.ts'
import { CompactRange, edgeLevels, HASH_BYTES, LEVELS_MAX } from './merkle.ts'
import { nodePosition, nodesIn, TreeFileShort } from './tree-layout.ts'

/** Maximum leaves in one append: limits the write, and the buffer retained for it, to 4.2 MB. */
export const APPEND_LEAVES_MAX = 65_536

/** The one writer of a tree file. */
export class TreeWriter {
  readonly #disk: Disk
  #file: DiskFile
  readonly #range: CompactRange
  #buffer = Buffer.allocUnsafe(64 * 1024)
  #broken: unknown
  /** The disk does not accept writes: roots are still right, and proofs wait for the file to be mended. */
  #isLost = false

  private constructor(disk: Disk, file: DiskFile, range: CompactRange) {
    this.#disk = disk
    this.#file = file
    this.#range = range
  }

  /**
   * Opens the file to continue after `size` leaves, or creates it if `size` is 0. Anything after those leaves is cut
   * off: open with size 0 to start over.
   *
   * Only the right edge is read, one hash for every 1 bit of the size: appending needs no more. To find out whether it
   * is right, compare {@link root} with the signed root. A wrong hash elsewhere is detected when a proof is checked, as
   * every proof is before it is sent.
   *
   * @throws TreeFileShort if the file is missing or does not have all nodes of `size` leaves
   */
  static open(disk: Disk, path: string, size: number): TreeWriter {
    const expected = nodesIn(size) * HASH_BYTES
    const exists = disk.fileExists(path)
    if (!exists && size > 0) throw new TreeFileShort({ path, expected, found: 0 })
    const file = disk.openFile(path, exists ? 'write' : 'create')
    try {
      if (!exists) disk.syncDirectory(dirname(path))
      const found = file.size()
      if (found < expected) throw new TreeFileShort({ path, expected, found })
      if (found > expected) file.truncate(expected)
      return new TreeWriter(disk, file, new CompactRange(size, edgeIn(file, size)))
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
   * Appends leaf hashes and the nodes that they complete, in one write.
   *
   * @param leaves 32-byte leaf hashes, in a list or back to back; at most {@link APPEND_LEAVES_MAX}
   * @throws the disk's error, after which the writer must be discarded: reopen it at the last good size
   */
  append(leaves: Buffer | readonly Uint8Array[]): void {
    if (this.#broken !== undefined) throw this.#broken
    const hashes = Buffer.isBuffer(leaves) ? leaves : joined(leaves)
    const count = hashes.length / HASH_BYTES
    if (!Number.isInteger(count))
      throw new RangeError(`leaf hashes have 32 bytes each, so ${hashes.length} bytes are not a list of them`)
    if (count > APPEND_LEAVES_MAX)
      throw new RangeError(`${count} leaves in one append; the maximum is ${APPEND_LEAVES_MAX}`)
    if (count === 0) return
    const room = (2 * count + LEVELS_MAX) * HASH_BYTES
    if (this.#buffer.length < room) this.#buffer = Buffer.allocUnsafe(room)
    const position = nodesIn(this.#range.size) * HASH_BYTES
    const length = this.#range.append(hashes, this.#buffer)
    if (this.#isLost) return
    try {
      this.#file.writeAt(this.#buffer.subarray(0, length), position)
    } catch (error) {
      if (isUnreadable(error)) {
        this.#isLost = true
        return
      }
      // The edge in memory is now ahead of the file and must not be used.
      this.#broken = error
      throw error
    }
  }

  /** The root of all leaves: 32 bytes. */
  root(): Buffer {
    return this.#range.root()
  }

  /**
   * Switches to the file that now has this path, after the previous one was lost. Any missing nodes must be added by a
   * repairer. Throws the disk's error, and then stays with the previous file.
   */
  reopen(): void {
    const file = this.#disk.openFile(this.#file.path, 'write')
    this.#file.close()
    this.#file = file
    this.#isLost = false
  }

  /** Makes the file durable. Nothing depends on it; it saves a rebuild after a power cut. */
  sync(): void {
    if (!this.#isLost) this.#file.sync()
  }

  close(): void {
    this.#file.close()
  }
}

/** Joins hashes into one buffer. A hash of another length would shift all that follow it. */
function joined(leaves: readonly Uint8Array[]): Buffer {
  const odd = leaves.find((leaf) => leaf.length !== HASH_BYTES)
  if (odd !== undefined) throw new RangeError(`a leaf hash must have ${HASH_BYTES} bytes, not ${odd.length}`)
  return Buffer.concat(leaves)
}

/** The hashes of the complete subtrees of the first `size` leaves, largest first, back to back. */
function edgeIn(file: DiskFile, size: number): Buffer {
  const levels = edgeLevels(size)
  const edge = Buffer.alloc(levels.length * HASH_BYTES)
  for (const [k, level] of levels.entries()) {
    const index = Math.floor(size / 2 ** level) - 1
    file.readAt(edge.subarray(k * HASH_BYTES, (k + 1) * HASH_BYTES), nodePosition(level, index) * HASH_BYTES)
  }
  return edge
}
