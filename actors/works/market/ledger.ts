/**
 * The ledger: accounts, and the holds that are not resolved yet. Double entry: every posting takes from one account what it
 * gives another. A hold moves nothing; it only keeps credits from being spent, until it is posted (in full or in part, which
 * frees the rest) or voided, once. There are two separate ledgers: 1 = credits, 2 = simulated.
 *
 * Also what each step of a work moves, and where the entries are in the public log.
 *
 * Nothing is checked here: everything applied was decided before, and can be recomputed from the journal.
 */

import { hash } from 'node:crypto'
import type { Projection, RecordPlace } from '../../records/core.ts'
import type { FactRecord } from '../../records/record.ts'
import { type CreditFacts, marketName, type Posting, type StepFacts } from './letters.ts'
import type { Batch } from './table.ts'
import type { Changing, Fixed } from './work.ts'

export type LedgerNumber = 1 | 2

interface Account {
  /** Given minus taken; negative for `mint`: minus the supply. */
  posted: number
  /** Held for others. */
  held: number
}

type Hold = { readonly ledger: LedgerNumber; readonly account: string; readonly amount: number }

type PackedLedger = readonly [
  accounts: readonly (readonly [ledger: LedgerNumber, name: string, posted: number, held: number])[],
  holds: readonly (readonly [id: string, Hold])[],
  places: readonly (readonly [name: string, seqs: readonly number[]])[],
]

export class Ledger {
  readonly #accounts: Readonly<Record<LedgerNumber, Map<string, Account>>> = { 1: new Map(), 2: new Map() }
  readonly #holds = new Map<string, Hold>()
  /** Journal numbers of the acts that touched an account, oldest first; for simulated works, only accounts of identities. */
  readonly #places = new Map<string, number[]>()

  account(name: string, ledger: LedgerNumber = 1): Readonly<Account> {
    return this.#accounts[ledger].get(name) ?? nothing
  }

  accounts(ledger: LedgerNumber): ReadonlyMap<string, Readonly<Account>> {
    return this.#accounts[ledger]
  }

  /** Credits that can be spent. */
  available(name: string, ledger: LedgerNumber = 1): number {
    const { posted, held } = this.account(name, ledger)
    return posted - held
  }

  hold(id: string): Hold | undefined {
    return this.#holds.get(id)
  }

  get holds(): ReadonlyMap<string, Hold> {
    return this.#holds
  }

  /** Journal numbers of the acts with postings of this account, of either ledger, oldest first. */
  places(name: string): readonly number[] {
    return this.#places.get(name) ?? none
  }

  /** `seq`: journal number of the act. */
  apply(posting: Posting, seq: number): void {
    const { id, ledger, type, debit, credit, amount, hold } = posting
    if (type === 'hold') {
      this.#holds.set(id, { ledger, account: debit, amount })
      this.#of(ledger, debit).held += amount
    } else if (type === 'direct') {
      this.#of(ledger, debit).posted -= amount
      this.#of(ledger, credit).posted += amount
    } else {
      const found = this.#holds.get(hold!)
      if (found === undefined) throw new Error(`posting ${id} resolves a hold that does not exist: ${hold}`)
      this.#holds.delete(hold!)
      this.#of(ledger, debit).held -= found.amount
      if (type === 'post') {
        this.#of(ledger, debit).posted -= amount
        this.#of(ledger, credit).posted += amount
      }
    }
    for (const name of [debit, credit]) if (ledger === 1 || name.startsWith('user:')) this.#note(name, seq)
  }

