/**
 * Reads the transfers of a work as plain moves: each credit leaves one account for another once.
 *
 * The ledger holds first and settles later (actors/works/market/ledger.ts). A hold puts credits into escrow. If it is voided, they return
 * to the account they were held from. Posting a hold moves nothing in itself: what is taken from the hold leaves escrow by separate
 * transfers, and the rest returns to its owner without one.
 */
import { codes } from '../../actors/works/market/ledger.ts'
import type { Posting } from '../../actors/works/market/letters.ts'

/** The fields of a posting that say where credits go. */
type Transfer = Pick<Posting, 'code' | 'debit' | 'credit' | 'amount'> & { readonly type: string }

export type Move = {
  readonly code: number
  readonly from: string
  readonly to: string
  readonly amount: number
}

/** What moved at each transition, in order. */
export function movesOf(
  transitions: readonly { readonly transfers: readonly Transfer[] }[],
): readonly (readonly Move[])[] {
  let held = 0
  return transitions.map(({ transfers }) =>
    transfers.flatMap(({ type, code, debit, credit, amount }): readonly Move[] => {
      if (type === 'void') return [{ code, from: credit, to: debit, amount }]
      if (code === codes.hold) held = amount
      if (type !== 'post') return [{ code, from: debit, to: credit, amount }]
      const rest = code === codes.holdTaken ? held - amount : 0
      return rest > 0 ? [{ code: codes.refund, from: credit, to: debit, amount: rest }] : []
    }),
  )
}
