/**
 * Follows all sources: the feed, and each shard for private content, one page at a time from the last position in each. Hints
 * only say that there may be more; what there is is in the files.
 */
import type { Timers } from '../../actors/kernel/timers.ts'
import { pause } from '../clock.ts'
import type { HooksAnswer, HooksAsk } from './payloads/answer.ts'
import type { Signal, SignalsPage, SignalsRequest } from './payloads/signals.ts'

type SourcesOptions = {
  /** Undefined if no answer came; ask again. */
  readonly ask: (source: number, ask: HooksAsk) => Promise<HooksAnswer | undefined>
  /** Initial next position of each source. */
  readonly tails: readonly number[]
  /** Whether any hook wants events that address its owner, which requires reading every post. */
  readonly isSpokenTo: () => boolean
  readonly route: (source: number, signal: Signal) => void
  /** A source has been read to its current end. */
  readonly onEnd: (source: number) => void
  readonly timers: Timers
}

const againMs = 500

export class Sources {
  /** Next position of each source: everything before was routed. */
  readonly tails: number[]
  readonly #options: SourcesOptions
  /** Sources that are being read, and those with more news meanwhile. */
  readonly #reading = new Set<number>()
  readonly #news = new Set<number>()
  #closed = false

  constructor(options: SourcesOptions) {
    this.#options = options
    this.tails = [...options.tails]
  }

  /** Something may have happened in a source. */
  news(source: number): void {
    this.#news.add(source)
    if (!this.#reading.has(source)) void this.#read(source)
  }

  close(): void {
    this.#closed = true
  }

  /** A page of signals, with the holders of the named handles. Retries until there is an answer, each time with the current request. */
  async page(source: number, request: () => SignalsRequest): Promise<SignalsPage> {
    for (;;) {
      const page = (await this.#options.ask(source, ['signals', request()])) as SignalsPage | undefined
      const resolved = page === undefined ? undefined : await this.#named(page)
      if (resolved !== undefined) return resolved
      if (!this.#closed) await pause(this.#options.timers, againMs)
      if (this.#closed) return { signals: [], next: 0, more: false }
    }
  }

  async #read(source: number): Promise<void> {
    this.#reading.add(source)
    while (this.#news.delete(source) && !this.#closed) {
      for (let more = true; more && !this.#closed; ) {
        const from = this.tails[source]!
        const page = await this.page(source, () => ({
          from,
          spoken: this.#options.isSpokenTo(),
          room: '',
          personal: false,
        }))
        for (const signal of page.signals) this.#options.route(source, signal)
        this.tails[source] = Math.max(this.tails[source]!, page.next)
        more = page.more
      }
      this.#options.onEnd(source)
    }
    this.#reading.delete(source)
  }

  async #named(page: SignalsPage): Promise<SignalsPage | undefined> {
    if (page.signals.every(({ handles }) => handles.length === 0)) return page
    const signals: Signal[] = []
    for (const signal of page.signals) {
      const { handles } = signal
      const holders = handles.length === 0 ? [] : await this.#options.ask(0, ['holders', handles])
      if (holders === undefined) return undefined
      signals.push({ ...signal, to: [...new Set([...signal.to, ...(holders as readonly string[])])] })
    }
    return { ...page, signals }
  }
}
