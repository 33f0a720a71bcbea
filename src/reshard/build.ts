/**
 * Writes the new journals: each record into that of its new shard, and the log's frames with the same sizes, roots, entries and
 * checkpoints. Only the places of a frame's records are new. The order of everything public, by which changes are numbered, stays the same,
 * so a frame may name one shard several times.
 */

import { join } from 'node:path'
import {
  closedBefore,
  encodeLogFrame,
  type LogFrame,
  logFrameType,
  openFrameType,
  type Range,
} from '../../actors/log/frame.ts'
import { leavesOf, PUBLIC } from '../../actors/records/record.ts'
import type { Disk } from '../../storage/disk.ts'
import { type Frame, Journal, type NewFrame } from '../../storage/journal.ts'
import { copyFile } from '../../storage/journal-copy.ts'
import { type BoardFacts, logDirectory, shardDirectory, UnusableDirectory } from '../board-directory.ts'
import { moved } from './moved.ts'
import type { OldJournals } from './old-journals.ts'
import type { PlaceInShard, Places } from './places.ts'

/** The number of ranges in a frame has 16 bits. */
const rangesMax = 65_535
const logFrameBytesMax = 64 * 1024 * 1024
/** Size of one write. */
const batchBytes = 1024 * 1024

export type Build = {
  readonly disk: Disk
  /** The data directory, and the new one. */
  readonly source: string
  readonly target: string
  readonly facts: BoardFacts
  readonly segmentBytesMax: number
  readonly old: OldJournals
  readonly places: Places
  readonly onProgress: (records: number) => void
}

/** Throws UnusableDirectory, DiskFull, and the errors of reading and writing journals. */
export function buildJournals(build: Build): void {
  const { disk, target, facts, segmentBytesMax, old, places, onProgress } = build
  const shards = Array.from(
    { length: facts.shards },
    (_, shard) =>
      new Copy(Journal.open({ ...opened(disk, shardDirectory(target, shard)), segmentBytesMax, takesStubs: true })),
  )
  const log = new Copy(
    Journal.open({ ...opened(disk, logDirectory(target)), segmentBytesMax, frameBytesMax: logFrameBytesMax }),
  )
  const ranges = new Ranges(facts.shards)
  let done = 0
  let newest: LogFrame | undefined
  for (const step of old.inOrder()) {
    if ('head' in step) {
      newest = { ...step.log, root: Buffer.from(step.log.root) }
      log.add(placedFrame(step.head, step.log, ranges.take(step.head.seq)))
      continue
    }
    const place = places.of(step.shard, step.frame.seq)
    shards[place.shard]!.add(moved(step.frame, places))
    if ((step.frame.flags & PUBLIC) !== 0) ranges.add(place, leavesOf(step.frame))
    onProgress(++done)
  }
  if (newest === undefined) throw new UnusableDirectory(`${build.source} has no signed log: start the board once.`)
  log.add(lastFrame(newest, ranges.take(old.logEnd + 1)))
  for (const copy of [...shards, log]) copy.close()
  copyDerivedFiles(build)
}

function opened(disk: Disk, directory: string) {
  disk.makeDirectory(directory)
  return { disk, directory }
}

function placedFrame(head: Frame, log: LogFrame, ranges: readonly Range[]): NewFrame {
  return encodeLogFrame({ ...log, ranges }, head.type === openFrameType ? closedBefore(head) : [])
}

/** A frame without anything new: it names every shard once, in order, as the newest frame always must. */
function lastFrame(newest: LogFrame, ranges: readonly Range[]): NewFrame {
  const { size, root, checkpoint } = newest
  const firstChange = newest.ranges.reduce((sum, { changes }) => sum + changes, newest.firstChange)
  const nothing = { bundle: Buffer.alloc(0), entries: 0 }
  return encodeLogFrame({
    type: logFrameType,
    firstLeaf: size,
    firstChange,
    size,
    root,
    ranges,
    ...nothing,
    checkpoint,
  })
}

/** The other files in the log's directory: the tree, and what witnesses have signed. */
function copyDerivedFiles({ disk, source, target }: Build): void {
  const from = logDirectory(source)
  for (const name of disk.listFiles(from))
    if (/^(nodes[^.]*\.bin|cosigned-[^.]+)$/.test(name))
      copyFile(disk, join(from, name), join(logDirectory(target), name))
  disk.syncDirectory(logDirectory(target))
}

/** Frames being written to a new journal. */
class Copy {
  readonly #journal: Journal
  #frames: NewFrame[] = []
  #bytes = 0

  constructor(journal: Journal) {
    this.#journal = journal
  }

  add(frame: NewFrame): void {
    this.#frames.push(frame)
    this.#bytes += frame.payload.length
    if (this.#bytes >= batchBytes) this.#write()
  }

  /** When it returns, everything is on disk. */
  close(): void {
    this.#write()
    this.#journal.close()
  }

  #write(): void {
    this.#journal.appendUnsynced(this.#frames)
    this.#frames = []
    this.#bytes = 0
  }
}

/** Where the public records of one frame of the log are, in order. */
class Ranges {
  readonly #covered: number[]
  #runs: Range[] = []

  constructor(shards: number) {
    this.#covered = Array<number>(shards).fill(0)
  }

  add({ shard, seq }: PlaceInShard, leaves: number): void {
    const run = this.#runs.at(-1)
    if (run?.shard !== shard) this.#runs.push({ shard, first: seq, last: seq, changes: 1, leaves })
    else
      this.#runs[this.#runs.length - 1] = { ...run, last: seq, changes: run.changes + 1, leaves: run.leaves + leaves }
  }

  /** The ranges since the last call, and an empty one for each shard that has none: every frame states the position of every shard. */
  take(head: number): Range[] {
    const runs = this.#runs
    this.#runs = []
    for (const { shard, last } of runs) this.#covered[shard] = last
    const empty = this.#covered.flatMap((last, shard) =>
      runs.some((run) => run.shard === shard) ? [] : [{ shard, first: last + 1, last, changes: 0, leaves: 0 }],
    )
    const ranges = [...runs, ...empty]
    if (ranges.length > rangesMax)
      throw new UnusableDirectory(
        `Frame ${head} of the log covers too many records at once to spread them over that many shards. Choose fewer shards; 1 always works.`,
      )
    const isOncePerShard = ranges.length === this.#covered.length
    const isInOrder = runs.every(({ shard }, at) => at === 0 || runs[at - 1]!.shard < shard)
    return isOncePerShard && isInOrder ? ranges.sort((a, b) => a.shard - b.shard) : ranges
  }
}
