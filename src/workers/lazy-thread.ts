/**
 * A thread that is started by the first query to it. Its data is derived from the journals, and a board without such queries pays nothing
 * for it.
 *
 * It only reads, so a caller whose thread died may retry. If it keeps dying, or dies before it is ready, queries are refused for a minute:
 * each would hit the same fault after repeating all the reading. The next query after that starts a new thread. A failure has no other
 * effect on the board.
 */
import type { Channel, Link, Port } from '../../actors/kernel/link.ts'
import { type Refusal, refusal, tooBusy } from '../../actors/kernel/refusals.ts'
import type { Supervised, ThreadError } from '../../actors/kernel/supervisor.ts'
import { log } from '../observe.ts'

type LazyThreadOptions = {
  readonly name: string
  readonly file: URL
  /** The thread's start data; `front`: its end of the link. */
  readonly data: (front: Port) => unknown
  readonly channel: () => Channel
  readonly link: (port: Port) => Link
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly supervise: (options: {
    name: string
    file: URL
    startData: () => { data: unknown; transfer: readonly Port[] }
    mayRestart: () => boolean
    onFatal: (name: string, error: ThreadError) => void
  }) => Supervised
}

const restMs = 60_000

/** The refusal when the thread gave no answer. */
export type Unanswered = { readonly ok: false; readonly refusal: Refusal }
export const overloaded: Unanswered = {
  ok: false,
  refusal: tooBusy,
}

export class LazyThread {
  readonly #options: LazyThreadOptions
  #isClosed = false
  /** In terms of `now`; the thread is not started before then. */
  #restsUntil = Number.NEGATIVE_INFINITY
  #thread: Supervised | undefined
  #link: Link | undefined

  constructor(options: LazyThreadOptions) {
    this.#options = options
  }

  /** Undefined until the first query. */
  get running(): Supervised | undefined {
    return this.#thread
  }

  ask<Answer>(body: unknown, answer: (answer: Answer | Unanswered) => void): void {
    const leftMs = this.#restsUntil - this.#options.now()
    if (leftMs > 0) answer(this.#resting(Math.ceil(leftMs / 1_000)))
    else if (this.#isClosed) answer(overloaded)
    else {
      if (this.#thread === undefined) this.#start()
      this.#send(body, answer as (answer: unknown) => void)
    }
  }

  /** Starts it before the first query, because it has work to do. */
  wake(): void {
    if (!this.#isClosed && this.#thread === undefined) this.#start()
  }

  tell(body: unknown): void {
    this.#link?.tell(body)
  }

  async stop(withinMs: number): Promise<void> {
    this.#isClosed = true
    await this.#thread?.stop(withinMs)
  }

  close(): void {
    this.#isClosed = true
    this.#link?.close()
  }

  #resting(seconds: number): Unanswered {
    const sentence = `the index of ${this.#options.name} is paused after a fault, while everything else continues: try again in ${seconds} s`
    return { ok: false, refusal: refusal('overloaded', sentence, undefined, seconds) }
  }

  #send(body: unknown, answer: (answer: unknown) => void): void {
    this.#link!.ask<unknown, undefined>(body, (answered) => answer(answered.ok ? answered.body : overloaded))
  }

  #start(): void {
    const { name, file, data, link, supervise } = this.#options
    const thread = supervise({
      name,
      file,
      startData: () => {
        const front = this.#options.channel()
        this.#link?.close()
        this.#link = link(front.port1)
        return { data: data(front.port2), transfer: [front.port2] }
      },
      // After any failure: the owners of the files it reads check their integrity themselves.
      mayRestart: () => true,
      onFatal: (_name, { message }) => this.#lost('ended', message),
    })
    this.#thread = thread
    thread.start().catch((error: Error) => this.#lost('not_started', error.message))
  }

  #lost(how: 'not_started' | 'ended', problem: string): void {
    const { name, now } = this.#options
    log('error', `${name}.${how}`, { problem, answers_again_in_seconds: restMs / 1_000 })
    this.#restsUntil = now() + restMs
    this.#thread = undefined
    this.#link?.close()
  }
}
