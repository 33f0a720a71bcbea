/** What was sold for a payment, as the seller reads it: by the key of the payment, asked by the board alone. */
import { type FactRecord, fromFrame } from '../../actors/records/record.ts'
import type { SaleFacts, SoldFacts } from '../../actors/sales/sales.ts'
import { ok, type ReadAnswer, type ReadContext, type ReadRequest, type Reads } from '../reads/read.ts'
import type { KeptSale } from './seller.ts'

export const salesReads = { 'sale.find': find } satisfies Reads

/** `sale`: absent where there is none. */
function find({ state, frame, now }: ReadContext, { args }: ReadRequest): ReadAnswer<{ sale?: KeptSale }> {
  const found = state.sales.find(String(args.key), now())
  if (found === undefined) return ok({})
  const factsAt = ({ shard, seq }: { shard: number; seq: number }) => (fromFrame(frame(shard, seq)) as FactRecord).facts
  const { sent, json } = factsAt(found.begun) as SaleFacts
  const proof = found.settled === undefined ? {} : { proof: (factsAt(found.settled) as SoldFacts).proof }
  return ok({ sale: { sent, json, ...proof } satisfies KeptSale })
}
