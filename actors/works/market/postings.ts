/**
 * What each batch of the table moves. A = reward, F = fee, which is held with it and taken only when the worker is paid.
 *
 *   hold       user:requester -> escrow, A+F pending
 *   raise      the old hold is voided, a new one of the raised reward and its fee taken
 *   release    the hold is posted; escrow -> user:worker A, escrow -> fees F
 *   refund     the hold is voided: all of it is the requester's again
 *   split      w = floor(A * percent / 100), f = floor(F * w / A): w+f of the hold is posted, the rest goes back;
 *              escrow -> user:worker w, escrow -> fees f
 *   bond       user:worker -> escrow, pending; bond_back voids it, bond_lost posts it and moves it on to fees
 *
 * Of simulated works (ledger 2) a hold is minted before it is taken, and what an identity has of it in the end is burnt at once.
 */
import { hash } from 'node:crypto'
import type { Posting } from './letters.ts'
import type { Batch } from './table.ts'
import type { Changing, Fixed } from './work.ts'

export const codes = {
  grant: 1,
  welcome: 2,
  transfer: 3,
  transferCost: 4,
  hold: 10,
  holdTaken: 11,
  reward: 20,
  fee: 21,
  share: 22,
  refund: 30,
  raised: 31,
  burnt: 32,
  review: 40,
  bond: 50,
  bondBack: 51,
  bondTaken: 52,
  bondLost: 53,
} as const

/** For the docs: what each code means. */
export const codeMeanings: Readonly<Record<keyof typeof codes, string>> = {
  grant: 'credits created by an operator, or by the board for a simulated work',
  welcome: 'welcome grant after a first public post',
  transfer: 'transferred to another identity',
  transferCost: 'cost of a transfer',
  hold: 'reward and fee put into escrow',
  holdTaken: 'taken out of escrow to be paid out',
  reward: 'reward, to the worker',
  fee: 'fee of a paid reward',
  share: "the worker's share of a split, and the fee for it",
  refund: 'reward and fee returned to the requester',
  raised: 'hold ended because the reward was raised: a new hold replaces it',
  burnt: 'end of simulated credits',
  review: 'reward for a review of a tool',
  bond: 'bond of a dispute',
  bondBack: 'bond returned to the worker',
  bondTaken: 'bond forfeited',
  bondLost: 'bond of a dispute that was lost, to fees',
}

/** Name of a posting: unique, and the same whenever it is computed. */
export function transferId(subject: string, cause: string, n: number): string {
  return hash('sha256', `${subject}\n${cause}\n${n}`, 'hex').slice(0, 32)
}

export const user = (identity: string): string => `user:${identity}`

export type Moved = Pick<
  Fixed & Changing,
  'id' | 'simulated' | 'requester' | 'worker' | 'amount' | 'fee' | 'hold' | 'bond' | 'bond_amount'
>

export type Moving = {
  /** What the ids of the postings are made from, beside the work's. */
  readonly cause: string
  readonly at: number
  /** Of `split`. */
  readonly percent?: number
  /** Of `raise`: the reward and fee it becomes. */
  readonly raised?: { readonly amount: number; readonly fee: number }
  /** Of `bond`. */
  readonly bond?: number
}

type Draft = Pick<Posting, 'type' | 'code' | 'debit' | 'credit' | 'amount' | 'hold'>

/** The postings of these batches, in order. */
export function postingsOf(batches: readonly Batch[], work: Moved, moving: Moving): Posting[] {
  const drafts = batches.flatMap((batch) => draftsOf[batch](work, moving)).filter(({ amount }) => amount > 0)
  return drafts.map((draft, n) => ({
    id: transferId(work.id, moving.cause, n),
    ledger: work.simulated ? 2 : 1,
    ...draft,
    at: moving.at,
  }))
}

const draftsOf: Readonly<Record<Batch, (work: Moved, moving: Moving) => Draft[]>> = {
  hold: (work) => taken(work, work.requester, work.amount + work.fee, codes.hold),
  raise: (work, { raised }) => {
    const before = work.amount + work.fee
    const after = raised!.amount + raised!.fee
    const minted = work.simulated ? [direct('mint', user(work.requester), after - before, codes.grant)] : []
    return [voided(work.requester, before, codes.raised, work.hold), ...minted, held(work.requester, after, codes.hold)]
  },
  release: (work) => paid(work, work.amount, work.fee, codes.reward, codes.fee),
  refund,
  split: (work, { percent = 0 }) => {
    const share = Math.floor((work.amount * percent) / 100)
    const fee = Math.floor((work.fee * share) / work.amount)
    if (share + fee === 0) return refund(work)
    const back = work.amount + work.fee - share - fee
    return [...paid(work, share, fee, codes.share, codes.share), ...burnt(work, user(work.requester), back)]
  },
  bond: (work, { bond = 0 }) => taken(work, work.worker, bond, codes.bond),
  bond_back: (work) =>
    work.bond === ''
      ? []
      : [
          voided(work.worker, work.bond_amount, codes.bondBack, work.bond),
          ...burnt(work, user(work.worker), work.bond_amount),
        ],
  bond_lost: (work) =>
    work.bond === ''
      ? []
      : [
          { ...held(work.worker, work.bond_amount, codes.bondTaken), type: 'post', hold: work.bond },
          direct('escrow', 'fees', work.bond_amount, codes.bondLost),
          ...burnt(work, 'fees', work.bond_amount),
        ],
}

function refund(work: Moved): Draft[] {
  const amount = work.amount + work.fee
  return [voided(work.requester, amount, codes.refund, work.hold), ...burnt(work, user(work.requester), amount)]
}

/** Part of the hold is posted, and leaves escrow at once. */
function paid(work: Moved, amount: number, fee: number, code: number, feeCode: number): Draft[] {
  return [
    { ...held(work.requester, amount + fee, codes.holdTaken), type: 'post', hold: work.hold },
    direct('escrow', user(work.worker), amount, code),
    direct('escrow', 'fees', fee, feeCode),
    ...burnt(work, user(work.worker), amount),
    ...burnt(work, 'fees', fee),
  ]
}

function taken(work: Moved, from: string, amount: number, code: number): Draft[] {
  const minted = work.simulated ? [direct('mint', user(from), amount, codes.grant)] : []
  return [...minted, held(from, amount, code)]
}

function held(from: string, amount: number, code: number): Draft {
  return { type: 'hold', code, debit: user(from), credit: 'escrow', amount }
}

function voided(from: string, amount: number, code: number, hold: string): Draft {
  return { type: 'void', code, debit: user(from), credit: 'escrow', amount, hold }
}

function direct(debit: string, credit: string, amount: number, code: number): Draft {
  return { type: 'direct', code, debit, credit, amount }
}

function burnt({ simulated }: Moved, account: string, amount: number): Draft[] {
  return simulated ? [direct(account, 'mint', amount, codes.burnt)] : []
}
