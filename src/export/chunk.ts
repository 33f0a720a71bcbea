/** The request for a chunk of an export, and the context from which it is built. */
import type { refusal } from '../../actors/kernel/refusals.ts'
import type { BookedLog } from '../../actors/log/book.ts'
import type { CoveredRecord } from '../../actors/log/public-records.ts'
import type { ReadContext } from '../reads/read.ts'

export type ExportFilter = {
  readonly room?: string
  /** Unix seconds, inclusive and exclusive. */
  readonly since?: number
  readonly until?: number
}

/** Position of an export; created by the first chunk and passed back unread. */
export type ExportState = {
  /** Next row of the changes, next act on a key, and how many lines of that row or act have been exported. */
  readonly row: number
  readonly rotation: number
  readonly given: number
  /** Number of the newest change in this export. */
  readonly end: number
  readonly size: number
  readonly checkpoint: string
  readonly count: number
  /** Next leaf to list, and the index of its log among the board's logs; only a full export lists them. */
  readonly log: number
  readonly leaf: number
}

export type ExportRequest = {
  readonly filter: ExportFilter
  /** Maximum number of lines; 0 for everything. */
  readonly limit: number
  /** The postings of the public ledger instead of messages, or every public record. */
  readonly stream?: 'ledger' | 'board'
  /** Sealed cursor of the previous page, or ''. */
  readonly cursor: string
  readonly state?: ExportState
}

export type ExportChunk =
  | { readonly ok: true; readonly bytes: Uint8Array; readonly state?: ExportState; readonly nextCursor?: string }
  | { readonly ok: false; readonly refusal: ReturnType<typeof refusal> }

export type ExportContext = ReadContext & {
  /** The concatenated hashes of leaves start..end-1 of a log. */
  readonly leafHashes: (log: BookedLog, start: number, end: number) => Buffer
  /** Its entries start..end-1, each after its u16 length. */
  readonly entries: (log: BookedLog, start: number, end: number) => Buffer
  /** Newest frame of the log that is applied. */
  readonly applied: () => number
  /** The public records that this frame of the log covers, or damage in their place. Their frames are views, overwritten by the next one. */
  readonly recordsOf: (seq: number) => Iterable<CoveredRecord>
  /** Reports an error to the operator; returns the sentence for the reader. */
  readonly fault: (error: unknown) => string
}
