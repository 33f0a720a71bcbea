/**
 * How a work comes to be, and what its room says of it afterwards. Two actors have a part in it: the market takes the hold, the room
 * the request; no reader sees a work before both have accepted it. What the room reports may come again: it changes nothing twice.
 */
import { ownKey } from '../records/record.ts'
import { accept, type Deciders, type Decision, refuse, type Situation, type WriteLetter } from '../records/write.ts'
import { stateOf, stepOf } from './market/clock.ts'
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
import { unaffordable } from './market/rows.ts'
import { transitionNamed } from './market/table.ts'
import { Turn } from './market/turn.ts'
import { type Fixed, type Result, untouched, type Work } from './market/work.ts'
import { mayKnow, nextWords, unknown } from './market-decide.ts'

/** The hold is taken; the room is asked next. */
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
  // Named after the command: a request that was refused once may be made a work later, by another.
  const command = Buffer.from(letter.sha).toString('hex')
  const cause = `create ${command}`
  const moved = { ...fixed, amount, fee, worker: '', hold: '', bond: '', bond_amount: 0 }
  const postings = postingsOf(transitionNamed.create.postings, moved, { cause, at: now })
  const hold = postings.find(({ code }) => code === codes.hold)!.id
  const begun = untouched('', args.generation, amount, fee, hold)
  const decision = turn.decide(letter, {
    op: letter.op,
    facts: { work: id, command, post: postOf(letter, args.proof_bits), fixed, begun, postings, ...fromOf(args) },
    isPublic: false,
  })
  return { ...decision, leadsToPublic: args.seen }
}

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

/** The room is asked to take the new version; meanwhile the work cannot be claimed. */
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
      `this work is ${state}: its request can be edited only while it is open; ${nextWords(state)}`,
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
  // What time or a moderator ended meanwhile has its new version all the same: the room shows it.
  const row = { ...transitionNamed.edit, to: work.state }
  const step = stepOf(row, work, { at: now, generation: work.state === 'open' ? generation : work.generation, edit })
  return turn.finish(letter, work, [step], { edit })
}

const observe = ({ state: { market }, now }: Situation, letter: WriteLetter<ObserveArgs>) => {
  const { work: id, n, event, change, by, sha256 } = letter.args
  const stored = market.find(id)
  if (stored === undefined || n <= stored.observed) return nothing(now, { work: id })
  const turn = new Turn(market, now)
  turn.take(stored)
  const work = turn.work(stored)
  const set: Partial<Work> = { observed: n }
  if (event === 'result' && work.result !== null) set.result = seen(work.result, change, by, sha256)
  const isGone = event === 'request' && change === 'redacted' && work.state === 'open'
  const steps = isGone
    ? [stepOf(transitionNamed.request_gone, work, { at: now, generation: market.epoch.generation })]
    : []
  return turn.finish(letter, work, steps, { event, change, set })
}

/**
 * Only what its worker did counts as changed or missing, whether they redact it or hide it as a moderator; taken away by
 * others it is as good as it was. What is restored is as it was: a room restores nothing that was redacted.
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

export const requestDeciders = {
  'work.create': reserve,
  'work.open': open,
  'work.void': voided,
  'work.edit': edit,
  'work.edited': edited,
  'work.observe': observe,
} satisfies Deciders
