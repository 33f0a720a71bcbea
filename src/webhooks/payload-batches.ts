/**
 * Batches requests for payloads: all those wanted in one tick go to their source in one message, and payloads that are the same
 * for all targets are requested once. Only these are cached, and only until anything newer is announced: before a redaction is
 * confirmed to its author, the text has left this cache. Anything else that is wanted a tick later is requested again.
 */
import type { Timers } from '../../actors/kernel/timers.ts'
import type { HooksAnswer, HooksAsk } from './payloads/answer.ts'
import type { Payload, PayloadRequest } from './payloads/payload-request.ts'
import type { Pending } from './pending.ts'
import type { HookView } from './reads.ts'
import { isClosed } from './subscription-index.ts'

type PayloadsOptions = Pick<Timers, 'soon'> & {
  readonly address: string
  /** Undefined if no answer came. */
  readonly ask: (source: number, ask: HooksAsk) => Promise<HooksAnswer | undefined>
  /** A number that changes whenever anything new was announced. */
  readonly turn: () => number
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Called if something could not be built: it is skipped, so that what follows continues. */
  readonly fault: (problem: string) => void
}

/** Undefined if no answer came. */
export type Give = (payload: Payload | undefined) => void
type Wanted = { readonly request: PayloadRequest; readonly isForAll: boolean; readonly give: Give[] }

/** Payloads per message: the feed can answer others between two of them. */
const togetherMax = 64
/** Texts expire without an announcement, so cached ones are never older than this. */
const keptMs = 100
const keptMax = 512

export class Payloads {
  readonly #options: PayloadsOptions
  /** By source, then by request. */
  readonly #wanted = new Map<number, Map<string, Wanted>>()
  /** By event: payloads that are the same for all targets. */
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
    // The hook may have had wider access when this was queued.
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

  /** Something has happened, so cached payloads are dropped. */
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
