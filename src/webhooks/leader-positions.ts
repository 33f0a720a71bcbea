/** How far the leader's deliveries to webhooks have come, as stored by a follower: `deliveries.json`. */
import { join } from 'node:path'
import type { Disk } from '../../storage/disk.ts'
import { deliveryDirectory } from '../board-directory.ts'
import { foreignJson } from '../format/foreign-json.ts'
import { adoptPositions, type LeaderPositions } from './store.ts'

const positionsFile = (dataDirectory: string) => join(dataDirectory, 'deliveries.json')

export function saveLeaderPositions(disk: Disk, dataDirectory: string, text: string): void {
  disk.writeAtomic(positionsFile(dataDirectory), Buffer.from(text))
}

/** Lets the board in `target`, by default this box, continue the deliveries from there. Repeating it changes nothing. */
export function adoptLeaderPositions(disk: Disk, dataDirectory: string, target = dataDirectory): void {
  const file = positionsFile(dataDirectory)
  const found = disk.fileExists(file) ? foreignJson(disk.readWhole(file).toString('utf8')) : undefined
  if (isLeaderPositions(found)) adoptPositions(deliveryDirectory(target), found)
}

/** Once a follower leads, what it had stored is outdated. */
export function removeLeaderPositions(disk: Disk, dataDirectory: string): void {
  disk.removeFile(positionsFile(dataDirectory))
}

/** The content of each place is checked where it is used. */
function isLeaderPositions(value: unknown): value is LeaderPositions {
  const { tails, places, verified }: Readonly<Record<string, unknown>> = Object(value)
  return Array.isArray(tails) && tails.every(Number.isSafeInteger) && Array.isArray(places) && Array.isArray(verified)
}
