/**
 * What the journals prove of each other before any of them is opened. A frame of the log is written only once the records that it
 * covers are durable, and a frame of a shard says which frame of the log was durable when it was written. So that was on disk,
 * whatever is found there now.
 */

import { closedLogs, decodeLogFrame, entriesOf, type LogFrame } from '../../actors/log/frame.ts'
import { frameEntries, PUBLIC } from '../../actors/records/record.ts'
import type { Disk } from '../../storage/disk.ts'
import { type Durable, newestDurable } from '../../storage/durable-mark.ts'
import { FOOTER, type FoundFrame } from '../../storage/frame.ts'
import { FrameWindow } from '../../storage/frame-window.ts'
import { type Frame, JournalReader } from '../../storage/journal.ts'
import { JournalEnd } from '../../storage/journal-copy.ts'
import { CompactRange, HASH_BYTES, LEVELS_MAX, leafHash } from '../../storage/merkle.ts'
import { newestDamage } from '../../storage/recovery.ts'
import { listSegments, readSegmentHeader, SEGMENT_HEADER_BYTES, segmentPath } from '../../storage/segment.ts'
import { reachOf } from '../../storage/snapshot.ts'
import { logDirectory, shardDirectory, shardSnapshotsDirectory, UnusableDirectory } from '../board-directory.ts'
import { RolledBack } from './mark.ts'

const nothing: Durable = { seq: 0, by: '' }

/** Up to which frame the journal of a shard was durable once, and what says so. `directory`: of the board. */
export function durableOf(disk: Disk, directory: string, shard: number, journalId: Buffer): Durable {
  const snapshot = reachOf(disk, shardSnapshotsDirectory(shardDirectory(directory, shard)), journalId)
  return newestDurable(covered(disk, directory, shard), { seq: snapshot, by: 'a snapshot' })
}

/** By the newest whole frame of the log. */
function covered(disk: Disk, directory: string, shard: number): Durable {
  const newest = newestFrame(disk, logDirectory(directory))
  const range = newest && decodeLogFrame(newest.frame).ranges.findLast((each) => each.shard === shard)
  return range === undefined
    ? nothing
    : { seq: range.last, by: `the signed log (frame ${newest!.frame.seq}, byte ${newest!.at} of ${newest!.path})` }
}

function newestFrame(disk: Disk, directory: string): Standing | undefined {
  let newest: Standing | undefined
  for (const standing of newestFrames(disk, directory)) newest = standing
  return newest
}

/** A frame, and where it stands. */
type Standing = { readonly frame: FoundFrame; readonly path: string; readonly at: number }

/** The whole frames of the newest segment; one without any says nothing, and the one before it does. */
function* newestFrames(disk: Disk, directory: string): Generator<Standing, void, undefined> {
  const segments = disk.fileExists(directory) ? listSegments(disk, directory, 'log') : []
  for (const firstSeq of segments.toReversed().slice(0, 2)) {
    let isEmpty = true
    for (const standing of framesIn(disk, segmentPath(directory, firstSeq))) {
      isEmpty = false
      yield standing
    }
    if (!isEmpty) return
  }
}

function* framesIn(disk: Disk, path: string): Generator<Standing, void, undefined> {
  const file = disk.openFile(path, 'read')
  try {
    const header = readSegmentHeader(file)
    if (header === undefined) return
    const window = new FrameWindow(file, { limit: file.size(), seed: header.seed })
    for (let at = SEGMENT_HEADER_BYTES; ; ) {
      const frame = window.at(at)
      if (frame.frameBytes === undefined || frame.type === FOOTER) return
      yield { frame, path, at }
      at += frame.frameBytes
    }
  } finally {
    file.close()
  }
}

/**
 * Throws what is wrong where one journal proves that another has lost what it had: Damage of a shard's journal, or RolledBack where the
 * log was put back. Reads only, so a start that asks this first leaves all files as they are. With one shard nothing is asked: its
 * recovery comes before anything is written, and the log is made again from its journal, with the same leaves. `directory`: of the board.
 */
export function checkProofs(disk: Disk, directory: string, shards: number): void {
  if (shards === 1) return
  const newest = newestFrame(disk, logDirectory(directory))
  const ranges = newest === undefined ? [] : decodeLogFrame(newest.frame).ranges
  for (const { shard, last } of ranges.filter((range) => range.shard < shards)) {
    const journal = shardDirectory(directory, shard)
    if ((newestFrame(disk, journal)?.frame.seq ?? 0) >= last) continue
    const damage = newestDamage(disk, journal, (id) => durableOf(disk, directory, shard, id))
    if (damage !== undefined) throw damage
  }
  const missing = logBehind(disk, directory, shards)
  if (missing !== undefined) throw new RolledBack(missing)
}

