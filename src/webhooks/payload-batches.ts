/**
 * Payloads are requested together: all that are wanted in one tick go to their source in one message, and what is the same for
 * all targets once. That alone is kept, and only until anything newer is announced: before a redaction is
 * confirmed to its author, the text has left this cache. Whatever else is wanted a tick later is requested again.
 */
import type { Timers } from '../../actors/kernel/timers.ts'
import type { HooksAnswer, HooksAsk } from './payloads/answer.ts'
import type { Payload, PayloadRequest } from './payloads/payload-request.ts'
import type { Pending } from './pending.ts'
import type { HookView } from './reads.ts'
import { isClosed } from './subscription-index.ts'

type PayloadsOptions = Pick<Timers, 'soon'> & {
  readonly address: string
  /** undefined: no answer came. */
  readonly ask: (source: number, ask: HooksAsk) => Promise<HooksAnswer | undefined>
  /** Another number whenever anything new was announced. */
  readonly turn: () => number
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Something could not be built: it is left out, so that what follows continues. */
  readonly fault: (problem: string) => void
}

/** undefined: no answer came. */
export type Give = (payload: Payload | undefined) => void
type Wanted = { readonly request: PayloadRequest; readonly isForAll: boolean; readonly give: Give[] }

/** Payloads of one letter: the feed answers others between two of them. */
const togetherMax = 64
/** Texts expire without a word: what is kept is no older than this. */
const keptMs = 100
const keptMax = 512

export class Payloads {
  readonly #options: PayloadsOptions
  /** By source, then by what is asked. */
  readonly #wanted = new Map<number, Map<string, Wanted>>()
  /** By event, what all targets are sent of it. */
  readonly #kept = new Map<string, Payload>()
  #keptTurn = 0
  #keptUntil = 0
  #forgotten = 0
  #scheduled = false

  constructor(options: PayloadsOptions) {
    this.#options = options
  }

  get(pending: Pending, view: HookView, give: Give): void {
    const { source, kind, signal } = pending
    // It may have been put into the queue when more was open to the hook than now.
    if (isClosed(view, pending)) return give({ skip: true })
    const { owner: reader, filter } = view
    // The feed shows a post of a room to all readers alike.
    const isForAll = source === 0 && kind === 'room.post'
    const { subject, item, at, state } = signal
    const kept = isForAll && this.#isKept() ? this.#kept.get(subject) : undefined
    if (kept !== undefined) return give(kept)
    const wanted = this.#wanted.get(source) ?? new Map<string, Wanted>()
    this.#wanted.set(source, wanted)
    const name = isForAll ? subject : `${kind} ${subject} ${item} ${at} ${state} ${reader} ${JSON.stringify(filter)}`
    const known = wanted.get(name)
    if (known !== undefined) known.give.push(give)
    else {
      const request = { kind, subject, item, at, state, reader, filter, handle: '', blocked: [] }
      wanted.set(name, { request, isForAll, give: [give] })
    }
    if (this.#scheduled) return
    this.#scheduled = true
    this.#options.soon(() => this.#ask())
  }

  /** Something has happened. */
  forget(): void {
    this.#kept.clear()
    this.#forgotten++
  }

  #isKept(): boolean {
    const { turn, now } = this.#options
    if (turn() === this.#keptTurn && now() < this.#keptUntil) return true
    this.#kept.clear()
    this.#keptTurn = turn()
    this.#keptUntil = now() + keptMs
    return false
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
    const turn = this.#options.turn()
    const forgotten = this.#forgotten
    const found = (await this.#options.ask(source, ['payloads', this.#options.address, requests])) as
      | readonly Payload[]
      | undefined
    wanted.forEach(({ request, isForAll, give }, n) => {
      const payload = found?.[n]
      const isBuilt = payload !== undefined && !('fault' in payload)
      if (payload !== undefined && !isBuilt) this.#options.fault(payload.fault)
      const stands = isForAll && isBuilt && this.#isKept() && turn === this.#keptTurn && forgotten === this.#forgotten
      if (stands && this.#kept.size < keptMax) this.#kept.set(request.subject, payload)
      for (const each of give) each(payload)
    })
  }
}
