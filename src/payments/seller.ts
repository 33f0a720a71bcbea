/**
 * Gets paid for the board's own tools, per request (off unless PAY_TO and FACILITATOR_URL are set). One 402 offers every protocol, and the
 * same facilitator settles each as an EIP-3009 transfer of USDC:
 *
 *   x402 v1        `accepts` of the body          -> X-PAYMENT                -> X-PAYMENT-RESPONSE
 *   x402 v2        PAYMENT-REQUIRED               -> PAYMENT-SIGNATURE        -> PAYMENT-RESPONSE
 *   MPP evm/charge WWW-Authenticate: Payment      -> Authorization: Payment   -> Payment-Receipt
 *
 * The order is verify, work, record, settle, record, answer: whoever gets a result has paid, and whoever has paid gets it. The same payment
 * again gets the same answer, even while the first is in progress or after a kill at any moment.
 *
 * A settlement that nobody confirms, or that failed after it may have been sent, is requested again with the same bytes. It never becomes
 * another 402, neither through a repeated verification nor through a refused second settlement: both are refused for a transfer that was
 * made. If it is refused because its nonce is used up, it was made. A sale is stored for two days and for as long as its payment can be
 * settled, at most thirty days.
 *
 * A payment is identified by payer and nonce, however it is encoded and whatever tool it is sent to. A transfer that settles once buys
 * once, whether or not a facilitator says "success" to the same transfer again.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { caip2, chainIdOf, friendlyName, usdc } from '../money/networks.ts'
import type { Outgoing } from '../outgoing/request.ts'
import type { Challenge } from './challenge.ts'
import { decodeBase64Json, encodeBase64Json, type Fields, isObject, parsedObject, plainText } from './x402.ts'

type SellerOptions = {
  readonly payTo: string
  readonly facilitator: string
  /** CAIP-2; a network whose USDC is known. */
  readonly network: string
  readonly micros: number
  /** Host of the board. */
  readonly realm: string
  readonly secret: Buffer
  readonly outgoing: Outgoing
  readonly sales: SaleStore
  readonly wallSeconds: () => number
}

type SaleReply = {
  readonly status: number
  readonly headers: readonly Header[]
  readonly body: string
}
/** What is sold: its name, its address, and the work, which returns JSON text or the reason why there is none. */
export type Product = {
  readonly id: string
  readonly url: string
  readonly description: string
  readonly work: () => Promise<{ readonly json: string } | { readonly status: 400 | 503; readonly problem: string }>
}

type Header = readonly [name: string, value: string]
/** `proof`: headers sent with the result; absent if it is unknown whether it was paid. */
export type KeptSale = { readonly sent: string; readonly json: string; readonly proof?: readonly Header[] }
/** Storage for sales, by key. Every method rejects if it is not known to have succeeded. */
export type SaleStore = {
  find(key: string): Promise<KeptSale | undefined>
  begin(sale: Pick<KeptSale, 'sent' | 'json'> & { readonly key: string; readonly expires: number }): Promise<void>
  settle(sold: { readonly key: string; readonly proof: readonly Header[] }): Promise<void>
  drop(key: string): Promise<void>
}

type Authorization = { readonly from: string; readonly nonce: string } & Fields
type Claim = {
  readonly protocol: 'x402' | 'x402-v1' | 'mpp'
  readonly payload: { readonly signature: unknown; readonly authorization: Authorization }
  /** Unix seconds after which it buys nothing new. */
  readonly until?: number
}
/** The header that a payment arrived in: one protocol or none. */
export type Payment = { readonly x402?: string; readonly x402v1?: string; readonly mpp?: string }
type SaleInProgress = { readonly sent: string; readonly bought: Promise<SaleReply> }
type Settled = { readonly success?: unknown; readonly transaction?: unknown; readonly errorReason?: unknown }

