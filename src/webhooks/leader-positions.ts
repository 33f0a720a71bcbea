/** How far the leader's deliveries to webhooks have come, as stored by a follower: `deliveries.json`. */
import { join } from 'node:path'
import type { Disk } from '../../storage/disk.ts'
import { deliveryDirectory } from '../board-directory.ts'
import { foreignJson } from '../format/foreign-json.ts'
import { adoptPositions, type LeaderPositions } from './store.ts'

export const leaderPositionsFile = (dataDirectory: string) => join(dataDirectory, 'deliveries.json')

export function saveLeaderPositions(disk: Disk, dataDirectory: string, text: string): void {
  disk.writeAtomic(leaderPositionsFile(dataDirectory), Buffer.from(text))
}

/** Lets the board in `target`, by default this box, continue the deliveries from there. Repeating it changes nothing. */
export function adoptLeaderPositions(disk: Disk, dataDirectory: string, target = dataDirectory): void {
  const found = leaderPositionsIn(disk, dataDirectory)
  if (found !== undefined) adoptPositions(deliveryDirectory(target), found)
}

/** Undefined if there are none that can be used. */
export function leaderPositionsIn(disk: Disk, dataDirectory: string): LeaderPositions | undefined {
  const file = leaderPositionsFile(dataDirectory)
  const found = disk.fileExists(file) ? foreignJson(disk.readWhole(file).toString('utf8')) : undefined
  return isLeaderPositions(found) ? found : undefined
}

/** Once a follower leads, what it had stored is outdated. */
export function removeLeaderPositions(disk: Disk, dataDirectory: string): void {
  disk.removeFile(leaderPositionsFile(dataDirectory))
}

/** The content of each place is checked where it is used. */
function isLeaderPositions(value: unknown): value is LeaderPositions {
  const { tails, places, verified }: Readonly<Record<string, unknown>> = Object(value)
  return Array.isArray(tails) && tails.every(Number.isSafeInteger) && Array.isArray(places) && Array.isArray(verified)
}
