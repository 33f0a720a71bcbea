/**
 * The new journals take the places of the old ones. One write of board.json decides: before it the board is the old one, and what was
 * built is thrown away; from it on the new journals are the board's, and each step that a kill leaves out is made up for by the next
 * start or the next reshard. Until then no other program opens the directory.
 *
 *   reshard.new/    what was built
 *   reshard.old/    what it replaces, until all of it is in place
 */

import { basename, join } from 'node:path'
import type { Disk } from '../storage/disk.ts'
import {
  type BoardFacts,
  beginExchange,
  exchangeBegun,
  searchDirectory,
  toolsDirectory,
  writeBoardFacts,
} from './board-directory.ts'

export const builtDirectory = (path: string) => join(path, 'reshard.new')
const replacedDirectory = (path: string) => join(path, 'reshard.old')

/** The caller holds the lock of the directory. `facts`: of the board from now on. */
export function exchangeJournals(disk: Disk, path: string, facts: BoardFacts): void {
  beginExchange(disk, path, facts)
  completeReshard(disk, path)
}

/**
 * Completes an exchange that was decided, and removes what a reshard left that was not. True: there was one to complete. The caller holds
 * the lock of the directory.
 */
export function completeReshard(disk: Disk, path: string): boolean {
  const facts = exchangeBegun(disk, path)
  const [built, replaced] = [builtDirectory(path), replacedDirectory(path)]
  if (facts !== undefined) {
    disk.makeDirectory(replaced)
    for (const name of unneeded(disk, path, facts)) putAside(disk, join(path, name), join(replaced, name))
    for (const name of disk.listDirectories(built)) {
      putAside(disk, join(path, name), join(replaced, name))
      disk.renameDurable(join(built, name), join(path, name))
    }
    writeBoardFacts(disk, path, facts)
  }
  for (const left of [built, replaced]) if (disk.fileExists(left)) disk.removeDirectory(left)
  return facts !== undefined
}

/** Journals of shards that are no more, and what is derived from the old ones: it names places in them. */
function unneeded(disk: Disk, path: string, { shards }: BoardFacts): readonly string[] {
  const derived = [searchDirectory(path), toolsDirectory(path)].map((directory) => basename(directory))
  return disk
    .listDirectories(path)
    .filter((name) => derived.includes(name) || Number(/^shard-(\d+)$/.exec(name)?.[1] ?? -1) >= shards)
}

function putAside(disk: Disk, from: string, to: string): void {
  if (disk.fileExists(from)) disk.renameDurable(from, to)
}
