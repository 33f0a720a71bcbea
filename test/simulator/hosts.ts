/** Hosts of tools, as strangers run them: they answer well, late, with garbage, or not at all, and remember their requests. */
import type { Clock } from '../../src/clock.ts'
import {
  type Answered,
  type NotAnswered,
  type Outgoing,
  type OutgoingRequest,
  totalMsDefault,
} from '../../src/outgoing/request.ts'
import type { Simulation } from '../support/simulation.ts'
import { demandOf, nodes, type Payment, PaymentNetwork, paymentIn, receiptOf, type Terms, termsOf } from './payments.ts'

/** What a host does with a request. `deaf`: it accepts it and never answers. */
const behaviors = ['well', 'late', 'refuses', 'breaks', 'fails', 'garbage', 'redirects', 'deaf'] as const
type Behavior = (typeof behaviors)[number]

/** A request as its host reads it. */
export type HostRequest = {
  readonly host: string
  readonly path: string
  /** The word that identifies a call; undefined: it has none. */
  readonly call: string | undefined
  /** The payment that it carries. */
  readonly payment: Payment | undefined
  /** It is answered with a demand for payment, and does nothing else. */
  readonly isDemand: boolean
}

/** What a host says of itself at its `/.well-known/broadside.json`. */
type WellKnown = { readonly owners: Set<string>; optsOut: boolean }

export const wellKnownPath = '/.well-known/broadside.json'
export const mcpPath = '/mcp'
const mcpVersion = '2026-07-28'
const lateMsMax = 40_000

export class SimulatedHosts {
  readonly network: PaymentNetwork
  readonly #sim: Simulation
  readonly #onRequest: (visit: HostRequest) => void
  /** By host, and by the nonce of a payment. */
  readonly #behaviors = new Map<string, Behavior>()
  readonly #wellKnown = new Map<string, WellKnown>()
  /** How often each has changed what it charges. */
  readonly #termsVersions = new Map<string, number>()
  #demands = 0

  /** `take`: called for each request to a host. */
  constructor(sim: Simulation, take: (visit: HostRequest) => void) {
    this.network = new PaymentNetwork(sim)
    this.#sim = sim
    this.#onRequest = take
  }

  /** The outgoing connection of a board whose main thread has this clock. */
  outgoing(clock: Clock): Outgoing {
    return { request: (asked) => this.#request(clock, asked), close: () => {} }
  }

  /** This host behaves differently from now on, or what receives this payment. */
  changeBehavior(hostOrNonce: string): void {
    this.#behaviors.set(hostOrNonce, behaviors[this.#sim.randomBelow(behaviors.length)]!)
  }

  /** It charges another price, to another address, or nothing. */
  changeTerms(host: string): void {
    this.#termsVersions.set(host, (this.#termsVersions.get(host) ?? 0) + 1)
  }

  heal(): void {
    this.#behaviors.clear()
  }

  /** It names this identity as its only owner. */
  setOwner(host: string, identity: string): void {
    const { owners } = this.#wellKnownOf(host)
    owners.clear()
    owners.add(identity)
  }

  /** It opts out of directories, or in again. */
  optOut(host: string, isOut: boolean): void {
    this.#wellKnownOf(host).optsOut = isOut
  }

  #wellKnownOf(host: string): WellKnown {
    const known = this.#wellKnown.get(host) ?? { owners: new Set(), optsOut: false }
    this.#wellKnown.set(host, known)
    return known
  }

