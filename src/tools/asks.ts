/** What the tools directory is asked, and what it answers. */
import type { Refusal } from '../../actors/kernel/refusals.ts'
import type { Voucher } from './credit-ties.ts'
import type { ToolAsk } from './search.ts'

export type ToolsAsk =
  | readonly ['search', ToolAsk]
  | readonly ['look', id: string]
  /** What is reviewed under this id: who owns it, and which documents it has. */
  | readonly ['subject', subject: string, reader: string]
  /** What is known of who has reviewed it. */
  | readonly ['reviewer', subject: string, reviewer: string]
export type ToolsAnswer =
  | { readonly ok: true; readonly reply: Uint8Array }
  | { readonly ok: true; readonly value: FoundSubject | FoundReviewer; readonly reply?: never }
  | { readonly ok: false; readonly refusal: Refusal }

declare module '../command/ports.ts' {
  interface Actors {
    /** Asks the tools directory; it answers with nothing older than this frame of the log. */
    askTools(ask: ToolsAsk, through: number, answer: (answer: ToolsAnswer | undefined) => void): void
  }
}

/** Some of the documents of a subject, whether the reader owns it, and who publishes it, as far as its hosts confirm that. */
export type FoundSubject = {
  readonly tools: readonly string[]
  readonly isOwner: boolean
  readonly publishers: readonly string[]
}
/** Whether credits went between a reviewer and who publishes the subject, and who speaks for the reviewer. */
export type FoundReviewer = { readonly isTied: boolean; readonly vouchers: readonly Voucher[] }

/** What the board asks the directory for by itself, by the name of the read. */
export type IndexAnswers = {
  readonly 'tools.subject': FoundSubject
  readonly 'tools.reviewer': FoundReviewer
  readonly 'tools.get': Kept
}

/** What the directory has of a tool. */
type Kept = {
  readonly index: { readonly listed: boolean }
  readonly probe?: Readonly<Record<string, unknown>> & { readonly saw?: Saw }
}
type Saw = { readonly tool?: { readonly offers?: readonly { readonly pay_to: string }[] } }
