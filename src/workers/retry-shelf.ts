/** Where a shard's retry memory puts what is old: files beside its snapshots, which name them. Derived, as those are. */
import { join } from 'node:path'
import type { Shelf, Shelved } from '../../actors/records/retry-memory.ts'
import type { Disk } from '../../storage/disk.ts'
import { type Cells, ShelvedTable, shelvedBytes } from '../../storage/shelved-table.ts'
import type { Report } from './thread.ts'

const suffix = '.retries'
/** Two thirds of the cells of a table of 6 MB: it would double with the next. */
const tableEntries = 349_525

type Place = { readonly disk: Disk; readonly directory: string; readonly report: Report }

export class RetryShelf implements Shelf {
  readonly tableEntries: number
  readonly #place: Place
  /** Names that were opened, or put there, since the start. */
  readonly #used = new Set<string>()

  constructor(place: Place, entries = tableEntries) {
    this.#place = place
    this.tableEntries = entries
  }

  async put(name: string, cells: Cells): Promise<Shelved | undefined> {
    const { disk, report } = this.#place
    const path = this.#pathOf(name)
    this.#used.add(name)
    try {
      await disk.writeAtomicLater(path, shelvedBytes(cells))
      return this.#shelved(path, ShelvedTable.of(disk, path, cells))
    } catch (error) {
      report('warn', 'retries.not_shelved', { name, problem: String(error) })
      return undefined
    }
  }

  open(name: string): Shelved | undefined {
    const path = this.#pathOf(name)
    const table = ShelvedTable.open(this.#place.disk, path)
    if (table === undefined) return undefined
    this.#used.add(name)
    return this.#shelved(path, table)
  }

  /** Removes what an earlier life has left and no snapshot names that was used. */
  tidy(): void {
    const { disk, directory } = this.#place
    for (const file of disk.listFiles(directory)) {
      const at = file.indexOf(suffix)
      if (at >= 0 && !this.#used.has(file.slice(0, at))) disk.removeUnsynced(join(directory, file))
    }
  }

  #shelved(path: string, table: ShelvedTable): Shelved {
    return {
      find: (fingerprint, each) => table.find(fingerprint, each),
      remove: () => {
        table.close()
        this.#place.disk.removeUnsynced(path)
      },
    }
  }

  #pathOf(name: string): string {
    return join(this.#place.directory, `${name}${suffix}`)
  }
}
