/**
 * Repairs a damaged tree file in place, while its writer appends and others read it.
 *
 * That is safe because no byte of the file ever changes: each place has one valid value, which is written here, and the
 * writer works after the leaves that are repaired. Readers keep what they have read: they must forget it afterwards.
 */
import { type Disk, type DiskFile, isUnreadable } from './disk.ts'
import { CompactRange, HASH_BYTES, LEVELS_MAX } from './merkle.ts'

export class TreeMender {
  readonly #file: DiskFile
  readonly #range = new CompactRange()
  #position = 0
  /** Bytes that were wrong, up to the leaves given so far. */
  wrong = 0

  private constructor(file: DiskFile) {
    this.#file = file
  }

  /** Opens the file at its first leaf. Throws the error of the system. */
  static open(disk: Disk, path: string): TreeMender {
    return new TreeMender(disk.openFile(path, 'write'))
  }

  /** Leaves whose nodes are right now. */
  get size(): number {
    return this.#range.size
  }

  /**
   * Gives the hashes of the next leaves, 32 bytes each one after the other: their nodes are made again and written
   * wherever the file has others.
   *
   * @param root the root after these leaves, from a source that is trusted
   * @throws RangeError when the leaves do not give that root: nothing is written then, and the mender is of no use;
   *   the disk's error
   */
  mend(leaves: Buffer, root: Uint8Array): void {
    const buffer = Buffer.allocUnsafe(2 * leaves.length + LEVELS_MAX * HASH_BYTES)
    const nodes = buffer.subarray(0, this.#range.append(leaves, buffer))
    if (!this.#range.root().equals(root)) {
      throw new RangeError(
        `the first ${this.#range.size} leaves do not give the root ${Buffer.from(root).toString('hex')}`,
      )
    }
    const found = Buffer.alloc(nodes.length)
    this.#readInto(found)
    if (!found.equals(nodes)) {
      this.wrong += nodes.reduce((count, byte, at) => (byte === found[at] ? count : count + 1), 0)
      this.#file.writeAt(nodes, this.#position)
    }
    this.#position += nodes.length
  }

  /** What the disk does not give back is wrong: written once more, it may be readable. */
  #readInto(found: Buffer): void {
    try {
      this.#file.readAt(found, this.#position)
    } catch (error) {
      if (!isUnreadable(error)) throw error
      found.fill(0)
    }
  }

  close(): void {
    this.#file.close()
  }
}
