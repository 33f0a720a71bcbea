/** The files of a board that are derived from its journals, and rebuilt if they are missing. */
import { join } from 'node:path'
import type { Disk } from '../storage/disk.ts'
import { searchDirectory, snapshotDirectories } from './board-directory.ts'

/** Removes what may have been derived from frames that are cut off these journals of a board. `path`: its data directory. */
export function forgetDerived(disk: Disk, path: string, journals: readonly string[]): void {
  for (const directory of [searchDirectory(path), ...journals.flatMap((each) => snapshotDirectories(path, each))])
    disk.removeDirectory(directory)
  for (const journal of journals) {
    const names = disk.listFiles(journal).filter((name) => name === 'durable' || /^nodes.*\.bin$/.test(name))
    for (const name of names) disk.removeFile(join(journal, name))
    disk.syncDirectory(journal)
  }
}
