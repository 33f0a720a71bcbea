/**
 * What the journals prove about each other before anything is written to any of them. A frame of the log is written only once the records
 * that it covers are durable, and a frame of a shard names the log's newest durable frame at the time. So those records and frames were
 * once on disk, whatever is found there now.
 */

import { closedLogs, decodeLogFrame, entriesOf, type LogFrame } from '../../actors/log/frame.ts'
import { frameEntries, PUBLIC } from '../../actors/records/record.ts'
import { Damage, type Disk, isUnreadable } from '../../storage/disk.ts'
import { type Durable, newestDurable } from '../../storage/durable-mark.ts'
import { FOOTER, type FoundFrame } from '../../storage/frame.ts'
import { FrameWindow } from '../../storage/frame-window.ts'
import { type Frame, type Journal, JournalReader } from '../../storage/journal.ts'
import { JournalEnd } from '../../storage/journal-copy.ts'
import { CompactRange, HASH_BYTES, LEVELS_MAX, leafHash } from '../../storage/merkle.ts'
import { endingOf } from '../../storage/recovery.ts'
import { listSegments, readSegmentHeader, SEGMENT_HEADER_BYTES, segmentPath } from '../../storage/segment.ts'
import { reachOf } from '../../storage/snapshot.ts'
import {
  logDirectory,
  shardDirectory,
  shardSnapshotsDirectory,
  snapshotDirectories,
  UnusableDirectory,
} from '../board-directory.ts'
import { RolledBack } from './mark.ts'

const nothing: Durable = { seq: 0, by: '' }

/** The newest frame of a shard's journal that is known to have been durable, and the evidence for it. `directory`: of the board. */
export function durableOf(disk: Disk, directory: string, shard: number, journalId: Buffer): Durable {
  const snapshot = reachOf(disk, shardSnapshotsDirectory(shardDirectory(directory, shard)), journalId)
  return newestDurable(covered(disk, directory, shard), { seq: snapshot, by: 'a snapshot' })
}

/** The same for the log. */
export function durableOfLog(disk: Disk, directory: string, journalId: Buffer): Durable {
  const snapshots = snapshotDirectories(directory, logDirectory(directory))
  return newestDurable(...snapshots.map((each) => ({ seq: reachOf(disk, each, journalId), by: 'a snapshot' })))
}

/** According to the newest intact frame of the log. */
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

/** A frame and its position. */
type Standing = { readonly frame: FoundFrame; readonly path: string; readonly at: number }

/** The intact frames of the newest segment. If it has none, those of the segment before it. */
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
 * Throws if one journal proves that another has lost frames: Damage for a shard's journal, RolledBack if an older log was restored. It only
 * reads, so a start that calls this first leaves all files unchanged. A board with one shard needs no check: its journal is recovered
 * before anything is written, and the log is rebuilt from it with the same leaves. `directory`: of the board.
 */
export function checkProofs(disk: Disk, directory: string, shards: number): void {
  for (let shard = 0; shard < shards; shard++) {
    const problem = missingJournalProblem(disk, directory, shard)
    if (problem !== undefined) throw new UnusableDirectory(problem)
  }
  if (shards === 1) return
  const newest = newestFrame(disk, logDirectory(directory))
  const ranges = newest === undefined ? [] : decodeLogFrame(newest.frame).ranges
  for (const { shard, last } of ranges.filter((range) => range.shard < shards)) {
    const journal = shardDirectory(directory, shard)
    if ((newestFrame(disk, journal)?.frame.seq ?? 0) >= last) continue
    const { damage } = endingOf(disk, journal, (id) => durableOf(disk, directory, shard, id))
    if (damage !== undefined) throw damage
  }
  const missing = logBehind(disk, directory, shards)
  if (missing !== undefined) throw new RolledBack(missing)
}

/** Set if the log covers frames of a shard that has no journal: a start would create a new one in its place. The sentence names the fix. */
export function missingJournalProblem(disk: Disk, directory: string, shard: number): string | undefined {
  const path = shardDirectory(directory, shard)
  if (disk.fileExists(path) && listSegments(disk, path, 'log').length > 0) return undefined
  const { seq, by } = covered(disk, directory, shard)
  if (seq === 0) return undefined
  return `${path} has no journal, but ${by} covers frame ${seq} of it. If it is on a separate volume, mount that volume. Otherwise restore the newest backup of the whole data directory as a new board.`
}

