/**
 * Guards of the table: why a row cannot be taken, or undefined. Some only choose between the rows of one operation or clock
 * (`choosing`): where they do not hold another row is meant, and nobody hears of them.
 *
 * A refusal is a code, a sentence, the field, and after how many seconds to come back.
 */
import type { MarketLimits, WorkArgs } from './letters.ts'
import type { Guard, Transition } from './table.ts'
import { isIntact, type Work } from './work.ts'

export type Objection = readonly [code: string, message: string, field?: string | undefined, retryAfter?: number]

/** What the market knows that a guard may ask, all of it as of now. */
export type Known = {
  /** Credits that the signer can spend. */
  readonly available: number
  /** When each of the claims runs out that the signer holds, soonest first. */
  readonly claims: readonly number[]
  /** The signer had a public result accepted, or holds another work that only a newcomer may. */
  readonly newcomer: boolean
  /** What this row would hold of the signer's credits, beyond what it holds already. */
  readonly cost: number
  readonly limits: MarketLimits
}

export type Asking = {
  readonly work: Work
  readonly at: number
  /** Absent of a timeout. */
  readonly author?: string
  readonly args?: WorkArgs
  readonly known?: Known
}

type Check = (asking: Asking) => Objection | undefined

/** Those that choose between rows. */
const choosing: Readonly<Partial<Record<Guard, (asking: Asking) => boolean>>> = {
  result_intact: ({ work }) => isIntact(work),
  result_not_intact: ({ work }) => !isIntact(work),
  reviewer_is_requester: ({ work }) => work.reviewer === work.requester,
  reviewer_is_another: ({ work }) => work.reviewer !== work.requester,
  reopenable: (asking) => isReopenable(asking),
  not_reopenable: (asking) => !isReopenable(asking),
  to_all: ({ args }) => args?.percent === 100,
  to_none: ({ args }) => args?.percent === 0,
  to_both: ({ args }) => args?.percent !== 0 && args?.percent !== 100,
  was_claimed: ({ work }) => work.state === 'claimed',
  was_revision: ({ work }) => work.state === 'revision',
  was_submitted: ({ work }) => work.state === 'submitted',
}

/** The row is the one that is meant: its choosing guards hold. */
export function holds(row: Pick<Transition, 'guards'>, asking: Asking): boolean {
  return row.guards.every((guard) => choosing[guard]?.(asking) ?? true)
}

/** The first objection to a row. */
export function objectionTo(row: Pick<Transition, 'guards'>, asking: Asking): Objection | undefined {
  for (const guard of row.guards) {
    const objection = checks[guard]?.(asking)
    if (objection !== undefined) return objection
  }
  return undefined
}

