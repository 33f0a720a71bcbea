/**
 * What paying is made of, whatever the protocol: a tool answers 402 with a demand, a demand holds offers, an offer that we can
 * take becomes a payment, and a payment is a header that is sent.
 *
 * A payment is signed once, written down, and then sent as it stands, as often as it takes: the same bytes can be settled only
 * once. Nothing here decides whether to pay; that is the actor's (actors/tool-calls/decide.ts).
 */
import type { Answered } from '../outgoing/request.ts'

export type Offer = {
  readonly protocol: 'x402' | 'mpp'
  /** CAIP-2. */
  readonly network: string
  /** Address that is paid. */
  readonly payee: string
  /** Millionths of a dollar, the network's fee at its most included. */
  readonly micros: number
  /** How much of that is the fee: the payee asks the rest. */
  readonly feeMicros: number
  /** Makes the payment. Called at most once for a call. */
  readonly sign: (now: number) => Promise<Payment>
}

export type Payment = {
  /** Name and value of the header that carries it. */
  readonly header: readonly [name: string, value: string]
  /** Unix seconds after which the payment can no longer be collected. */
  readonly validUntil: number
  /**
   * What names it on its network: `from`, `nonce`, `asset` of an EIP-3009 authorization; `hash` of a transaction; `asset`, `from`,
   * `to`, `memo` of a transfer whose transaction gets its hash when the seller has signed too.
   */
  readonly reference: Readonly<Record<string, string>>
}

export type Demand = {
  /** x402, as decoded. */
  readonly accepts: readonly unknown[]
  /** MPP, as decoded. */
  readonly challenges: readonly unknown[]
  /** Those that we could take, the cheapest first. */
  readonly offers: readonly Offer[]
}

/** What a tool says of a payment that it took. */
export type PaymentReceipt = {
  readonly protocol: 'x402' | 'mpp'
  readonly network: string
  readonly transaction?: string
  readonly reference?: string
  readonly timestamp?: string
}

export interface Payer {
  /** What a 402 asks for. `id`: of the call, 32 hex. */
  demandOf(answer: Answered, id: string): Demand
  /** Undefined: the answer names no payment that was taken. `network`: where it was to be taken. */
  receiptOf(answer: Answered, network: string): PaymentReceipt | undefined
  /** Whether there is a node of this network to ask. */
  canAsk(network: string): boolean
  /**
   * Whether the network knows that this payment was made; undefined: no node that could tell has answered. No is said only by a
   * node of that very network whose newest block is from after the payment's time.
   */
  wasMade(
    payment: Pick<Payment, 'reference' | 'validUntil'> & { readonly network: string },
  ): Promise<boolean | undefined>
}
