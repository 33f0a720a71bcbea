/** Files for the old part of a shard's retry memory. */
import type { Shelf, Shelved } from '../../actors/records/retry-memory.ts'
import type { Disk } from '../../storage/disk.ts'
import { type Cells, ShelvedTable, shelvedBytes } from '../../storage/shelved-table.ts'
import { ShelfFiles } from './shelf-files.ts'
import type { Report } from './thread.ts'

/** Two thirds of the cells of a 6 MB table: one more entry would double it. */
const tableEntries = 349_525

type Place = { readonly disk: Disk; readonly directory: string; readonly report: Report }

export class RetryShelf implements Shelf {
  readonly tableEntries: number
  readonly #place: Place
  readonly #files: ShelfFiles

  constructor(place: Place, entries = tableEntries) {
    this.#place = place
    this.#files = new ShelfFiles(place.disk, place.directory, '.retries')
    this.tableEntries = entries
  }

  async put(name: string, cells: Cells): Promise<Shelved | undefined> {
    const { disk, report } = this.#place
    const path = this.#files.path(name)
    this.#files.use(name)
    try {
      await disk.writeAtomicLater(path, shelvedBytes(cells))
      return this.#shelved(path, ShelvedTable.of(disk, path, cells))
    } catch (error) {
      report('warn', 'retries.not_shelved', { name, problem: String(error) })
      return undefined
    }
  }

  open(name: string): Shelved | undefined {
    const path = this.#files.path(name)
    const table = ShelvedTable.open(this.#place.disk, path)
    if (table === undefined) return undefined
    this.#files.use(name)
    return this.#shelved(path, table)
  }

  /** See ShelfFiles. */
  restored(isUsed: boolean): void {
    this.#files.restored(isUsed)
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
}
