/**
 * Replaces the old journals with new ones. One write of board.json decides: before it, the old journals are the board's, and what was built
 * is discarded. After it, the new journals are the board's, and steps that a kill prevented are completed by the next start or reshard.
 * Until then, no other program opens the directory.
 *
 *   reshard.new/    what was built
 *   reshard.old/    what it replaces, until all of it is in place
 */

import { basename, join } from 'node:path'
import type { Disk } from '../storage/disk.ts'
import {
  type BoardFacts,
  beginExchange,
  pendingExchange,
  searchDirectory,
  toolsDirectory,
  writeBoardFacts,
} from './board-directory.ts'

export const builtDirectory = (path: string) => join(path, 'reshard.new')
const replacedDirectory = (path: string) => join(path, 'reshard.old')

/** The caller must hold the lock of the directory. `facts`: the new facts of the board. */
export function exchangeJournals(disk: Disk, path: string, facts: BoardFacts): void {
  beginExchange(disk, path, facts)
  completeReshard(disk, path)
}

/**
 * Completes an exchange that was decided, and removes the remains of a reshard that was not. True if there was one to complete. The caller
 * must hold the lock of the directory.
 */
export function completeReshard(disk: Disk, path: string): boolean {
  const facts = pendingExchange(disk, path)
  const [built, replaced] = [builtDirectory(path), replacedDirectory(path)]
  if (facts !== undefined) {
    disk.makeDirectory(replaced)
    for (const name of obsolete(disk, path, facts)) moveAside(disk, join(path, name), join(replaced, name))
    for (const name of disk.listDirectories(built)) {
      moveAside(disk, join(path, name), join(replaced, name))
      disk.renameDurable(join(built, name), join(path, name))
    }
    writeBoardFacts(disk, path, facts)
  }
  for (const left of [built, replaced]) if (disk.fileExists(left)) disk.removeDirectory(left)
  return facts !== undefined
}

/** Journals of shards that do not exist anymore, and data derived from the old journals, which names positions in them. */
function obsolete(disk: Disk, path: string, { shards }: BoardFacts): readonly string[] {
  const derived = [searchDirectory(path), toolsDirectory(path)].map((directory) => basename(directory))
  return disk
    .listDirectories(path)
    .filter((name) => derived.includes(name) || Number(/^shard-(\d+)$/.exec(name)?.[1] ?? -1) >= shards)
}

function moveAside(disk: Disk, from: string, to: string): void {
  if (disk.fileExists(from)) disk.renameDurable(from, to)
}
