/**
 * What is said to the market, and what it records. The contract in words stands at the head of market.ts.
 *
 * Commands of people arrive as letters of their own operation. What the board says by itself has names that no operation has,
 * and no nonce: a repetition of it is recognized by its content.
 */

import type { ActorRefusal, RefusalCode } from '../../kernel/refusals.ts'
import type { WorkState } from '../../records/change-kinds.ts'
import { type BoardRecord, type FactRecord, RecordType } from '../../records/record.ts'
import type { TransitionName } from './table.ts'
import type { Changing, Eligibility, Fixed, Terms } from './work.ts'

/** Name of the one actor that decides over credits and works. */
export const marketName = '@market'

/** Counts that one identity may have at a time; Infinity where the operator has lifted them. */
export type MarketLimits = {
  readonly claims: number
  readonly holds: number
  /** The highest reward of one work, raised or not. */
  readonly reward: number
}

/** How the signer stands to the work's room, as its shard says; absent where the shard was not asked. */
export type Standing = {
  /** May read the room. */
  readonly reads: boolean
  /** May reply there now, by its policy. */
  readonly replies: boolean
  /** Owner or moderator of it, or the operator where it is public. */
  readonly moderates: boolean
}

/** A result as the room has bound it: a visible signed reply to the request, in its room. */
export type BoundResult = {
  /** 32 hex. */
  readonly id: string
  /** Identity id. */
  readonly author: string
  /** 32 hex: the work, or a version of its request. */
  readonly reply_to: string
  readonly sha256: string
  /** Why it cannot be a result; the market refuses with it once the fence is good. */
  readonly fault?: {
    readonly code: RefusalCode
    readonly message: string
    readonly field?: string
  }
}

/** What the room needs to take the text of a command, and cannot see in the signed bytes. */
export type PostFacts = { readonly proof_bits: number; readonly via: string; readonly operator: boolean }

/** Args of every command about a work, as the plan gives them. Absent: nothing said. */
export type WorkArgs = {
  readonly work: string
  readonly generation: string
  /** `amount` of the command: a fence, or an added reward. */
  readonly amount: number
  readonly reason: string
  readonly ttl: number
  readonly limits: MarketLimits
  readonly standing?: Standing
  /** 32 hex: the reply that is handed in. */
  readonly result?: string
  readonly bound?: BoundResult
  readonly version_id?: string
  readonly result_sha256?: string
  readonly accept_changed?: boolean
  readonly percent?: number
  /** Of `work.edit`: bits of work that its proof shows. */
  readonly proof_bits?: number
  /** Keyed hash of this work and the signer's network; '' or absent: not known. */
  readonly from?: string
}

/** Args of `work.create`: the reservation. */
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
  /** A delegate asks for what all will read; for others it is not known, and not needed. */
  readonly seen: boolean
  readonly terms: Terms
  /** Of the reward, held on top of it. */
  readonly fee: number
  /** Seconds from its making to its deadline. */
  readonly lifetime: number
  /** Bits of work that the proof of the command shows. */
  readonly proof_bits: number
  readonly limits: MarketLimits
  /** As in WorkArgs. */
  readonly from?: string
}

