/**
 * Payloads are asked for together: all that are wanted in one tick go to their source in one letter, and what is the same for
 * everybody once. An answer is never kept: whoever wants it a tick later asks again, and hears what stands then.
 */
import type { HooksAnswer, HooksAsk } from '../views/hooks/answer.ts'
import type { Payload, PayloadRequest } from '../views/hooks/payload-request.ts'
import type { HookView } from '../views/reads/webhooks.ts'
import type { Pending } from './pending.ts'

export type PayloadsOptions = {
  readonly address: string
  /** undefined: no answer came. */
  readonly ask: (source: number, ask: HooksAsk) => Promise<HooksAnswer | undefined>
  /** Something could not be built: it is left out, so that what is behind it goes on. */
  readonly fault: (problem: string) => void
}

/** undefined: no answer came. */
export type Give = (payload: Payload | undefined) => void
type Wanted = { readonly request: PayloadRequest; readonly give: Give[] }

/** Payloads of one letter: the feed answers others between two of them. */
const togetherMax = 64

export class Payloads {
  readonly #options: PayloadsOptions
  /** By source, then by what is asked: what is the same for all, or that for whom. */
  readonly #wanted = new Map<number, Map<Pending | string, Wanted>>()
  #scheduled = false

  constructor(options: PayloadsOptions) {
    this.#options = options
  }

  get(pending: Pending, { owner: reader, filter }: HookView, give: Give): void {
    const { source, kind, signal } = pending
    // The feed shows a post of a room to everybody alike.
    const isForAll = source === 0 && kind === 'room.post'
    const wanted = this.#wanted.get(source) ?? new Map<Pending | string, Wanted>()
    this.#wanted.set(source, wanted)
    const { subject, item, at, state } = signal
    const name = isForAll ? pending : `${kind} ${subject} ${item} ${at} ${state} ${reader} ${JSON.stringify(filter)}`
    const known = wanted.get(name)
    if (known !== undefined) known.give.push(give)
    else {
      const request = { kind, subject, item, at, state, reader, filter, handle: '', blocked: [] }
      wanted.set(name, { request, give: [give] })
    }
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#ask())
  }

  #ask(): void {
    this.#scheduled = false
    const all = [...this.#wanted]
    this.#wanted.clear()
    for (const [source, wanted] of all) {
      const each = [...wanted.values()]
      for (let at = 0; at < each.length; at += togetherMax) void this.#askSome(source, each.slice(at, at + togetherMax))
    }
  }

  async #askSome(source: number, wanted: readonly Wanted[]): Promise<void> {
    const requests = wanted.map(({ request }) => request)
    const found = (await this.#options.ask(source, ['payloads', this.#options.address, requests])) as
      | readonly Payload[]
      | undefined
    wanted.forEach(({ give }, n) => {
      const payload = found?.[n]
      if (payload !== undefined && 'fault' in payload) this.#options.fault(payload.fault)
      for (const each of give) each(payload)
    })
  }
}
