/**
 * Opens a journal whose owner may record a decision in several frames: a decision that a crash cut short leaves no
 * trace.
 *
 * Recovery retains the whole frames of a torn batch one by one. Every frame of a decision except the last has the flag
 * MORE, so a journal that ends with MORE ends inside a decision, which was never acknowledged. The first frame of that
 * decision is made invalid on disk; recovery then finds a torn tail there, and saves and cuts it like any other. A
 * batch never spans two segments, and a journal is opened before it seals one, so such an end is always in the newest
 * segment.
 */
import { FRAME_HEADER_BYTES, MORE } from './frame.ts'
import { Journal, type JournalOptions } from './journal.ts'
import { listSegments, segmentPath } from './segment.ts'

/** `Journal.open`, but without an incomplete decision at the end. */
export function openWhole(options: JournalOptions): Journal {
  const journal = Journal.open(options)
  const end = unfinishedEnd(journal)
  const newest = end === undefined ? undefined : listSegments(options.disk, options.directory, 'log').at(-1)
  // An older release, which does not know MORE, may have continued after such an end and sealed it.
  if (end === undefined || newest === undefined || newest > end.firstSeq) return journal
  journal.close()
  invalidateFrame(options, segmentPath(options.directory, newest), end.bytes)
  return Journal.open(options)
}

type UnfinishedEnd = { readonly firstSeq: number; readonly bytes: number }

/** The frames at the end of a journal that belong to an incomplete decision. */
function unfinishedEnd(journal: Journal): UnfinishedEnd | undefined {
  let firstSeq = journal.nextSeq
  let bytes = 0
  for (let frame = journal.read(firstSeq - 1); frame !== undefined && (frame.flags & MORE) !== 0; ) {
    firstSeq = frame.seq
    bytes += FRAME_HEADER_BYTES + frame.payload.length
    frame = journal.read(firstSeq - 1)
  }
  return bytes === 0 ? undefined : { firstSeq, bytes }
}

/** Invalidates the frame that begins this many bytes before the end of the file. Recovery has just made all frames durable. */
function invalidateFrame({ disk }: JournalOptions, path: string, bytes: number): void {
  const file = disk.openFile(path, 'write')
  try {
    file.writeAt(Uint8Array.of(0), file.size() - bytes)
    file.sync()
  } finally {
    file.close()
  }
}
