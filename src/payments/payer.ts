/** Both protocols by one interface: what a 402 asks, what we could pay, what came of it. */

import type { Answered, Outgoing } from '../outgoing/request.ts'
import type { Random } from '../platform.ts'
import { isPaid, nodeAt } from './chain.ts'
import { challengesOf, mppOffers, mppReceiptOf, shownChallenge } from './mpp.ts'
import type { Demand, Payer, PaymentReceipt } from './payment.ts'
import type { Wallet } from './wallet.ts'
import { x402DemandOf, x402Offers, x402ReceiptOf } from './x402.ts'

export type PayerOptions = {
  /** Absent: demands are read and nothing is offered. */
  readonly wallet?: Wallet
  /** Address of a node by CAIP-2 network: asked whether a payment was made. */
  readonly nodes: ReadonlyMap<string, string>
  readonly outgoing: Outgoing
  readonly wallSeconds: () => number
  readonly random: Random
}

export function createPayer({ wallet, nodes, outgoing, random, wallSeconds }: PayerOptions): Payer {
  return {
    demandOf(answer, id): Demand {
      const x402 = x402DemandOf(answer)
      const challenges = challengesOf(answer)
      const offers =
        wallet === undefined
          ? []
          : [
              ...(x402 === undefined ? [] : x402Offers(x402, wallet, id, random)),
              ...mppOffers(challenges, wallet, wallSeconds()),
            ]
      return {
        accepts: x402?.accepts ?? [],
        challenges: challenges.map(shownChallenge),
        offers: offers.sort((a, b) => a.micros - b.micros),
      }
    },
    receiptOf(answer: Answered, network): PaymentReceipt | undefined {
      const mpp = mppReceiptOf(answer)
      return x402ReceiptOf(answer) ?? (mpp === undefined ? undefined : { ...mpp, network })
    },
    canAsk: (network) => nodes.has(network),
    async wasMade({ network, reference, validUntil }) {
      const url = nodes.get(network)
      return url === undefined ? undefined : isPaid(nodeAt(url, outgoing), { network, reference, validUntil })
    },
  }
}
