/**
 * Writes the tree file: the hashes of all complete nodes, as they become final.
 *
 * Nothing here is a promise. The file is derived from the log's entries, and is written without a sync: a crash may
 * leave it too long (cut off on open), too short (a typed error) or wrong anywhere (another root, or a proof that does
 * not verify), and the caller writes it again from the entries. The order of the hashes is in tree-layout.ts, reading
 * in tree-reader.ts, repair while others read in tree-mender.ts.
 */
import { dirname } from 'node:path'
import { type Disk, type DiskFile, isUnreadable } from './disk.ts'
import { CompactRange, edgeLevels, HASH_BYTES, LEVELS_MAX } from './merkle.ts'
import { nodePosition, nodesIn, TreeFileShort } from './tree-layout.ts'

/** Leaves in one append at most: the write stays below 4.2 MB, and so does the buffer kept for it. */
export const APPEND_LEAVES_MAX = 65_536

/** The one writer of a tree file. */
export class TreeWriter {
  readonly #disk: Disk
  #file: DiskFile
  readonly #range: CompactRange
  #buffer = Buffer.allocUnsafe(64 * 1024)
  #broken: unknown
  /** The disk does not take it: roots are right all the same, and proofs wait for the file to be mended. */
  #isLost = false

  private constructor(disk: Disk, file: DiskFile, range: CompactRange) {
    this.#disk = disk
    this.#file = file
    this.#range = range
  }

  /**
   * Opens the file to continue after `size` leaves, or makes it when `size` is 0. What follows those leaves is cut off:
   * open with size 0 to start again.
   *
   * Only the right edge is read, one hash for every 1 bit of the size: appending needs no more. {@link root} says
   * whether it is the right one: compare it with the signed root. A wrong hash elsewhere is found when a proof is
   * checked, as every proof is before it is sent.
   *
   * @throws TreeFileShort when the file is missing or has not all nodes of `size` leaves
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
    if (this.#isLost) return
    try {
      this.#file.writeAt(this.#buffer.subarray(0, length), position)
    } catch (error) {
      if (isUnreadable(error)) {
        this.#isLost = true
        return
      }
      // The edge in memory is ahead of the file now, and must not be used.
      this.#broken = error
      throw error
    }
  }

  /** The root of all leaves: 32 bytes. */
  root(): Buffer {
    return this.#range.root()
  }

  /**
   * Goes on in the file that has the name by now, where the one before has lost it. Nodes that it has not are for a mender. Throws the
   * disk's error; the file before is kept then.
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

/** One buffer of many hashes. A hash of another length would shift all that follow it. */
function joined(leaves: readonly Uint8Array[]): Buffer {
  const odd = leaves.find((leaf) => leaf.length !== HASH_BYTES)
  if (odd !== undefined) throw new RangeError(`a leaf hash has ${HASH_BYTES} bytes, not ${odd.length}`)
  return Buffer.concat(leaves)
}

/** The complete subtrees of the first `size` leaves, largest first, one after the other from the first leaf. */
function edgeIn(file: DiskFile, size: number): Buffer {
  const levels = edgeLevels(size)
  const edge = Buffer.alloc(levels.length * HASH_BYTES)
  for (const [k, level] of levels.entries()) {
    const index = Math.floor(size / 2 ** level) - 1
    file.readAt(edge.subarray(k * HASH_BYTES, (k + 1) * HASH_BYTES), nodePosition(level, index) * HASH_BYTES)
  }
  return edge
}
