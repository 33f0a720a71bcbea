/** Payments for tools by x402, and the network that settles them: each payment at most once, and only while it is valid. */
import { createHash } from 'node:crypto'
import { chainIdOf, usdc } from '../../src/money/networks.ts'
import { walletOf } from '../../src/payments/wallet.ts'
import { decodeBase64Json, encodeBase64Json } from '../../src/payments/x402.ts'
import type { Simulation } from '../support/simulation.ts'

/** The network on which every seller is paid, CAIP-2. */
export const network = 'eip155:8453'
/** The host of a node of this network, which answers like any other host: well, late, or not at all. */
export const nodeHost = 'node.example'
/** How long a payment is valid, in seconds, as its seller demands it: some expire before a slow answer comes. */
const lifeSeconds = { short: 15, long: 100 }
/** The payer allows for clocks that are this many seconds behind: `src/payments/x402.ts`. */
const backdatedSeconds = 600
/** A block has the state of this many seconds. */
const blockSeconds = 2
/** A node is behind by fewer seconds, or by so many that it does not know yet whether a payment has expired. */
const lagSeconds = { usual: 20, long: 200 }
export const priceStep = 4_000
/** The highest price of any seller. */
export const priceMax = 10 * priceStep
/** By then the payer has asked a node what became of a payment. */
export const settledMs = 200_000

/** The same in every run. */
export const wallet = await walletOf(createHash('sha256').update('simulated wallet').digest())

/** What a seller charges for one call. `micros`: millionths of a dollar. */
export type Terms = { readonly micros: number; readonly payee: string; readonly lifeSeconds: number }

/** A payment as its seller reads it. */
export type Payment = Pick<Terms, 'micros' | 'payee'> & {
  /** The whole header that carries it. */
  readonly header: string
  /** It can be collected once. */
  readonly nonce: string
  /** Virtual seconds. */
  readonly signedAt: number
  readonly validUntil: number
}

type Authorization = Readonly<Record<'to' | 'value' | 'nonce' | 'validAfter' | 'validBefore', string>>

/** The terms of a seller; undefined: it is free. Every version of them has another payee, and every second one another price. */
export function termsOf(host: string, version = 0): Terms | undefined {
  const hashOf = (what: string) => createHash('sha256').update(`${host} ${what}`).digest()
  const [isFree, price, life] = hashOf(`price ${version >> 1}`)
  if (isFree! % 4 === 0) return undefined
  const payee = `0x${hashOf(`payee ${version}`).toString('hex', 0, 20)}`
  return {
    micros: priceStep * (1 + (price! % 10)),
    payee,
    lifeSeconds: life! % 2 === 0 ? lifeSeconds.short : lifeSeconds.long,
  }
}

/** The header in which a seller demands payment. */
export function demandOf({ micros, payee, lifeSeconds: maxTimeoutSeconds }: Terms, url: string): string {
  const { address: asset, name, version } = usdc[network]!
  const accepted = { scheme: 'exact', network, amount: String(micros), asset, payTo: payee, extra: { name, version } }
  return encodeBase64Json({
    x402Version: 2,
    resource: { url },
    accepts: [{ ...accepted, maxTimeoutSeconds }],
  })
}

export function paymentIn(headers: Readonly<Record<string, string>> | undefined): Payment | undefined {
  const header = headers?.['PAYMENT-SIGNATURE']
  if (header === undefined) return undefined
  const { payload } = decodeBase64Json(header) as { readonly payload: { readonly authorization: Authorization } }
  const { to: payee, value, nonce, validAfter, validBefore } = payload.authorization
  const validUntil = Number(validBefore)
  return { header, payee, nonce, micros: Number(value), signedAt: Number(validAfter) + backdatedSeconds, validUntil }
}

/** The header in which a seller acknowledges a payment. */
export function receiptOf({ nonce }: Payment): string {
  return encodeBase64Json({ success: true, transaction: nonce, network })
}

export class PaymentNetwork {
  readonly #sim: Simulation
  /** With the second in which each was collected. */
  readonly #collected = new Map<string, { readonly payment: Payment; readonly at: number }>()

  constructor(sim: Simulation) {
    this.#sim = sim
  }

  /** Everything that sellers have collected. */
  get collected(): readonly Payment[] {
    return [...this.#collected.values()].map(({ payment }) => payment)
  }

  hasCollected(nonce: string): boolean {
    return this.#collected.has(nonce)
  }

  /** False: it is no longer valid. A payment that was collected before is not collected again. */
  collect(payment: Payment): boolean {
    const at = this.#now
    if (this.#collected.has(payment.nonce)) return true
    if (at >= payment.validUntil) return false
    this.#collected.set(payment.nonce, { payment, at })
    return true
  }

  /** A seller that collects at some later time, if it still can. */
  collectLater(payment: Payment): void {
    this.#sim.schedule(
      () => this.collect(payment),
      this.#sim.randomBelow((payment.validUntil - payment.signedAt) * 2_000),
    )
  }

  /** Answers JSON-RPC as a node does that may be some blocks behind. */
  answer(body: string): string {
    const { method, params } = JSON.parse(body) as { readonly method: string; readonly params: readonly unknown[] }
    const lag = this.#sim.randomBelow(this.#sim.randomBelow(3) === 0 ? lagSeconds.long : lagSeconds.usual)
    const height = Math.floor((this.#now - lag) / blockSeconds)
    return JSON.stringify({ jsonrpc: '2.0', id: 1, ...this.#result(method, params, height) })
  }

  #result(method: string, [first, second]: readonly unknown[], height: number): object {
    const hex = (value: number) => `0x${value.toString(16)}`
    if (method === 'eth_chainId') return { result: hex(chainIdOf(network)!) }
    if (method === 'eth_getBlockByNumber')
      return { result: { number: hex(height), timestamp: hex(height * blockSeconds) } }
    const { data } = first as { readonly data: string }
    const asked = Number(second)
    if (asked > height) return { error: { code: -32_000, message: 'header not found' } }
    const known = this.#collected.get(`0x${data.slice(-64)}`)
    const isThere = known !== undefined && known.at <= asked * blockSeconds
    return { result: `0x${String(Number(isThere)).padStart(64, '0')}` }
  }

  get #now(): number {
    return this.#sim.platform.clock.wallSeconds()
  }
}
