/**
 * Whether the board pays what a tool asks, and which of its offers: only for a tool that the operator marked, only to a payee
 * that they named, never more than they said, than the listing says, than the caller says. The cheapest offer that fits is taken.
 * Operator and listing limit what the payee asks; the caller limits what they are charged, the network's fee included.
 */

import { priceOf } from '../money/price.ts'
import type { Demand, Offer } from '../payments/payment.ts'

type Terms = {
  /** What the operator lets the wallet pay for this tool; undefined: nothing. */
  readonly mark: { readonly micros: number; readonly payees: readonly string[] } | undefined
  /** What the listing says, in millionths of a dollar; undefined: nothing. */
  readonly listed: number | undefined
  /** What the caller says. */
  readonly most: number | undefined
}

/** A text: why not, for the caller; its first word is a code. */
export function chosenOffer({ offers }: Demand, { mark, listed, most }: Terms): Offer | string {
  if (mark === undefined) return 'not_relayed: the wallet of this board does not pay for this tool'
  if (offers.length === 0) return 'no_offer: this board supports none of the ways to pay'
  const known = new Set(mark.payees.map((each) => each.toLowerCase()))
  const [cheapest] = offers.filter(({ payee }) => known.has(payee.toLowerCase())).sort((a, b) => a.micros - b.micros)
  if (cheapest === undefined) return 'payee_changed: it names a payee that the operator of this board has not approved'
  const asked = cheapest.micros - cheapest.feeMicros
  const agreed = Math.min(mark.micros, listed ?? mark.micros)
  if (asked > agreed) return `price_changed: it asks ${priceOf(asked)} dollars, and ${priceOf(agreed)} were agreed`
  if (most !== undefined && cheapest.micros > most)
    return `over_max_price: it costs ${priceOf(cheapest.micros)} dollars, and max_price is ${priceOf(most)}`
  return cheapest
}
