/** How writes on credits are carried out. */

import { sizes } from '../../actors/kernel/limits.ts'
import type { CreditFacts } from '../../actors/works/market/letters.ts'
import type { Plan } from '../command/plan.ts'
import { market } from './market-args.ts'
import { transferView } from './reads.ts'

const moving: Plan<'credit.transfer' | 'credit.grant'> = {
  to: market,
  args: ({ command }) => ({ target: command.target, amount: command.amount, cost: sizes.credit_transfer_cost }),
  show: (_verified, { facts, at }) => ({
    values: { transfers: (facts as CreditFacts).postings.map((each) => ({ at, ...transferView(each) })) },
  }),
}

export const creditPlans = { 'credit.transfer': moving, 'credit.grant': moving }