/** `work.open`: the room has taken the request. */
export type OpenArgs = {
  readonly work: string
  readonly generation: string
  readonly room: string
  readonly is_public: boolean
  /** First 32 hex of the command that made the newest version of the request. */
  readonly version: string
  readonly versions: number
}
/** `work.void`: the room has refused it; the hold goes back, and a retry of the command gets this refusal again. */
export type VoidArgs = {
  readonly work: string
  readonly refusal: {
    readonly code: ActorRefusal['code']
    readonly message: string
    readonly field?: string
  }
}
/** `work.edited`: the room has taken a new version, or refused it. `edit`: id of the work.edit command. */
export type EditedArgs = {
  readonly work: string
  readonly generation: string
  readonly edit: string
  readonly taken: boolean
}
/** `work.observe`: what became of a marked event. `n` counts the room's messages about this work, from 1; each is applied once. */
export type ObserveArgs = {
  readonly work: string
  readonly n: number
  readonly event: 'request' | 'result'
  readonly change: 'edited' | 'hidden' | 'restored' | 'redacted'
  /** `author`: its author took it away or changed it; `other`: a moderator, the operator, screening. */
  readonly by: 'author' | 'other'
  /** Of a result that was edited: its hash now. */
  readonly sha256?: string
  /** 32 hex of the result that it is about, which may be an earlier one where the room is in another shard. */
  readonly result?: string
}
/** `work.tick`: what is due takes effect. Answers {written, next}: works written, and when the next is due (0: none is known). */
export type TickArgs = {
  readonly generation: string
  readonly works_max: number
}
export type TickReply = {
  readonly written: number
  readonly next: number
  readonly at: number
}
/** `market.begin`: sent at every start, before any caller is answered. Funds the rewards at the very first. */
export type BeginArgs = {
  readonly generation: string
  readonly rewards: number
}
/**
 * `credit.welcome`: `network` is a keyed hash of the client's network and the day, `wider` one of what is above that network ('':
 * nothing is). Limits Infinity: lifted.
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
/** Answer of `credit.welcome` and `credit.reward`: what was given; 0 with why not. Never a refusal. */
export type GivenReply = {
  readonly given: number
  readonly why: '' | 'already' | 'network' | 'board' | 'subject' | 'empty' | 'reviewer' | 'publisher'
}
/** At most so many rewards of one UTC day are counted under a name; Infinity: lifted. */
export type Cap = {
  readonly name: string
  readonly most: number
  readonly why: 'network' | 'board' | 'reviewer' | 'publisher'
}
/**
 * `credit.reward`: about a review of `subject` by `reviewer` (identity id). Once for both, at most `subject_max` a subject, and no
 * more of a day than the caps let. Networks are in them by keyed hashes of the network and the day.
 */
export type RewardArgs = {
  readonly subject: string
  readonly reviewer: string
  readonly amount: number
  readonly subject_max: number
  readonly caps: readonly Cap[]
}

/** One movement of credits. Immutable; a hold is resolved exactly once, by a post or a void that names it. */
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
  /** When it took effect, which may lie before the record that says so. */
  readonly at: number
  /** Of a post or void: the hold it resolves. */
  readonly hold?: string
  /** Number among all public postings, from 1 without gaps; absent: it is in no log. */
  readonly seq?: number
}

/** One transition of a work, as it is recorded. */
export type Step = {
  readonly transition: TransitionName
  readonly at: number
  /** After it. */
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
  /** Of a public work: as in WorkArgs, of the author of the act, or of who asked for the work where this opens it. */
  readonly from?: string
  /** Of the act that opens it. */
  readonly begun?: Changing
}
/** Facts of `work.open`: all that a reader needs who never saw the reservation. `reserved`: number of its record in the journal. */
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
/** Facts of `work.void`. `voids`: event id of the command that is void with it, 32 hex. */
export type VoidFacts = { readonly work: string; readonly voids: string; readonly postings: readonly Posting[] }
/** Facts of `work.edit` (an edit is under way) and of `work.edited`, which has `voids` where the room refused it. */
export type EditFacts = { readonly work: string; readonly edit: string; readonly post?: PostFacts }
/** Facts of `work.observe`: what the market knows now, and what follows from it. */
export type ObserveFacts = StepFacts & Pick<ObserveArgs, 'event' | 'change'> & { readonly set: Partial<Changing> }
/** Without `wider`: nothing is above the network, or an older release wrote it. */
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
/** What the facts of an act of the market may have. `voids`: a command that came to nothing. */
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

/** The act moves a work, or is the one that opens it. */
export function movesWork(act: FactRecord<MarketFacts>): act is FactRecord<StepFacts | OpenFacts> {
  const { work, steps = [] } = act.facts
  return work !== undefined && steps.length > 0
}

/** Facts of what moves credits and no work. */
export type CreditFacts = { readonly postings: readonly Posting[] } & Readonly<Record<string, unknown>>
