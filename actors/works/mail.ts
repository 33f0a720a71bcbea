/**
 * The market's outbox: commands that a room has to answer, and transitions that a room does not know yet or whose notices are
 * not posted yet. It is built from the market's own acts, so a crash loses nothing. This file also makes the letters and the
 * notice texts, at the time they are sent.
 *
 * In the feed, which decides nothing, it only adds the transitions of public works to the changes that followers read.
 */

import { BoundedMap } from '../../storage/bounded-map.ts'
import { nowhere } from '../records/board.ts'
import type { Core, Parts, Projection, RecordPlace } from '../records/core.ts'
import { none } from '../records/event-index.ts'
import { boardHandle } from '../records/handles.ts'
import { internalLetter } from '../records/internal-operations.ts'
import { ActsOf, type BoardRecord, commandIn, commandSha, type FactRecord, type Signed } from '../records/record.ts'
import type { WriteLetter } from '../records/write.ts'
import type { RequestArgs, RequestVerdict, SentArgs, SignedNotice, TellArgs, TellLetter, TellReply } from './letters.ts'
import {
  type EditFacts,
  isOfMarket,
  type MarketFacts,
  movesWork,
  type ObserveFacts,
  type OpenFacts,
  type Posting,
  type ReserveFacts,
  type StepFacts,
} from './market/letters.ts'
import type { TransitionName } from './market/table.ts'
import { type Changing, finalStates, type Work } from './market/work.ts'

/** A command that its room has to answer, and where its record is. */
export type Ask = { readonly work: string; readonly kind: 'create' | 'edit'; readonly seq: number }

/** A record of the market with transitions of a work. */
export type Notification = {
  readonly work: string
  readonly seq: number
  /** Number of the first of its transitions, counted over the life of the work from 1. */
  readonly first: number
  /** Identity id of the worker concerned, or ''. */
  readonly worker: string
}

type Packed = readonly [
  asks: readonly Ask[],
  notifications: readonly Notification[],
  workers: readonly (readonly [work: string, worker: string])[],
  texts: readonly (readonly [work: string, seqs: readonly number[]])[],
  redactedActs: readonly number[],
]

const factsMax = 256

const asking: Readonly<Record<string, Ask['kind']>> = { 'work.create': 'create', 'work.edit': 'edit' }
const answering: Readonly<Record<string, Ask['kind']>> = {
  'work.open': 'create',
  'work.void': 'create',
  'work.edited': 'edit',
}

export class Mail implements Projection {
  readonly acts: Projection['acts'] = {
    'mail.sent': ({ facts }: FactRecord<SentArgs>) => {
      for (const seq of facts.seqs) {
        this.#notifications.delete(seq)
        this.#facts.delete(seq)
      }
    },
  }
  readonly #core: Core
  readonly #role: 'deciding' | 'reading'
  readonly #find: (work: string) => Work | undefined
  /** By the number of the record, in order. */
  readonly #asks = new Map<number, Ask>()
  readonly #notifications = new Map<number, Notification>()
  /** Facts of the newest of these records: they are delivered moments after they were made, so they need not be read again. */
  readonly #facts = new BoundedMap<number, StepFacts | OpenFacts>(factsMax)
  /** Work -> its current or last worker, while it is not settled. */
  readonly #workers = new Map<string, string>()
  /** Work -> records whose signed commands contain texts of its request. */
  readonly #texts = new Map<string, number[]>()
  /** Records whose signed commands contain a text that was permanently removed. */
  readonly #redactedActs: number[] = []
  /** Messages recorded for another actor since this thread started. */
  made = 0

  constructor(core: Core, role: 'deciding' | 'reading', find: (work: string) => Work | undefined) {
    this.#core = core
    this.#role = role
    this.#find = find
  }

