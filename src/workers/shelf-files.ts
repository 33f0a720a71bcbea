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

  /** None of those that were opened is in use: the snapshot that names them is not. */
  unuse(): void {
    this.#used.clear()
  }

  /** Removes what an earlier life has left and is not in use. */
  tidy(): void {
    for (const file of this.#disk.listFiles(this.#directory)) {
      const at = file.indexOf(this.#suffix)
      if (at >= 0 && !this.#used.has(file.slice(0, at))) this.#disk.removeUnsynced(join(this.#directory, file))
    }
  }
}
