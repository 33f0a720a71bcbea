/**
 * How far deliveries have come: what has changed since it was last recorded, written some times a second, and never so often that
 * the writing takes more than a tenth of the time. What a kill takes of it is delivered again under the same ids.
 */

import type { Cancel, Timers } from '../../actors/kernel/timers.ts'
import type { Pending } from './pending.ts'
import type { Sent } from './sender.ts'
import type { DeliveryRow, DeliveryStore } from './store.ts'
import type { HookRun } from './subscription-run.ts'

type PositionWriterOptions = {
  readonly store: DeliveryStore
  /** Next place of each source. */
  readonly tails: () => readonly number[]
  /** Unix milliseconds. */
  readonly wallMs: () => number
  readonly timers: Timers
  readonly report: (event: string, facts: Readonly<Record<string, unknown>>) => void
}

const commitEveryMs = 200
/** When only the tails have moved: idle hooks lose nothing by an older place but a few looks. */
const tailsEveryMs = 2_000
const pauseForWork = 10
/** Deliveries to be listed that may wait for a disk which is full. */
const unwrittenMax = 1_000

export class PositionWriter {
  readonly #options: PositionWriterOptions
  readonly #dirty = new Set<HookRun>()
  readonly #removed = new Set<string>()
  #deliveries: { hook: string; row: DeliveryRow }[] = []
  #tails = ''
  #committedAt = 0
  #notBefore = 0
  readonly #stopCommitting: Cancel

  constructor(options: PositionWriterOptions) {
    this.#options = options
    this.#stopCommitting = options.timers.every(() => this.#commitSoon(), commitEveryMs)
  }

  /** Its place or its course are others now. */
  moved(run: HookRun): void {
    this.#dirty.add(run)
  }

  /** There is a hook of this name. */
  added(run: HookRun): void {
    this.#removed.delete(run.id)
    this.#dirty.add(run)
  }

  /** It is known here no more, but it may be again. */
  dropped(run: HookRun): void {
    this.#dirty.delete(run)
  }

  /** There is no such hook. */
  removed(id: string): void {
    this.#removed.add(id)
  }

  /** Something to be listed for its owner. */
  delivered(hook: string, row: DeliveryRow): void {
    this.#deliveries.push({ hook, row })
  }

  close(): void {
    this.#stopCommitting()
    this.commit()
  }

  /** Writes what there is to write, now. */
  commit(): void {
    const { store, wallMs, report } = this.#options
    const tails = this.#options.tails()
    const places = new Map([...this.#dirty].map((run) => [run.id, run.place(tails)]))
    const began = wallMs()
    this.#committedAt = began
    try {
      store.commit({ tails, places, removed: [...this.#removed], deliveries: this.#deliveries })
    } catch (error) {
      // A full disk: deliveries continue, and after a kill some of them are made again.
      this.#deliveries = this.#deliveries.slice(-unwrittenMax)
      return report('delivery.not_kept', { problem: (error as Error).message })
    }
    this.#notBefore = wallMs() + pauseForWork * (wallMs() - began)
    this.#tails = tails.join()
    this.#dirty.clear()
    this.#removed.clear()
    this.#deliveries = []
  }

  #commitSoon(): void {
    const now = this.#options.wallMs()
    if (now < this.#notBefore && now >= this.#committedAt) return
    const isDirty = this.#dirty.size + this.#removed.size + this.#deliveries.length > 0
    const isDue = now - this.#committedAt >= tailsEveryMs && this.#options.tails().join() !== this.#tails
    if (isDirty || isDue) this.commit()
  }
}

export type Made = {
  readonly pending: Pending
  readonly sent: Extract<Sent, { kind: 'sent' }>
  /** The event is done with, one way or the other. */
  readonly settled: boolean
  readonly attempts: number
  /** What was shown of it before. */
  readonly before?: DeliveryRow
  /** Unix milliseconds. */
  readonly now: number
}

/** What the owner of a webhook is shown of one delivery, made from an attempt and what came of it. */
export function rowOf({ pending, sent, settled, attempts, before, now }: Made): DeliveryRow {
  const { source, signal, kind } = pending
  const { event, status, outcome, item } = sent
  const { position, subject, state: work, at } = signal
  const delivered = outcome.kind === 'delivered' || before?.state === 'delivered'
  return {
    ...{ event, kind, source, position, subject, item, work, at, attempts, status },
    state: delivered ? 'delivered' : settled ? 'given_up' : 'waiting',
    error: outcome.kind === 'failed' ? outcome.trouble : outcome.kind === 'delivered' ? '' : 'http_4xx',
    attemptedAt: Math.floor(now / 1000),
  }
}
