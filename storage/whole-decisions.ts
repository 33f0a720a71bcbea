/**
 * Opening a journal whose owner decides several frames at once: a decision that a crash cut short leaves nothing.
 *
 * Recovery keeps the whole frames of a torn batch one by one. Each frame of a decision but the last has the flag MORE,
 * so a journal that ends with MORE ends inside a decision, which was never acknowledged. Its first frame is made
 * invalid on disk; recovery then finds a torn tail there, and saves and cuts it like any other. A batch never spans two
 * segments, and a journal is opened before it seals one, so such an end is always in the newest segment.
 */
import { FRAME_HEADER_BYTES, MORE } from './frame.ts'
import { Journal, type JournalOptions } from './journal.ts'
import { listSegments, segmentPath } from './segment.ts'

/** As `Journal.open`, and without the beginning of a decision at its end. */
export function openWhole(options: JournalOptions): Journal {
  const journal = Journal.open(options)
  const end = unfinishedEnd(journal)
  const newest = end === undefined ? undefined : listSegments(options.disk, options.directory, 'log').at(-1)
  // An older release, which knows no MORE, may have continued after such an end, and sealed it.
  if (end === undefined || newest === undefined || newest > end.firstSeq) return journal
  journal.close()
  spoil(options, segmentPath(options.directory, newest), end.bytes)
  return Journal.open(options)
}

type UnfinishedEnd = { readonly firstSeq: number; readonly bytes: number }

/** The frames at the end of a journal whose decision is not complete. */
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

/**
 * Makes the frame that begins this many bytes before the end of the file invalid; recovery has just made all of them
 * durable.
 */
function spoil({ disk }: JournalOptions, path: string, bytes: number): void {
  const file = disk.openFile(path, 'write')
  try {
    file.writeAt(Uint8Array.of(0), file.size() - bytes)
    file.sync()
  } finally {
    file.close()
  }
}
