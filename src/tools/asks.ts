/** What the tools directory is asked, and what it answers. */
import type { Refusal } from '../refusals.ts'
import type { ToolAsk } from './search.ts'

export type ToolsAsk =
  | readonly ['search', ToolAsk]
  | readonly ['look', id: string]
  /** What is reviewed under this id: who owns it, and which documents it has. */
  | readonly ['subject', subject: string, reader: string]
export type ToolsAnswer =
  | { readonly ok: true; readonly json: string }
  | { readonly ok: false; readonly refusal: Refusal }
/** Some of the documents of a subject; whether the reader owns it, and how many works were accepted of him. */
export type FoundSubject = {
  readonly tools: readonly string[]
  readonly isOwner: boolean
  readonly accepted: number
}
