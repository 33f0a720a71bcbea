/**
 * One call of a third-party tool, from its request to its outcome on disk. Money is handled only here:
 *
 *   402 -> offer chosen -> signed (in memory) -> call.pay on disk -> sent -> the same bytes again if no answer came -> settled
 *
 * A payment leaves this process only after it is on disk. It is never made twice for one call, and a second 402 is an answer.
 */

import type { AnyReadName } from '../../actors/operations.ts'
import { type InternalWriteName, internalLetter } from '../../actors/records/internal-operations.ts'
import type { PayArgs } from '../../actors/tool-calls/decide.ts'
import { type CallFailure, toolAnswerBytesMax } from '../../actors/tool-calls/operations.ts'
import {
  type CallFacts,
  type CallState,
  callsActor,
  type PayFacts,
  type SettledFacts,
} from '../../actors/tool-calls/tool-calls.ts'
import type { Actors } from '../command/ports.ts'
import { microsOf, priceOf } from '../money/price.ts'
import type { Answered, NotAnswered, Outgoing, OutgoingRequest } from '../outgoing/request.ts'
import type { Demand, Offer, Payer, PaymentReceipt } from '../payments/payment.ts'
import { type AnswerOf, dataOf, type ReadCall, type ReadRequest } from '../reads/read.ts'
import { callMcp } from './mcp.ts'
import { dayLimits } from './reads.ts'
import { argumentsOf, type CallData, type Output, outputOf, requestOf } from './relayed.ts'

export type Relayed = {
  readonly id: string
  readonly identity: string
  /** Whether an operator's own key signed it: then the wallet pays, not the allowance. */
  readonly isOperators: boolean
  readonly data: CallData
  readonly facts: Pick<CallFacts, 'tool' | 'subject' | 'address' | 'micros' | 'isFree'>
}

/** The answer to a call, without the allowance, which is added when it is given. */
export type Outcome = {
  readonly tool: string
  readonly status: number
  readonly failure?: CallFailure
  /** The failure in a sentence. */
  readonly reason?: string
  readonly payment_needed?: {
    readonly why?: string
    readonly accepts: readonly unknown[]
    readonly challenges: readonly unknown[]
  }
  readonly output_expired?: true
  readonly price?: string
  readonly paid_by: 'allowance' | 'wallet' | 'free'
  readonly paid?: PaymentReceipt
  readonly duration_ms: number
} & Partial<Output>

type RelayOptions = {
  readonly actors: Actors
  readonly read: ReadCall
  readonly outgoing: Outgoing
  readonly payer: Payer
  /** How much the wallet may sign away in a day, in millionths of a dollar. */
  readonly walletMicros: number
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly wallSeconds: () => number
  readonly pause: (ms: number) => Promise<void>
  readonly signal: AbortSignal
  /** Takes over payments whose outcome is open. */
  readonly unsettled: { take(relay: Relay, call: Relayed, payment: PayFacts): void }
}

/** A payment that was sent and not answered: the call stays open. `reason`: why; or `problem`: an error that occurred here meanwhile. */
type Pending =
  | { readonly pending: PayFacts; readonly reason: string }
  | { readonly pending: PayFacts; readonly problem: unknown }
/** The outcome of a call before it is recorded. */
type Settlement = Pick<SettledFacts, 'state' | 'isCallBack' | 'isUnpaid'> & {
  readonly outcome: Omit<Outcome, 'duration_ms'>
}

/** The same bytes are sent once more before the caller is told that the outcome is unknown. */
const againMs = 500
/** Delay before recording an outcome is retried. */
const unwrittenMs = 1_000

export class Relay {
  readonly #options: RelayOptions

  constructor(options: RelayOptions) {
    this.#options = options
  }

