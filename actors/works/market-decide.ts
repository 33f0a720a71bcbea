/**
 * Decisions about works: checks each command against the transition table. Pure functions of the state; the signer was verified
 * earlier, and what only the room knows comes in the letter.
 *
 * The order of the checks: whether the signer can see such a work; whether the signer may do this; whether the state allows it;
 * the guards of the row. A worker's fence is checked before anything else: the holder of an old fence cannot change anything.
 */

import { ownKey } from '../records/record.ts'
import {
  accept,
  type Deciders,
  type Decision,
  preceded,
  type Refused,
  refuse,
  type Situation,
  type WriteLetter,
} from '../records/write.ts'
import { mayTouchOthers } from '../rooms/policy.ts'
import { withRoomFacts } from './decide.ts'
import { after, stateOf, stepOf } from './market/clock.ts'
import { codes, postingsOf } from './market/ledger.ts'
import type {
  EditedArgs,
  ObserveArgs,
  OpenArgs,
  PostFacts,
  ReserveArgs,
  Step,
  VoidArgs,
  WorkArgs,
} from './market/letters.ts'
import type { Market } from './market/market.ts'
import { holds, type Known, type Objection, objectionTo, unaffordable } from './market/rows.ts'
import { type Actor, type Transition, transitionNamed, transitions, transitionsOn } from './market/table.ts'
import { Turn } from './market/turn.ts'
import { type Fixed, initialState, partiesOf, type Result, type Work } from './market/work.ts'

/** Fee on a reward, and bond for a dispute about it: configuration, passed with the command. */
type Rates = { readonly fee_basis_points: number; readonly bond_percent: number }

type Case = {
  readonly op: string
  readonly market: Market
  readonly turn: Turn
  readonly letter: WriteLetter
  readonly args: WorkArgs & Rates
  readonly now: number
}

/** The command's own step, or two if a claim comes with its result. */
function decideWork(op: string) {
  return (situation: Situation, letter: WriteLetter<WorkArgs & Rates>) => {
    const { state, now } = situation
    const { market } = state
    const given = letter.args
    const stored = market.find(given.work)
    if (stored === undefined) return unknown(given.work)
    const { args, records } = withRoomFacts(situation, letter, stored.room, given)
    if (!mayKnow(stored, letter.author, args)) return unknown(args.work)
    const turn = new Turn(market, now)
    turn.bringUp(stored, letter.author)
    const found: Case = { op, market, turn, letter, args, now }
    const first = nextStep(found, turn.work(stored))
    if ('ok' in first) return first
    const { from = '' } = args
    const more = from !== '' && stored.is_public ? { from } : {}
    if (op !== 'work.claim' || args.bound === undefined)
      return preceded(records, turn.finish(letter, stored, [first], more))
    const second = nextStep({ ...found, op: 'work.submit' }, after(turn.work(stored), first), first.fence)
    return 'ok' in second ? second : preceded(records, turn.finish(letter, stored, [first, second], more))
  }
}

export function unknown(work: string): Refused {
  return refuse('not_found', `there is no work ${work}`, 'event_id')
}

/** A work in a private room is visible only to its parties and to those who can read the room. */
function mayKnow(work: Work, author: string, { standing }: Pick<WorkArgs, 'standing'>): boolean {
  return work.is_public || standing?.reads === true || partiesOf(work).includes(author)
}

/** `fence`: for a second step, the one that the first step has assigned. */
function nextStep(found: Case, work: Work, fence = found.args.amount): Step | Refused {
  const { op, market, letter, args, now } = found
  const rows = transitionsOn.get(op)!
  const barred = barredFrom(rows[0]!.by, work, found, fence)
  if (barred !== undefined) return refuse(...barred)
  const state = stateOf(work, market.epoch)
  const { author } = letter
  const asking = { work, at: now, author, args }
  const row = rows.find((each) => each.from.includes(state) && holds(each, asking))
  if (row === undefined) return refuse(...wrongState(op, state, rows, work))
  const doing = {
    at: now,
    // The market's generation comes first: the command's may be one that the market has not heard of yet.
    generation: market.epoch.generation || args.generation,
    author,
    key: Buffer.from(ownKey(letter.by)).toString('base64url'),
    ttl: args.ttl,
    amount: args.amount,
    reason: args.reason,
    feeOf: (amount: number) => Math.floor((amount * args.fee_basis_points) / 10_000),
    bond: Math.max(1, Math.floor((work.amount * args.bond_percent) / 100)),
    ...(args.percent === undefined ? {} : { percent: args.percent }),
    ...(args.bound === undefined ? {} : { bound: args.bound }),
  }
  const objection = objectionTo(row, { ...asking, known: knownTo(found, work, row, doing) })
  if (objection !== undefined) return refuse(...objection)
  return stepOf(row, work, doing)
}

