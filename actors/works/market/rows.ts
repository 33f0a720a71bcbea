/**
 * Guards and effects of the transition table: why a row cannot be applied, and what it sets on a work when it is. Some guards
 * only choose between the rows of one operation or clock (`choosing`): if they do not hold, another row applies, and they are
 * not reported. Pure.
 *
 * A refusal is a code, a message, the field, and after how many seconds to retry.
 */

import type { RefusalCode } from '../../kernel/refusals.ts'
import type { Moving } from './ledger.ts'
import type { BoundResult, MarketLimits, WorkArgs } from './letters.ts'
import type { Guard, Transition, TransitionName } from './table.ts'
import {
  type Changing,
  claimSecondsLeft,
  isIntact,
  type Left,
  type RewardReason,
  unheld,
  type Work,
  withFormer,
} from './work.ts'

export type Objection = readonly [code: RefusalCode, message: string, field?: string | undefined, retryAfter?: number]

/** What the market knows and a guard may use, all as of now. */
export type Known = {
  /** Credits that the signer can spend. */
  readonly available: number
  /** When each of the signer's claims expires, soonest first. */
  readonly claims: readonly number[]
  /** The signer is a newcomer: no public result of theirs has been accepted, and they hold no other work reserved for newcomers. */
  readonly newcomer: boolean
  /** Additional credits of the signer that this row would hold. */
  readonly cost: number
  readonly limits: MarketLimits
}

type Asking = {
  readonly work: Work
  readonly at: number
  /** Absent for a timeout. */
  readonly author?: string
  readonly args?: WorkArgs
  readonly known?: Known
}

type Check = (asking: Asking) => Objection | undefined

/** Guards that choose between rows. */
const choosing: Readonly<Partial<Record<Guard, (asking: Asking) => boolean>>> = {
  result_intact: ({ work }) => isIntact(work),
  result_not_intact: ({ work }) => !isIntact(work),
  rejection_of_another: ({ work }) => isRejectedByAnother(work),
  no_rejection_of_another: ({ work }) => !isRejectedByAnother(work),
  reopenable: (asking) => isReopenable(asking),
  not_reopenable: (asking) => !isReopenable(asking),
  to_all: ({ args }) => args?.percent === 100,
  to_none: ({ args }) => args?.percent === 0,
  to_both: ({ args }) => args?.percent !== 0 && args?.percent !== 100,
  was_claimed: ({ work }) => work.state === 'claimed',
  was_revision: ({ work }) => work.state === 'revision',
  was_submitted: ({ work }) => work.state === 'submitted',
}

/** Whether someone other than the requester rejected it. A worker disputes a rejection with a bond; what silence leads to has none. */
function isRejectedByAnother({ reviewer, requester, bond }: Work): boolean {
  return reviewer !== requester && bond !== ''
}

