/**
 * The transfers of a work, read as what a person calls moving: each credit leaves one account for another once.
 *
 * The ledger holds first and settles later (actors/works/market/ledger.ts). A hold puts credits into escrow. Where it is voided they
 * go back to whom they were held from. Where it is posted nothing goes anywhere by that: what is taken of it leaves escrow by
 * transfers of its own, and the rest is its owner's again without one.
 */
import { codes } from '../../actors/works/market/ledger.ts'
import type { Posting } from '../../actors/works/market/letters.ts'

/** What of a posting says where credits go. */
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