  /** Undefined if its outcome could not be recorded yet; then the caller gets none. */
  async make(call: Relayed): Promise<Outcome | undefined> {
    const started = this.#options.now()
    const settlement = await this.#called(call)
    if (!('pending' in settlement)) return this.#settle(call, settlement, started)
    this.#options.unsettled.take(this, call, settlement.pending)
    if ('problem' in settlement) throw settlement.problem
    const paid = `it was sent a payment of ${priceOf(settlement.pending.micros)} dollars`
    const reason = `${paid}, but ${settlement.reason}: send the same command again later for the outcome`
    return { ...unknownOutcome(call.facts.tool, true), reason, duration_ms: Math.round(this.#options.now() - started) }
  }

  notMade(call: Relayed, failure: CallFailure, reason: string): Promise<Outcome | undefined> {
    return this.#settle(call, failed(call, failure, reason), this.#options.now())
  }

  /** An error here must not leave a call open for which nothing was paid. */
  async #called(call: Relayed): Promise<Settlement | Pending> {
    try {
      return await (call.facts.address.mcp ? this.#callMcp(call) : this.#callHttp(call))
    } catch (problem) {
      await this.giveUp(call, true)
      throw problem
    }
  }

  async #callHttp(call: Relayed): Promise<Settlement | Pending> {
    const request = { ...requestOf(call.facts.address, call.data), ...this.#bounds() }
    const answer = await this.#options.outgoing.request(request)
    if (!answer.ok) return notReached(call, answer)
    return answer.status === 402 ? this.#challenged(call, request, answer) : answered(call, answer)
  }

  async #callMcp(call: Relayed): Promise<Settlement> {
    const { address } = call.facts
    const args = argumentsOf(call.data) ?? {}
    const tool = call.data.method ?? ''
    const { outgoing, now } = this.#options
    const answer = await callMcp(outgoing, { url: address.url, tool, args, bounds: this.#bounds(), now })
    if (!answer.ok) return notReached(call, answer.failed)
    if ('answered' in answer) {
      const { status } = answer.answered
      if (status === 402)
        return needed(
          call,
          this.#options.payer.demandOf(answer.answered, call.id),
          'no_offer: it is paid outside of MCP',
        )
      return answered(call, answer.answered)
    }
    const demand = demandInMcp(answer.result)
    if (demand !== undefined) return needed(call, demand, 'no_offer: this board does not pay for calls over MCP')
    const output: Output = { output_type: 'application/json', output_encoding: 'json', output: answer.result }
    return done(call, { status: answer.status, ...output })
  }

  async #challenged(call: Relayed, request: OutgoingRequest, answer: Answered): Promise<Settlement | Pending> {
    const demand = this.#options.payer.demandOf(answer, call.id)
    const { mark } = await this.#ask('calls.mark', { tool: call.facts.tool })
    const most = microsOf(call.data.max_price ?? '')
    const { micros, isFree } = call.facts
    const listed = micros === 0 && isFree !== true ? undefined : micros
    const offer = chosenOffer(demand, { mark, listed, most })
    if (typeof offer === 'string') return needed(call, demand, offer)
    const payment = await this.#sign(call, offer)
    const refusedBecause = await this.#reserve(call, payment)
    if (refusedBecause !== undefined) return needed(call, demand, refusedBecause)
    return this.#send(call, payment, request).catch((problem: unknown) => ({ pending: payment, problem }))
  }

  async #sign(call: Relayed, offer: Offer): Promise<PayFacts> {
    const { header, validUntil, reference } = await offer.sign(this.#options.wallSeconds())
    const { protocol, network, payee, micros } = offer
    const { id, isOperators } = call
    return { call: id, protocol, network, payee, micros, isOperators, header, validUntil, reference }
  }

  /** Puts the payment on disk. Returns a text if it must not be sent: the reason. */
  async #reserve(call: Relayed, payment: PayFacts): Promise<string | undefined> {
    const args: PayArgs = { ...payment, limits: dayLimits, walletMicros: this.#options.walletMicros }
    const answer = await this.#write('call.pay', call.identity, args)
    if (answer === undefined) throw new Error('a payment could not be recorded')
    if (answer.ok) return undefined
    if (answer.refusal.code === 'quota_exhausted')
      return 'wallet_cap: the wallet of this board has reached its limit for today'
    if (answer.refusal.code === 'allowance_exhausted')
      return 'allowance: the rest of your free allowance does not cover it'
    throw new Error(`a payment was refused: ${answer.refusal.code}`)
  }

  async #send(call: Relayed, payment: PayFacts, request: OutgoingRequest): Promise<Settlement | Pending> {
    let wasSent = false
    let reason = ''
    for (let attempt = 0; attempt < 2; attempt++) {
      if (attempt > 0) await this.#options.pause(againMs)
      const answer = await this.#options.outgoing.request(withPayment(request, payment))
      if (answer.ok) return this.#paid(call, payment, answer)
      wasSent ||= answer.sent
      reason = answer.reason
      // A status was read, so the request arrived, and repeating it would have the same result.
      if (answer.status !== undefined) break
    }
    if (!wasSent) return { ...failed(call, 'refused', reason), isUnpaid: true }
    return { pending: payment, reason }
  }

  /** Handles the answer to a payment. A second 402 is never paid: the seller may still take the first payment. */
  #paid(call: Relayed, payment: PayFacts, answer: Answered): Settlement {
    const paid_by = payment.isOperators ? 'wallet' : 'allowance'
    const price = priceOf(payment.micros)
    if (answer.status === 402) {
      const found = needed(
        call,
        this.#options.payer.demandOf(answer, call.id),
        'payment_refused: it was paid once, and asked for payment again',
      )
      return { ...found, outcome: { ...found.outcome, price, paid_by } }
    }
    const paid = this.#options.payer.receiptOf(answer, payment.network)
    const found = answered(call, answer)
    return { ...found, outcome: { ...found.outcome, price, paid_by, ...(paid === undefined ? {} : { paid }) } }
  }

