/** Files beside the snapshots of a shard, which name them: parts of its state that are too old to be kept in memory. Derived, as those are. */
import { join } from 'node:path'
import type { Disk } from '../../storage/disk.ts'

export class ShelfFiles {
  readonly #disk: Disk
  readonly #directory: string
  readonly #suffix: string
  /** Names that are in use. */
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

  /** It was opened, or is being put there. */
  use(name: string): void {
    this.#used.add(name)
  }

  /** The start has restored what there is. `isUsed`: a snapshot that names files is in use. What is not in use goes. */
  restored(isUsed: boolean): void {
    if (!isUsed) this.#used.clear()
    for (const file of this.#disk.listFiles(this.#directory)) {
      const at = file.indexOf(this.#suffix)
      if (at >= 0 && !this.#used.has(file.slice(0, at))) this.#disk.removeUnsynced(join(this.#directory, file))
    }
  }
}
