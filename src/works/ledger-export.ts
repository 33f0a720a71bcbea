/**
 * The public ledger as lines: every posting of public works, every grant and every transfer, with its place in the log. What a
 * line says is what its entry says, so a reader of the line can make the entry and hash it.
 */

import type { LogBook } from '../../actors/log/book.ts'
import { parseLedgerEntry } from '../../actors/log/ledger-entry.ts'
import { frameEntries } from '../../actors/records/record.ts'
import type { LedgerRecord } from '../../actors/works/market/ledger.ts'
import type { ReadContext } from '../reads/read.ts'

type LedgerLines = {
  readonly lines: readonly string[]
  /** Number of the posting after them. */
  readonly next: number
}

/** Lines of the postings from number `first` on, through `last`, until there are `limit` or they have `bytes`. */
export function ledgerLines(
  context: Pick<ReadContext, 'state' | 'frame'>,
  { first, last, limit, bytes }: { first: number; last: number; limit: number; bytes: number },
): LedgerLines {
  const { ledgerIndex, book } = context.state
  const lines: string[] = []
  let next = first
  let length = 0
  for (const record of ledgerIndex.from(first)) {
    const entries = frameEntries(context.frame(record.shard, record.place))
    for (; next < record.first + record.count; next++) {
      if (next > last || lines.length === limit || length >= bytes) return { lines, next }
      const line = lineOf(book, record, entries[next - record.first]!, next)
      lines.push(line)
      length += line.length
    }
  }
  return { lines, next }
}

function lineOf(book: LogBook, { first, leaf }: LedgerRecord, entry: Buffer, seq: number): string {
  const { type, ...posting } = parseLedgerEntry(entry)!
  const at = leaf + seq - first
  const { origin, base } = book.holding(at)
  const log = { state: 'included', index: at - base, origin }
  return `${JSON.stringify({ type: 'ledger', posting: type, ...posting, log })}\n`
}