const checks: Readonly<Partial<Record<Guard, Check>>> = {
  result_there: ({ work: { result } }) =>
    result === null || result.missing
      ? ['not_found', 'the result is gone: its worker took it away', 'event_id']
      : undefined,
  result_unchanged: ({ work: { result }, args }) => {
    const { sha256, current } = result!
    const named = args!.result_sha256
    if (args!.accept_changed === true && sha256 !== current)
      return named === current
        ? undefined
        : ['conflict', `to accept what the result is now, name its hash: result_sha256 is ${current}`, 'data']
    if (sha256 !== current)
      return [
        'conflict',
        `the result was changed since it was submitted; with accept_changed and result_sha256 ${current} it is accepted as it is now`,
        'data',
      ]
    return named === undefined || named === sha256
      ? undefined
      : ['conflict', `the result that was submitted has the SHA-256 ${sha256}, and another was named`, 'data']
  },
  reward_bounded: ({ work, args, known }) => {
    const { reward } = known!.limits
    return work.amount + args!.amount <= reward
      ? undefined
      : [
          'invalid_field',
          `a reward is at most ${reward} credits: at most ${reward - work.amount} can be added`,
          'amount',
        ]
  },
  affordable: ({ work, known }) => unaffordable(work.simulated ? 0 : known!.cost, known!.available),
  before_margin: ({ work, at }) =>
    at < work.deadline - work.terms.claim_margin
      ? undefined
      : ['expired', `nobody takes a work up in the last ${work.terms.claim_margin} s before its deadline`, 'event_id'],
  before_deadline: ({ work, at }) =>
    at < work.deadline ? undefined : ['expired', 'the deadline of this work has passed', 'event_id'],
  no_edit_under_way: ({ work }) =>
    work.editing === '' ? undefined : ['conflict', 'the request is being edited right now: read it again', 'event_id'],
  not_a_party: ({ work, author }) => {
    if (author === work.requester) return ['not_eligible', 'nobody claims a work that he asked for himself', 'event_id']
    return author === work.reviewer ? ['not_eligible', 'who reviews a work does not claim it', 'event_id'] : undefined
  },
  eligible: ({ work, args, known }) => {
    const { standing } = args!
    if (standing?.reads !== true || !standing.replies)
      return ['not_eligible', 'only who may reply in its room claims this work', 'event_id']
    return work.eligibility === 'open' || known!.newcomer
      ? undefined
      : [
          'not_eligible',
          'this work is for newcomers: who had no result accepted, and holds no other such work',
          'event_id',
        ]
  },
  lapses_left: ({ work, author }) =>
    (work.left[author!]?.lapses ?? 0) < work.terms.lapses
      ? undefined
      : ['not_eligible', `you let your claims of this work run out ${work.terms.lapses} times`, 'event_id'],
  cooled_down: ({ work, author, at }) => {
    const left = work.left[author!]
    const wait = left === undefined ? 0 : left.at + work.terms.reclaim_cooldown - at
    return wait <= 0
      ? undefined
      : ['rate_limited', 'you left this work a moment ago: let others try it first', 'event_id', wait]
  },
  claims_left: ({ at, known }) => {
    const { claims, limits } = known!
    const message = `you hold ${claims.length} works, and nobody holds more at a time: finish or release one`
    return claims.length < limits.claims
      ? undefined
      : ['quota_exhausted', message, undefined, Math.max(1, (claims[0] ?? at) - at)]
  },
  version_current: ({ work, args }) =>
    args!.version_id === undefined || args!.version_id === work.version
      ? undefined
      : ['conflict', `the request was edited: its newest version is ${work.version}`, 'data'],
  renewals_left: ({ work }) =>
    work.renewals < work.terms.renewals
      ? undefined
      : ['wrong_state', `a claim is renewed at most ${work.terms.renewals} times`, 'event_id'],
  revisions_left: ({ work }) =>
    work.revisions < work.terms.revisions
      ? undefined
      : ['wrong_state', `a result is sent back at most ${work.terms.revisions} times: accept or reject it`, 'event_id'],
  bound_result: ({ work, author, args }) => {
    const { bound, result_sha256: named } = args!
    if (bound === undefined) throw new Error(`a result of work ${work.id} was not asked for in its room`)
    if (bound.fault !== undefined) return [bound.fault.code, bound.fault.message, bound.fault.field ?? 'target']
    if (bound.author !== author) return ['not_found', `there is no reply of yours ${bound.id}`, 'target']
    return named === undefined || named === bound.sha256
      ? undefined
      : ['conflict', `this result has the SHA-256 ${bound.sha256}, and another was named`, 'data']
  },
  same_result: ({ work, args }) =>
    args!.bound?.id === work.result!.id
      ? undefined
      : ['conflict', `confirm what you submitted: target must be ${work.result!.id}`, 'target'],
  no_wish_yet: ({ work }) =>
    work.reopen ? ['wrong_state', 'it is wished already that this work opens again', 'event_id'] : undefined,
}

/** Why somebody cannot pay so much. */
export function unaffordable(cost: number, available: number): Objection | undefined {
  if (cost <= available) return undefined
  return ['insufficient_credits', `this takes ${cost} credits, and you have ${available}`, 'amount']
}

function isReopenable({ work, at }: Asking): boolean {
  return work.reopen && at < work.deadline - work.terms.claim_margin
}