  /** Sends an earlier payment again, unchanged; returns false if there was no answer. */
  async resend(call: Relayed, payment: PayFacts): Promise<boolean> {
    const started = this.#options.now()
    const request = { ...requestOf(call.facts.address, call.data), ...this.#bounds() }
    const answer = await this.#options.outgoing.request(withPayment(request, payment))
    if (!answer.ok) return false
    await this.#settle(call, this.#paid(call, payment, answer), started)
    return true
  }

  /** Settles a call whose outcome will stay unknown, or that is known to be unpaid. */
  giveUp(call: Relayed, isUnpaid: boolean): Promise<Outcome | undefined> {
    const settlement: Settlement = isUnpaid
      ? { ...failed(call, 'unknown', 'no answer came, and nothing was paid'), isUnpaid: true }
      : {
          state: 'unknown',
          isCallBack: false,
          isUnpaid: false,
          outcome: {
            ...unknownOutcome(call.facts.tool, false),
            reason: 'no answer came: it may have carried out the request',
          },
        }
    return this.#settle(call, settlement, this.#options.now())
  }

  async #settle(
    call: Relayed,
    { state, isCallBack, isUnpaid, outcome }: Settlement,
    started: number,
  ): Promise<Outcome | undefined> {
    const whole: Outcome = { ...outcome, duration_ms: Math.round(this.#options.now() - started) }
    const facts: SettledFacts = { call: call.id, state, isCallBack, isUnpaid, outcome: JSON.stringify(whole) }
    const answer = await this.#write('call.settle', call.identity, facts)
    if (answer?.ok) return whole
    void this.#writeLater(call.identity, facts)
    return undefined
  }

  /**
   * The actor refuses it only for temporary reasons, and accepts it only once. Without this the call would stay open until the next start.
   */
  async #writeLater(identity: string, facts: SettledFacts): Promise<void> {
    const { pause, signal } = this.#options
    for (let isWritten = false; !isWritten; ) {
      await pause(unwrittenMs)
      if (signal.aborted) return
      isWritten = (await this.#write('call.settle', identity, facts))?.ok === true
    }
  }

  #bounds(): Pick<OutgoingRequest, 'answerBytesMax' | 'signal'> {
    return { answerBytesMax: toolAnswerBytesMax, signal: this.#options.signal }
  }

  #write(
    op: InternalWriteName,
    identity: string,
    args: object,
  ): Promise<Parameters<Parameters<Actors['write']>[1]>[0]> {
    return new Promise((resolve) => this.#options.actors.write(internalLetter(op, callsActor, identity, args), resolve))
  }

  #ask<Name extends AnyReadName>(op: Name, args: ReadRequest['args']): Promise<AnswerOf<Name>> {
    return new Promise((resolve, reject) =>
      this.#options.read({ op, args, reader: '' }, (found) =>
        found?.ok ? resolve(dataOf(found)) : reject(new Error(`no answer to ${op}`)),
      ),
    )
  }
}

function withPayment(request: OutgoingRequest, { header: [name, value] }: PayFacts): OutgoingRequest {
  return { ...request, headers: { ...request.headers, [name]: value } }
}