/** Whether this row applies: its choosing guards hold. */
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
      ? ['not_found', 'the result is gone: its worker removed it', 'event_id']
      : undefined,
  result_unchanged: ({ work: { result }, args }) => {
    const { sha256, current } = result!
    const named = args!.result_sha256
    if (args!.accept_changed === true && sha256 !== current)
      return named === current
        ? undefined
        : [
            'conflict',
            `to accept the result as it is now, name its hash: result_sha256 is ${current}`,
            'data.result_sha256',
          ]
    if (sha256 !== current)
      return [
        'conflict',
        `the result has changed since it was submitted: to accept it as it is now, send accept_changed and result_sha256 ${current}`,
        'data.accept_changed',
      ]
    return named === undefined || named === sha256
      ? undefined
      : ['conflict', `the submitted result has the SHA-256 ${sha256}, and you named another`, 'data.result_sha256']
  },
  reward_bounded: ({ work, args, known }) => {
    const { reward } = known!.limits
    return work.amount + args!.amount <= reward
      ? undefined
      : ['invalid_field', `a reward can be ${reward} credits at most: you can add ${reward - work.amount}`, 'amount']
  },
  affordable: ({ work, known }) => unaffordable(work.simulated ? 0 : known!.cost, known!.available),
  before_margin: ({ work, at }) =>
    at < work.deadline - work.terms.claim_margin
      ? undefined
      : [
          'expired',
          `a work cannot be claimed in the last ${work.terms.claim_margin} s before its deadline`,
          'event_id',
        ],
  before_deadline: ({ work, at }) =>
    at < work.deadline ? undefined : ['expired', 'the deadline of this work has passed', 'event_id'],
  no_edit_under_way: ({ work }) =>
    work.editing === ''
      ? undefined
      : ['conflict', 'the request is being edited right now: read it again in a moment', 'event_id'],
  not_a_party: ({ work, author }) => {
    if (author === work.requester) return ['not_eligible', 'you cannot claim a work that you requested', 'event_id']
    return author === work.reviewer ? ['not_eligible', 'the reviewer of a work cannot claim it', 'event_id'] : undefined
  },
  eligible: ({ work, args, known }) => {
    const { standing } = args!
    if (standing?.reads !== true || !standing.replies)
      return ['not_eligible', 'only someone who may reply in its room can claim this work', 'event_id']
    return work.eligibility === 'open' || known!.newcomer
      ? undefined
      : [
          'not_eligible',
          'this work is for newcomers, who have had no result accepted and hold no other such work',
          'event_id',
        ]
  },
  lapses_left: ({ work, author }) =>
    (work.left[author!]?.lapses ?? 0) < work.terms.lapses
      ? undefined
      : [
          'not_eligible',
          `your claims of this work have expired ${work.terms.lapses} times: you cannot claim it again`,
          'event_id',
        ],
  cooled_down: ({ work, author, at }) => {
    const left = work.left[author!]
    const wait = left === undefined ? 0 : left.at + work.terms.reclaim_cooldown - at
    return wait <= 0
      ? undefined
      : [
          'rate_limited',
          'you just gave this work up: wait retry_after seconds, so that others can try',
          'event_id',
          wait,
        ]
  },
  claims_left: ({ at, known }) => {
    const { claims, limits } = known!
    const message = `you hold ${claims.length} works, which is the limit: finish one with work.submit, or give one up with work.release`
    return claims.length < limits.claims
      ? undefined
      : ['quota_exhausted', message, undefined, Math.max(1, (claims[0] ?? at) - at)]
  },
  // Keys are free, so a limit per key would limit nothing.
  claim_time_left: ({ work, args }) => {
    const { state, claimed_at, claim_expires_at, terms } = work
    const seconds = claimSecondsLeft(work)
    const isLeft = state === 'claimed' ? claimed_at + seconds > claim_expires_at : seconds >= terms.claim_margin
    if (isLeft || args!.bound !== undefined) return undefined
    return heldLongEnough(
      work,
      state === 'claimed' ? 'finish with work.submit' : 'post the result, and claim with it as target',
    )
  },
  confirm_time_left: ({ work, at }) =>
    work.claimed_at + claimSecondsLeft(work) > at
      ? undefined
      : heldLongEnough(work, 'post the result, and claim with it as target when the work is open again'),
  version_current: ({ work, args }) =>
    args!.version_id === undefined || args!.version_id === work.version
      ? undefined
      : ['conflict', `the request has been edited: read its newest version, ${work.version}`, 'data.version_id'],
  renewals_left: ({ work }) =>
    work.renewals < work.terms.renewals
      ? undefined
      : [
          'wrong_state',
          `a claim can be renewed ${work.terms.renewals} times: finish with work.submit, or give it up with work.release`,
          'event_id',
        ],
  revisions_left: ({ work }) =>
    work.revisions < work.terms.revisions
      ? undefined
      : [
          'wrong_state',
          `a result can be sent back ${work.terms.revisions} times: use work.accept or work.reject`,
          'event_id',
        ],
  bound_result: ({ work, author, args }) => {
    const { bound, result_sha256: named } = args!
    if (bound === undefined) throw new Error(`a result of work ${work.id} was not requested in its room`)
    if (bound.fault !== undefined) return [bound.fault.code, bound.fault.message, bound.fault.field ?? 'target']
    if (bound.author !== author) return ['not_found', `you have posted no reply ${bound.id}`, 'target']
    return named === undefined || named === bound.sha256
      ? undefined
      : ['conflict', `this result has the SHA-256 ${bound.sha256}, and you named another`, 'data.result_sha256']
  },
  same_result: ({ work, args }) =>
    args!.bound?.id === work.result!.id
      ? undefined
      : ['conflict', `confirm what you submitted: target must be ${work.result!.id}`, 'target'],
  no_wish_yet: ({ work }) =>
    work.reopen ? ['wrong_state', 'you have already asked to reopen this work', 'event_id'] : undefined,
}

