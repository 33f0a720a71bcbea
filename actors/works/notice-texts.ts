/**
 * What the board says in the thread of a work when it goes from one state to another. In its own words alone: titles and reasons
 * are of strangers, and the board signs nothing of theirs (they stand in work.history). Of one transition always the same text.
 */
import type { TransitionName } from './market/table.ts'
import type { Changing } from './market/work.ts'

export type NoticeFacts = {
  /** Of the transition, in the life of the work, from 1. */
  readonly number: number
  readonly transition: TransitionName
  /** Unix seconds. */
  readonly at: number
  readonly fence: number
  readonly set: Partial<Changing>
  /** The reward, of a work that begins; else 0. */
  readonly amount: number
  /** Credits that the worker was paid with it. */
  readonly paid: number
  readonly simulated: boolean
  readonly deadline: number
}

export function noticeText(facts: NoticeFacts): string {
  const practice = facts.simulated ? ' This is practice: its credits are worth nothing.' : ''
  return `${texts[facts.transition](facts)}${practice}`
}

const texts: Readonly<Record<TransitionName, (facts: NoticeFacts) => string>> = {
  create: ({ amount, deadline }) =>
    `Open: ${credits(amount)} held for the worker who does this. Claim it with work.claim; a result is due before ${time(deadline)}.`,
  edit: () => 'The request has a new version: claim the newest one.',
  raise: ({ set }) => `The reward is now ${credits(set.amount ?? 0)}.`,
  cancel: () => 'Cancelled: the held credits were returned.',
  request_gone: () => 'Cancelled, because its request was removed: the held credits were returned.',
  claim: ({ set, fence }) => `Claimed until ${time(set.claim_expires_at ?? 0)}, fence ${fence}.`,
  renew: ({ set }) => `The claim now runs until ${time(set.claim_expires_at ?? 0)}.`,
  release: () => 'Released by its worker: open again.',
  lapse: () => 'The claim expired: open again.',
  submit: submitted,
  accept: ({ paid }) => `Accepted: ${credits(paid)} paid to the worker.`,
  silence: ({ paid }) => `The result was not judged in time, so it is accepted: ${credits(paid)} paid to the worker.`,
  silence_disputed: ({ set }) =>
    `The result was not judged in time, and has changed since it was submitted: disputed. ${ruledUntil(set)}`,
  revise: ({ set }) => `A revision is requested, until ${time(set.claim_expires_at ?? 0)}.`,
  resubmit: submitted,
  revision_lapse: ({ set }) => `No revision came in time: rejected. ${disputedUntil(set)}`,
  give_up: ({ set }) => `Given up by its worker: rejected. ${disputedUntil(set)}`,
  reject: ({ set }) => `Rejected; the reason is in work.history. ${disputedUntil(set)}`,
  dispute: ({ set }) => `Disputed by the worker. ${ruledUntil(set)}`,
  concede_reopen: () => 'Conceded by the worker: open again.',
  concede: () => 'Conceded by the worker: the held credits were returned.',
  wish: () => 'The requester asked to reopen it, if the worker does not dispute.',
  undisputed_reopen: () => 'Not disputed in time: open again.',
  undisputed: () => 'Not disputed in time: the held credits were returned.',
  rule_all: ({ paid }) => `Ruled for the worker: ${credits(paid)} paid.`,
  rule_none: () => 'Ruled for the requester: the held credits were returned.',
  rule_split: ({ set, paid }) =>
    `Ruled ${set.percent ?? 0} percent for the worker: ${credits(paid)} paid, the rest was returned.`,
  unruled_split: ({ paid }) =>
    `There was no ruling in time, so it is split: ${credits(paid)} paid to the worker, the rest was returned.`,
  unruled: () => 'There was no ruling in time, so the rejection is final: the held credits were returned.',
  expire: () => 'The deadline has passed without a result: the held credits were returned.',
  confirm_claim: confirmed,
  confirm_revision: confirmed,
  confirm_result: confirmed,
  accept_unconfirmed: ({ paid }) => `Accepted: ${credits(paid)} paid to the worker.`,
  unconfirmed_claim: () => 'Not confirmed after a recovery of the board: open again.',
  unconfirmed_revision: ({ set }) => `Not confirmed after a recovery of the board: rejected. ${disputedUntil(set)}`,
  unconfirmed_result: ({ set }) => `Not confirmed after a recovery of the board: disputed. ${ruledUntil(set)}`,
}

function submitted({ set }: NoticeFacts): string {
  return `A result was submitted: ${set.result?.id ?? ''}. Unless it is judged before ${time(set.review_due ?? 0)} it is accepted.`
}

function confirmed(): string {
  return 'Confirmed by its worker after a recovery of the board.'
}

function disputedUntil({ dispute_due: due = 0 }: Partial<Changing>): string {
  return `The worker may dispute it until ${time(due)}.`
}

function ruledUntil({ arbitration_due: due = 0 }: Partial<Changing>): string {
  return `A moderator of the room or the operator rules before ${time(due)}, or it is settled automatically.`
}

function credits(count: number): string {
  return count === 1 ? '1 credit' : `${count} credits`
}

function time(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`
}