function staleFence(work: Work, fence: number): string {
  if (work.fence !== 0) return `the current claim of this work is ${work.fence}, not ${fence}`
  return fence > work.fence_counter
    ? `nobody holds this work now, and it has had no claim ${fence}: make one with work.claim`
    : `nobody holds this work now: claim ${fence} has ended; make a new one with work.claim`
}

/** Why this signer may not do this, whatever the state is. */
function barredFrom(by: Actor, work: Work, { letter, args }: Case, fence: number): Objection | undefined {
  const { author } = letter
  switch (by) {
    case 'requester':
      return author === work.requester
        ? undefined
        : ['forbidden', 'only the requester of this work can do this', 'event_id']
    case 'requester or moderator':
      return author === work.requester || (args.standing?.moderates === true && mayTouchOthers(letter))
        ? undefined
        : ['forbidden', 'only the requester of this work or a moderator of its room can do this', 'event_id']
    case 'worker':
      if (fence !== work.fence) return ['stale_fence', staleFence(work, fence), 'amount']
      return author === work.worker
        ? undefined
        : ['forbidden', 'only the worker who claimed this work can do this', 'event_id']
    case 'reviewer':
      return author === work.reviewer
        ? undefined
        : ['not_the_reviewer', 'only the reviewer of this work can do this', 'event_id']
    case 'reviewer or requester':
      return author === work.reviewer || author === work.requester
        ? undefined
        : ['not_the_reviewer', 'only the reviewer or the requester of this work can do this', 'event_id']
    case 'arbiter':
      if (partiesOf(work).includes(author))
        return ['forbidden', 'you are a party to this work: someone else must rule', 'event_id']
      return args.standing?.moderates === true
        ? undefined
        : ['forbidden', 'only a moderator of the room, or in a public room an operator, can rule', 'event_id']
    case 'claimant':
    case 'system':
      return undefined
  }
}

/** Operations that only make sense before the deadline get their own refusal after it. */
const bounded: ReadonlySet<string> = new Set(['work.claim', 'work.renew', 'work.submit'])

function wrongState(op: string, state: string, rows: readonly Transition[], work: Work): Objection {
  if (bounded.has(op) && work.state === 'expired')
    return ['expired', `the deadline of this work passed at ${work.deadline}`, 'event_id']
  const from = [...new Set(rows.flatMap((row) => row.from))].join(' or ')
  return [
    'wrong_state',
    `this work is ${state}, and ${op} needs one that is ${from}; ${nextOperations(state)}`,
    'event_id',
  ]
}

/** Completes a sentence that names a state, with the operations that lead out of it. */
function nextOperations(state: string): string {
  const rows = transitions.filter(({ from, on }) => on.startsWith('work.') && from.some((each) => each === state))
  const next = [...new Set(rows.map(({ on }) => on))]
  return next.length === 0 ? 'its state is final' : `possible operations: ${next.join(', ')}`
}

function knownTo(
  { market, turn, letter, args, now }: Case,
  work: Work,
  row: Transition,
  doing: { bond: number; feeOf: (amount: number) => number },
): Known {
  const { author } = letter
  const live = [...market.working(author)].map((each) => turn.work(each)).filter(({ worker }) => worker === author)
  const claims = live
    .filter(({ state }) => state === 'claimed' || state === 'revision')
    .map(({ claim_expires_at }) => Math.max(now + 1, claim_expires_at))
    .sort((a, b) => a - b)
  const raised = work.amount + args.amount
  return {
    available: turn.available(author),
    claims,
    newcomer: market.isNewcomer(author, work.id),
    cost: row.name === 'raise' ? raised + doing.feeOf(raised) - work.amount - work.fee : doing.bond,
    limits: args.limits,
  }
}

export const workDeciders = {
  'work.raise': decideWork('work.raise'),
  'work.cancel': decideWork('work.cancel'),
  'work.claim': decideWork('work.claim'),
  'work.renew': decideWork('work.renew'),
  'work.release': decideWork('work.release'),
  'work.submit': decideWork('work.submit'),
  'work.accept': decideWork('work.accept'),
  'work.revise': decideWork('work.revise'),
  'work.reject': decideWork('work.reject'),
  'work.dispute': decideWork('work.dispute'),
  'work.concede': decideWork('work.concede'),
  'work.reopen': decideWork('work.reopen'),
  'work.rule': decideWork('work.rule'),
} satisfies Deciders

