/**
 * The public ledger as lines: every posting of public works, every grant and every transfer, with its place in the log. A line contains
 * everything in its entry, so a reader can rebuild the entry and hash it.
 */

import type { BookedLog, LogBook } from '../../actors/log/book.ts'
import { entriesIn } from '../../actors/log/frame.ts'
import { parseLedgerEntry } from '../../actors/log/ledger-entry.ts'
import { frameEntries } from '../../actors/records/record.ts'
import type { LedgerRecord } from '../../actors/works/market/ledger.ts'
import { Damage } from '../../storage/disk.ts'
import type { ReadContext } from '../reads/read.ts'

type LedgerContext = Pick<ReadContext, 'state' | 'frame'> & {
  /** Entries start..end-1 of a log, each after its u16 length. */
  readonly entries: (log: BookedLog, start: number, end: number) => Buffer
}

type LedgerLines = {
  readonly lines: readonly string[]
  /** Number of the next posting. */
  readonly next: number
}

/** Lines of the postings `first` through `last`, until there are `limit` lines or they exceed `bytes`. */
export function ledgerLines(
  context: LedgerContext,
  { first, last, limit, bytes }: { first: number; last: number; limit: number; bytes: number },
): LedgerLines {
  const { ledgerIndex, book } = context.state
  const lines: string[] = []
  let next = first
  let length = 0
  for (const record of ledgerIndex.from(first)) {
    const entries = entriesOf(context, record)
    for (; next < record.first + record.count; next++) {
      if (next > last || lines.length === limit || length >= bytes) return { lines, next }
      const line = lineOf(book, record, entries[next - record.first]!, next)
      lines.push(line)
      length += line.length
    }
  }
  return { lines, next }
}

/** The entries of a record; if its frame is damaged, as the log has them. */
function entriesOf(context: LedgerContext, { shard, place, leaf, count }: LedgerRecord): Buffer[] {
  try {
    return frameEntries(context.frame(shard, place))
  } catch (error) {
    if (!(error instanceof Damage)) throw error
    const log = context.state.book.holding(leaf)
    return entriesIn(context.entries(log, leaf - log.base, leaf - log.base + count))
  }
}

function lineOf(book: LogBook, { first, leaf }: LedgerRecord, entry: Buffer, seq: number): string {
  const { type, ...posting } = parseLedgerEntry(entry)!
  const at = leaf + seq - first
  const { origin, base } = book.holding(at)
  const log = { state: 'included', index: at - base, origin }
  return `${JSON.stringify({ type: 'ledger', posting: type, ...posting, log })}\n`
}
