/**
 * The concepts of paying, whatever the protocol: a tool answers 402 with a demand, a demand contains offers, an offer that we can accept
 * becomes a payment, and a payment is a header that is sent.
 *
 * A payment is signed once, recorded, and then sent unchanged, as often as necessary: the same bytes can be settled only once. Nothing here
 * decides whether to pay; the actor does (actors/tool-calls/decide.ts).
 */
import type { Answered } from '../outgoing/request.ts'

export type Offer = {
  readonly protocol: 'x402' | 'mpp'
  /** CAIP-2. */
  readonly network: string
  /** Address to be paid. */
  readonly payee: string
  /** Millionths of a dollar, including the network's maximum fee. */
  readonly micros: number
  /** The part of it that is the fee; the payee demands the rest. */
  readonly feeMicros: number
  /** Creates the payment. Called at most once per call. */
  readonly sign: (now: number) => Promise<Payment>
}

export type Payment = {
  /** Name and value of the header that carries it. */
  readonly header: readonly [name: string, value: string]
  /** Unix seconds after which the payment can no longer be collected. */
  readonly validUntil: number
  /**
   * Identifies it on its network: `from`, `nonce`, `asset` of an EIP-3009 authorization; `hash` of a transaction; or `asset`, `from`, `to`,
   * `memo` of a transfer whose transaction gets its hash only when the seller has signed too.
   */
  readonly reference: Readonly<Record<string, string>>
}

export type Demand = {
  /** x402, decoded. */
  readonly accepts: readonly unknown[]
  /** MPP, decoded. */
  readonly challenges: readonly unknown[]
  /** Those that we could accept, cheapest first. */
  readonly offers: readonly Offer[]
}

/** What a tool reports about a payment that it took. */
export type PaymentReceipt = {
  readonly protocol: 'x402' | 'mpp'
  readonly network: string
  readonly transaction?: string
  readonly reference?: string
  readonly timestamp?: string
}

export interface Payer {
  /** What a 402 demands. `id`: of the call, 32 hex. */
  demandOf(answer: Answered, id: string): Demand
  /** Undefined if the answer reports no payment as taken. `network`: where it was to be taken. */
  receiptOf(answer: Answered, network: string): PaymentReceipt | undefined
  /** Whether there is a node of this network to query. */
  canAsk(network: string): boolean
  /**
   * Whether the network knows that this payment was made; undefined if no node that could tell has answered. Only a node of that very
   * network whose newest block is later than the payment's validity can say no.
   */
  wasMade(
    payment: Pick<Payment, 'reference' | 'validUntil'> & { readonly network: string },
  ): Promise<boolean | undefined>
}
