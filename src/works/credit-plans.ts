/** How writes on credits are carried out. */

import { sizes } from '../../actors/kernel/limits.ts'
import { marketName } from '../../actors/works/market/letters.ts'
import type { Plan, ReadPlans } from '../command/plan.ts'
import { market } from './market-args.ts'
import { transferView } from './reads.ts'

const moving: Plan<'credit.transfer' | 'credit.grant'> = {
  to: market,
  args: ({ command }) => ({ target: command.target, amount: command.amount, cost: sizes.credit_transfer_cost }),
  show: (_verified, { facts, at }) => ({
    values: { transfers: (facts.postings ?? []).map((each) => ({ at, ...transferView(each) })) },
  }),
}

export const creditPlans = { 'credit.transfer': moving, 'credit.grant': moving }

const atMarket = { actor: () => marketName }

/** Credits lie with the market. */
export const creditReadPlans = {
  'credit.balance': atMarket,
  'credit.history': atMarket,
} satisfies ReadPlans
