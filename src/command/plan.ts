/**
 * Plans: how each write operation is carried out. A plan says which actor decides, what it is given, and what the answer shows; the path of
 * a write is the same for all (src/board/writes.ts).
 */

import type { FactsOf } from '../../actors/deciders.ts'
import type { Refusal } from '../../actors/kernel/refusals.ts'
import type { Timers } from '../../actors/kernel/timers.ts'
import type { AnyReadName, ReadName, WriteName } from '../../actors/operations.ts'
import type { ShardAnswer } from '../../actors/records/answer.ts'
import type { ShownReadName } from '../../actors/records/internal-operations.ts'
import type { Facts, Signed } from '../../actors/records/record.ts'
import type { ArgsOf, ReplyOf } from '../../actors/records/write.ts'
import type { Reply } from '../format/reply.ts'
import type { Random } from '../platform.ts'
import type { Charge } from '../rates/meters.ts'
import type { Throttle } from '../rates/throttle.ts'
import type { AnswerOf, ReadAnswer, ReadCall, ReadRequest, Share } from '../reads/read.ts'
import type { Verdict } from '../verify/verifier.ts'
import type { LiveFacts } from './live-facts.ts'
import type { NoAnswer } from './ports.ts'
import type { Verified } from './verified.ts'

/** The actor's reply; for a retry, the first one. */
export type Decided<Name extends WriteName = never> = {
  readonly at: number
  readonly isPublic: boolean
  readonly facts: [Name] extends [never] ? Facts : FactsOf<Name>
  /** For a retry: hex SHA-256 of the accepted command, which may be another one. */
  readonly sha?: string
}

/** Id (32 hex) of what the accepted command created. */
export function idOf({ sha }: Pick<Verified, 'sha'>, decided: Pick<Decided, 'sha'>): string {
  return (decided.sha ?? sha.toString('hex')).slice(0, 32)
}

/** An actor by name, or the thing (an event, document, blob, or receiver by its 32-hex id) whose actor must be found. */
export type Addressee = { readonly actor: string } | { readonly thing: string; readonly field: string }

/** Addresses the actor that has the event of the command. */
export function toEvent({ command }: { readonly command: { readonly event_id: string } }): Addressee {
  return { thing: command.event_id, field: 'event_id' }
}

/** What the answer shows besides the receipt: what a read returns now, or these values. */
export type Shown =
  | { readonly read: ReadName | ShownReadName; readonly args: Readonly<Record<string, string | number>> }
  | { readonly values: Readonly<Record<string, unknown>> }
  /** Known later; `give` is called once. */
  | { readonly later: (give: Give) => void }

/** Takes values and additions to the receipt, or a complete reply; undefined drops the answer. */
export type Give = (
  found:
    | { readonly values: Readonly<Record<string, unknown>>; readonly receipt: Readonly<Record<string, unknown>> }
    | Reply
    | undefined,
) => void

/** What a plan may use. Capabilities declare here what their plans need: attachments their files, webhooks their service. */
export interface Services {
  readonly random: Random
  readonly soon: Timers['soon']
  readonly news: LiveFacts
  readonly throttle: Throttle
  readonly read: ReadCall
  readonly verify: (signature: Buffer, publicKey: Buffer, message: Buffer, callback: (verdict: Verdict) => void) => void
  /** Secret of this board, for deriving names that nobody else can compute. */
  readonly secret: Buffer
  /** Calls of tools: prepares what their actor is given, and delivers the result of an accepted call. */
  readonly calls: {
    prepare(verified: Verified<'tools.call'>, pass: (found: Found) => void): void
    finish(verified: Verified<'tools.call'>, decided: Decided<'tools.call'>, isDuplicate: boolean, give: Give): void
  }
  /** Probes, and rewards for reviews. */
  readonly tools: {
    answer(verified: Verified<'tools.probe'>, decided: Decided<'tools.probe'>, isDuplicate: boolean, give: Give): void
    reviewed(subject: string, author: string, address: string): void
  }
  /** Called when an identity has posted in public. */
  readonly welcome: (identity: string, address: string) => void
  /** Identity ids of the operators. */
  readonly operators: ReadonlySet<string>
  /** Identity id of the board itself. */
  readonly boardIdentity: string
  /** Recovery epoch. */
  readonly generation: string
  /** Whether rates and quotas are enforced. */
  readonly limitsOn: boolean
}