const lifeSeconds = 300
const keptSeconds = 2 * 86_400
const keptSecondsMax = 30 * 86_400
/** The same limit as for the answer of any tool. */
const resultBytesMax = 1024 * 1024
const pendingReason = 'settlement_pending'
/** Error reasons of a facilitator that reject the payment itself: it was not sent to the network. */
const judged = /^(?:insufficient|invalid|unsupported)_/
/** Error reasons of a facilitator for an authorization whose nonce is used up: `invalid_exact_evm_nonce_already_used`. */
const usedUp = /(?:nonce|authorization)_(?:is_)?(?:already_)?used/
const noStore = ['cache-control', 'no-store'] as const
const json = ['content-type', 'application/json'] as const

export class Seller {
  readonly #options: SellerOptions
  readonly #chainId: number
  readonly #inProgress = new Map<string, SaleInProgress>()

  constructor(options: SellerOptions) {
    this.#options = options
    this.#chainId = chainIdOf(options.network)!
  }

  async sell(product: Product, payment: Payment): Promise<SaleReply> {
    const claim = await this.#claimIn(product, payment)
    if (claim === undefined) return this.#ask(product, 'payment-required', 'this tool is paid per call')
    if (typeof claim === 'string') return this.#ask(product, 'verification-failed', claim)
    const { from, nonce } = claim.payload.authorization
    const key = hashOf(`${from} ${nonce}`.toLowerCase())
    const sent = hashOf(`${product.id}\n${canonical(claim.payload)}`)
    const before = this.#inProgress.get(key)
    if (before !== undefined) return before.sent === sent ? before.bought : this.#sentElsewhere(product)
    const bought = this.#sale(product, claim, key, sent).finally(() => this.#inProgress.delete(key))
    this.#inProgress.set(key, { sent, bought })
    return bought
  }

