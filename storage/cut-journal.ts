/**
 * Cuts a journal after a frame, because the frames after it never counted. First, the owner must close the journal and
 * remove what was derived from it: snapshots, and the durable mark. An interrupted cut can simply be repeated.
 */
import { Damage, type Disk } from './disk.ts'
import { keepTail, readFrom } from './recovery.ts'
import { indexPath, listSegments, readSegmentHeader, SEGMENT_HEADER_BYTES, segmentPath } from './segment.ts'
import { walkSegment } from './walk.ts'

type JournalCut = {
  /** The newest frame to retain. */
  readonly last: number
  /** The segment with that frame stays sealed, and the next one stays and is empty. */
  readonly isSealed: boolean
  /** The cut bytes are saved in the journal's `lost+tail`. */
  readonly isKept: boolean
}

/** Throws Damage if the remaining frames cannot be read. */
export function cutJournal(disk: Disk, directory: string, { last, isSealed, isKept }: JournalCut): void {
  const firsts = listSegments(disk, directory, 'log')
  // Newest first, so that a valid journal is left at any moment.
  for (const first of firsts.filter((each) => each > Math.max(1, last)).toReversed()) {
    const stays = isSealed && first === last + 1
    cutSegment(disk, directory, { first, offset: stays ? SEGMENT_HEADER_BYTES : 0, isKept })
  }
  const first = firsts.findLast((each) => each <= Math.max(1, last))
  if (first === undefined || (isSealed && firsts.includes(last + 1))) return disk.syncDirectory(directory)
  cutSegment(disk, directory, { first, offset: endOf(disk, segmentPath(directory, first), last), isKept })
  disk.syncDirectory(directory)
}

type SegmentCut = { readonly first: number; readonly offset: number; readonly isKept: boolean }

/** Also removes the index, which describes the old end. `offset` 0 removes the whole segment. */
function cutSegment(disk: Disk, directory: string, { first, offset, isKept }: SegmentCut): void {
  const path = segmentPath(directory, first)
  const file = disk.openFile(path, 'write')
  try {
    const bytes = readFrom(file, offset)
    if (isKept && bytes.some((byte) => byte !== 0)) keepTail(disk, directory, { firstSeq: first, offset, bytes })
    disk.removeFile(indexPath(directory, first))
    if (offset > 0 && bytes.length > 0) {
      file.truncate(offset)
      file.sync()
    }
  } finally {
    file.close()
  }
  if (offset === 0) disk.removeFile(path)
}

function endOf(disk: Disk, path: string, last: number): number {
  const file = disk.openFile(path, 'read')
  try {
    const header = readSegmentHeader(file)
    if (header === undefined) throw new Damage({ path, offset: 0, expected: 'a segment header', found: 'none' })
    const { live } = walkSegment(file, header, file.size())
    if (live.nextSeq <= last)
      throw new Damage({ path, offset: live.end, expected: `frame ${live.nextSeq}`, found: 'none' })
    return live.offsetOf(last + 1)
  } finally {
    file.close()
  }
}