  #request(clock: Clock, request: OutgoingRequest): Promise<Answered | NotAnswered> {
    const { hostname: host } = new URL(request.url)
    const { totalMs = totalMsDefault, signal } = request
    const behavior = this.#behaviorAt(host, paymentIn(request.headers))
    return new Promise((resolve) => {
      if (behavior === 'refuses') return void clock.later(() => resolve(notAnswered('refused', false)), this.#latencyMs)
      const giveUp = () => resolve(notAnswered('timeout', true))
      const cancel = clock.later(giveUp, totalMs)
      signal?.addEventListener('abort', () => resolve(notAnswered('unknown', true)), { once: true })
      // It is in flight: nothing that happens to the board ends it.
      this.#sim.schedule(
        () => {
          const answer = this.#answer(host, behavior, request)
          if (answer === undefined) return
          this.#sim.schedule(() => {
            clock.later(() => {
              cancel()
              resolve(answer)
            }, 0)
          }, this.#latencyMs)
        },
        behavior === 'late' ? this.#sim.randomBelow(lateMsMax) : this.#latencyMs,
      )
    })
  }

  /** A payment may meet something other than the demand for it, again and again. */
  #behaviorAt(host: string, payment: Payment | undefined): Behavior {
    const common = this.#behaviors.get(host) ?? 'well'
    if (payment === undefined) return common
    const known = this.#behaviors.get(payment.nonce)
    if (known !== undefined) return known
    if (this.#sim.randomBelow(2) === 0) this.changeBehavior(payment.nonce)
    return this.#behaviors.get(payment.nonce) ?? common
  }

  get #latencyMs(): number {
    return 1 + this.#sim.randomBelow(60)
  }

  /** Undefined: no answer. */
  #answer(
    host: string,
    behavior: Behavior,
    { url, headers, body }: OutgoingRequest,
  ): Answered | NotAnswered | undefined {
    const { pathname: path, searchParams } = new URL(url)
    const message = path === mcpPath ? (JSON.parse(String(body)) as McpMessage) : undefined
    const call = message === undefined ? searchParams.get('call') : message.params?.arguments?.call
    const payment = paymentIn(headers)
    const isDemand =
      message === undefined &&
      payment === undefined &&
      (behavior === 'well' || behavior === 'late') &&
      this.#termsOf(host) !== undefined
    this.#onRequest({ host, path, call: call ?? undefined, payment, isDemand })
    if (payment !== undefined && behavior !== 'well' && behavior !== 'late') this.#collectSometimes(payment)
    if (behavior === 'deaf') return undefined
    if (behavior === 'breaks') return notAnswered('unknown', true)
    if (behavior === 'redirects') return { ...notAnswered('redirect', true), status: 302 }
    if (behavior === 'fails') return answered(500, 'text/plain', 'out of order')
    if (behavior === 'garbage') return answered(200, 'application/json', '{"owners":7,"\u0000')
    const network = nodes[host]
    if (network !== undefined) return answered(200, 'application/json', this.network.answer(network, String(body)))
    if (path === wellKnownPath) {
      const { owners, optsOut } = this.#wellKnownOf(host)
      return answered(200, 'application/json', JSON.stringify({ owners: [...owners], opt_out: optsOut }))
    }
    if (message !== undefined) return answered(200, 'application/json', JSON.stringify(mcpAnswer(message)))
    return this.#sold(url, host, payment) ?? answered(200, 'application/json', JSON.stringify({ call }))
  }

  /** Undefined: the caller owes nothing, or pays afterwards. */
  #sold(url: string, host: string, payment: Payment | undefined): Answered | undefined {
    const terms = this.#termsOf(host)
    if (terms === undefined) return undefined
    if (payment !== undefined && this.#sim.randomBelow(4) === 0) {
      // Some answer first.
      this.network.collectLater(payment)
      return undefined
    }
    const isPaid = payment !== undefined && this.network.collect(payment)
    const { searchParams } = new URL(url)
    const call = searchParams.get('call')
    const [name, value] = isPaid ? receiptOf(terms, payment) : demandOf(terms, url, `demand ${this.#demands++}`)
    const body = isPaid ? JSON.stringify({ call }) : '{}'
    return answered(isPaid ? 200 : 402, 'application/json', body, { [name]: [value] })
  }

  #termsOf(host: string): Terms | undefined {
    return termsOf(host, this.#termsVersions.get(host))
  }

  /** One that answers nothing useful may have collected all the same. */
  #collectSometimes(payment: Payment): void {
    const what = this.#sim.randomBelow(3)
    if (what === 0) this.network.collect(payment)
    else if (what === 1) this.network.collectLater(payment)
  }
}

type McpMessage = {
  readonly id: number
  readonly method: string
  readonly params?: { readonly arguments?: { readonly call?: string } }
}

function mcpAnswer({ id, method, params }: McpMessage): object {
  const result = method === 'server/discover' ? { supportedVersions: [mcpVersion] } : { call: params?.arguments?.call }
  return { jsonrpc: '2.0', id, result }
}

function notAnswered(failure: NotAnswered['failure'], sent: boolean): NotAnswered {
  return { ok: false, failure, reason: `a simulated host: ${failure}`, sent }
}

function answered(status: number, type: string, body: string, headers: Answered['headers'] = {}): Answered {
  return { ok: true, status, headers: { 'content-type': [type], ...headers }, body: Buffer.from(body) }
}
