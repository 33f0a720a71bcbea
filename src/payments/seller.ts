/**
 * Being paid for the board's own tools, one request at a time (off unless PAY_TO and FACILITATOR_URL are set). One 402 asks in
 * both protocols, and either is settled by the same facilitator, as an EIP-3009 transfer of USDC:
 *
 *   x402 v2        PAYMENT-REQUIRED               -> PAYMENT-SIGNATURE        -> PAYMENT-RESPONSE
 *   MPP evm/charge WWW-Authenticate: Payment      -> Authorization: Payment   -> Payment-Receipt
 *
 * The order is verify, work, settle, answer: who gets a result has paid, and who has paid gets it. The same payment again gets
 * the same answer, also while the first is under way; a settlement that nobody confirms is asked for again with the same bytes
 * and never turned into another 402: neither by what verifies it anew nor by a second settlement that is refused, since both are
 * refused of a transfer that was made. Where it is refused because its nonce is used up, it was made.
 *
 * A payment is what it names itself by, payer and nonce, however it is written and whatever tool it is sent to: a transfer that
 * settles once buys once, whether or not a facilitator says "success" to the same transfer again.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Outgoing } from '../outgoing/request.ts'
import type { Challenge } from './challenge.ts'
import { chainIdOf, usdc } from './networks.ts'
import { decodeBase64Json, encodeBase64Json, type Fields, isObject, parsedObject, plainText } from './x402.ts'

export type SellerOptions = {
  readonly payTo: string
  readonly facilitator: string
  /** CAIP-2, one whose USDC is known. */
  readonly network: string
  readonly micros: number
  /** Host of the board. */
  readonly realm: string
  readonly secret: Buffer
  readonly outgoing: Outgoing
  readonly wallSeconds: () => number
}

export type Bought = {
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string
}
/** What is sold: its name, where it is, and the work; a text of JSON, or why there is none. */
export type Ware = {
  readonly id: string
  readonly url: string
  readonly description: string
  readonly work: () => Promise<{ readonly json: string } | { readonly status: 400 | 503; readonly problem: string }>
}

type Authorization = { readonly from: string; readonly nonce: string } & Fields
type Claim = {
  readonly protocol: 'x402' | 'mpp'
  readonly payload: { readonly signature: unknown; readonly authorization: Authorization }
  /** Unix seconds after which it buys nothing new. */
  readonly until?: number
}
type Sale = { readonly sent: string; readonly bought: Promise<Bought> }
/** Of which it is not known whether it was settled, and what it buys if it was. */
type Doubt = { readonly sent: string; readonly json: string }
type Settled = { readonly success?: unknown; readonly transaction?: unknown; readonly errorReason?: unknown }

const lifeSeconds = 300
const keptMax = 2_000
const pendingReason = 'settlement_pending'
/** Words of a facilitator for an authorization of which the nonce is used up: `invalid_exact_evm_nonce_already_used`. */
const usedUp = /(?:nonce|authorization)_(?:is_)?(?:already_)?used/
const noStore = ['cache-control', 'no-store'] as const
const json = ['content-type', 'application/json'] as const

export class Seller {
  readonly #options: SellerOptions
  readonly #chainId: number
  /** What was sold, or is being sold, by payer and nonce; oldest first. */
  readonly #sold = new Map<string, Sale>()
  /** By payer and nonce, oldest first. */
  readonly #doubts = new Map<string, Doubt>()

  constructor(options: SellerOptions) {
    this.#options = options
    this.#chainId = chainIdOf(options.network)!
  }

