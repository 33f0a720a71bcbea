/**
 * x402, versions 1 and 2, scheme `exact` on EVM networks by EIP-3009: what a 402 demands, the payment that answers it, and the settlement
 * that comes back.
 *
 *            demanded in                     paid in              settled in
 *   v1       body, x402Version 1             X-PAYMENT            X-PAYMENT-RESPONSE
 *   v2       header PAYMENT-REQUIRED         PAYMENT-SIGNATURE    PAYMENT-RESPONSE
 *
 * Headers contain standard base64 of JSON. Everything a tool says is checked here before anything is signed; anything not exactly known
 * (scheme, network, token, transfer method) is no offer.
 */

import { foreignJson } from '../format/foreign-json.ts'
import { caip2, chainIdOf, usdc } from '../money/networks.ts'
import type { Answered } from '../outgoing/request.ts'
import type { Random } from '../platform.ts'
import { type Transfer, transferHash } from './eip712.ts'
import type { Offer, Payment, PaymentReceipt } from './payment.ts'
import type { Wallet } from './wallet.ts'

export type Fields = Readonly<Record<string, unknown>>

/** What a 402 demands in x402, decoded. */
type X402Demand = {
  readonly version: 1 | 2
  readonly accepts: readonly Fields[]
  readonly resource: unknown
  readonly extensions: unknown
}

const acceptsMax = 32
/** Longest validity of a payment that we sign, even if a seller wants more. */
const lifeMaxSeconds = 600
/** The clock of a network may be behind ours. */
const backdatedSeconds = 600

export function x402DemandOf({ headers, body }: Pick<Answered, 'headers' | 'body'>): X402Demand | undefined {
  const header = headers['payment-required']?.[0]
  const v2 = header === undefined ? undefined : decodeBase64Json(header)
  if (v2 !== undefined && v2.x402Version === 2) return demandIn(v2, 2)
  const v1 = parsedObject(body.toString('utf8'))
  return v1?.x402Version === 1 ? demandIn(v1, 1) : undefined
}

function demandIn({ accepts, resource, extensions }: Fields, version: 1 | 2): X402Demand | undefined {
  if (!Array.isArray(accepts)) return undefined
  return { version, accepts: accepts.filter(isObject).slice(0, acceptsMax), resource, extensions }
}

/** The offers that we can accept, each with its signing function. `id`: of the call, 32 hex; a seller may recognize a repetition by it. */
export function x402Offers(demand: X402Demand, wallet: Wallet, id: string, random: Random): Offer[] {
  return demand.accepts.flatMap((accepted) => {
    const terms = termsOf(demand.version, accepted)
    if (terms === undefined) return []
    const { network, payee, micros } = terms
    const sign = async (now: number) => payment({ demand, accepted, terms, wallet, id, random }, now)
    return [{ protocol: 'x402' as const, network, payee, micros, feeMicros: 0, sign }]
  })
}

type Terms = {
  readonly network: string
  readonly chainId: number
  readonly asset: string
  readonly name: string
  readonly version: string
  readonly payee: string
  readonly micros: number
  readonly lifeSeconds: number
}

function termsOf(version: 1 | 2, accepted: Fields): Terms | undefined {
  const { scheme, payTo, asset, maxTimeoutSeconds } = accepted
  const network = caip2(plainText(accepted.network))
  const amount = plainText(version === 1 ? accepted.maxAmountRequired : accepted.amount)
  const payee = plainText(payTo)
  const extra = isObject(accepted.extra) ? accepted.extra : {}
  const token = usdc[network]
  const chainId = chainIdOf(network)
  if (scheme !== 'exact' || token === undefined || chainId === undefined) return undefined
  if (plainText(asset).toLowerCase() !== token.address.toLowerCase()) return undefined
  if (!/^0x[0-9a-fA-F]{40}$/.test(payee) || !/^(0|[1-9]\d{0,14})$/.test(amount)) return undefined
  if ((extra.name ?? token.name) !== token.name || (extra.version ?? token.version) !== token.version) return undefined
  if (
    (extra.assetTransferMethod ?? 'eip3009') !== 'eip3009' ||
    (extra.paymentFlow ?? 'authorization') !== 'authorization'
  )
    return undefined
  const life = Number(plainText(maxTimeoutSeconds))
  if (!Number.isSafeInteger(life) || life < 1) return undefined
  const lifeSeconds = Math.min(life, lifeMaxSeconds)
  const { name, version: tokenVersion } = token
  return {
    network,
    chainId,
    asset: token.address,
    name,
    version: tokenVersion,
    payee,
    micros: Number(amount),
    lifeSeconds,
  }
}

type Made = {
  readonly demand: X402Demand
  readonly accepted: Fields
  readonly terms: Terms
  readonly wallet: Wallet
  readonly id: string
  readonly random: Random
}

function payment({ demand, accepted, terms, wallet, id, random }: Made, now: number): Payment {
  const validUntil = now + terms.lifeSeconds
  const authorization: Transfer = {
    from: wallet.address,
    to: terms.payee,
    value: String(terms.micros),
    validAfter: String(now - backdatedSeconds),
    validBefore: String(validUntil),
    nonce: `0x${random(32).toString('hex')}`,
  }
  const domain = { name: terms.name, version: terms.version, chainId: terms.chainId, verifyingContract: terms.asset }
  const signature = `0x${wallet.sign(transferHash(domain, authorization, wallet.keccak)).toString('hex')}`
  const payload = { signature, authorization }
  const reference = { from: wallet.address, nonce: authorization.nonce, asset: terms.asset }
  if (demand.version === 1) {
    const { scheme, network } = accepted
    return {
      header: ['X-PAYMENT', encodeBase64Json({ x402Version: 1, scheme, network, payload })],
      validUntil,
      reference,
    }
  }
  const resource = isObject(demand.resource) ? { resource: demand.resource } : {}
  const sent = { x402Version: 2, ...resource, accepted, payload, ...identified(demand.extensions, id) }
  return { header: ['PAYMENT-SIGNATURE', encodeBase64Json(sent)], validUntil, reference }
}

/** Extension `payment-identifier`: the seller's object with our id added. */
function identified(extensions: unknown, id: string): Fields {
  const asked = isObject(extensions) ? extensions['payment-identifier'] : undefined
  if (!isObject(asked)) return {}
  const info = isObject(asked.info) ? asked.info : {}
  return { extensions: { 'payment-identifier': { ...asked, info: { ...info, id } } } }
}

/** Undefined if no settlement is named, or it did not succeed. */
export function x402ReceiptOf({ headers }: Pick<Answered, 'headers'>): PaymentReceipt | undefined {
  const header = headers['payment-response']?.[0] ?? headers['x-payment-response']?.[0]
  const { success, transaction, network } = (header === undefined ? undefined : decodeBase64Json(header)) ?? {}
  if (success !== true || typeof transaction !== 'string') return undefined
  return { protocol: 'x402', network: caip2(shortText(network)), transaction: shortText(transaction) }
}

export function encodeBase64Json(value: unknown): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64')
}

/** Accepts either alphabet; undefined if it contains no JSON object. */
export function decodeBase64Json(text: string): Fields | undefined {
  return parsedObject(Buffer.from(text, 'base64').toString('utf8'))
}

export function parsedObject(text: string): Fields | undefined {
  const value = foreignJson(text)
  return isObject(value) ? value : undefined
}

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Untrusted input where a text is expected: only a text or number can be converted safely. */
export function plainText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

export function shortText(value: unknown): string {
  return typeof value === 'string' ? value.replace(/[^\x20-\x7e]/g, '').slice(0, 128) : ''
}