  async #sale(product: Product, { protocol, payload, until }: Claim, key: string, sent: string): Promise<SaleReply> {
    const accepted = this.#accepts()
    const paymentPayload = { x402Version: 2, accepted, payload }
    const body = { x402Version: 2, paymentPayload, paymentRequirements: accepted }
    const kept = await this.#options.sales.find(key).catch(() => 'unread' as const)
    if (kept === 'unread') return pending('the board cannot read its sales records now: send the same again')
    if (kept !== undefined && kept.sent !== sent) return this.#sentElsewhere(product)
    if (kept?.proof !== undefined) return sold(kept.json, kept.proof)
    let result = kept?.json
    if (result === undefined) {
      const now = this.#options.wallSeconds()
      if (!((until ?? Number.POSITIVE_INFINITY) > now))
        return this.#ask(product, 'verification-failed', 'this challenge has expired')
      const verified = await this.#facilitator('verify', body)
      if (verified === undefined) return pending('the facilitator does not answer: send the same again')
      if (verified.isValid !== true) return this.#ask(product, 'verification-failed', reasonOf(verified.invalidReason))
      const made = await product.work()
      if ('problem' in made) return problem(made.status, 'invalid-request', made.problem)
      result = made.json
      if (Buffer.byteLength(result) > resultBytesMax)
        return problem(400, 'invalid-request', `the result has more than ${resultBytesMax} bytes`)
      const sale = { key, sent, json: result, expires: keptUntil(payload.authorization, now) }
      const isKept = await this.#options.sales.begin(sale).then(
        () => true,
        () => false,
      )
      if (!isKept) return pending('the board cannot record this sale now: send the same again')
    }
    // From here on it may be paid, even if no answer comes.
    const first: Settled | undefined = await this.#facilitator('settle', body)
    const settled: Settled | undefined = first ?? (await this.#facilitator('settle', body))
    const isDoubtful = kept !== undefined || first === undefined
    if (settled?.success === true)
      return this.#sold(key, result, [protocol === 'mpp' ? this.#receipt(settled) : this.#response(protocol, settled)])
    const reason = settled?.errorReason
    // Its transaction was not named, so there is no proof to show.
    if (isDoubtful && typeof reason === 'string' && usedUp.test(reason)) return this.#sold(key, result, [])
    if (isDoubtful || !isRefusal(settled))
      return pending(`${pendingReason}: it is not known yet whether this payment was made: send the same again`)
    // What was not sold may be paid for again. If that cannot be recorded, it stays in doubt.
    await this.#options.sales.drop(key).catch(() => {})
    const asked = await this.#ask(product, 'verification-failed', reasonOf(reason))
    return { ...asked, headers: [...asked.headers, this.#response(protocol, settled)] }
  }

  /** The result of a settlement, in the x402 version of the payment. */
  #response(protocol: Claim['protocol'], settled: Settled | undefined): Header {
    const { network } = this.#options
    return protocol === 'x402-v1'
      ? ['X-PAYMENT-RESPONSE', encodeBase64Json({ ...settled, network: friendlyName(network) })]
      : ['PAYMENT-RESPONSE', encodeBase64Json({ network, ...settled })]
  }

  /** If it cannot be recorded it stays in doubt: a repetition is settled again, and refused as used up. */
  async #sold(key: string, result: string, proof: readonly Header[]): Promise<SaleReply> {
    await this.#options.sales.settle({ key, proof }).catch(() => {})
    return sold(result, proof)
  }

  #sentElsewhere(product: Product): Promise<SaleReply> {
    return this.#ask(product, 'verification-failed', 'this payment was sent for something else: it buys one call')
  }

  #receipt({ transaction }: Settled): Header {
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

  /** The same terms in version 1, where each states what it is for. */
  #acceptsV1({ url, description }: Product): Fields {
    const { amount, network, ...terms } = this.#accepts()
    return {
      ...terms,
      network: friendlyName(this.#options.network),
      maxAmountRequired: amount,
      resource: url,
      description,
      mimeType: 'application/json',
    }
  }

  /** Undefined if there is no payment. A text says why it is invalid. */
  async #claimIn(product: Product, { x402, x402v1, mpp }: Payment): Promise<Claim | string | undefined> {
    if (x402 !== undefined) return this.#x402Claim(x402)
    if (x402v1 !== undefined) return this.#x402v1Claim(x402v1)
    return mpp === undefined ? undefined : this.#mppClaim(product, mpp)
  }

  /** It names a network and no terms. The facilitator compares what was signed with our terms. */
  #x402v1Claim(header: string): Claim | string {
    const sent = decodeBase64Json(header)
    if (sent?.x402Version !== 1 || !isObject(sent.payload)) return 'this is not an x402 version 1 payment'
    if (sent.scheme !== 'exact' || caip2(plainText(sent.network)) !== this.#options.network)
      return 'this payment uses a scheme or network that this tool does not offer'
    const { signature, authorization } = sent.payload
    return claimOf('x402-v1', signature, authorization)
  }

  #x402Claim(header: string): Claim | string {
    const sent = decodeBase64Json(header)
    if (sent?.x402Version !== 2 || !isObject(sent.accepted) || !isObject(sent.payload))
      return 'this is not an x402 version 2 payment'
    // Never the client's copy: our own terms are verified and settled.
    if (canonical(sent.accepted) !== canonical(this.#accepts()))
      return 'this payment accepts terms that this tool does not offer'
    const { signature, authorization } = sent.payload
    return claimOf('x402', signature, authorization)
  }

  async #mppClaim(product: Product, header: string): Promise<Claim | string> {
    const sent = parsedObject(Buffer.from(header, 'base64url').toString('utf8'))
    const { challenge, payload } = (sent ?? {}) as { challenge?: Partial<Challenge>; payload?: unknown }
    if (!isObject(challenge) || !isObject(payload)) return 'this is not a credential'
    const expires = plainText(challenge.expires)
    const ours = this.#challenge(product, expires)
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

  #challenge(product: Product, expires: string): Challenge {
    const { realm, secret, micros, payTo, network } = this.#options
    const request = Buffer.from(
      canonical({
        amount: String(micros),
        currency: usdc[network]!.address,
        externalId: product.id,
        methodDetails: { chainId: this.#chainId, credentialTypes: ['authorization'], decimals: 6 },
        recipient: payTo,
      }),
    ).toString('base64url')
    const slots = [realm, 'evm', 'charge', request, expires, '', '']
    const id = createHmac('sha256', secret).update(slots.join('|')).digest('base64url')
    return { id, realm, method: 'evm', intent: 'charge', request, expires }
  }

  async #ask(product: Product, code: string, detail: string): Promise<SaleReply> {
    const resource = { url: product.url, description: product.description, mimeType: 'application/json' }
    const required = { x402Version: 2, error: detail, resource, accepts: [this.#accepts()] }
    const expires = new Date((this.#options.wallSeconds() + lifeSeconds) * 1_000).toISOString()
    const { id, realm, method, intent, request } = this.#challenge(product, expires)
    const params = Object.entries({ id, realm, method, intent, request, expires }).map(
      ([name, value]) => `${name}="${value}"`,
    )
    const v1 = { x402Version: 1, error: detail, accepts: [this.#acceptsV1(product)] }
    const asked = problem(402, code, detail, v1)
    return {
      ...asked,
      headers: [
        ...asked.headers,
        ['PAYMENT-REQUIRED', encodeBase64Json(required)],
        ['WWW-Authenticate', `Payment ${params.join(', ')}`],
      ],
    }
  }

  /** Undefined if there was no meaningful answer. */
  async #facilitator(what: 'verify' | 'settle', body: object): Promise<Fields | undefined> {
    const answer = await this.#options.outgoing.request({
      url: `${this.#options.facilitator}/${what}`,
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify(body),
    })
    const found = answer.ok ? parsedObject(answer.body.toString('utf8')) : undefined
    // Statuses other than 200 come with the same shapes.
    return found !== undefined && ('isValid' in found || 'success' in found) ? found : undefined
  }
}

/** As long as a client may repeat the request, and the payment may still be settled; but not forever. */
function keptUntil({ validBefore }: Authorization, now: number): number {
  const lastMoment = Number(validBefore)
  const wanted = Number.isFinite(lastMoment) ? Math.max(lastMoment, now + keptSeconds) : now + keptSeconds
  return Math.ceil(Math.min(wanted, now + keptSecondsMax))
}

/** Only the fields of EIP-3009 are passed on, so that nothing else distinguishes two payments. */
function claimOf(protocol: Claim['protocol'], signature: unknown, said: unknown): Claim | string {
  const { to, value, validAfter, validBefore, ...named } = isObject(said) ? said : {}
  const [from, nonce] = [plainText(named.from), plainText(named.nonce)]
  if (!/^0x[0-9a-f]{40}$/i.test(from) || !/^0x[0-9a-f]{64}$/i.test(nonce))
    return 'this payment names no payer and nonce'
  const authorization = { from, to, value, validAfter, validBefore, nonce }
  return { protocol, payload: { signature, authorization } }
}

/**
 * Whether the settlement was not begun, according to its facilitator. Any other failure (with a transaction named, after its time, or the
 * facilitator's own error) may follow a transfer that was sent, and that the network makes a moment later.
 */
function isRefusal(settled: Settled | undefined): boolean {
  const { errorReason, transaction } = settled ?? {}
  return (transaction ?? '') === '' && typeof errorReason === 'string' && judged.test(errorReason)
}

/** `more`: further members (RFC 9457, 3.2). */
function problem(status: number, code: string, detail: string, more: Fields = {}): SaleReply {
  const body = { type: `https://paymentauth.org/problems/${code}`, title: code, status, detail, ...more }
  return { status, headers: [['content-type', 'application/problem+json'], noStore], body: JSON.stringify(body) }
}

function sold(body: string, proof: readonly Header[]): SaleReply {
  return { status: 200, headers: [json, ['cache-control', 'private'], ...proof], body }
}

function pending(detail: string): SaleReply {
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

const hashOf = (text: string) => createHash('sha256').update(text).digest('base64url')

/** JSON with sorted keys: the same text for the same value. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
  return `{${members.join(',')}}`
}
