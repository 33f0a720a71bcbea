/**
 * Ledger entries: the record of credits in the public log, with one leaf per posting.
 *
 *   broadside/entry@v1
 *   kind ledger
 *   event <work id, or ->
 *   room <room, or ->
 *   seq <gap-free count of public postings, from 1>
 *   time <Unix seconds>
 *   command <64 hex of the command that caused it; zeros if the board did>
 *   transfer <32 hex: the unique name of this posting>
 *   type hold|post|void|direct
 *   code <what it was for: a number>
 *   debit <account>
 *   credit <account>
 *   amount <whole credits>
 *
 * A hold is resolved once: by a post of all or part of it (the rest is returned) or by a void. Posted credits are in
 * escrow, and leave it by direct postings of the same decision. Postings of simulated works move no credits and have no
 * entries.
 */
import { entryFirstLine, parseEntry } from '../records/entry.ts'

export type PostingType = 'hold' | 'post' | 'void' | 'direct'

/** One movement of credits. Accounts: `user:<identity id>`, `escrow`, `fees`, `mint`, `rewards`. */
type LedgerPosting = {
  readonly type: PostingType
  readonly code: number
  readonly debit: string
  readonly credit: string
  readonly amount: number
  /** 32 hex. */
  readonly transfer: string
}

/** Fields shared by the postings of one decision. */
type LedgerCause = {
  /** Id of the work; `-`: none. */
  readonly event: string
  /** `-`: none. */
  readonly room: string
  readonly time: number
  /** 64 hex. */
  readonly command: string
}

/** The command id of postings that no command caused. */
export const noCommand = '0'.repeat(64)

/** One entry per posting, numbered from `firstSeq`. */
export function ledgerEntries(postings: readonly LedgerPosting[], firstSeq: number, cause: LedgerCause): Buffer[] {
  return postings.map((posting, n) => formatLedgerEntry({ ...cause, ...posting, seq: firstSeq + n }))
}

/** The bytes that the log hashes. */
export function formatLedgerEntry(line: LedgerLine): Buffer {
  const { event, room, seq, time, command, transfer, type, code, debit, credit, amount } = line
  return Buffer.from(
    `${entryFirstLine}\nkind ledger\nevent ${event}\nroom ${room}\nseq ${seq}\ntime ${time}\ncommand ${command}\n` +
      `transfer ${transfer}\ntype ${type}\ncode ${code}\ndebit ${debit}\ncredit ${credit}\namount ${amount}\n`,
    'latin1',
  )
}

/** A ledger entry as `GET /v1/export?stream=ledger` shows it. */
export type LedgerLine = LedgerCause & LedgerPosting & { readonly seq: number }

const lines = ['event', 'room', 'command', 'transfer', 'type', 'debit', 'credit'] as const

/** The fields of an entry of kind ledger; undefined if the bytes are another entry or none. */
export function parseLedgerEntry(bytes: Uint8Array): LedgerLine | undefined {
  const fields = parseEntry(bytes)
  if (fields?.get('kind') !== 'ledger') return undefined
  const [seq, time, code, amount] = ['seq', 'time', 'code', 'amount'].map((name) => wholeNumber(fields.get(name)))
  if (seq === undefined || time === undefined || code === undefined || amount === undefined) return undefined
  if (lines.some((name) => fields.get(name) === undefined)) return undefined
  const text = Object.fromEntries(lines.map((name) => [name, fields.get(name)!])) as Record<
    (typeof lines)[number],
    string
  >
  return { ...text, type: text.type as PostingType, seq, time, code, amount }
}

function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : undefined
}