/** What the shards' journals prove of the log that it has lost; undefined: nothing. `directory`: of the board. */
export function logBehind(disk: Disk, directory: string, shards: number): string | undefined {
  if (shards === 1) return undefined
  const path = logDirectory(directory)
  const end = newestFrame(disk, path)
  const last = end?.frame.seq ?? 0
  const endsAt = end === undefined ? path : `byte ${end.at + end.frame.frameBytes} of ${end.path}`
  let lost: readonly number[] | undefined
  for (let shard = 0; shard < shards; shard++)
    for (const { frame, path: file, at } of newestFrames(disk, shardDirectory(directory, shard))) {
      if (frame.peerSeq <= last) continue
      lost ??= knownLost(disk, path, last)
      if (frame.seq <= (lost[shard] ?? 0)) continue
      return `the log ends at frame ${last} (${endsAt}), but frame ${frame.seq} of shard ${shard} (byte ${at} of ${file}) was written when frame ${frame.peerSeq} of the log was durable`
    }
  return undefined
}

/** Where the journals of the shards ended when the log was last given up: what they know of it until there does not count. */
function knownLost(disk: Disk, path: string, through: number): readonly number[] {
  if (through === 0) return []
  const journal = JournalReader.open(disk, path)
  try {
    journal.advance(through)
    return closedLogs(journal).findLast(({ ends }) => ends !== undefined)?.ends ?? []
  } finally {
    journal.close()
  }
}

/** Where the journals of all shards end. `directory`: of the board. */
export function shardEnds(disk: Disk, directory: string, shards: number): number[] {
  return Array.from({ length: shards }, (_, shard) => {
    const journal = new JournalEnd(disk, shardDirectory(directory, shard))
    journal.advance()
    const { seq } = journal
    journal.close()
    return seq
  })
}

/**
 * How many records the journals have after those that the log covers. A copy whose log is newer than its journals was made file by
 * file: throws UnusableDirectory. `directory`: of the board.
 */
export function newerThanLog(
  disk: Disk,
  directory: string,
  ranges: readonly { readonly shard: number; readonly last: number }[],
): number {
  let newer = 0
  const ends = shardEnds(disk, directory, ranges.length)
  for (const { shard, last } of ranges) {
    const seq = ends[shard]!
    newer += seq - last
    if (seq < last)
      throw new UnusableDirectory(
        `The log of ${directory} covers frame ${last} of shard ${shard}, whose journal ends at ${seq}: the log is newer than the journals, so this was copied file by file from a running board. Restore a copy that "broadside backup" made.`,
      )
  }
  return newer
}

/**
 * The root that the log would have at a size beyond its newest frame, once it covers what the journal of the only shard has after that:
 * a power cut takes frames of the log whose heads were given out, and a copy may have been made while the board ran. Undefined: the
 * journal does not reach that far, or there are several shards, whose records may have been taken in any order. `frames`: of this log.
 */
export function rootBeyond(
  disk: Disk,
  directory: string,
  newest: Pick<LogFrame, 'ranges'>,
  frames: Iterable<Frame>,
  size: number,
): Buffer | undefined {
  const [covered, ...others] = newest.ranges
  if (covered === undefined || others.length > 0) return undefined
  const end = new JournalEnd(disk, shardDirectory(directory, covered.shard))
  end.advance()
  end.close()
  if (end.seq <= covered.last) return undefined
  const range = new CompactRange()
  const nodes = Buffer.alloc(64 + LEVELS_MAX * HASH_BYTES)
  for (const frame of frames) for (const entry of entriesOf(decodeLogFrame(frame))) range.append(leafHash(entry), nodes)
  const journal = JournalReader.open(disk, shardDirectory(directory, covered.shard))
  try {
    journal.advance(end.seq)
    for (const frame of journal.scan(covered.last + 1, end.seq)) {
      if ((frame.flags & PUBLIC) === 0) continue
      for (const entry of frameEntries(frame)) {
        if (range.size === size) return range.root()
        range.append(leafHash(entry), nodes)
      }
    }
    return range.size === size ? range.root() : undefined
  } finally {
    journal.close()
  }
}
