/**
 * A thread that the first question starts: what it holds is derived from the journals, and a board that nobody asks does not pay
 * for it. It only reads, so who asked one that died may try again; one that keeps dying, or dies before it is ready, rests for a
 * minute in which nobody gets an answer: what ails it is met again by each question, and each costs it all that it has to read until
 * there. The next question after that starts it anew, and it costs the board nothing else.
 */
import { MessageChannel, type MessagePort, type TransferListItem } from 'node:worker_threads'
import type { Link } from '../../actors/kernel/link.ts'
import type { LastWords, Supervised } from '../../actors/kernel/supervisor.ts'
import { log } from '../observe.ts'
import { type Refusal, refusal } from '../refusals.ts'

export type LateThreadOptions = {
  readonly name: string
  readonly file: URL
  /** What the thread is given; `front`: its end of the link. */
  readonly data: (front: MessagePort) => unknown
  readonly link: (port: MessagePort) => Link
  /** Makes its modules ready without holding anybody; the thread starts after that. */
  readonly prepare: (file: URL) => Promise<void>
  /** Asks that may wait for its start. */
  readonly waitingMax: number
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly supervise: (options: {
    name: string
    file: URL
    birth: () => { data: unknown; transfer: readonly TransferListItem[] }
    mayRestart: () => boolean
    onFatal: (name: string, words: LastWords) => void
  }) => Supervised
}

const restMs = 60_000

type Ask = { readonly body: unknown; readonly answer: (answer: unknown) => void }

/** What is heard where no answer came. */
export type Unanswered = { readonly ok: false; readonly refusal: Refusal }
export const overloaded: Unanswered = {
  ok: false,
  refusal: refusal('overloaded', 'this board is too busy: try again', undefined, 1),
}

export class LateThread {
  readonly #options: LateThreadOptions
  /** Asks of before its start; undefined while it is not being started. */
  #waiting: Ask[] | undefined
  #isClosed = false
  /** Of `now`: until then it is not started. */
  #restsUntil = Number.NEGATIVE_INFINITY
  #thread: Supervised | undefined
  #link: Link | undefined

  constructor(options: LateThreadOptions) {
    this.#options = options
  }

  /** Undefined until somebody has asked. */
  get running(): Supervised | undefined {
    return this.#thread
  }

  ask<Answer>(body: unknown, answer: (answer: Answer | Unanswered) => void): void {
    const ask = { body, answer: answer as Ask['answer'] }
    const leftMs = this.#restsUntil - this.#options.now()
    if (leftMs > 0) answer(this.#resting(Math.ceil(leftMs / 1_000)))
    else if (this.#isClosed) answer(overloaded)
    else if (this.#thread !== undefined) this.#send(ask)
    else if (this.#waiting === undefined) void this.#begin([ask])
    else if (this.#waiting.length < this.#options.waitingMax) this.#waiting.push(ask)
    else answer(overloaded)
  }

  /** Starts it before anybody asks: it has something to do. */
  wake(): void {
    if (!this.#isClosed && this.#thread === undefined && this.#waiting === undefined) void this.#begin([])
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
    const sentence = `the index of ${this.#options.name} rests after a fault, while all else goes on: try again in ${seconds} s`
    return { ok: false, refusal: refusal('overloaded', sentence, undefined, seconds) }
  }

  #send({ body, answer }: Ask): void {
    this.#link!.ask<unknown, undefined>(body, (answered) => answer(answered.ok ? answered.body : overloaded))
  }

  async #begin(waiting: Ask[]): Promise<void> {
    this.#waiting = waiting
    try {
      await this.#options.prepare(this.#options.file)
      if (!this.#isClosed) this.#start()
    } catch (error) {
      log('error', `${this.#options.name}.not_started`, { problem: String(error) })
    }
    this.#waiting = undefined
    for (const ask of waiting) {
      if (this.#thread === undefined) ask.answer(overloaded)
      else this.#send(ask)
    }
  }

  #start(): void {
    const { name, file, data, link, supervise } = this.#options
    const thread = supervise({
      name,
      file,
      birth: () => {
        const front = new MessageChannel()
        this.#link?.close()
        this.#link = link(front.port1)
        return { data: data(front.port2), transfer: [front.port2] }
      },
      // Whatever ails it: what it reads is watched over by those who write it.
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