  /** `payment`: the header of either protocol, or undefined. */
  async sell(ware: Ware, payment: { readonly x402?: string; readonly mpp?: string }): Promise<Bought> {
    const { x402, mpp } = payment
    if (x402 === undefined && mpp === undefined)
      return this.#ask(ware, 'payment-required', 'this tool is paid for by the call')
    const claim = x402 === undefined ? await this.#mppClaim(ware, mpp!) : this.#x402Claim(x402)
    if (typeof claim === 'string') return this.#ask(ware, 'verification-failed', claim)
    const { from, nonce } = claim.payload.authorization
    const key = `${from} ${nonce}`.toLowerCase()
    const sent = createHash('sha256')
      .update(`${ware.id}\n${canonical(claim.payload)}`)
      .digest('base64url')
    const before = this.#sold.get(key)
    const doubt = this.#doubts.get(key)
    if ((before ?? doubt ?? { sent }).sent !== sent)
      return this.#ask(ware, 'verification-failed', 'this payment was sent for something else: it buys one call')
    if (before !== undefined) return before.bought
    if (doubt === undefined && !((claim.until ?? Number.POSITIVE_INFINITY) > this.#options.wallSeconds()))
      return this.#ask(ware, 'verification-failed', 'this challenge has expired')
    const sale: Sale = { sent, bought: this.#sale(ware, claim, key, sent) }
    keep(this.#sold, key, sale)
    const bought = await sale.bought.catch((error: unknown) => {
      this.#sold.delete(key)
      throw error
    })
    // What was not sold may be paid for again.
    if (bought.status !== 200) this.#sold.delete(key)
    return bought
  }

  async #sale(ware: Ware, { protocol, payload }: Claim, key: string, sent: string): Promise<Bought> {
    const accepted = this.#accepts()
    const paymentPayload = { x402Version: 2, accepted, payload }
    const body = { x402Version: 2, paymentPayload, paymentRequirements: accepted }
    const doubt = this.#doubts.get(key)
    let result = doubt?.json
    if (result === undefined) {
      const verified = await this.#facilitator('verify', body)
      if (verified === undefined) return pending('the facilitator does not answer: send the same again')
      if (verified.isValid !== true) return this.#ask(ware, 'verification-failed', reasonOf(verified.invalidReason))
      const made = await ware.work()
      if ('problem' in made) return problem(made.status, 'invalid-request', made.problem)
      result = made.json
    }
    const first: Settled | undefined = await this.#facilitator('settle', body)
    const settled: Settled | undefined = first ?? (await this.#facilitator('settle', body))
    const isDoubtful = doubt !== undefined || first === undefined
    const { network } = this.#options
    const response = ['PAYMENT-RESPONSE', encodeBase64Json({ network, ...settled })] as const
    if (settled?.success === true) {
      this.#doubts.delete(key)
      return sold(result, protocol === 'x402' ? response : this.#receipt(settled))
    }
    const reason = settled?.errorReason
    // Nobody has named its transaction, so there is nothing to prove it by.
    if (isDoubtful && typeof reason === 'string' && usedUp.test(reason)) {
      this.#doubts.delete(key)
      return sold(result)
    }
    if (isDoubtful || reason === pendingReason) {
      keep(this.#doubts, key, { sent, json: result })
      return pending(`${pendingReason}: it is not known yet whether this payment was made: send the same again`)
    }
    const asked = await this.#ask(ware, 'verification-failed', reasonOf(reason))
    return { ...asked, headers: [...asked.headers, response] }
  }

  #receipt({ transaction }: Settled): readonly [string, string] {
    const timestamp = new Date(this.#options.wallSeconds() * 1_000).toISOString()
    const receipt = { status: 'success', method: 'evm', timestamp, reference: String(transaction) }
    return ['Payment-Receipt', Buffer.from(JSON.stringify(receipt)).toString('base64url')]
  }

  #accepts(): Fields {
    const { network, micros, payTo } = this.#options
    const { address, name, version } = usdc[network]!
    return {
      scheme: 'exact',
      network,
      amount: String(micros),
      asset: address,
      payTo,
      maxTimeoutSeconds: lifeSeconds,
      extra: { name, version },
    }
  }

  #x402Claim(header: string): Claim | string {
    const sent = decodeBase64Json(header)
    if (sent?.x402Version !== 2 || !isObject(sent.accepted) || !isObject(sent.payload))
      return 'this is no payment of x402 version 2'
    // Never the client's copy: what is verified and settled are our own terms.
    if (canonical(sent.accepted) !== canonical(this.#accepts()))
      return 'this payment accepts terms that this tool does not offer'
    const { signature, authorization } = sent.payload
    return claimOf('x402', signature, authorization)
  }

  async #mppClaim(ware: Ware, header: string): Promise<Claim | string> {
    const sent = parsedObject(Buffer.from(header, 'base64url').toString('utf8'))
    const { challenge, payload } = (sent ?? {}) as { challenge?: Partial<Challenge>; payload?: unknown }
    if (!isObject(challenge) || !isObject(payload)) return 'this is no credential'
    const expires = plainText(challenge.expires)
    const ours = this.#challenge(ware, expires)
    const isOurs =
      sameText(ours.id, plainText(challenge.id)) && challenge.request === ours.request && challenge.realm === ours.realm
    if (!isOurs) return 'this credential answers no challenge of this tool'
    const { type, from, to, value, validAfter, validBefore, nonce, signature } = payload
    const { keccak_256 } = await import('@noble/hashes/sha3.js')
    const bound = `0x${Buffer.from(keccak_256(Buffer.from(`${ours.id}${ours.realm}`))).toString('hex')}`
    if (type !== 'authorization' || nonce !== bound) return 'this credential is not bound to its challenge'
    const authorization = { from, to, value, validAfter, validBefore, nonce }
    const claim = claimOf('mpp', signature, authorization)
    return typeof claim === 'string' ? claim : { ...claim, until: Date.parse(expires) / 1_000 }
  }

  #challenge(ware: Ware, expires: string): Challenge {
    const { realm, secret, micros, payTo, network } = this.#options
    const request = Buffer.from(
      canonical({
        amount: String(micros),
        currency: usdc[network]!.address,
        externalId: ware.id,
        methodDetails: { chainId: this.#chainId, credentialTypes: ['authorization'], decimals: 6 },
        recipient: payTo,
      }),
    ).toString('base64url')
    const slots = [realm, 'evm', 'charge', request, expires, '', '']
    const id = createHmac('sha256', secret).update(slots.join('|')).digest('base64url')
    return { id, realm, method: 'evm', intent: 'charge', request, expires }
  }

  async #ask(ware: Ware, code: string, detail: string): Promise<Bought> {
    const resource = { url: ware.url, description: ware.description, mimeType: 'application/json' }
    const required = { x402Version: 2, error: detail, resource, accepts: [this.#accepts()] }
    const expires = new Date((this.#options.wallSeconds() + lifeSeconds) * 1_000).toISOString()
    const { id, realm, method, intent, request } = this.#challenge(ware, expires)
    const params = Object.entries({ id, realm, method, intent, request, expires }).map(
      ([name, value]) => `${name}="${value}"`,
    )
    const asked = problem(402, code, detail)
    return {
      ...asked,
      headers: [
        ...asked.headers,
        ['PAYMENT-REQUIRED', encodeBase64Json(required)],
        ['WWW-Authenticate', `Payment ${params.join(', ')}`],
      ],
    }
  }

  /** Undefined: no answer that says anything. */
  async #facilitator(what: 'verify' | 'settle', body: object): Promise<Fields | undefined> {
    const answer = await this.#options.outgoing.request({
      url: `${this.#options.facilitator}/${what}`,
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify(body),
    })
    const found = answer.ok ? parsedObject(answer.body.toString('utf8')) : undefined
    // Other statuses than 200 come with the same shapes.
    return found !== undefined && ('isValid' in found || 'success' in found) ? found : undefined
  }
}

/** The oldest makes room. */
function keep<Kept>(all: Map<string, Kept>, key: string, value: Kept): void {
  all.set(key, value)
  if (all.size > keptMax) all.delete(all.keys().next().value as string)
}

/** Only what EIP-3009 knows goes on: nothing beside it tells two payments apart. */
function claimOf(protocol: Claim['protocol'], signature: unknown, said: unknown): Claim | string {
  const { to, value, validAfter, validBefore, ...named } = isObject(said) ? said : {}
  const [from, nonce] = [plainText(named.from), plainText(named.nonce)]
  if (!/^0x[0-9a-f]{40}$/i.test(from) || !/^0x[0-9a-f]{64}$/i.test(nonce))
    return 'this payment names no payer and nonce'
  const authorization = { from, to, value, validAfter, validBefore, nonce }
  return { protocol, payload: { signature, authorization } }
}

function problem(status: number, code: string, detail: string): Bought {
  const body = { type: `https://paymentauth.org/problems/${code}`, title: code, status, detail }
  return { status, headers: [['content-type', 'application/problem+json'], noStore], body: JSON.stringify(body) }
}

function sold(body: string, ...proof: readonly (readonly [string, string])[]): Bought {
  return { status: 200, headers: [json, ['cache-control', 'private'], ...proof], body }
}

function pending(detail: string): Bought {
  const found = problem(503, 'settlement-pending', detail)
  return { ...found, headers: [...found.headers, ['retry-after', '2']] }
}

function reasonOf(reason: unknown): string {
  return typeof reason === 'string' ? reason.replace(/[^\x20-\x7e]/g, '').slice(0, 200) : 'the payment is not valid'
}

function sameText(a: string, b: string): boolean {
  const [one, other] = [Buffer.from(a), Buffer.from(b)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** JSON with sorted keys: the same text for the same value. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
  return `{${members.join(',')}}`
}
