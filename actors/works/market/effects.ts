/** What each row of the table sets on a work, beside its state: fences, clocks, the result, how the reward ended. Pure. */
import type { BoundResult } from './letters.ts'
import type { Moving } from './postings.ts'
import type { Transition, TransitionName } from './table.ts'
import type { Changing, Left, RewardReason, Work } from './work.ts'

/** Who brings a row about, and with what. What a row does not need may be absent. */
export type Doing = {
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
  /** Id of the edit that the room took. */
  readonly edit?: string
  readonly feeOf?: (amount: number) => number
  readonly bond?: number
}

type Effect = { readonly set: Partial<Changing>; readonly moving?: Partial<Moving> }

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
  claim: (work, { at, author = '', key = '', ttl = 0 }) => ({
    set: {
      fence: work.fence_counter + 1,
      fence_counter: work.fence_counter + 1,
      worker: author,
      worker_key: key,
      claimed_at: at,
      claim_expires_at: Math.min(at + ttl, work.deadline),
      pinned: work.version,
    },
  }),
  renew: (work, { at, ttl = 0 }) => ({
    set: {
      claim_expires_at: Math.max(work.claim_expires_at, Math.min(at + ttl, work.deadline)),
      renewals: work.renewals + 1,
    },
  }),
  release: (work, { at }) => freed(work, at, 0),
  lapse: (work, { at }) => freed(work, at, 1),
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
  confirm_claim: (work, { at, ttl = 0 }) => ({ set: { claim_expires_at: Math.min(at + ttl, work.deadline) } }),
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

/** No clock runs any more. */
const stopped = { review_due: 0, dispute_due: 0, arbitration_due: 0, reopen: false } as const

/** It has no holder: it looks as it did before it was claimed. */
function freed({ left, worker }: Work, at: number, lapses: 0 | 1): Effect {
  const before = left[worker]?.lapses ?? 0
  const now: Left = { at, lapses: before + lapses }
  return {
    set: {
      fence: 0,
      worker: '',
      worker_key: '',
      claimed_at: 0,
      claim_expires_at: 0,
      renewals: 0,
      pinned: '',
      result: null,
      submitted_at: 0,
      revisions: 0,
      left: { ...left, [worker]: now },
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
