/** Sales as the seller reads them, by the key of the payment. Used only by the board itself. */
import { ActsOf, fromFrame } from '../../actors/records/record.ts'
import type { SaleFacts, SoldFacts } from '../../actors/sales/sales.ts'
import { type KnownAnswer, known, type ReadContext, type ReadRequest, type Reads } from '../reads/read.ts'
import type { KeptSale } from './seller.ts'

export const salesReads = { 'sale.find': find } satisfies Reads

const begun = new ActsOf<SaleFacts>('sale.begun')
const settled = new ActsOf<SoldFacts>('sale.settled')

/** `sale` is absent if there is none. */
function find({ state, frame, now }: ReadContext, { args }: ReadRequest): KnownAnswer<{ sale?: KeptSale }> {
  const found = state.sales.find(String(args.key), now())
  if (found === undefined) return known({})
  const recordAt = ({ shard, seq }: { shard: number; seq: number }) => fromFrame(frame(shard, seq))
  const { sent, json } = begun.in(recordAt(found.begun)).facts
  const proof = found.settled === undefined ? {} : { proof: settled.in(recordAt(found.settled)).facts.proof }
  return known({ sale: { sent, json, ...proof } })
}
