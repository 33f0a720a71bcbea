/** Requests to the tools directory, and their answers. */
import type { Refusal } from '../../actors/kernel/refusals.ts'
import type { Voucher } from './credit-ties.ts'
import type { ToolAsk } from './search.ts'

export type ToolsAsk =
  | readonly ['search', ToolAsk]
  | readonly ['look', id: string]
  /** The subject with this id: who owns it, and which documents it has. */
  | readonly ['subject', subject: string, reader: string]
  /** What is known about one of its reviewers. */
  | readonly ['reviewer', subject: string, reviewer: string]
export type ToolsAnswer =
  | { readonly ok: true; readonly reply: Uint8Array }
  | { readonly ok: true; readonly value: FoundSubject | FoundReviewer; readonly reply?: never }
  | { readonly ok: false; readonly refusal: Refusal }

declare module '../command/ports.ts' {
  interface Actors {
    /** Queries the tools directory; the answer is at least as new as this frame of the log. */
    askTools(ask: ToolsAsk, through: number, answer: (answer: ToolsAnswer | undefined) => void): void
  }
}

/** Some of the documents of a subject, whether the reader owns it, and who publishes it, as far as its hosts confirm that. */
export type FoundSubject = {
  readonly tools: readonly string[]
  readonly isOwner: boolean
  readonly publishers: readonly string[]
}
/** Whether a reviewer and the publisher of the subject are tied by credits, and who vouches for the reviewer. */
export type FoundReviewer = { readonly isTied: boolean; readonly vouchers: readonly Voucher[] }

/** Answers to the board's own queries, by the name of the read. */
export type IndexAnswers = {
  readonly 'tools.subject': FoundSubject
  readonly 'tools.reviewer': FoundReviewer
  readonly 'tools.get': Kept
}

/** What the directory has about a tool. */
type Kept = {
  readonly index: { readonly listed: boolean }
  readonly probe?: Readonly<Record<string, unknown>> & { readonly saw?: Saw }
}
type Saw = { readonly tool?: { readonly offers?: readonly { readonly pay_to: string }[] } }
