/**
 * Files next to a shard's snapshots, which name them. They hold parts of its state that are too old to stay in memory. Like snapshots, they
 * can be rebuilt.
 */
import { join } from 'node:path'
import type { Disk } from '../../storage/disk.ts'

export class ShelfFiles {
  readonly #disk: Disk
  readonly #directory: string
  readonly #suffix: string
  /** Names in use. */
  readonly #used = new Set<string>()

  /** `suffix`: of all files of this kind. */
  constructor(disk: Disk, directory: string, suffix: string) {
    this.#disk = disk
    this.#directory = directory
    this.#suffix = suffix
  }

  path(name: string): string {
    return join(this.#directory, `${name}${this.#suffix}`)
  }

  /** The file was opened, or is being written. */
  use(name: string): void {
    this.#used.add(name)
  }

  /** Call when the start has restored everything. `isUsed`: a snapshot that names files is in use. Removes the files not in use. */
  restored(isUsed: boolean): void {
    if (!isUsed) this.#used.clear()
    for (const file of this.#disk.listFiles(this.#directory)) {
      const at = file.indexOf(this.#suffix)
      if (at >= 0 && !this.#used.has(file.slice(0, at))) this.#disk.removeUnsynced(join(this.#directory, file))
    }
  }
}
