/**
 * Repairs a damaged tree file in place, while its writer appends and others read it.
 *
 * That is safe because every position has only one valid value, which is what is written here, and the writer appends
 * after the repaired leaves. Readers cache what they have read, so their caches must be cleared afterward.
 */
import { type Disk, type DiskFile, isUnreadable } from './disk.ts'
import { CompactRange, HASH_BYTES, LEVELS_MAX } from './merkle.ts'

export class TreeRepairer {
  readonly #file: DiskFile
  readonly #range = new CompactRange()
  #position = 0
  /** Number of wrong bytes up to the leaves given so far. */
  wrong = 0

  private constructor(file: DiskFile) {
    this.#file = file
  }

  /** Opens the file at its first leaf. Throws the system error. */
  static open(disk: Disk, path: string): TreeRepairer {
    return new TreeRepairer(disk.openFile(path, 'write'))
  }

  /** Number of leaves whose nodes are correct now. */
  get size(): number {
    return this.#range.size
  }

  /**
   * Takes the hashes of the next leaves, 32 bytes each, back to back. Recomputes their nodes and writes them wherever
   * the file differs.
   *
   * @param root the root after these leaves, from a trusted source
   * @throws RangeError if the leaves do not give that root: nothing is written, and the repairer must be discarded; or a
   *   disk error
   */
  repair(leaves: Buffer, root: Uint8Array): void {
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

  /** A part that the disk fails to read counts as wrong: rewriting it may make it readable. */
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
