/**
 * Timeouts: how a work changes through time alone. A timeout takes effect at its due time, however late it is noticed. Readers
 * see it immediately, the next command about the work or the sweeper records it, and both compute it here.
 *
 * If several are due, they take effect in the order of their due times, each from the state left by the one before. If two are
 * due in the same second, the deadline goes first.
 */

import type { WorkState } from '../../records/change-kinds.ts'
import { codes, postingsOf } from './ledger.ts'
import type { Step } from './letters.ts'
import { effectOf, holds } from './rows.ts'
import { type Clock, type Transition, transitionsOn } from './table.ts'
import { finalStates, inFlight, type Work } from './work.ts'

/** The recovery epoch: its generation, and when it began here. */
export type Epoch = { readonly generation: string; readonly at: number }

/** Whether the work was in progress when a backup was restored, and its worker has not confirmed it yet. */
export function isUnconfirmed({ state, generation }: Work, epoch: Epoch): boolean {
  return generation !== epoch.generation && inFlight.has(state)
}

/** The state for the rules: the stored one, unless the work must be confirmed. */
export function stateOf(work: Work, epoch: Epoch): WorkState {
  return isUnconfirmed(work, epoch) ? 'recovery_required' : work.state
}

/** Unix seconds at which a clock of a work runs out. */
function dueOf(work: Work, clock: Clock, epoch: Epoch): number {
  switch (clock) {
    case 'claim':
      return work.claim_expires_at
    case 'deadline':
      return work.deadline
    case 'review':
      return work.review_due
    case 'dispute':
      return work.dispute_due
    case 'arbitration':
      return work.arbitration_due
    case 'recovery':
      return epoch.at + work.terms.recovery_window
  }
}

const timeouts = transitionsOn.get('timeout')!

type Due = { readonly row: Transition; readonly at: number }

/** The next change that time alone will cause, whenever that is; undefined if none. */
function nextTimeout(work: Work, epoch: Epoch): Due | undefined {
  if (finalStates.has(work.state)) return undefined
  const state = stateOf(work, epoch)
  let next: Due | undefined
  for (const row of timeouts) {
    if (!row.from.includes(state)) continue
    const at = dueOf(work, row.due!, epoch)
    const isSooner = next === undefined || at < next.at || (at === next.at && row.due === 'deadline')
    if (isSooner && holds(row, { work, at })) next = { row, at }
  }
  return next
}

/** When time alone changes it next; Infinity: never. */
export function nextDue(work: Work, epoch: Epoch): number {
  return nextTimeout(work, epoch)?.at ?? Number.POSITIVE_INFINITY
}

/** The timeouts due at `now`, in order, and the work after them; the work itself if there are none. */
export function settled(
  stored: Work,
  now: number,
  epoch: Epoch,
): { readonly work: Work; readonly steps: readonly Step[] } {
  let work = stored
  const steps: Step[] = []
  for (let due = nextTimeout(work, epoch); due !== undefined && due.at <= now; due = nextTimeout(work, epoch)) {
    const step = stepOf(due.row, work, { at: due.at, generation: epoch.generation })
    steps.push(step)
    work = after(work, step)
  }
  return { work, steps }
}

/** A row applied to a work: what it sets, and what it moves. */
export function stepOf(
  row: Transition,
  work: Work,
  by: Parameters<typeof effectOf>[2] & { readonly reason?: string },
): Step {
  const { at, generation, reason } = by
  const { set, moving = {} } = effectOf(row, work, by)
  const postings = postingsOf(row.postings, work, { cause: String(work.steps + 1), at, ...moving })
  const hold = postings.find(({ code }) => code === codes.hold)
  const bond = postings.find(({ code }) => code === codes.bond)
  const changed: Step['set'] = {
    ...set,
    state: row.to,
    generation,
    ...(hold === undefined ? {} : { hold: hold.id }),
    ...(bond === undefined ? {} : { bond: bond.id, bond_amount: bond.amount }),
  }
  return {
    transition: row.name as Step['transition'],
    at,
    state: row.to,
    fence: set.fence ?? work.fence,
    ...(reason === undefined || reason === '' ? {} : { reason }),
    set: changed,
    postings,
  }
}

/** The work after a step, as a new object. */
export function after(work: Work, step: Step): Work {
  return { ...work, ...step.set, updated_at: step.at, steps: work.steps + 1 }
}