/** `isOpen`: it may still become known. */
export function unknownOutcome(tool: string, isOpen: boolean): Outcome {
  const base = { tool, status: 0, failure: 'unknown', paid_by: 'allowance', duration_ms: 0 } as const
  return isOpen
    ? { ...base, reason: 'its outcome is not known yet: send the same command again later' }
    : { ...base, reason: 'its answer is no longer stored', output_expired: true }
}

function base({ facts: { tool } }: Relayed) {
  return { tool, paid_by: 'allowance' as const }
}

function settled(state: CallState, outcome: Settlement['outcome']): Settlement {
  return { state, isCallBack: state === 'failed', isUnpaid: false, outcome }
}

function done(call: Relayed, output: Output & { status: number }): Settlement {
  const { micros, isFree } = call.facts
  const price = micros !== 0 || isFree === true ? { price: priceOf(micros) } : {}
  return settled('done', { ...base(call), ...price, ...output })
}

function answered(call: Relayed, answer: Answered): Settlement {
  return done(call, { status: answer.status, ...outputOf(answer) })
}

function failed(call: Relayed, failure: CallFailure, reason?: string): Settlement {
  return settled('failed', { ...base(call), status: 0, failure, ...(reason === undefined ? {} : { reason }) })
}

function notReached(call: Relayed, { failure, reason }: NotAnswered): Settlement {
  const found = failed(call, failure, reason)
  return failure === 'unknown' ? { ...found, state: 'unknown', isCallBack: false } : found
}

function needed(call: Relayed, { accepts, challenges }: Demand, why: string): Settlement {
  return settled('failed', { ...base(call), status: 402, payment_needed: { why, accepts, challenges } })
}

/** The payment that an MCP server demands: x402 in a result, MPP in an error. */
function demandInMcp(result: unknown): Demand | undefined {
  const { isError, structuredContent, error } = (result ?? {}) as {
    isError?: unknown
    structuredContent?: { x402Version?: unknown; accepts?: unknown }
    error?: { code?: unknown; data?: { challenges?: unknown } }
  }
  const { x402Version, accepts } = structuredContent ?? {}
  if (isError === true && x402Version !== undefined && Array.isArray(accepts))
    return { accepts: accepts.slice(0, 32), challenges: [], offers: [] }
  const challenges = error?.data?.challenges
  if (error?.code === -32042 && Array.isArray(challenges))
    return { accepts: [], challenges: challenges.slice(0, 32), offers: [] }
  return undefined
}

type Terms = {
  /** What the operator lets the wallet pay for this tool; undefined if nothing. */
  readonly mark: { readonly micros: number; readonly payees: readonly string[] } | undefined
  /** The price in the listing, in millionths of a dollar; undefined if none is given. */
  readonly listed: number | undefined
  /** The caller's maximum. */
  readonly most: number | undefined
}

/**
 * Decides whether the board pays what a tool demands, and which of its offers. It pays only for a tool that the operator marked, only to a
 * payee that they named, and never more than the operator, the listing or the caller allows. The cheapest suitable offer is taken. Operator
 * and listing limit what the payee demands; the caller limits the total charge, including the network's fee.
 *
 * Returns a text if it does not pay: the reason for the caller, beginning with a code.
 */
function chosenOffer({ offers }: Demand, { mark, listed, most }: Terms): Offer | string {
  if (mark === undefined) return 'not_relayed: the wallet of this board does not pay for this tool'
  if (offers.length === 0) return 'no_offer: this board supports none of the ways to pay'
  const known = new Set(mark.payees.map((each) => each.toLowerCase()))
  const [cheapest] = offers.filter(({ payee }) => known.has(payee.toLowerCase())).sort((a, b) => a.micros - b.micros)
  if (cheapest === undefined) return 'payee_changed: it names a payee that the operator of this board has not approved'
  const asked = cheapest.micros - cheapest.feeMicros
  const agreed = Math.min(mark.micros, listed ?? mark.micros)
  if (asked > agreed) return `price_changed: it asks ${priceOf(asked)} dollars, and ${priceOf(agreed)} were agreed`
  if (most !== undefined && cheapest.micros > most)
    return `over_max_price: it costs ${priceOf(cheapest.micros)} dollars, and max_price is ${priceOf(most)}`
  return cheapest
}