/** Holds the credits; the room is asked next. */
const reserve = ({ state: { market }, now }: Situation, letter: WriteLetter<ReserveArgs>) => {
  const args = letter.args
  const { work: id, amount, limits, fee, terms } = args
  if (market.find(id) !== undefined || market.reservation(id) !== undefined)
    return refuse('conflict', `this request already belongs to a work: work.get shows ${id}`, 'event_id')
  const turn = new Turn(market, now)
  turn.bringUp(undefined, letter.author)
  if (args.reviewer !== '' && args.reviewer_key === '')
    return refuse(
      'not_found',
      `"reviewer" in data is not an identity that this board knows: ${args.reviewer}`,
      'data.reviewer',
    )
  const live = market.holding(letter.author) - turn.ended(letter.author)
  if (live >= limits.holds) {
    const message = `you have ${live} works that are not settled, which is the limit: settle one first (work.accept, work.cancel)`
    return refuse('quota_exhausted', message, undefined, Math.max(1, (market.nextDue || now + 60) - now))
  }
  const costs = unaffordable(args.simulated ? 0 : amount + fee, turn.available(letter.author))
  if (costs !== undefined) return refuse(...costs)
  const key = Buffer.from(ownKey(letter.by)).toString('base64url')
  const fixed: Omit<Fixed, 'is_public'> = {
    id,
    room: args.room,
    title: args.title,
    capabilities: args.capabilities,
    simulated: args.simulated,
    eligibility: args.eligibility,
    requester: letter.author,
    requester_key: key,
    reviewer: args.reviewer === '' ? letter.author : args.reviewer,
    reviewer_key: args.reviewer === '' ? key : args.reviewer_key,
    terms,
    created_at: now,
    deadline: now + args.lifetime,
    held_at: now,
  }
  // Named after the command: a request that was refused once may become a work later, by another command.
  const command = Buffer.from(letter.sha).toString('hex')
  const cause = `create ${command}`
  const moved = { ...fixed, amount, fee, worker: '', hold: '', bond: '', bond_amount: 0 }
  const postings = postingsOf(transitionNamed.create.postings, moved, { cause, at: now })
  const hold = postings.find(({ code }) => code === codes.hold)!.id
  const begun = initialState('', args.generation, amount, fee, hold)
  const decision = turn.decide(letter, {
    op: letter.op,
    facts: { work: id, command, post: postOf(letter, args.proof_bits), fixed, begun, postings, ...fromOf(args) },
    isPublic: false,
  })
  return { ...decision, leadsToPublic: args.seen }
}

/** The room has accepted the request: the work is open, and readers can see it from now on. */
const open = ({ state: { market }, now }: Situation, letter: WriteLetter<OpenArgs>) => {
  const { work: id, room, is_public, version, versions, generation } = letter.args
  const there = market.find(id)
  if (there !== undefined) return nothing(now, { work: id })
  const reservation = market.reservation(id)
  if (reservation === undefined) return refuse('not_found', `there is no reservation ${id}`)
  const turn = new Turn(market, now)
  const fixed: Fixed = { ...reservation.fixed, room, is_public }
  const begun = { ...reservation.begun, version, versions, generation }
  const step: Step = {
    transition: 'create',
    at: fixed.created_at,
    state: 'open',
    fence: 0,
    set: {},
    postings: reservation.postings,
  }
  const { command, place: reserved } = reservation
  const facts = { work: id, fixed, begun, reserved, steps: [step], ...(is_public ? fromOf(reservation) : {}) }
  return turn.decide(letter, { op: letter.op, facts, isPublic: is_public, work: fixed, command })
}

const voided = ({ state: { market }, now }: Situation, letter: WriteLetter<VoidArgs>) => {
  const { work: id } = letter.args
  const reservation = market.reservation(id)
  if (reservation === undefined) return nothing(now, { work: id })
  const { fixed, begun, command } = reservation
  const moved = { ...fixed, ...begun }
  const postings = postingsOf(['refund'], moved, { cause: `void ${command}`, at: now })
  const turn = new Turn(market, now)
  return turn.decide(letter, {
    op: letter.op,
    facts: { work: id, voids: command.slice(0, 32), postings },
    isPublic: false,
  })
}

