/** What an identity has as of now: the ledger, and what timeouts have moved that is not recorded yet. */
import { changeOf } from './ledger.ts'
import type { Posting } from './letters.ts'
import type { Market } from './market.ts'

export type Balance = {
  readonly available: number
  readonly held: number
  readonly simulated: { readonly held: number }
}

/** Postings of timeouts that are due and not recorded, the earliest first, with the work of each. */
export function unwritten(market: Market, now: number): readonly (Posting & { readonly work: string })[] {
  return [...market.due(now)].flatMap((work) =>
    market.settled(work, now).steps.flatMap(({ postings }) => postings.map((each) => ({ ...each, work: work.id }))),
  )
}

/** `name`: an account, such as `user:<id>`. Of an account that others are paid from, what is left in it. */
export function balanceOf(market: Market, name: string, now: number): Balance {
  const { ledger } = market
  const due = unwritten(market, now)
  const holdOf = (id: string) => ledger.hold(id)?.amount ?? 0
  const held = (number: 1 | 2): number =>
    due.reduce((sum, posting) => {
      if (posting.ledger !== number || posting.debit !== name) return sum
      if (posting.type === 'hold') return sum + posting.amount
      return posting.hold === undefined ? sum : sum - holdOf(posting.hold)
    }, ledger.account(name, number).held)
  return {
    available: Math.max(0, ledger.available(name) + changeOf(due, name, 1, holdOf)),
    held: held(1),
    simulated: { held: held(2) },
  }
}