/** How many frames of a log, or ranges of one shard in it, are searched for a public record. */
const examinedMax = 64

/**
 * Throws UnusableDirectory if the log's newest entries for a shard differ from those of its journal. This happens when it was replaced by
 * the journal of another board or shard, or of a copy that continued on its own. Damaged records are ignored. `through`: the newest frame
 * of the log.
 */
export function checkEntries(log: Pick<Journal, 'read'>, through: number, shards: readonly JournalReader[]): void {
  for (const [shard, journal] of shards.entries()) {
    try {
      const other = otherEntries(log, through, shard, journal)
      if (other === undefined) continue
      throw new UnusableDirectory(
        `The journal of shard ${shard} is not the one that the signed log was made from: frame ${other.seq} of the log has different entries for its frames ${other.first} to ${other.last}. It belongs to another board or shard, or to a copy that was changed. Restore the newest backup of the whole data directory as a new board.`,
      )
    } catch (error) {
      if (!(error instanceof Damage || isUnreadable(error))) throw error
    }
  }
}

/** The frames of a shard whose entries differ in frame `seq` of the log; undefined if none of the newest differ. */
function otherEntries(log: Pick<Journal, 'read'>, through: number, shard: number, journal: JournalReader) {
  let seq = through
  for (let examined = 0; examined < examinedMax && seq > 0; examined++) {
    const frame = decodeLogFrame(log.read(seq)!)
    const at = frame.ranges.findLastIndex((range) => range.shard === shard)
    if (at === -1) return undefined
    const { first, last, leaves } = frame.ranges[at]!
    if (leaves > 0) {
      const before = frame.ranges.slice(0, at).reduce((sum, range) => sum + range.leaves, 0)
      return isOf(journal, { first, last }, [...entriesOf(frame, before, before + leaves)])
        ? undefined
        : { seq, first, last }
    }
    // If the shard has nothing new here, many earlier frames may have nothing either. Private records advance its position without a frame
    // of their own.
    seq = last < first ? Math.min(frameWith(log, seq, shard, last), seq - 1) : seq - 1
  }
  return undefined
}

/** The oldest frame of the log, up to `through`, that covers frame `last` of a shard. */
function frameWith(log: Pick<Journal, 'read'>, through: number, shard: number, last: number): number {
  let [from, to] = [1, through]
  while (from < to) {
    const middle = Math.floor((from + to) / 2)
    const range = decodeLogFrame(log.read(middle)!).ranges.findLast((each) => each.shard === shard)
    if (range !== undefined && range.last >= last) to = middle
    else from = middle + 1
  }
  return from
}

/** Whether these are the entries of the public records from `first` to `last`. */
function isOf(journal: JournalReader, { first, last }: { first: number; last: number }, entries: Buffer[]): boolean {
  journal.advance(last)
  let next = 0
  for (const frame of journal.scan(first, last)) {
    if ((frame.flags & PUBLIC) === 0) continue
    for (const entry of frameEntries(frame)) if (entries[next++]?.equals(entry) !== true) return false
  }
  return next === entries.length
}

/** What the shards' journals prove the log to have lost; undefined if nothing. `directory`: of the board. */
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

/** Where the shards' journals ended when the log was last given up. What they say about the log up to there does not count. */
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
  return Array.from({ length: shards }, (_, shard) => journalEnd(disk, shardDirectory(directory, shard)))
}

/** The newest intact frame of the journal in this directory; 0 if there is none. */
export function journalEnd(disk: Disk, directory: string): number {
  const journal = new JournalEnd(disk, directory)
  journal.advance()
  const { seq } = journal
  journal.close()
  return seq
}

/**
 * How many records the journals have beyond those that the log covers. Throws UnusableDirectory if the log is newer than its journals,
 * which means that the copy was made file by file. `directory`: of the board.
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
 * The log's future root at a size beyond its newest frame, once it covers the rest of the only shard's journal. A power cut can lose frames
 * of the log whose heads were already published, and a copy may have been made while the board ran. Undefined if the journal does not reach
 * that size, or if there are several shards, whose records could be covered in any order. `frames`: of this log.
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
