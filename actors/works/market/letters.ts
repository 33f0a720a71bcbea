/**
 * The letters to the market, and the records it writes. The contract is described at the top of market.ts.
 *
 * Users' commands arrive as letters named after their operation. The board's own letters have names that no operation has, and
 * no nonce: a repeated one is recognized by its content.
 */

import type { ActorRefusal, RefusalCode } from '../../kernel/refusals.ts'
import type { WorkState } from '../../records/change-kinds.ts'
import { type BoardRecord, type FactRecord, RecordType } from '../../records/record.ts'
import type { TransitionName } from './table.ts'
import type { Changing, Eligibility, Fixed, Terms } from './work.ts'

/** Name of the one actor that decides all credits and works. */
export const marketName = '@market'

/** How many of each one identity may have at a time; Infinity if the operator has lifted the limits. */
export type MarketLimits = {
  readonly claims: number
  readonly holds: number
  /** The highest reward of one work, including raises. */
  readonly reward: number
}

/** The signer's rights in the work's room, as reported by its shard; absent if the shard was not asked. */
export type Standing = {
  /** May read the room. */
  readonly reads: boolean
  /** May reply there now, by its policy. */
  readonly replies: boolean
  /** Is owner or moderator of it, or the operator if it is public. */
  readonly moderates: boolean
}

/** A result bound by the room: a visible signed reply to the request, in its room. */
export type BoundResult = {
  /** 32 hex. */
  readonly id: string
  /** Identity id. */
  readonly author: string
  /** 32 hex: the work, or a version of its request. */
  readonly reply_to: string
  readonly sha256: string
  /** Why it cannot be a result. The market returns this refusal once it has checked the fence. */
  readonly fault?: {
    readonly code: RefusalCode
    readonly message: string
    readonly field?: string
  }
}

/** What the room needs to accept the text of a command, and cannot see in the signed bytes. */
export type PostFacts = { readonly proof_bits: number; readonly via: string; readonly operator: boolean }

/** Arguments of every command about a work, as the plan supplies them. Absent: not given. */
export type WorkArgs = {
  readonly work: string
  readonly generation: string
  /** `amount` of the command: a fence, or an added reward. */
  readonly amount: number
  readonly reason: string
  readonly ttl: number
  readonly limits: MarketLimits
  readonly standing?: Standing
  /** 32 hex: the reply that is submitted. */
  readonly result?: string
  readonly bound?: BoundResult
  readonly version_id?: string
  readonly result_sha256?: string
  readonly accept_changed?: boolean
  readonly percent?: number
  /** For `work.edit`: bits of work that its proof shows. */
  readonly proof_bits?: number
  /** Keyed hash of this work and the signer's network; '' or absent: unknown. */
  readonly from?: string
}

/** Arguments of `work.create`: the reservation. */
export type ReserveArgs = {
  readonly work: string
  readonly generation: string
  readonly amount: number
  readonly title: string
  readonly capabilities: readonly string[]
  readonly eligibility: Eligibility
  readonly simulated: boolean
  readonly room: string
  /** Identity id; '' = the requester. */
  readonly reviewer: string
  /** Its public key; '' = unknown. */
  readonly reviewer_key: string
  /** A delegate creates something public. For other signers this is not set and not needed. */
  readonly seen: boolean
  readonly terms: Terms
  /** On the reward, held in addition to it. */
  readonly fee: number
  /** Seconds from its creation to its deadline. */
  readonly lifetime: number
  /** Bits of work that the proof of the command shows. */
  readonly proof_bits: number
  readonly limits: MarketLimits
  /** As in WorkArgs. */
  readonly from?: string
}

/** `work.open`: the room has accepted the request. */
export type OpenArgs = {
  readonly work: string
  readonly generation: string
  readonly room: string
  readonly is_public: boolean
  /** First 32 hex of the command that made the newest version of the request. */
  readonly version: string
  readonly versions: number
}
/** `work.void`: the room has refused it. The hold is released, and a retry of the command gets this refusal again. */
export type VoidArgs = {
  readonly work: string
  readonly refusal: {
    readonly code: ActorRefusal['code']
    readonly message: string
    readonly field?: string
  }
}
/** `work.edited`: the room has accepted or refused a new version. `edit`: id of the work.edit command. */
export type EditedArgs = {
  readonly work: string
  readonly generation: string
  readonly edit: string
  readonly taken: boolean
}
/** `work.observe`: what happened to a marked event. `n` counts the room's messages about this work, from 1; each is applied once. */
export type ObserveArgs = {
  readonly work: string
  readonly n: number
  readonly event: 'request' | 'result'
  readonly change: 'edited' | 'hidden' | 'restored' | 'redacted'
  /** `author`: its author removed or changed it; `other`: a moderator, the operator, or screening. */
  readonly by: 'author' | 'other'
  /** For an edited result: its current hash. */
  readonly sha256?: string
  /** 32 hex of the result concerned; it may be an earlier one if the room is in another shard. */
  readonly result?: string
}
/** `work.tick`: applies due timeouts. Answers {written, next}: works written, and when the next is due (0: none is known). */
export type TickArgs = {
  readonly generation: string
  readonly works_max: number
}
export type TickReply = {
  readonly written: number
  readonly next: number
  readonly at: number
}
/** `market.begin`: sent at every start, before any caller is answered. The very first one funds the rewards. */
export type BeginArgs = {
  readonly generation: string
  readonly rewards: number
}
/**
 * `credit.welcome`: `network` is a keyed hash of the client's network and the day, `wider` one of the enclosing network ('' if
 * there is none). Limits of Infinity are lifted.
 */
