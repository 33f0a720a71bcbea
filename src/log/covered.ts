/**
 * What the signed log proves of the journals before any of them is opened: a frame of it is written only once the records that it
 * covers are durable. So what it covers was on disk, whatever is found there now.
 */

import { decodeLogFrame, entriesOf, type LogFrame } from '../../actors/log/frame.ts'
import { frameEntries, PUBLIC } from '../../actors/records/record.ts'
import type { Disk } from '../../storage/disk.ts'
import { FOOTER } from '../../storage/frame.ts'
import { FrameWindow } from '../../storage/frame-window.ts'
import { type Frame, JournalReader } from '../../storage/journal.ts'
import { JournalEnd } from '../../storage/journal-copy.ts'
import { CompactRange, HASH_BYTES, LEVELS_MAX, leafHash } from '../../storage/merkle.ts'
import { type Durable, newestDurable } from '../../storage/recovery.ts'
import { listSegments, readSegmentHeader, SEGMENT_HEADER_BYTES, segmentPath } from '../../storage/segment.ts'
import { reachOf } from '../../storage/snapshot.ts'
import { logDirectory, shardDirectory, shardSnapshotsDirectory, UnusableDirectory } from '../board-directory.ts'

const nothing: Durable = { seq: 0, by: '' }

/** Up to which frame the journal of a shard was durable once, and what says so. `directory`: of the board. */
export function durableOf(disk: Disk, directory: string, shard: number, journalId: Buffer): Durable {
  const snapshot = reachOf(disk, shardSnapshotsDirectory(shardDirectory(directory, shard)), journalId)
  return newestDurable(covered(disk, directory, shard), { seq: snapshot, by: 'a snapshot' })
}

/** By the newest whole frame of the log; a newest segment without one says nothing, and the one before it does. */
function covered(disk: Disk, directory: string, shard: number): Durable {
  const path = logDirectory(directory)
  const segments = disk.fileExists(path) ? listSegments(disk, path, 'log') : []
  for (const firstSeq of segments.toReversed().slice(0, 2)) {
    const seq = lastCovered(disk, segmentPath(path, firstSeq), shard)
    if (seq !== undefined) return { seq, by: 'the signed log' }
  }
  return nothing
}

function lastCovered(disk: Disk, path: string, shard: number): number | undefined {
  const file = disk.openFile(path, 'read')
  try {
    const header = readSegmentHeader(file)
    if (header === undefined) return undefined
    const window = new FrameWindow(file, { limit: file.size(), seed: header.seed })
    let last: number | undefined
    for (let at = SEGMENT_HEADER_BYTES; ; ) {
      const frame = window.at(at)
      if (frame.frameBytes === undefined || frame.type === FOOTER) return last
      last = decodeLogFrame(frame).ranges.findLast((range) => range.shard === shard)?.last
      at += frame.frameBytes
    }
  } finally {
    file.close()
  }
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
  for (const { shard, last } of ranges) {
    const journal = new JournalEnd(disk, shardDirectory(directory, shard))
    journal.advance()
    const { seq } = journal
    journal.close()
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
