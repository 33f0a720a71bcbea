/** What reads answer, as pages use it: the shapes of the views themselves. */
import type { EventView } from '../reads/event-view.ts'
import type { Paged } from './pieces/listing.ts'

export type EventsList = Paged & { readonly events: readonly EventView[] }
export type Thread = EventsList & { readonly root_id: string; readonly room: string; readonly page: string }
export type PagesList = Paged & {
  readonly pages: readonly {
    readonly name: string
    readonly count: number
    readonly threads: number
    readonly updated_at: number
  }[]
}

type Party = { readonly id: string; readonly public_key: string; readonly handle?: string }
export type Work = {
  readonly id: string
  readonly room: string
  readonly title: string
  readonly capabilities: readonly string[]
  readonly simulated: boolean
  readonly state: string
  readonly created_at: number
  readonly updated_at: number
  readonly deadline: number
  readonly claim_expires_at: number
  readonly fence: number
  readonly requester: Party
  readonly worker?: Party
  readonly reviewer: Party
  readonly result_id?: string
  readonly result_available: boolean
  readonly result_sha256?: string
  readonly result_changed_since_submit?: boolean
  readonly reward: {
    readonly amount: number
    readonly unit: string
    readonly fee: number
    readonly state: string
    readonly held_at: number
    readonly settled_at?: number
    readonly reason?: string
    readonly percent?: number
  }
  readonly eligibility: string
  readonly request: { readonly text: string; readonly truncated: boolean; readonly versions: number }
  readonly review_due?: number
  readonly dispute_due?: number
  readonly arbitration_due?: number
  readonly confirm_due?: number
  readonly requester_record?: Standing
  readonly worker_record?: Standing
}
export type Standing = {
  readonly accepted: number
  readonly rejected: number
  readonly lapsed: number
  readonly median_hours_to_verdict?: number
}
type Transfer = {
  readonly type: string
  readonly code: number
  readonly debit: string
  readonly credit: string
  readonly amount: number
}
export type Transition = {
  readonly seq: number
  readonly operation: string
  readonly actor?: Party
  readonly at: number
  readonly state: string
  readonly reason?: string
  readonly transfers: readonly Transfer[]
}
export type WorksList = Paged & { readonly works: readonly Work[] }
export type WorkHistory = Paged & { readonly work_id: string; readonly transitions: readonly Transition[] }

export type ToolResult = {
  readonly type: string
  readonly kind: string
  readonly id: string
  readonly name: string
  readonly description: string
  readonly category: string
  readonly price?: string
  readonly price_text?: string
  readonly network: string
  readonly output?: string
  readonly protocols: readonly string[]
  readonly subject_id: string
  readonly state: string
  readonly why: string
  readonly score: number
  readonly review_reward?: { readonly about_credits: number; readonly left: number; readonly of: number }
}
export type ToolsFound = {
  readonly expanded: Readonly<Record<string, readonly string[]>>
  readonly filters: Readonly<Record<string, string | readonly string[]>>
  readonly index: { readonly built_at: number; readonly docs: Readonly<Record<string, number>>; readonly match: string }
  readonly matched: number
  readonly next_cursor: string
  readonly order: string
  readonly query: string
  readonly text: string
  readonly results: readonly ToolResult[]
}

export type Tool = Omit<ToolResult, 'why' | 'score'> & {
  readonly link?: string
  readonly tags: readonly string[]
  readonly method?: string
  readonly doors: readonly { readonly door: string; readonly source: string; readonly checked_at: number }[]
  readonly service?: string
  readonly openapi_url?: string
  readonly mcp_url?: string
  readonly input_schema?: unknown
  readonly output_schema?: unknown
  readonly owner?: string
  readonly owner_handle?: string
  readonly verified: boolean
  readonly source?: string
  readonly callable: string
  readonly reviews: {
    readonly works: number
    readonly mixed: number
    readonly down: number
    readonly avoid: number
    readonly verdict: string
  }
  readonly created_at: number
  readonly updated_at: number
}
export type ToolFound = {
  readonly tool: Tool
  readonly index: {
    readonly listed: boolean
    readonly why: string
    readonly spam: boolean
    readonly duplicates: number
    readonly built_at: number
  }
  readonly probe?: {
    readonly at: number
    readonly verdict: string
    readonly mismatch: readonly string[]
    readonly verified: boolean
  }
}

export type LogHistory = {
  readonly logs: readonly {
    readonly log: string
    readonly origin: string
    readonly vkey: string
    readonly state: string
    readonly tree_size: number
    readonly tiles: string
  }[]
  readonly points: readonly { readonly log: string; readonly at: number; readonly tree_size: number }[]
}
export type LogWitnesses = {
  readonly quorum: string
  readonly witnesses: readonly {
    readonly name: string
    readonly vkey: string
    readonly answer: string
    readonly problem?: string
    readonly asked_at?: number
    readonly tree_size?: number
    readonly signed_at?: number
  }[]
}
