/**
 * The transition table of works: from which state to which, by which operation, by whom, under which guards, with which
 * postings. The deciders, the timeouts, the docs and the model test all read it; anything not in it is refused as
 * `wrong_state`.
 *
 * Guards name functions of rows.ts, effects are found by the name of the row, and postings name the batches of ledger.ts. `due`
 * names the clock of a row that time alone triggers; of several due rows, the earliest goes first.
 */

import type { WorkState } from '../../records/change-kinds.ts'

export type Actor =
  | 'requester'
  | 'requester or moderator'
  | 'worker'
  | 'reviewer'
  | 'reviewer or requester'
  | 'arbiter'
  | 'claimant'
  | 'system'

/** Clocks of a work: Unix seconds at which the row takes effect (clock.ts). */
export type Clock = 'claim' | 'deadline' | 'review' | 'dispute' | 'arbitration' | 'recovery'

export type Guard =
  | 'result_there'
  | 'result_unchanged'
  | 'result_intact'
  | 'result_not_intact'
  | 'rejection_of_another'
  | 'no_rejection_of_another'
  | 'affordable'
  | 'reward_bounded'
  | 'before_margin'
  | 'before_deadline'
  | 'no_edit_under_way'
  | 'not_a_party'
  | 'eligible'
  | 'claims_left'
  | 'cooled_down'
  | 'lapses_left'
  | 'claim_time_left'
  | 'confirm_time_left'
  | 'version_current'
  | 'renewals_left'
  | 'revisions_left'
  | 'bound_result'
  | 'same_result'
  | 'reopenable'
  | 'not_reopenable'
  | 'no_wish_yet'
  | 'to_all'
  | 'to_none'
  | 'to_both'
  | 'confirms_claim'
  | 'confirms_revision'
  | 'was_claimed'
  | 'was_revision'
  | 'was_submitted'

/** Batches of ledger.ts. `bond_back` and `bond_lost` are empty if there is no bond. */
export type Batch = 'hold' | 'raise' | 'release' | 'refund' | 'split' | 'bond' | 'bond_back' | 'bond_lost'

export type Transition = {
  readonly name: string
  readonly from: readonly WorkState[]
  readonly to: WorkState
  /** The operation that triggers it, or `timeout`, or `room` for reports from the room. */
  readonly on: string
  readonly by: Actor
  readonly due?: Clock
  readonly guards: readonly Guard[]
  readonly postings: readonly Batch[]
}