/** Asks the room to accept the new version; until it answers, the work cannot be claimed. */
const edit = ({ state: { market }, now }: Situation, letter: WriteLetter<WorkArgs>) => {
  const args = letter.args
  const stored = market.find(args.work)
  if (stored === undefined || !mayKnow(stored, letter.author, args)) return unknown(args.work)
  const turn = new Turn(market, now)
  turn.bringUp(stored, letter.author)
  const work = turn.work(stored)
  if (letter.author !== work.requester)
    return refuse('forbidden', 'only the requester of this work can do this', 'event_id')
  const state = stateOf(work, market.epoch)
  if (state !== 'open')
    return refuse(
      'wrong_state',
      `this work is ${state}: its request can be edited only while it is open; ${nextOperations(state)}`,
      'event_id',
    )
  if (work.editing !== '')
    return refuse('conflict', 'another edit of this request is in progress: try again in a moment', 'event_id')
  const post = postOf(letter, args.proof_bits ?? 0)
  const facts = { work: work.id, edit: Buffer.from(letter.id).toString('hex'), post }
  return { ...turn.decide(letter, { op: letter.op, facts, isPublic: false, work }), leadsToPublic: work.is_public }
}

const edited = ({ state: { market }, now }: Situation, letter: WriteLetter<EditedArgs>) => {
  const { work: id, edit, taken, generation } = letter.args
  const stored = market.find(id)
  if (stored === undefined || stored.editing !== edit) return nothing(now, { work: id })
  const turn = new Turn(market, now)
  if (!taken) {
    const facts = { work: id, edit, voids: edit, steps: [] }
    return turn.decide(letter, { op: letter.op, facts, isPublic: false, work: stored })
  }
  turn.take(stored)
  const work = turn.work(stored)
  // A work that ended meanwhile, by timeout or by a moderator, still gets the new version: the room shows it.
  const row = { ...transitionNamed.edit, to: work.state }
  const step = stepOf(row, work, { at: now, generation: work.state === 'open' ? generation : work.generation, edit })
  return turn.finish(letter, work, [step], { edit })
}

const observe = ({ state: { market }, now }: Situation, letter: WriteLetter<ObserveArgs>) => {
  const { work: id, n, event, change, by, sha256, result } = letter.args
  const stored = market.find(id)
  if (stored === undefined || n <= stored.observed) return nothing(now, { work: id })
  const turn = new Turn(market, now)
  turn.take(stored)
  const work = turn.work(stored)
  const set: Partial<Work> = { observed: n }
  if (event === 'result' && work.result !== null && (result ?? work.result.id) === work.result.id)
    set.result = seen(work.result, change, by, sha256)
  const isGone = event === 'request' && change === 'redacted' && work.state === 'open'
  const steps = isGone
    ? [stepOf(transitionNamed.request_gone, work, { at: now, generation: market.epoch.generation })]
    : []
  return turn.finish(letter, work, steps, { event, change, set })
}

/**
 * A result counts as changed or missing only because of its worker, who may redact it or hide it as a moderator. If others
 * remove it, it counts as unchanged. A restored result counts as before: a room cannot restore anything that was redacted.
 */
function seen(result: Result, change: ObserveArgs['change'], by: ObserveArgs['by'], sha256 = result.current): Result {
  switch (change) {
    case 'edited':
      return { ...result, current: sha256 }
    case 'restored':
      return { ...result, available: true, missing: false }
    case 'hidden':
    case 'redacted':
      return { ...result, available: false, missing: result.missing || by === 'author' }
  }
}

function fromOf({ from = '' }: { readonly from?: string }): { readonly from?: string } {
  return from === '' ? {} : { from }
}

function postOf({ via, operator }: WriteLetter, proofBits: number): PostFacts {
  return { proof_bits: proofBits, via, operator }
}

function nothing(now: number, more: object): Decision {
  return accept([], { at: now, isPublic: false, facts: more })
}

/**
 * How a work is created, and what its room reports about it afterwards. Two actors are involved: the market holds the credits,
 * the room accepts the request. No reader sees a work before both have accepted it. The room may repeat a report; applying it
 * twice changes nothing.
 */
export const requestDeciders = {
  'work.create': reserve,
  'work.open': open,
  'work.void': voided,
  'work.edit': edit,
  'work.edited': edited,
  'work.observe': observe,
} satisfies Deciders
