/**
 * Decisions about works: what a command asks for, held against the table. Pure functions of the state; the signer was verified before,
 * and what only the room knows comes in the letter.
 *
 * Order: is there such a work for this signer; may this signer do such a thing; does the state take it; the guards of the row.
 * A worker's fence is checked before anything else: the holder of an old one changes nothing, whatever they try.
 */
import { ownKey } from '../records/record.ts'
import { type Deciders, preceded, type Refused, refuse, type Situation, type WriteLetter } from '../records/write.ts'
import { after, stateOf, stepOf } from './market/clock.ts'
import type { Step, WorkArgs } from './market/letters.ts'
import type { Market } from './market/market.ts'
import { holds, type Known, type Objection, objectionTo } from './market/rows.ts'
import { type Actor, type Transition, transitions, transitionsOn } from './market/table.ts'
import { Turn } from './market/turn.ts'
import { partiesOf, type Work } from './market/work.ts'
import { roomSays } from './room-says.ts'

/** Fee of a reward, and bond of a dispute about it: configuration, given with the command. */
type Rates = { readonly fee_basis_points: number; readonly bond_percent: number }

type Case = {
  readonly op: string
  readonly market: Market
  readonly turn: Turn
  readonly letter: WriteLetter
  readonly args: WorkArgs & Rates
  readonly now: number
}

/** The command's own step, or two where a claim comes with its result. */
function decideWork(op: string) {
  return (situation: Situation, letter: WriteLetter<WorkArgs & Rates>) => {
    const { state, now } = situation
    const { market } = state
    const given = letter.args
    const stored = market.find(given.work)
    if (stored === undefined) return unknown(given.work)
    const { args, records } = roomSays(situation, letter, stored.room, given)
    if (!mayKnow(stored, letter.author, args)) return unknown(args.work)
    const turn = new Turn(market, now)
    turn.bringUp(stored, letter.author)
    const found: Case = { op, market, turn, letter, args, now }
    const first = stepOn(found, turn.work(stored))
    if ('ok' in first) return first
    const { from = '' } = args
    const more = from !== '' && stored.is_public ? { from } : {}
    if (op !== 'work.claim' || args.bound === undefined)
      return preceded(records, turn.finish(letter, stored, [first], more))
    const second = stepOn({ ...found, op: 'work.submit' }, after(turn.work(stored), first), first.fence)
    return 'ok' in second ? second : preceded(records, turn.finish(letter, stored, [first, second], more))
  }
}

export function unknown(work: string): Refused {
  return refuse('not_found', `there is no work ${work}`, 'event_id')
}

/** A work of a private room is there for its parties and for who reads the room. */
export function mayKnow(work: Work, author: string, { standing }: Pick<WorkArgs, 'standing'>): boolean {
  return work.is_public || standing?.reads === true || partiesOf(work).includes(author)
}

/** `fence`: of a second step, the one that the first has given. */
function stepOn(found: Case, work: Work, fence = found.args.amount): Step | Refused {
  const { op, market, letter, args, now } = found
  const rows = transitionsOn.get(op)!
  const barred = barredFrom(rows[0]!.by, work, found, fence)
  if (barred !== undefined) return refuse(...barred)
  const state = stateOf(work, market.epoch)
  const { author } = letter
  const asking = { work, at: now, author, args }
  const row = rows.find((each) => each.from.includes(state) && holds(each, asking))
  if (row === undefined) return refuse(...notNow(op, state, rows, work))
  const doing = {
    at: now,
    generation: args.generation,
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

/** Why this signer may not ask for such a thing, whatever the state. */
function barredFrom(by: Actor, work: Work, { letter, args }: Case, fence: number): Objection | undefined {
  const { author } = letter
  switch (by) {
    case 'requester':
      return author === work.requester
        ? undefined
        : ['forbidden', 'only the requester of this work can do this', 'event_id']
    case 'requester or moderator':
      return author === work.requester || args.standing?.moderates === true
        ? undefined
        : ['forbidden', 'only the requester of this work or a moderator of its room can do this', 'event_id']
    case 'worker':
      if (fence !== work.fence)
        return [
          'stale_fence',
          work.fence === 0
            ? `this work has no claim now: claim ${fence} has ended, and work.claim makes a new one`
            : `the current claim of this work is ${work.fence}, not ${fence}`,
          'amount',
        ]
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

/** What only makes sense before the deadline says so when it has passed. */
const bounded: ReadonlySet<string> = new Set(['work.claim', 'work.renew', 'work.submit'])

function notNow(op: string, state: string, rows: readonly Transition[], work: Work): Objection {
  if (bounded.has(op) && work.state === 'expired')
    return ['expired', `the deadline of this work passed at ${work.deadline}`, 'event_id']
  const from = [...new Set(rows.flatMap((row) => row.from))].join(' or ')
  return ['wrong_state', `this work is ${state}, and ${op} needs one that is ${from}; ${nextWords(state)}`, 'event_id']
}

/** To end a sentence that names a state: the operations that lead out of it. */
export function nextWords(state: string): string {
  const rows = transitions.filter(({ from, on }) => on.startsWith('work.') && from.some((each) => each === state))
  const next = [...new Set(rows.map(({ on }) => on))]
  return next.length === 0 ? 'its state is final' : `what can be done now: ${next.join(', ')}`
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