  pack(): PackedLedger {
    const accounts = ([1, 2] as const).flatMap((ledger) =>
      [...this.#accounts[ledger]].map(([name, { posted, held }]) => [ledger, name, posted, held] as const),
    )
    return [accounts, [...this.#holds], [...this.#places]]
  }

  restore([accounts, holds, places]: PackedLedger): void {
    for (const [ledger, name, posted, held] of accounts) this.#accounts[ledger].set(name, { posted, held })
    for (const [id, hold] of holds) this.#holds.set(id, hold)
    for (const [name, seqs] of places) this.#places.set(name, [...seqs])
  }

  #of(ledger: LedgerNumber, name: string): Account {
    const table = this.#accounts[ledger]
    let account = table.get(name)
    if (account === undefined) {
      account = { posted: 0, held: 0 }
      table.set(name, account)
    }
    return account
  }

  #note(name: string, seq: number): void {
    const places = this.#places.get(name)
    if (places === undefined) this.#places.set(name, [seq])
    else if (places.at(-1) !== seq) places.push(seq)
  }
}

const nothing: Account = { posted: 0, held: 0 }
const none: readonly number[] = []

/** How much these postings change what an account can spend. `holdOf`: amounts of holds that they resolve but did not create. */
export function changeOf(
  postings: readonly Posting[],
  name: string,
  ledger: LedgerNumber,
  holdOf: (id: string) => number,
): number {
  let change = 0
  for (const posting of postings) {
    if (posting.ledger !== ledger) continue
    const { type, debit, credit, amount, hold } = posting
    if (debit === name) {
      if (type === 'void') change += holdOf(hold!)
      else if (type === 'post') change += holdOf(hold!) - amount
      else change -= amount
    }
    if (credit === name && (type === 'direct' || type === 'post')) change += amount
  }
  return change
}

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

/** The meaning of each code, for the docs. */
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

/** Id of a posting: unique, and the same whenever it is computed. */
export function transferId(subject: string, cause: string, n: number): string {
  return hash('sha256', `${subject}\n${cause}\n${n}`, 'hex').slice(0, 32)
}

export const user = (identity: string): string => `user:${identity}`

export type Moved = Pick<
  Fixed & Changing,
  'id' | 'simulated' | 'requester' | 'worker' | 'amount' | 'fee' | 'hold' | 'bond' | 'bond_amount'
>

export type Moving = {
  /** What the ids of the postings are derived from, besides the work. */
  readonly cause: string
  readonly at: number
  /** For `split`. */
  readonly percent?: number
  /** For `raise`: the new reward and fee. */
  readonly raised?: { readonly amount: number; readonly fee: number }
  /** For `bond`. */
  readonly bond?: number
}

type Draft = Pick<Posting, 'type' | 'code' | 'debit' | 'credit' | 'amount' | 'hold'>

/**
 * The postings of these batches, in order. What each batch of the table moves, with A = reward, F = fee, which is held with it
 * and taken only when the worker is paid:
 *
 *   hold       user:requester -> escrow, A+F pending
 *   raise      the old hold is voided, a new one of the raised reward and its fee taken
 *   release    the hold is posted; escrow -> user:worker A, escrow -> fees F
 *   refund     the hold is voided: all of it is the requester's again
 *   split      w = floor(A * percent / 100), f = floor(F * w / A): w+f of the hold is posted, the rest goes back;
 *              escrow -> user:worker w, escrow -> fees f
 *   bond       user:worker -> escrow, pending; bond_back voids it, bond_lost posts it and moves it on to fees
 *
 * For simulated works (ledger 2), credits are minted just before each hold, and what an identity receives in the end is burned
 * immediately.
 */
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

/** Posts part of the hold and moves it out of escrow immediately. */
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

/** A record with entries `first` to `first + count - 1`; `leaf`: of the first, counted across all logs of the board. */
export type LedgerRecord = {
  readonly first: number
  readonly count: number
  readonly shard: number
  readonly place: number
  readonly leaf: number
}

type Packed = readonly LedgerRecord[]

/**
 * Where the entries of the public ledger are: for each record with entries, its place, its first leaf and the number of its
 * first posting. Only in the feed, which knows leaves. Postings are numbered without gaps, so a number finds its record.
 */
export class LedgerIndex implements Projection {
  readonly acts: Projection['acts'] = {}
  readonly #records: LedgerRecord[] = []

  /** Number of the newest posting; 0 if there is none. */
  get newest(): number {
    const last = this.#records.at(-1)
    return last === undefined ? 0 : last.first + last.count - 1
  }

  /** The record that contains posting `first`, and all later ones, in order. */
  *from(first: number): Generator<LedgerRecord, void, undefined> {
    let low = 0
    let high = this.#records.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const { first: begin, count } = this.#records[middle]!
      if (begin + count <= first) low = middle + 1
      else high = middle
    }
    for (; low < this.#records.length; low++) yield this.#records[low]!
  }

  onAct(act: FactRecord<Partial<StepFacts> & Partial<CreditFacts>>, { shard, seq: place, leaf }: RecordPlace): void {
    if (act.room !== marketName) return
    const { steps = [], postings = [] } = act.facts
    const all: readonly Posting[] = [...steps.flatMap((step) => step.postings), ...postings]
    const numbers = all.flatMap(({ seq }) => seq ?? [])
    if (numbers.length > 0) this.#records.push({ first: numbers[0]!, count: numbers.length, shard, place, leaf })
  }

  pack(): Packed {
    return this.#records
  }

  restore(packed: Packed): void {
    this.#records.push(...packed)
  }
}