export type Plan<Name extends WriteName> = {
  to(verified: Verified<Name>, services: Services): Addressee
  /** Whether these writes are exempt from rates and daily bytes. */
  unmetered?(verified: Verified<Name>, services: Services): boolean
  /** Refuses before an actor is asked; undefined if nothing is wrong. */
  check?(verified: Verified<Name>): Refusal | undefined
  /** Arguments that the decider needs and that are not in the letter. */
  args?(verified: Verified<Name>, services: Services): Partial<ArgsOf<Name>>
  /** Queries other parts before the actor is asked. `pass` takes a refusal, or more args; `undefined` drops the answer. */
  ask?(
    verified: Verified<Name>,
    services: Services,
    pass: (found: Found<Partial<ArgsOf<Name>>, ReplyOf<Name>>) => void,
  ): void
  /** Called when the write is accepted and not yet answered. */
  onAccepted?(verified: Verified<Name>, decided: Decided<Name>, services: Services, actor: string): void
  /** Called when the result is in the public log, including for a retry. */
  onLogged?(verified: Verified<Name>, services: Services): void
  /** `args`: what the actor was given this time; for a retry, the first args may have differed. */
  show(
    verified: Verified<Name>,
    decided: Decided<Name>,
    actor: string,
    isDuplicate: boolean,
    args: ArgsOf<Name>,
    services: Services,
  ): Shown
}

/** A plan of any operation. */
export type AnyPlan = {
  to(verified: Verified, services: Services): Addressee
  unmetered?(verified: Verified, services: Services): boolean
  check?(verified: Verified): Refusal | undefined
  args?(verified: Verified, services: Services): object
  ask?(verified: Verified, services: Services, pass: (found: Found) => void): void
  onAccepted?(verified: Verified, decided: Decided, services: Services, actor: string): void
  onLogged?(verified: Verified, services: Services): void
  show(
    verified: Verified,
    decided: Decided,
    actor: string,
    isDuplicate: boolean,
    args: object,
    services: Services,
  ): Shown
}

/** A read that one actor answers completely; only its shard is asked. */
type HomePlan = { readonly actor: (request: ReadRequest) => string }

/** The feed and every shard have a share of the answer; `gather` merges them in this order. */
type SharePlan<Part> = {
  gather(parts: readonly Part[], until: number): ReadAnswer
  /** Whether this request is answered from shares; default: all requests of this name are. */
  isShared?(request: ReadRequest): boolean
  /** The shards of a suspended reader are asked too: their shares have more than what is in private rooms, which they then leave out. */
  readonly isForSuspended?: true
  /** First queries what every share depends on: `pass` takes the request to send, or the final answer if there is nothing to share. */
  ask?(request: ReadRequest, read: ReadCall, pass: (found: ReadRequest | ReadAnswer | NoAnswer) => void): void
}

/** Where a read is answered. One without a plan is answered by the feed, else by the shard of its room, or by whichever shard has it. */
export type ReadPlan<Part = unknown> = HomePlan | SharePlan<Part>
/** By the name of the read. */
export type ReadPlans = { readonly [Name in AnyReadName]?: ReadPlan<AnswerOf<Name>> }
/** Reads whose function returns a share of a list; each has a plan that merges the shares. */
export type SharedReadName = {
  [Name in AnyReadName]: [AnswerOf<Name>] extends [Share] ? Name : never
}[AnyReadName]

export type Found<Args extends object = object, Reply extends Facts = Facts> =
  | { readonly refusal: Refusal }
  | Asked<Args, Reply>
  | undefined

export type Asked<Args extends object = object, Reply extends Facts = Facts> = {
  readonly args: Args
  /** What the record stores of the signed command, if not all of it. */
  readonly by?: Signed
  /** If this charge is over its limit, the actor refuses with these words. */
  readonly limit?: { readonly words: string; readonly charge: Charge }
  /** Receives the actor's answer, whatever it is, before any other caller. */
  settle?(answer: ShardAnswer<Reply> | NoAnswer): void
}