export type WelcomeArgs = {
  readonly identity: string
  readonly network: string
  readonly wider: string
  readonly amount: number
  readonly network_max: number
  readonly wider_max: number
  readonly board_max: number
}
/** Answer to `credit.welcome` and `credit.reward`: the amount given, or 0 with the reason. Never a refusal. */
export type GivenReply = {
  readonly given: number
  readonly why: '' | 'already' | 'network' | 'board' | 'subject' | 'empty' | 'reviewer' | 'publisher'
}
/** The maximum number of rewards counted under a name in one UTC day; Infinity: lifted. */
export type Cap = {
  readonly name: string
  readonly most: number
  readonly why: 'network' | 'board' | 'reviewer' | 'publisher'
}
/**
 * `credit.reward`: for a review of `subject` by `reviewer` (identity id). Given once for that pair, at most `subject_max` times
 * per subject, and within the daily caps. Caps contain networks only as keyed hashes of the network and the day.
 */
export type RewardArgs = {
  readonly subject: string
  readonly reviewer: string
  readonly amount: number
  readonly subject_max: number
  readonly caps: readonly Cap[]
}

/** One movement of credits. Immutable. A hold is resolved exactly once, by a post or a void that names it. */
export type Posting = {
  /** 32 hex of SHA-256(work id or identity, transition, n). */
  readonly id: string
  /** 1 = credits, 2 = simulated. */
  readonly ledger: 1 | 2
  readonly type: 'hold' | 'post' | 'void' | 'direct'
  readonly code: number
  /** `user:<id>`, `escrow`, `fees`, `mint`, `rewards`. */
  readonly debit: string
  readonly credit: string
  /** Integer, at least 1. */
  readonly amount: number
  /** When it took effect, which may be before the time of its record. */
  readonly at: number
  /** For a post or void: the hold it resolves. */
  readonly hold?: string
  /** Number among all public postings, from 1 without gaps; absent if it is in no log. */
  readonly seq?: number
}

/** One recorded transition of a work. */
export type Step = {
  readonly transition: TransitionName
  readonly at: number
  /** The state after it. */
  readonly state: WorkState
  readonly fence: number
  readonly reason?: string
  readonly set: Partial<Changing>
  readonly postings: readonly Posting[]
}

/** Facts of every act that moves a work. */
export type StepFacts = {
  readonly work: string
  readonly steps: readonly Step[]
  /** For a public work: as in WorkArgs, of the author of the act, or of the requester if the act opens the work. */
  readonly from?: string
  /** Present on the act that opens it. */
  readonly begun?: Changing
}
/**
 * Facts of `work.open`: everything needed by a reader that never saw the reservation. `reserved`: number of its record in the
 * journal.
 */
export type OpenFacts = StepFacts & {
  readonly fixed: Fixed
  readonly begun: Changing
  readonly reserved: number
}
/** Facts of `work.create`, which only the market sees. */
export type ReserveFacts = {
  readonly work: string
  /** SHA-256 of the command, 64 hex. */
  readonly command: string
  readonly post: PostFacts
  readonly fixed: Omit<Fixed, 'is_public'>
  readonly begun: Changing
  readonly postings: readonly Posting[]
  readonly from?: string
}
/** Facts of `work.void`. `voids`: event id of the command that it voids, 32 hex. */
export type VoidFacts = { readonly work: string; readonly voids: string; readonly postings: readonly Posting[] }
/** Facts of `work.edit` (an edit is in progress) and of `work.edited`, which has `voids` if the room refused the edit. */
export type EditFacts = { readonly work: string; readonly edit: string; readonly post?: PostFacts }
/** Facts of `work.observe`: the market's new knowledge, and the resulting steps. */
export type ObserveFacts = StepFacts & Pick<ObserveArgs, 'event' | 'change'> & { readonly set: Partial<Changing> }
/** `wider` is absent if there is no enclosing network, or if an older release wrote this. */
export type WelcomeFacts = CreditFacts & {
  readonly identity: string
  readonly network: string
  readonly wider?: string
}
/** `counted`: names of its caps; older releases had none. */
export type RewardFacts = CreditFacts & {
  readonly subject: string
  readonly reviewer: string
  readonly counted?: readonly string[]
}
/** Facts that an act of the market may have. `voids`: a command that was voided. */
export type MarketFacts = {
  readonly work?: string
  readonly steps?: readonly Step[]
  readonly postings?: readonly Posting[]
  readonly voids?: string
  readonly from?: string
}

export function isOfMarket(record: BoardRecord): record is FactRecord<MarketFacts> {
  return record.type === RecordType.act && record.room === marketName
}

/** Whether the act moves a work or opens one. */
export function movesWork(act: FactRecord<MarketFacts>): act is FactRecord<StepFacts | OpenFacts> {
  const { work, steps = [] } = act.facts
  return work !== undefined && steps.length > 0
}

/** Facts of acts that move credits but no work. */
export type CreditFacts = { readonly postings: readonly Posting[] } & Readonly<Record<string, unknown>>
