/** A shelf for tables of a retry memory, without a disk: it can be full, and lose what was put there. */
import type { Shelf, Shelved } from '../../actors/records/retry-memory.ts'
import type { Cells } from '../../storage/shelved-table.ts'

export class MemoryShelf implements Shelf {
  readonly tableEntries: number
  readonly tables = new Map<string, Cells>()
  /** Names that were stored or opened. */
  readonly used = new Set<string>()
  isFull = false

  constructor(tableEntries: number) {
    this.tableEntries = tableEntries
  }

  async put(name: string, cells: Cells): Promise<Shelved | undefined> {
    if (this.isFull) return undefined
    this.tables.set(name, cells)
    return this.open(name)
  }

  open(name: string): Shelved | undefined {
    const table = this.tables.get(name)
    if (table === undefined) return undefined
    this.used.add(name)
    return {
      find: (fingerprint, each) =>
        table.values.some((value, cell) => value !== 0 && table.fingerprints[cell] === fingerprint && each(value)),
      remove: () => this.tables.delete(name),
    }
  }
}