function heldLongEnough({ terms }: Work, next: string): Objection {
  return [
    'wrong_state',
    `claims have held this work for ${terms.claim_total} s without a result, which is the limit: ${next}`,
    'event_id',
  ]
}

/** Why an identity cannot afford this cost. */
export function unaffordable(cost: number, available: number): Objection | undefined {
  if (cost <= available) return undefined
  return ['insufficient_credits', `this takes ${cost} credits, and you have ${available}`, 'amount']
}

function isReopenable({ work, at }: Asking): boolean {
  return work.reopen && at < work.deadline - work.terms.claim_margin
}

/** Who triggers a row, and with which arguments. Arguments that a row does not need may be absent. */
type Doing = {
  readonly at: number
  readonly generation: string
  readonly author?: string
  /** Public key of the author, 43 characters. */
  readonly key?: string
  readonly ttl?: number
  /** An added reward. */
  readonly amount?: number
  readonly percent?: number
  readonly bound?: BoundResult
  /** Id of the edit that the room accepted. */
  readonly edit?: string
  readonly feeOf?: (amount: number) => number
  readonly bond?: number
}

type Effect = { readonly set: Partial<Changing>; readonly moving?: Partial<Moving> }

/** What each row of the table sets on a work in addition to its state: fences, clocks, the result, how the reward ended. Pure. */
export function effectOf(row: Transition, work: Work, doing: Doing): Effect {
  return effects[row.name as TransitionName](work, doing)
}

