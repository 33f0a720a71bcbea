/**
 * The ledger: accounts, and the holds that are not resolved yet. Double entry: every posting takes from one account what it gives
 * another. A hold takes nothing, it only keeps credits from being spent, until it is posted (all or part of it, the rest is free
 * again) or voided, once. Two ledgers stand beside each other and share nothing: 1 = credits, 2 = simulated.
 *
 * Nothing is checked here: what is applied was decided before, and everything can be worked out again from the journal.
 */
import type { Posting } from './letters.ts'

export type LedgerNumber = 1 | 2

export interface Account {
  /** Given minus taken; of `mint` it is negative: minus the supply. */
  posted: number
  /** Held for others. */
  held: number
}

export type Hold = { readonly ledger: LedgerNumber; readonly account: string; readonly amount: number }

type PackedLedger = readonly [
  accounts: readonly (readonly [ledger: LedgerNumber, name: string, posted: number, held: number])[],
  holds: readonly (readonly [id: string, Hold])[],
  places: readonly (readonly [name: string, seqs: readonly number[]])[],
]

export class Ledger {
  readonly #accounts: Readonly<Record<LedgerNumber, Map<string, Account>>> = { 1: new Map(), 2: new Map() }
  readonly #holds = new Map<string, Hold>()
  /** Journal numbers of the acts that touched an account, oldest first; of simulated works those of identities alone. */
  readonly #places = new Map<string, number[]>()

  account(name: string, ledger: LedgerNumber = 1): Readonly<Account> {
    return this.#accounts[ledger].get(name) ?? nothing
  }

  accounts(ledger: LedgerNumber): ReadonlyMap<string, Readonly<Account>> {
    return this.#accounts[ledger]
  }

  /** Can be spent. */
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
      if (found === undefined) throw new Error(`posting ${id} resolves a hold that is not there: ${hold}`)
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

/** By how much these postings change what an account can spend. `holdOf`: holds they resolve that they did not take. */
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
