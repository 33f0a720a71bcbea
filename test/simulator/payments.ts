/**
 * Payments for tools by x402 and by MPP, and the networks that settle them: each payment at most once, and only while it is valid.
 */
import { createHash } from 'node:crypto'
import { chainIdOf, tempoTokens, usdc } from '../../src/money/networks.ts'
import { feeMicrosMax } from '../../src/payments/tempo.ts'
import { walletOf } from '../../src/payments/wallet.ts'
import { decodeBase64Json, encodeBase64Json } from '../../src/payments/x402.ts'
import type { Simulation } from '../support/simulation.ts'

/** Where sellers are paid: CAIP-2. */
const networks = { x402: 'eip155:8453', mpp: 'eip155:4217' } as const
/** By the host of a node: the network that it knows. A node answers like any other host: well, late, or not at all. */
export const nodes: Readonly<Record<string, string>> = { 'node.example': networks.x402, 'tempo.example': networks.mpp }
/** How long a payment is valid, in seconds, as its seller demands it: some expire before a slow answer comes. */
const lifeSeconds = { short: 15, long: 100 }
/** The payer allows for clocks that are this many seconds behind: `src/payments/x402.ts`. */
const backdatedSeconds = 600
/** How long the payer makes a payment by MPP valid: `src/payments/tempo.ts`. */
const transactionSeconds = 25
/** A block has the state of this many seconds. */
const blockSeconds = 2
/**
 * A node is behind by fewer seconds, or by so many that it does not know yet whether a payment has expired. A transaction is looked up in
 * no certain block, so the payer asks when every node must know it.
 */
const lagSeconds = { usual: 20, long: 200, longOfTransactions: 50 }
export const priceStep = 4_000
/** The highest price of any seller, and the fee. */
export const priceMax = 10 * priceStep + feeMicrosMax
/** By then the payer has asked a node what became of a payment. */
export const settledMs = 200_000

/** The same in every run. */
export const wallet = await walletOf(createHash('sha256').update('simulated wallet').digest())

/** What a seller charges for one call, in millionths of a dollar. */
export type Terms = {
  readonly protocol: 'x402' | 'mpp'
  readonly amount: number
  /** With the fee, unless the seller pays it. */
  readonly micros: number
  readonly payee: string
  readonly lifeSeconds: number
}

/** A payment as its seller reads it. */
export type Payment = Pick<Terms, 'amount' | 'micros' | 'payee'> & {
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
  const [method] = hashOf('method')
  const amount = priceStep * (1 + (price! % 10))
  return {
    protocol: method! % 2 === 0 ? 'x402' : 'mpp',
    amount,
    micros: amount + (method! % 4 === 1 ? feeMicrosMax : 0),
    payee,
    lifeSeconds: life! % 2 === 0 ? lifeSeconds.short : lifeSeconds.long,
  }
}

/** The header in which a seller demands payment. `id`: of this demand. */
export function demandOf(terms: Terms, url: string, id: string): readonly [name: string, value: string] {
  const { amount, micros, payee, lifeSeconds: maxTimeoutSeconds } = terms
  if (terms.protocol === 'mpp') {
    const chainId = chainIdOf(networks.mpp)!
    const methodDetails = { chainId, feePayer: amount === micros }
    const request = { amount: String(amount), currency: tempoTokens[chainId]![0], recipient: payee, methodDetails }
    const encoded = Buffer.from(JSON.stringify(request)).toString('base64url')
    const { host } = new URL(url)
    const given = { id, realm: host, method: 'tempo', intent: 'charge', request: encoded }
    const params = Object.entries(given).map(([name, value]) => `${name}="${value}"`)
    return ['www-authenticate', `Payment ${params.join(', ')}`]
  }
  const { address: asset, name, version } = usdc[networks.x402]!
  const accepted = { scheme: 'exact', network: networks.x402, amount: String(amount), asset, payTo: payee }
  const accepts = [{ ...accepted, extra: { name, version }, maxTimeoutSeconds }]
  return ['payment-required', encodeBase64Json({ x402Version: 2, resource: { url }, accepts })]
}

export function paymentIn(headers: Readonly<Record<string, string>> | undefined): Payment | undefined {
  const transaction = /^Payment (.+)$/.exec(headers?.Authorization ?? '')?.[1]
  if (transaction !== undefined) return transactionIn(transaction)
  const header = headers?.['PAYMENT-SIGNATURE']
  if (header === undefined) return undefined
  const { payload } = decodeBase64Json(header) as { readonly payload: { readonly authorization: Authorization } }
  const { to: payee, value, nonce, validAfter, validBefore } = payload.authorization
  const validUntil = Number(validBefore)
  const amount = Number(value)
  return { header, payee, nonce, amount, micros: amount, signedAt: Number(validAfter) + backdatedSeconds, validUntil }
}

