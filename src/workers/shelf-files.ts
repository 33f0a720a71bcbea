/** Files beside the snapshots of a shard, which name them: parts of its state that are too old to be kept in memory. Derived, as those are. */
import { join } from 'node:path'
import type { Disk } from '../../storage/disk.ts'

export class ShelfFiles {
  readonly #disk: Disk
  readonly #directory: string
  readonly #suffix: string
  /** Names that were opened, or put there, since the start. */
  readonly #used = new Set<string>()

  /** `suffix`: of all files of this kind. */
  constructor(disk: Disk, directory: string, suffix: string) {
    this.#disk = disk
    this.#directory = directory
    this.#suffix = suffix
  }

  /** The path of a file that is in use from now on. */
  use(name: string): string {
    this.#used.add(name)
    return join(this.#directory, `${name}${this.#suffix}`)
  }

  /** Removes what an earlier life has left and no snapshot names that was used. */
  tidy(): void {
    for (const file of this.#disk.listFiles(this.#directory)) {
      const at = file.indexOf(this.#suffix)
      if (at >= 0 && !this.#used.has(file.slice(0, at))) this.#disk.removeUnsynced(join(this.#directory, file))
    }
  }
}
