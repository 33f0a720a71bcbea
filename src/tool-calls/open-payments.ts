/**
 * Payments that were sent and not answered, in this run or an earlier one. The same bytes are sent again, more and more seldom,
 * for as long as they are good: a seller that has taken them answers without taking them twice. After that the network is asked
 * whether it was paid, where a node is known; else the money stays spent, and the call unknown.
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

/** Between two sendings, in milliseconds; the last one for all that follow. */
const pauses = [2_000, 5_000, 15_000, 30_000, 60_000]
/** Between two questions which calls are open. */
const openAgainMs = 1_000
/** A block of any network we pay on is final by then, and its clock is late by no more than this. */
const graceSeconds = 60

export class Unsettled {
  readonly #options: UnsettledOptions
  #closed = false

  constructor(options: UnsettledOptions) {
    this.#options = options
  }

  /** Takes up what an earlier run has left; resolves when it is known what that is. */
  async resume(relay: Relay): Promise<void> {
    const open = await this.#openCalls()
    for (const each of open) {
      const { payment, data, ...facts } = each
      const call: Relayed = {
        id: each.id,
        identity: each.identity,
        // Nothing is signed for it any more: what was, says whose money it is.
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

  /** What goes wrong here is no answer, as any other: the money of it is still to be settled. */
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

  /** It is not asked again before the next start: where no answer comes now, one is waited for. */
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
