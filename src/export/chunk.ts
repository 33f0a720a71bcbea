/** What is asked for a chunk of an export, and what it is made from. */
import type { refusal } from '../../actors/kernel/refusals.ts'
import type { BookedLog } from '../../actors/log/book.ts'
import type { Frame } from '../../storage/journal.ts'
import type { ReadContext } from '../reads/read.ts'

export type ExportFilter = {
  readonly room?: string
  /** Unix seconds, inclusive and exclusive. */
  readonly since?: number
  readonly until?: number
}

/** Where an export stands; made by the first chunk and handed back unread. */
export type ExportState = {
  /** Next row of the changes, next act on a key, and how many lines of that row or act were given already. */
  readonly row: number
  readonly rotation: number
  readonly given: number
  /** Number of the newest change that belongs to this export. */
  readonly end: number
  readonly size: number
  readonly checkpoint: string
  readonly count: number
  /** Next leaf to list, and the place of its log among those of the board; only a whole export lists them. */
  readonly log: number
  readonly leaf: number
}

export type ExportRequest = {
  readonly filter: ExportFilter
  /** Lines at most; 0 = everything. */
  readonly limit: number
  /** The postings of the public ledger in place of messages, or every public record. */
  readonly stream?: 'ledger' | 'board'
  /** Sealed cursor of the page before, or ''. */
  readonly cursor: string
  readonly state?: ExportState
}

export type ExportChunk =
  | { readonly ok: true; readonly bytes: Uint8Array; readonly state?: ExportState; readonly nextCursor?: string }
  | { readonly ok: false; readonly refusal: ReturnType<typeof refusal> }

export type ExportContext = ReadContext & {
  /** The hashes of leaves start..end-1 of a log, one after the other. */
  readonly leafHashes: (log: BookedLog, start: number, end: number) => Buffer
  /** Its entries start..end-1, each after its u16 length. */
  readonly entries: (log: BookedLog, start: number, end: number) => Buffer
  /** Newest frame of the log that is applied. */
  readonly applied: () => number
  /** The public records that this frame of the log covers; their frames are views that the next one overwrites. */
  readonly recordsOf: (seq: number) => Iterable<{ readonly frame: Frame }>
  /** Notes an error for the operator; the sentence that a reader is given. */
  readonly fault: (error: unknown) => string
}
