/**
 * Payments that were sent and not answered, in this run or an earlier one. The same bytes are sent again, at growing intervals, for as long
 * as they are valid: a seller that has accepted them answers without charging twice. After that, the network is queried about the payment,
 * if a node is known. Otherwise the money counts as spent, and the call stays unknown.
 */

import type { PayFacts } from '../../actors/tool-calls/tool-calls.ts'
import { isNotNow, type NoAnswer } from '../command/ports.ts'
import type { Payer } from '../payments/payment.ts'
import { dataOf, type ReadAnswer, type ReadCall } from '../reads/read.ts'
import type { OpenCall } from './reads.ts'
import type { Relay, Relayed } from './relay.ts'

type UnsettledOptions = {
  readonly read: ReadCall
  readonly payer: Payer
  readonly wallSeconds: () => number
  readonly pause: (ms: number) => Promise<void>
  readonly report: (event: string, facts: Readonly<Record<string, unknown>>) => void
}

/** Pauses between attempts, in milliseconds; the last one is used for all that follow. */
const pauses = [2_000, 5_000, 15_000, 30_000, 60_000]
/** Pause between two queries for open calls. */
const openAgainMs = 1_000
/** By then a block of any network we pay on is final, and the network's clock is late by no more than this. */
const graceSeconds = 60

export class Unsettled {
  readonly #options: UnsettledOptions
  #closed = false

  constructor(options: UnsettledOptions) {
    this.#options = options
  }

  /** Resumes what an earlier run left; resolves when that is known. */
  async resume(relay: Relay): Promise<void> {
    const open = await this.#openCalls()
    for (const each of open) {
      const { payment, data, ...facts } = each
      const call: Relayed = {
        id: each.id,
        identity: each.identity,
        // Nothing more is signed for it; the signed payment says whose money it is.
        isOperators: false,
        data,
        facts: { ...facts, micros: 0 },
      }
      if (payment === undefined) this.#settle(relay.giveUp(call, false), call)
      else this.take(relay, call, payment)
    }
    if (open.length > 0) this.#options.report('calls.left_open', { calls: open.length })
  }

  take(relay: Relay, call: Relayed, payment: PayFacts): void {
    this.#settle(this.#follow(relay, call, payment), call)
  }

  close(): void {
    this.#closed = true
  }

  async #follow(relay: Relay, call: Relayed, payment: PayFacts): Promise<unknown> {
    const { wallSeconds, pause } = this.#options
    for (let attempt = 0; wallSeconds() < payment.validUntil && !this.#closed; attempt++) {
      if (await this.#resent(relay, call, payment)) return undefined
      await pause(pauses[Math.min(attempt, pauses.length - 1)]!)
    }
    while (wallSeconds() < payment.validUntil + graceSeconds && !this.#closed) await pause(1_000)
    const made = await this.#wasMade(payment)
    return this.#closed ? undefined : relay.giveUp(call, made === false)
  }

  /** An error here counts as no answer, like any other: the money is still to be settled. */
  async #resent(relay: Relay, call: Relayed, payment: PayFacts): Promise<boolean> {
    try {
      return await relay.resend(call, payment)
    } catch (problem) {
      this.#options.report('calls.not_resent', { call: call.id, problem: String(problem) })
      return false
    }
  }

  /** A node that does not answer now may do so in a minute. */
  async #wasMade(payment: PayFacts): Promise<boolean | undefined> {
    const { pause, payer } = this.#options
    if (!payer.canAsk(payment.network)) return undefined
    for (const ms of pauses) {
      if (this.#closed) return undefined
      const made = await payer.wasMade(payment)
      if (made !== undefined) return made
      await pause(ms)
    }
    return payer.wasMade(payment)
  }

  #settle(work: Promise<unknown>, { id }: Relayed): void {
    work.catch((error: Error) => this.#options.report('calls.not_settled', { call: id, problem: error.message }))
  }

  /** The query is not repeated before the next start, so an answer is awaited here. */
  async #openCalls(): Promise<readonly OpenCall[]> {
    while (!this.#closed) {
      const found = await new Promise<ReadAnswer<readonly OpenCall[]> | NoAnswer>((resolve) =>
        this.#options.read({ op: 'calls.open', args: {}, reader: '' }, resolve),
      )
      if (found?.ok) return dataOf(found)
      const problem = found === undefined ? 'no answer' : ('refusal' in found ? found.refusal : found.absent).code
      this.#options.report('calls.not_found_open', { problem })
      if (!isNotNow(found)) break
      await this.#options.pause(openAgainMs)
    }
    return []
  }
}