type Credential = { readonly payload: { readonly signature: string } }

/** A payment by MPP is a transaction that only the seller sends: src/payments/tempo.ts lists its fields. */
function transactionIn(credential: string): Payment {
  const { payload } = JSON.parse(Buffer.from(credential, 'base64url').toString('utf8')) as Credential
  const bytes = Buffer.from(payload.signature.slice(2), 'hex')
  const fields = listIn(bytes.subarray(1))
  const [, , data] = listIn(listIn(fields[4]!)[0]!).map(textIn)
  const [payee, amount, memo] = [data!.subarray(16, 36), data!.subarray(36, 68), data!.subarray(68, 100)]
  const isSponsored = textIn(fields[11]!).length > 0
  const charged = Number(`0x${amount.toString('hex')}`)
  const id = isSponsored ? memo : wallet.keccak(bytes)
  const validUntil = Number(`0x${textIn(fields[8]!).toString('hex')}`)
  return {
    header: credential,
    payee: `0x${payee.toString('hex')}`,
    nonce: `0x${id.toString('hex')}`,
    amount: charged,
    micros: charged + (isSponsored ? 0 : feeMicrosMax),
    signedAt: validUntil - transactionSeconds,
    validUntil,
  }
}

/** The items of a list in RLP, each as it is encoded. */
function listIn(bytes: Buffer): Buffer[] {
  const items: Buffer[] = []
  let rest = bytes.subarray(prefixOf(bytes).length)
  while (rest.length > 0) {
    const { length, content } = prefixOf(rest)
    items.push(rest.subarray(0, length + content))
    rest = rest.subarray(length + content)
  }
  return items
}

/** The bytes of an item in RLP that is no list. */
function textIn(item: Buffer): Buffer {
  return item.subarray(prefixOf(item).length)
}

/** Recursive length prefix: how long the prefix is, and how long what follows. */
function prefixOf(item: Buffer): { readonly length: number; readonly content: number } {
  const first = item[0]!
  if (first < 0x80) return { length: 0, content: 1 }
  const short = first - (first < 0xc0 ? 0x80 : 0xc0)
  return short < 56 ? { length: 1, content: short } : { length: short - 54, content: item.readUIntBE(1, short - 55) }
}

/** The header in which a seller acknowledges a payment. */
export function receiptOf({ protocol }: Terms, { nonce }: Payment): readonly [name: string, value: string] {
  if (protocol === 'x402')
    return ['payment-response', encodeBase64Json({ success: true, transaction: nonce, network: networks.x402 })]
  const receipt = { status: 'success', method: 'tempo', timestamp: '2026-09-22T00:00:00Z', reference: nonce }
  return ['payment-receipt', Buffer.from(JSON.stringify(receipt)).toString('base64url')]
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
      this.#sim.randomBelow(Math.max(1, payment.validUntil - this.#now) * 2_000),
    )
  }

  /** Answers JSON-RPC as a node of this network does that may be some blocks behind. */
  answer(network: string, body: string): string {
    const { method, params } = JSON.parse(body) as { readonly method: string; readonly params: readonly unknown[] }
    const long = network === networks.x402 ? lagSeconds.long : lagSeconds.longOfTransactions
    const lag = this.#sim.randomBelow(this.#sim.randomBelow(3) === 0 ? long : lagSeconds.usual)
    const height = Math.floor((this.#now - lag) / blockSeconds)
    return JSON.stringify({ jsonrpc: '2.0', id: 1, ...this.#result(network, method, params, height) })
  }

  #result(network: string, method: string, [first, second]: readonly unknown[], height: number): object {
    const hex = (value: number) => `0x${value.toString(16)}`
    const isKnownAt = (nonce: string, block: number): boolean => {
      const known = this.#collected.get(nonce)
      return known !== undefined && known.at <= block * blockSeconds
    }
    switch (method) {
      case 'eth_chainId':
        return { result: hex(chainIdOf(network)!) }
      case 'eth_getBlockByNumber':
        return { result: { number: hex(height), timestamp: hex(height * blockSeconds) } }
      case 'eth_getTransactionReceipt':
        return { result: isKnownAt(String(first), height) ? { status: '0x1' } : null }
      case 'eth_getLogs': {
        const { topics, toBlock } = first as { readonly topics: readonly string[]; readonly toBlock: string }
        return { result: isKnownAt(topics.at(-1)!, Math.min(height, Number(toBlock))) ? [{}] : [] }
      }
    }
    const { data } = first as { readonly data: string }
    const asked = Number(second)
    if (asked > height) return { error: { code: -32_000, message: 'header not found' } }
    return { result: `0x${String(Number(isKnownAt(`0x${data.slice(-64)}`, asked))).padStart(64, '0')}` }
  }

  get #now(): number {
    return this.#sim.platform.clock.wallSeconds()
  }
}