export const transitions = [
  row('create', [], 'open', 'work.create', 'requester', [], ['hold']),
  row('edit', ['open'], 'open', 'work.edit', 'requester', ['no_edit_under_way']),
  row('raise', ['open'], 'open', 'work.raise', 'requester', ['reward_bounded', 'affordable'], ['raise']),
  row('cancel', ['open'], 'cancelled', 'work.cancel', 'requester or moderator', [], ['refund']),
  row('request_gone', ['open'], 'cancelled', 'room', 'system', [], ['refund']),
  row('claim', ['open'], 'claimed', 'work.claim', 'claimant', [
    'not_a_party',
    'before_margin',
    'no_edit_under_way',
    'eligible',
    'lapses_left',
    'cooled_down',
    'claim_time_left',
    'claims_left',
    'version_current',
  ]),
  row('renew', ['claimed'], 'claimed', 'work.renew', 'worker', ['renewals_left', 'claim_time_left', 'before_deadline']),
  row('release', ['claimed'], 'open', 'work.release', 'worker'),
  row('lapse', ['claimed'], 'open', 'timeout', 'system', [], [], 'claim'),
  row('submit', ['claimed'], 'submitted', 'work.submit', 'worker', ['before_deadline', 'bound_result']),
  row(
    'accept',
    ['submitted', 'rejected', 'disputed'],
    'accepted',
    'work.accept',
    'reviewer or requester',
    ['result_there', 'result_unchanged'],
    ['release', 'bond_back'],
  ),
  row('silence', ['submitted'], 'accepted', 'timeout', 'system', ['result_intact'], ['release'], 'review'),
  row('silence_disputed', ['submitted'], 'disputed', 'timeout', 'system', ['result_not_intact'], [], 'review'),
  row('revise', ['submitted'], 'revision', 'work.revise', 'reviewer', ['revisions_left']),
  row('resubmit', ['revision'], 'submitted', 'work.submit', 'worker', ['bound_result']),
  row('revision_lapse', ['revision'], 'rejected', 'timeout', 'system', [], [], 'claim'),
  row('give_up', ['revision', 'submitted'], 'rejected', 'work.release', 'worker'),
  row('reject', ['submitted'], 'rejected', 'work.reject', 'reviewer'),
  row('dispute', ['rejected'], 'disputed', 'work.dispute', 'worker', ['affordable'], ['bond']),
  row('concede_reopen', ['rejected'], 'open', 'work.concede', 'worker', ['reopenable']),
  row('concede', ['rejected'], 'refunded', 'work.concede', 'worker', ['not_reopenable'], ['refund']),
  row('wish', ['rejected'], 'rejected', 'work.reopen', 'requester', ['before_margin', 'no_wish_yet']),
  row('undisputed_reopen', ['rejected'], 'open', 'timeout', 'system', ['reopenable'], [], 'dispute'),
  row('undisputed', ['rejected'], 'refunded', 'timeout', 'system', ['not_reopenable'], ['refund'], 'dispute'),
  row('rule_all', ['disputed'], 'accepted', 'work.rule', 'arbiter', ['to_all'], ['release', 'bond_back']),
  row('rule_none', ['disputed'], 'refunded', 'work.rule', 'arbiter', ['to_none'], ['refund', 'bond_lost']),
  row('rule_split', ['disputed'], 'split', 'work.rule', 'arbiter', ['to_both'], ['split', 'bond_back']),
  row(
    'unruled_split',
    ['disputed'],
    'split',
    'timeout',
    'system',
    ['no_rejection_of_another'],
    ['split', 'bond_back'],
    'arbitration',
  ),
  row(
    'unruled',
    ['disputed'],
    'refunded',
    'timeout',
    'system',
    ['rejection_of_another'],
    ['refund', 'bond_back'],
    'arbitration',
  ),
  row('expire', ['open', 'claimed'], 'expired', 'timeout', 'system', [], ['refund'], 'deadline'),
  row('confirm_claim', ['recovery_required'], 'claimed', 'work.renew', 'worker', [
    'was_claimed',
    'before_deadline',
    'confirm_time_left',
  ]),
  row('confirm_revision', ['recovery_required'], 'revision', 'work.renew', 'worker', ['was_revision']),
  row('confirm_result', ['recovery_required'], 'submitted', 'work.submit', 'worker', ['was_submitted', 'same_result']),
  row(
    'accept_unconfirmed',
    ['recovery_required'],
    'accepted',
    'work.accept',
    'reviewer or requester',
    ['was_submitted', 'result_there', 'result_unchanged'],
    ['release'],
  ),
  row('unconfirmed_claim', ['recovery_required'], 'open', 'timeout', 'system', ['was_claimed'], [], 'recovery'),
  row('unconfirmed_revision', ['recovery_required'], 'rejected', 'timeout', 'system', ['was_revision'], [], 'recovery'),
  row('unconfirmed_result', ['recovery_required'], 'disputed', 'timeout', 'system', ['was_submitted'], [], 'recovery'),
] as const satisfies readonly Transition[]

export type TransitionName = (typeof transitions)[number]['name']

/** Rows by the operation that triggers them. */
export const transitionsOn: ReadonlyMap<string, readonly Transition[]> = Map.groupBy<string, Transition>(
  transitions,
  ({ on }) => on,
)

export const transitionNamed = Object.fromEntries(transitions.map((each) => [each.name, each])) as Readonly<
  Record<TransitionName, Transition>
>

function row<const Name extends string>(
  name: Name,
  from: readonly WorkState[],
  to: WorkState,
  on: string,
  by: Actor,
  guards: readonly Guard[] = [],
  postings: readonly Batch[] = [],
  due?: Clock,
) {
  return {
    name,
    from,
    to,
    on,
    by,
    guards,
    postings,
    ...(due === undefined ? {} : { due }),
  }
}
