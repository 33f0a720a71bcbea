/**
 * Payloads are asked for together: all that are wanted in one tick go to their source in one letter, and what is the same for
 * everybody once. An answer is never kept: whoever wants it a tick later asks again, and hears what stands then.
 */
import type { HooksAnswer, HooksAsk } from '../views/hooks/answer.ts'
import type { Payload, PayloadRequest } from '../views/hooks/payload-request.ts'

export type PayloadsOptions = {
  readonly address: string
  /** undefined: no answer came. */
  readonly ask: (source: number, ask: HooksAsk) => Promise<HooksAnswer | undefined>
  /** Something could not be built: it is left out, so that what is behind it goes on. */
  readonly fault: (problem: string) => void
}

type Wanted = { readonly request: PayloadRequest; readonly give: ((payload: Payload | undefined) => void)[] }

/** Payloads of one letter: the feed answers others between two of them. */
const togetherMax = 64

export class Payloads {
  readonly #options: PayloadsOptions
  /** By source, then by what is asked. */
  readonly #wanted = new Map<number, Map<string, Wanted>>()
  #scheduled = false

  constructor(options: PayloadsOptions) {
    this.#options = options
  }

  get(source: number, request: PayloadRequest): Promise<Payload | undefined> {
    const { kind, subject, item, at, state, reader, filter } = request
    // The feed shows a post of a room to everybody alike.
    const isForAll = source === 0 && kind === 'room.post'
    const name = `${kind} ${subject} ${item} ${at} ${state} ${isForAll ? '' : `${reader} ${JSON.stringify(filter)}`}`
    return new Promise((resolve) => {
      const wanted = this.#wanted.get(source) ?? new Map<string, Wanted>()
      this.#wanted.set(source, wanted)
      const known = wanted.get(name)
      if (known !== undefined) known.give.push(resolve)
      else wanted.set(name, { request, give: [resolve] })
      if (this.#scheduled) return
      this.#scheduled = true
      setImmediate(() => this.#ask())
    })
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
      for (const resolve of give) resolve(payload)
    })
  }
}
