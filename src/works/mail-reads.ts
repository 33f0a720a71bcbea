/**
 * A shard's undelivered messages about works: read by src/works/work-mail.ts, never by a client, or handed to it
 * after a turn (src/threads/outbox.ts). One page of each outbox, oldest first, after what was taken already: it is recorded
 * until it is delivered, but rendered once.
 */

import { type Act, commandIn, commandSha, type Delegated, fromFrame } from '../../actors/record.ts'
import type { Observation, TellArgs } from '../../actors/works/letters.ts'
import type { Ask, Told } from '../../actors/works/mail.ts'
import type { OpenFacts, Posting, StepFacts } from '../../actors/works/market/letters.ts'
import { finalStates } from '../../actors/works/market/work.ts'
import { ok, type ReadAnswer, type ReadContext, type ReadRequest, type Reads, unending } from '../reads/read.ts'
import type { NoticeFacts } from './notice-texts.ts'

export const worksMailReads = { 'works.mail': mail, 'works.unsettled': unsettled } satisfies Reads

const pageMax = 128

/** A command that its room has to answer, with all that a letter needs. Bytes in base64. */
export type AskJson = Ask & {
  readonly room: string
  readonly page: string
  readonly reviewer: string
  readonly author: string
  readonly key: string
  readonly sig: string
  readonly signed: string
  /** Where a delegate signed. */
  readonly for?: { readonly id: string; readonly key: string; readonly sig: string; readonly signed: string }
  /** 64 hex. */
  readonly sha: string
  readonly proof_bits: number
  readonly via: string
  readonly operator: boolean
}

/** Transitions that a room has to learn of, and the notices of them. */
export type ToldJson = {
  readonly seq: number
  readonly work: string
  readonly room: string
  readonly tell: TellArgs
  readonly worker: string
  readonly notices: readonly NoticeFacts[]
}

export type MailJson = {
  readonly asks: readonly AskJson[]
  readonly told: readonly ToldJson[]
  readonly observations: readonly (Observation & { readonly room: string })[]
  /** After this page there are more asks or transitions. */
  readonly more: boolean
  /** There are more observations: they are on the next page when those of this one are delivered. */
  readonly unheard: boolean
}

/** What was bound and is not known to be taken. */
export type UnsettledJson = readonly { readonly work: string; readonly command: string; readonly room: string }[]

/** Numbers of the newest records that were taken. */
export type Taken = { readonly asks: number; readonly told: number }

export const nothingTaken: Taken = { asks: 0, told: 0 }

export function takenWith({ asks, told }: Taken, mail: Pick<MailJson, 'asks' | 'told'>): Taken {
  return {
    asks: Math.max(asks, mail.asks.at(-1)?.seq ?? 0),
    told: Math.max(told, mail.told.at(-1)?.seq ?? 0),
  }
}

function mail(context: ReadContext, { args }: ReadRequest): ReadAnswer {
  return ok(mailBehind(context, { asks: Number(args.asks), told: Number(args.told) }), { until: unending })
}

export function mailBehind(context: ReadContext, taken: Taken): MailJson {
  const { state } = context
  const asks = state.mail.asks(taken.asks, pageMax)
  const told = state.mail.told(taken.told, pageMax)
  const observations = state.bound.unheard()
  return {
    asks: asks.map((ask) => askJson(context, ask)),
    told: told.map((each) => toldJson(context, each)),
    observations: observations.slice(0, pageMax).map((each) => ({ ...each, room: roomOf(context, each.work) })),
    more: Math.max(asks.length, told.length) === pageMax,
    unheard: observations.length > pageMax,
  }
}

function unsettled(context: ReadContext): ReadAnswer {
  const found = context.state.bound.unsettled()
  const json: UnsettledJson = found.map(({ work, command }) => ({ work, command, room: roomOf(context, work) }))
  return ok(json)
}

function roomOf({ board }: ReadContext, work: string): string {
  return board.roomList[board.events.room[board.events.find(Buffer.from(work, 'hex'))]!]!.name
}

/** What cannot be seen in the signed bytes, as the market's record keeps it. */
type PostFacts = { readonly proof_bits: number; readonly via: string; readonly operator: boolean }

function askJson({ state, frame }: ReadContext, ask: Ask): AskJson {
  const { author, by, facts } = fromFrame(frame(0, ask.seq)) as Act
  const { proof_bits, via, operator } = facts.post as PostFacts
  const { room, reviewer } = (state.market.find(ask.work) ?? state.market.reservation(ask.work)!.fixed) as {
    room: string
    reviewer: string
  }
  const command = commandIn(by!.signed)
  return {
    ...ask,
    room,
    reviewer,
    page: ask.kind === 'create' ? (command.page ?? '') : '',
    author: Buffer.from(author).toString('hex'),
    key: base64(by!.key),
    sig: base64(by!.sig),
    signed: base64(by!.signed),
    ...(by!.for === undefined ? {} : { for: delegatedJson(by!.for) }),
    sha: commandSha(by!).toString('hex'),
    proof_bits,
    via,
    operator,
  }
}

function toldJson({ state, frame }: ReadContext, { work: id, seq, first, worker }: Told): ToldJson {
  const facts = state.mail.factsOf(seq) ?? ((fromFrame(frame(0, seq)) as Act).facts as StepFacts)
  const { steps } = facts
  const work = state.market.find(id)!
  const tell: TellArgs = {
    work: id,
    n: seq,
    state: work.state,
    live: !finalStates.has(work.state),
    requester: work.requester,
    reviewer: work.reviewer,
    worker: work.worker,
    fence: work.fence,
    result: work.result?.id ?? '',
    sha256: work.result?.sha256 ?? '',
    states: steps.map(({ state: each, at }) => [each, at]),
  }
  const { begun } = facts as Partial<OpenFacts>
  const notices = steps.map(({ transition, at, fence, set, postings }, index) => ({
    number: first + index,
    transition,
    at,
    fence,
    set,
    amount: begun?.amount ?? 0,
    paid: sumOf(postings, (posting) => posting.type === 'direct' && posting.credit === `user:${worker}`),
    simulated: work.simulated,
    deadline: work.deadline,
  }))
  return { seq, work: id, room: work.room, tell, worker, notices }
}

function sumOf(postings: readonly Posting[], counts: (posting: Posting) => boolean): number {
  return postings.reduce((sum, posting) => (counts(posting) ? sum + posting.amount : sum), 0)
}

function delegatedJson({ id, key, sig, signed }: Delegated): NonNullable<AskJson['for']> {
  return { id: base64(id), key: base64(key), sig: base64(sig), signed: base64(signed) }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}
