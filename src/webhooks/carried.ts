/** How far the leader's deliveries to webhooks have come, as stored by a follower: `deliveries.json`. */
import { join } from 'node:path'
import type { Disk } from '../../storage/disk.ts'
import { deliveryDirectory } from '../board-directory.ts'
import { foreignJson } from '../format/foreign-json.ts'
import { type CarriedPlaces, takeCarried } from './store.ts'

const carriedFile = (dataDirectory: string) => join(dataDirectory, 'deliveries.json')

export function keepCarried(disk: Disk, dataDirectory: string, text: string): void {
  disk.writeAtomic(carriedFile(dataDirectory), Buffer.from(text))
}

/** Lets this box continue the deliveries from there. Repeating it changes nothing. */
export function useCarried(disk: Disk, dataDirectory: string): void {
  const file = carriedFile(dataDirectory)
  const found = disk.fileExists(file) ? foreignJson(disk.readWhole(file).toString('utf8')) : undefined
  if (isCarried(found)) takeCarried(deliveryDirectory(dataDirectory), found)
}

/** Once a follower leads, what it had stored is outdated. */
export function forgetCarried(disk: Disk, dataDirectory: string): void {
  disk.removeFile(carriedFile(dataDirectory))
}

/** The content of each place is checked where it is used. */
function isCarried(value: unknown): value is CarriedPlaces {
  const { tails, places, verified }: Readonly<Record<string, unknown>> = Object(value)
  return Array.isArray(tails) && tails.every(Number.isSafeInteger) && Array.isArray(places) && Array.isArray(verified)
}