  /** Records after the one with this number, in order, at most `max`. */
  asks(after: number, max: number): readonly Ask[] {
    return entriesAfter(this.#asks, after, max)
  }

  notifications(after: number, max: number): readonly Notification[] {
    return entriesAfter(this.#notifications, after, max)
  }

  /** The facts of the record; undefined if it must be read. */
  factsOf(seq: number): StepFacts | OpenFacts | undefined {
    return this.#facts.get(seq)
  }

  isOpen(seq: number): boolean {
    return this.#notifications.has(seq)
  }

  redactedActs(): readonly number[] {
    return this.#redactedActs
  }

  onAct(act: FactRecord, place: RecordPlace): void {
    if (!isOfMarket(act)) return
    if (this.#role === 'reading') return this.#show(act, place)
    const { work } = act.facts
    if (work === undefined) return
    const kind = asking[act.op]
    if (kind !== undefined) this.#ask({ work, kind, seq: place.seq })
    this.#answer(act, work)
    if (!movesWork(act)) return
    this.#addNotification(work, act.facts.steps.length, place.seq)
    this.#facts.set(place.seq, act.facts)
  }

  pack(): Packed {
    return [
      [...this.#asks.values()],
      [...this.#notifications.values()],
      [...this.#workers],
      [...this.#texts],
      this.#redactedActs,
    ]
  }

  restore([asks, notifications, workers, texts, redactedActs]: Packed): void {
    for (const ask of asks) this.#asks.set(ask.seq, ask)
    for (const each of notifications) this.#notifications.set(each.seq, each)
    for (const [work, worker] of workers) this.#workers.set(work, worker)
    for (const [work, seqs] of texts) this.#texts.set(work, [...seqs])
    this.#redactedActs.push(...redactedActs)
  }

  #ask(ask: Ask): void {
    this.#asks.set(ask.seq, ask)
    const texts = this.#texts.get(ask.work)
    if (texts === undefined) this.#texts.set(ask.work, [ask.seq])
    else texts.push(ask.seq)
    this.made++
  }

  #answer(act: FactRecord<MarketFacts>, work: string): void {
    const kind = answering[act.op]
    for (const ask of kind === undefined ? [] : this.#asks.values()) {
      if (ask.work !== work || ask.kind !== kind) continue
      this.#asks.delete(ask.seq)
      // What the room refused was never shown, and is not retained either.
      if (act.facts.voids !== undefined) this.#redact(work, [ask.seq])
    }
    if (observed.is(act) && act.facts.event === 'request' && act.facts.change === 'redacted')
      this.#redact(work, this.#texts.get(work) ?? [])
  }

  #redact(work: string, seqs: readonly number[]): void {
    this.#redactedActs.push(...seqs)
    const left = (this.#texts.get(work) ?? []).filter((seq) => !seqs.includes(seq))
    if (left.length > 0) this.#texts.set(work, left)
    else this.#texts.delete(work)
  }

  #addNotification(work: string, count: number, seq: number): void {
    const found = this.#find(work)!
    const worker = found.worker === '' ? (this.#workers.get(work) ?? '') : found.worker
    this.#notifications.set(seq, { work, seq, first: found.steps - count + 1, worker })
    // A former worker is concerned when their work is open again, but not by anything after that.
    if (found.worker === '' || finalStates.has(found.state)) this.#workers.delete(work)
    else this.#workers.set(work, worker)
    this.made++
  }

  #show(act: FactRecord<MarketFacts>, { change }: RecordPlace): void {
    const { board, changes } = this.#core
    if (!movesWork(act)) return
    const { work, steps } = act.facts
    for (const { state, at } of steps) {
      const slot = board.events.find(Buffer.from(work, 'hex'))
      const room = slot === none ? nowhere : board.events.room(slot)
      changes.add(`work.${state}`, { position: change, room, slot: nowhere, subject: work, at })
    }
  }
}

const observed = new ActsOf<ObserveFacts>('work.observe')

function entriesAfter<Each>(table: ReadonlyMap<number, Each>, after: number, max: number): Each[] {
  const found: Each[] = []
  for (const [seq, each] of table) {
    if (seq <= after) continue
    if (found.length === max) break
    found.push(each)
  }
  return found
}

type NoticeFacts = {
  /** Number of the transition, counted over the life of the work from 1. */
  readonly number: number
  readonly transition: TransitionName
  /** Unix seconds. */
  readonly at: number
  readonly fence: number
  readonly set: Partial<Changing>
  /** The reward, if the work begins; else 0. */
  readonly amount: number
  /** Credits that this transition paid to the worker. */
  readonly paid: number
  readonly simulated: boolean
  readonly deadline: number
}

/**
 * The board's notice in the thread of a work when its state changes. It uses only the board's own words: titles and reasons
 * come from strangers, and the board signs nothing of theirs (they are in work.history). The same transition always gives the
 * same text.
 */
function noticeText(facts: NoticeFacts): string {
  const practice = facts.simulated ? ' This is practice: its credits are worth nothing.' : ''
  return `${texts[facts.transition](facts)}${practice}`
}

const texts: Readonly<Record<TransitionName, (facts: NoticeFacts) => string>> = {
  create: ({ amount, deadline }) =>
    `Open: ${credits(amount)} in escrow for this work. Claim it with work.claim; a result is due before ${time(deadline)}.`,
  edit: () => 'The request has a new version: claim the newest one.',
  raise: ({ set }) => `The reward is now ${credits(set.amount ?? 0)}.`,
  cancel: () => 'Cancelled: the held credits were released.',
  request_gone: () => 'Cancelled because its request was removed: the held credits were released.',
  claim: ({ set, fence }) => `Claimed until ${time(set.claim_expires_at ?? 0)}, fence ${fence}.`,
  renew: ({ set }) => `The claim now runs until ${time(set.claim_expires_at ?? 0)}.`,
  release: () => 'Released by its worker: open again.',
  lapse: () => 'The claim expired: open again.',
  submit: submitted,
  accept: ({ paid }) => `Accepted: ${credits(paid)} paid to the worker.`,
  silence: ({ paid }) => `There was no review in time, so the result is accepted: ${credits(paid)} paid to the worker.`,
  silence_disputed: ({ set }) =>
    `There was no review in time, and the result has changed since it was submitted: disputed. ${ruledUntil(set)}`,
  revise: ({ set }) => `A revision was requested; it is due by ${time(set.claim_expires_at ?? 0)}.`,
  resubmit: submitted,
  revision_lapse: ({ set }) => `No revision was submitted in time: rejected. ${disputedUntil(set)}`,
  give_up: ({ set }) => `Given up by its worker: rejected. ${disputedUntil(set)}`,
  reject: ({ set }) => `Rejected; work.history shows the reason. ${disputedUntil(set)}`,
  dispute: ({ set }) => `Disputed by the worker. ${ruledUntil(set)}`,
  concede_reopen: () => 'Conceded by the worker: open again.',
  concede: () => 'Conceded by the worker: the held credits were released.',
  wish: () => 'The requester asked to reopen it: it reopens if the worker does not dispute.',
  undisputed_reopen: () => 'Not disputed in time: open again.',
  undisputed: () => 'Not disputed in time: the held credits were released.',
  rule_all: ({ paid }) => `Ruled for the worker: ${credits(paid)} paid.`,
  rule_none: () => 'Ruled for the requester: the held credits were released.',
  rule_split: ({ set, paid }) =>
    `Ruled ${set.percent ?? 0} percent for the worker: ${credits(paid)} paid, the rest was released.`,
  unruled_split: ({ paid }) =>
    `There was no ruling in time, so it is split: ${credits(paid)} paid to the worker, the rest was released.`,
  unruled: () => 'There was no ruling in time, so the rejection is final: the held credits were released.',
  expire: () => 'The deadline has passed without a result: the held credits were released.',
  confirm_claim: confirmed,
  confirm_revision: confirmed,
  confirm_result: confirmed,
  accept_unconfirmed: ({ paid }) => `Accepted: ${credits(paid)} paid to the worker.`,
  unconfirmed_claim: () => 'Not confirmed after a recovery of the board: open again.',
  unconfirmed_revision: ({ set }) => `Not confirmed after a recovery of the board: rejected. ${disputedUntil(set)}`,
  unconfirmed_result: ({ set }) => `Not confirmed after a recovery of the board: disputed. ${ruledUntil(set)}`,
}

function submitted({ set }: NoticeFacts): string {
  return `A result was submitted: ${set.result?.id ?? ''}. If there is no review before ${time(set.review_due ?? 0)}, it is accepted.`
}

function confirmed(): string {
  return 'Confirmed by its worker after a recovery of the board.'
}

function disputedUntil({ dispute_due: due = 0 }: Partial<Changing>): string {
  return `The worker may dispute it until ${time(due)}.`
}

function ruledUntil({ arbitration_due: due = 0 }: Partial<Changing>): string {
  return `A moderator of the room or the operator must rule before ${time(due)}; otherwise the dispute ends automatically.`
}

function credits(count: number): string {
  return count === 1 ? '1 credit' : `${count} credits`
}

function time(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`
}

/** Signs as the board; the same cause always gives the same bytes. */
export type BoardSign = (
  fields: { readonly operation: string } & Readonly<Record<string, string | number>>,
  cause: { readonly cause: string; readonly at: number },
) => { readonly sha: Uint8Array; readonly by: Signed }

/** The source for the market's letters. `record`: of its journal, by number. */
export type Source = { readonly state: Parts; readonly record: (seq: number) => BoardRecord }

/** Asks the room to accept the request, or a new version of it, on behalf of the identity that signed the command. */
export function requestLetter(
  { state, record }: Source,
  { work, kind, seq }: Ask,
): WriteLetter<RequestArgs, RequestVerdict> {
  const { author, by, facts } = asked.in(record(seq))
  const { proof_bits: proofBits, via, operator } = facts.post!
  const { room, reviewer } = state.market.find(work) ?? state.market.reservation(work)!.fixed
  const { key, sig, signed, for: delegation } = by!
  const command = commandIn(signed)
  const sha = commandSha(by!)
  const page = kind === 'create' ? (command.page ?? '') : ''
  const isPost = work === sha.toString('hex', 0, 16)
  const op = kind === 'edit' ? 'work.version' : isPost ? 'work.post' : 'work.mark'
  const args: RequestArgs = { work, reviewer, page, proofBits }
  return {
    ...internalLetter(op, room, Buffer.from(author).toString('hex'), args),
    id: sha.subarray(0, 16),
    sha,
    by: { key, sig, signed, ...(delegation === undefined ? {} : { for: delegation }) },
    via,
    operator,
  }
}

/** The state sent to a room, and the notices that it posts, one per transition. */
type RoomUpdate = {
  readonly room: string
  readonly tell: TellArgs
  readonly worker: string
  readonly notices: readonly NoticeFacts[]
}

const asked = new ActsOf<ReserveFacts | EditFacts>('work.create', 'work.edit')

function stepsIn(record: BoardRecord): StepFacts | OpenFacts {
  if (!isOfMarket(record) || !movesWork(record)) throw new Error('the record has no transition of a work')
  return record.facts
}

/** What to tell a room about one record of the market: the state of the work, and the facts for the notices. */
export function roomUpdateOf({ state, record }: Source, { work: id, seq, first, worker }: Notification): RoomUpdate {
  const facts = state.mail.factsOf(seq) ?? stepsIn(record(seq))
  const { steps, begun } = facts
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
  return { room: work.room, tell, worker, notices }
}

/** A post by the board in the work's thread, addressed to its worker; because it is a reply, the requester gets it too. */
export function noticeOf(
  sign: BoardSign,
  { room, tell, worker }: RoomUpdate,
  page: string,
  facts: NoticeFacts,
): SignedNotice {
  const text = noticeText(facts)
  const fields = { operation: 'post', handle: boardHandle, room, page, text, kind: 'notice', reply_to: tell.work }
  const cause = { cause: `${tell.work}:${facts.number}`, at: facts.at }
  return { ...sign(worker === '' ? fields : { ...fields, to: worker }, cause), page }
}

export function tellLetter(
  { room, tell }: RoomUpdate,
  board: string,
  notice?: SignedNotice,
): WriteLetter<TellLetter, TellReply> {
  const args: TellLetter = notice === undefined ? tell : { ...tell, notice }
  return internalLetter('work.tell', room, board, args)
}

function sumOf(postings: readonly Posting[], counts: (posting: Posting) => boolean): number {
  return postings.reduce((sum, posting) => (counts(posting) ? sum + posting.amount : sum), 0)
}
