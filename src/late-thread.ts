/**
 * A thread that the first question starts: what it holds is derived from the journals, and a board that nobody asks does not pay
 * for it. It only reads, so who asked one that died may try again.
 */
import { MessageChannel, type MessagePort, type TransferListItem } from 'node:worker_threads'
import type { Link } from '../actors/kernel/link.ts'
import type { Supervised } from '../actors/kernel/supervisor.ts'
import { log } from './observe.ts'

export type LateThreadOptions = {
  readonly name: string
  readonly file: URL
  /** What the thread is given; `front`: its end of the link. */
  readonly data: (front: MessagePort) => unknown
  readonly link: (port: MessagePort) => Link
  readonly supervise: (options: {
    name: string
    file: URL
    birth: () => { data: unknown; transfer: readonly TransferListItem[] }
  }) => Supervised
}

export class LateThread {
  readonly #options: LateThreadOptions
  #thread: Supervised | undefined
  #link: Link | undefined

  constructor(options: LateThreadOptions) {
    this.#options = options
  }

  /** Undefined until somebody has asked. */
  get running(): Supervised | undefined {
    return this.#thread
  }

  /** `answer` hears undefined where none came. */
  ask<Answer>(body: unknown, answer: (answer: Answer | undefined) => void): void {
    if (this.#thread === undefined) this.#start()
    this.#link!.ask<Answer, undefined>(body, (answered) => answer(answered.ok ? answered.body : undefined))
  }

  tell(body: unknown): void {
    this.#link?.tell(body)
  }

  async stop(withinMs: number): Promise<void> {
    await this.#thread?.stop(withinMs)
  }

  close(): void {
    this.#link?.close()
  }

  #start(): void {
    const { name, file, data, link, supervise } = this.#options
    this.#thread = supervise({
      name,
      file,
      birth: () => {
        const front = new MessageChannel()
        this.#link?.close()
        this.#link = link(front.port1)
        return { data: data(front.port2), transfer: [front.port2] }
      },
    })
    this.#thread.start().catch((error: Error) => {
      log('error', `${name}.not_started`, { problem: error.message })
      this.#link?.close()
      this.#thread = undefined
    })
  }
}
