/**
 * What the signed log proves of the journals before any of them is opened: a frame of it is written only once the records that it
 * covers are durable. So what it covers was on disk, whatever is found there now.
 */

import { decodeLogFrame } from '../../actors/log/frame.ts'
import type { Disk } from '../../storage/disk.ts'
import { FOOTER } from '../../storage/frame.ts'
import { FrameWindow } from '../../storage/frame-window.ts'
import { JournalEnd } from '../../storage/journal-copy.ts'
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
      last = decodeLogFrame(frame).ranges.find((range) => range.shard === shard)?.last
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