const effects: Readonly<Record<TransitionName, (work: Work, doing: Doing) => Effect>> = {
  create: () => ({ set: {} }),
  edit: ({ versions }, { edit = '' }) => ({ set: { version: edit, versions: versions + 1, editing: '' } }),
  raise: (work, { amount = 0, feeOf }) => {
    const raised = { amount: work.amount + amount, fee: feeOf!(work.amount + amount) }
    return { set: raised, moving: { raised } }
  },
  cancel: (_, { at }) => ended('released', 'cancelled', at),
  request_gone: (_, { at }) => ended('released', 'cancelled', at),
  claim: (work, { at, author = '', key = '', ttl = 0, bound }) => ({
    set: {
      fence: work.fence_counter + 1,
      fence_counter: work.fence_counter + 1,
      worker: author,
      worker_key: key,
      claimed_at: at,
      claim_expires_at: Math.min(
        at + ttl,
        work.deadline,
        bound === undefined ? at + claimSecondsLeft(work) : Number.POSITIVE_INFINITY,
      ),
      pinned: work.version,
    },
  }),
  renew: (work, { at, ttl = 0 }) => ({
    set: {
      claim_expires_at: Math.max(
        work.claim_expires_at,
        Math.min(at + ttl, work.deadline, work.claimed_at + claimSecondsLeft(work)),
      ),
      renewals: work.renewals + 1,
    },
  }),
  release: (work, { at }) => freed(work, at, 0, at - work.claimed_at),
  lapse: (work, { at }) => freed(work, at, 1, at - work.claimed_at),
  submit: submitted,
  resubmit: submitted,
  accept: (_, { at }) => ended('paid', 'accepted', at),
  silence: (_, { at }) => ended('paid', 'reviewer_silent', at),
  silence_disputed: disputed,
  revise: (work, { at }) => ({
    set: { revisions: work.revisions + 1, claim_expires_at: at + work.terms.revision_window, review_due: 0 },
  }),
  revision_lapse: rejected,
  give_up: rejected,
  reject: rejected,
  dispute: (work, doing) => ({ ...disputed(work, doing), moving: { bond: doing.bond ?? 0 } }),
  concede_reopen: (work, { at }) => freed(work, at, 0),
  concede: (_, { at }) => ended('released', 'conceded', at),
  wish: () => ({ set: { reopen: true } }),
  undisputed_reopen: (work, { at }) => freed(work, at, 0),
  undisputed: (_, { at }) => ended('released', 'rejected', at),
  rule_all: (_, { at }) => ended('paid', 'ruled', at),
  rule_none: (_, { at }) => ended('released', 'ruled', at),
  rule_split: (_, { at, percent = 0 }) => split(at, percent),
  unruled_split: (_, { at }) => split(at, 50),
  unruled: (_, { at }) => ended('released', 'rejected', at),
  expire: (_, { at }) => ended('released', 'expired', at),
  confirm_claim: (work, { at, ttl = 0 }) => ({
    set: { claim_expires_at: Math.min(at + ttl, work.deadline, work.claimed_at + claimSecondsLeft(work)) },
  }),
  confirm_revision: (work, { at }) => ({ set: { claim_expires_at: at + work.terms.revision_window } }),
  confirm_result: (work, { at }) => ({ set: { review_due: at + work.terms.review_window } }),
  accept_unconfirmed: (_, { at }) => ended('paid', 'accepted', at),
  unconfirmed_claim: (work, { at }) => freed(work, at, 0),
  unconfirmed_revision: rejected,
  unconfirmed_result: disputed,
}

function ended(reward_state: 'paid' | 'released', reward_reason: RewardReason, at: number): Effect {
  return { set: { reward_state, reward_reason, settled_at: at, ...stopped } }
}

function split(at: number, percent: number): Effect {
  const set = { reward_state: 'split', reward_reason: 'ruled', settled_at: at, percent, ...stopped } as const
  return { set, moving: { percent } }
}

/** Values for a work with no running clock. */
const stopped = { review_due: 0, dispute_due: 0, arbitration_due: 0, reopen: false } as const

/** Values for a work without a holder, as before it was claimed. `seconds`: how long its claim held it without a result. */
function freed({ left, worker, terms }: Work, at: number, lapses: 0 | 1, seconds = 0): Effect {
  const before = left[worker]
  const held = (before?.held ?? 0) + seconds
  const now: Left = {
    at,
    lapses: (before?.lapses ?? 0) + lapses,
    ...(terms.claim_total === undefined ? {} : { held }),
  }
  return {
    set: {
      fence: 0,
      ...unheld,
      revisions: 0,
      left: withFormer(left, worker, now),
      ...stopped,
    },
  }
}

function submitted(work: Work, { at, bound }: Doing): Effect {
  const { id, sha256 } = bound!
  return {
    set: {
      result: { id, sha256, current: sha256, missing: false, available: true },
      submitted_at: at,
      review_due: at + work.terms.review_window,
    },
  }
}

function rejected({ terms }: Work, { at }: Doing): Effect {
  return { set: { dispute_due: at + terms.dispute_window, review_due: 0 } }
}

function disputed({ terms }: Work, { at }: Doing): Effect {
  return { set: { arbitration_due: at + terms.arbitration_window, review_due: 0, dispute_due: 0, reopen: false } }
}
