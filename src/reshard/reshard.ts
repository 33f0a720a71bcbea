/**
 * Gives a stopped board a different number of shards. The new journals are built next to the old ones, read and compared in full, and put
 * in place by one write (exchange.ts). A kill before that leaves the old board, and what was built is discarded.
 */

import { join } from 'node:path'
import { type Disk, sizeOfFile } from '../../storage/disk.ts'
import { listSegments, segmentPath } from '../../storage/segment.ts'
import {
  type BoardFacts,
  deliveryDirectory,
  logDirectory,
  readFacts,
  refuseIncomplete,
  shardDirectory,
  UnusableDirectory,
  writeBoardFacts,
} from '../board-directory.ts'
import { builtDirectory, completeReshard, exchangeJournals } from '../exchange.ts'
import { checkCopy } from '../fsck/fsck.ts'
import { type CoverOptions, openCovered } from '../log/rotation.ts'
import { copyDatabase } from '../sqlite.ts'
import { damageIn, replaceDeliveries, storeFile } from '../webhooks/store.ts'
import { buildJournals } from './build.ts'
import { compareJournals, Differs } from './compare.ts'
import { OldJournals } from './old-journals.ts'
import { Places } from './places.ts'

export type ReshardStage = 'read' | 'write' | 'compare' | 'check'

export type ReshardOptions = CoverOptions & {
  readonly shards: number
  /** Progress of a stage, and its total. */
  readonly onProgress: (stage: ReshardStage, done: number, total: number) => void
}

export type Resharding = {
  readonly from: number
  readonly to: number
  /** Number of records in each new shard. */
  readonly records: readonly number[]
  /** Bytes that have to be free: the new journals need them in addition to the old ones. */
  readonly bytes: number
  readonly freeBytes: number
}

/** What a reshard would do. Changes nothing. The caller holds the lock of the directory. Throws UnusableDirectory if it would be refused. */
export function planReshard(options: ReshardOptions): Resharding {
  const { dataDirectory, platform, shards } = options
  const { disk } = platform
  refuseIncomplete(disk, dataDirectory)
  const old = new OldJournals(disk, dataDirectory)
  refuseTooLarge(options, old)
  const { counts } = new Places(old, shards, (done) => options.onProgress('read', done, old.records))
  return { ...resources(options, old), from: old.ends.length, to: shards, records: counts }
}

/**
 * The caller holds the lock of the directory. Throws UnusableDirectory, RolledBack, Differs, Damage, DiskFull; the board is then unchanged.
 */
export async function reshard(options: ReshardOptions): Promise<Resharding> {
  const { dataDirectory, platform, shards, segmentBytesMax, onProgress } = options
  const { disk, random } = platform
  completeReshard(disk, dataDirectory)
  openCovered(options).close()
  const old = new OldJournals(disk, dataDirectory)
  refuseTooLarge(options, old)
  const facts: BoardFacts = { ...readFacts(disk, dataDirectory), shards, layout: random(8).toString('hex') }
  const progress = (stage: ReshardStage) => (done: number) => onProgress(stage, done, old.records)
  const places = new Places(old, shards, progress('read'))
  const source = dataDirectory
  const target = builtDirectory(dataDirectory)
  disk.makeDirectory(target)
  try {
    buildJournals({ disk, source, target, facts, segmentBytesMax, old, places, onProgress: progress('write') })
    await copyDeliveries(disk, { source, target }, places)
    writeBoardFacts(disk, target, facts)
    compareJournals({ disk, old, places, target, onProgress: progress('compare') })
    const { problems } = checkCopy({
      ...{ disk, path: target, keysIn: source, blobsIn: source },
      onProgress: (done, total) => onProgress('check', done, total),
    })
    if (problems.length > 0) throw new Differs(problems[0]!)
  } catch (error) {
    disk.removeDirectory(target)
    throw error
  }
  const made = { ...resources(options, old), from: old.ends.length, to: shards, records: places.counts }
  exchangeJournals(disk, dataDirectory, facts)
  return made
}

/** Bytes kept free for everything else. */
const spareBytes = 16 * 1024 * 1024
/** Size of a range in a frame of the log. */
const rangeBytes = 28

function refuseTooLarge(options: ReshardOptions, old: OldJournals): void {
  const { bytes, freeBytes } = resources(options, old)
  if (bytes <= freeBytes) return
  throw new UnusableDirectory(
    `The new journals need ${bytes} bytes in addition to the old ones, and the disk of ${options.dataDirectory} has ${freeBytes} free. Free space there first.`,
  )
}

/** The maximum that the new journals need: as much as the old ones, in the log a range for each shard and each record, and some spare. */
function resources({ dataDirectory: path, platform: { disk }, shards }: ReshardOptions, old: OldJournals) {
  const log = logDirectory(path)
  const journals = [log, ...old.ends.map((_, shard) => shardDirectory(path, shard))]
  const files = [
    ...journals.flatMap((each) => listSegments(disk, each, 'log').map((first) => segmentPath(each, first))),
    ...disk.listFiles(log).flatMap((name) => (/^nodes[^.]*\.bin$/.test(name) ? [join(log, name)] : [])),
  ]
  const ranges = old.logEnd * shards + old.records
  const bytes = files.reduce((sum, file) => sum + sizeOfFile(disk, file), ranges * rangeBytes + spareBytes)
  return { bytes, freeBytes: disk.freeBytes(path) }
}

/** Copies the progress of webhooks. A damaged file is left out, as a start would do: each webhook restarts from its creation. */
async function copyDeliveries(
  disk: Disk,
  { source, target }: { readonly source: string; readonly target: string },
  places: Places,
): Promise<void> {
  const [from, to] = [deliveryDirectory(source), deliveryDirectory(target)]
  if (!disk.fileExists(from)) return
  disk.makeDirectory(to)
  if (!disk.fileExists(storeFile(from)) || damageIn(from) !== undefined) return
  await copyDatabase(storeFile(from), storeFile(to))
  replaceDeliveries(to, {
    marks: (marks) => places.marks(marks),
    epoch: (hook, epoch) => places.ofHook(hook, epoch),
    place: (source, position) => {
      if (source === 0) return { source, position }
      const place = places.find(source - 1, position)
      // A restored board may have delivered what its journals do not have.
      return place === undefined ? { source: 1, position: 0 } : { source: place.shard + 1, position: place.seq }
    },
  })
  disk.syncDirectory(to)
}
