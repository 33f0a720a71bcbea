/**
 * Writes how far deliveries have come: what has changed since the last write, several times a second, but never so often that
 * writing takes more than a tenth of the time. What a kill loses is delivered again under the same ids.
 */

import type { Cancel, Timers } from '../../actors/kernel/timers.ts'
import type { Pending } from './pending.ts'
import type { Sent } from './sender.ts'
import type { DeliveryRow, DeliveryStore } from './store.ts'
import type { HookRun } from './subscription-run.ts'

type PositionWriterOptions = {
  readonly store: DeliveryStore
  /** Next position of each source. */
  readonly tails: () => readonly number[]
  /** Unix milliseconds. */
  readonly wallMs: () => number
  readonly timers: Timers
  readonly report: (event: string, facts: Readonly<Record<string, unknown>>) => void
}

const commitEveryMs = 200
/** If only the tails have moved: idle hooks lose nothing by an older position except a few lookups. */
const tailsEveryMs = 2_000
const pauseForWork = 10
/** Rows of the delivery list that may wait for a full disk. */
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

  /** Its positions or its course have changed. */
  moved(run: HookRun): void {
    this.#dirty.add(run)
  }

  /** A hook with this id exists. */
  added(run: HookRun): void {
    this.#removed.delete(run.id)
    this.#dirty.add(run)
  }

  /** It is no longer known here, but may be again. */
  dropped(run: HookRun): void {
    this.#dirty.delete(run)
  }

  /** There is no such hook. */
  removed(id: string): void {
    this.#removed.add(id)
  }

  /** A row for its owner's list of deliveries. */
  delivered(hook: string, row: DeliveryRow): void {
    this.#deliveries.push({ hook, row })
  }

  close(): void {
    this.#stopCommitting()
    this.commit()
  }

  /** Writes everything pending now. */
  commit(): void {
    const { store, wallMs, report } = this.#options
    const tails = this.#options.tails()
    const places = new Map([...this.#dirty].map((run) => [run.id, run.place(tails)]))
    const began = wallMs()
    this.#committedAt = began
    try {
      store.commit({ tails, places, removed: [...this.#removed], deliveries: this.#deliveries })
    } catch (error) {
      // If the disk is full, deliveries continue; after a kill some of them are repeated.
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
  /** The event is finished, delivered or not. */
  readonly settled: boolean
  readonly attempts: number
  /** The row that was shown before. */
  readonly before?: DeliveryRow
  /** Unix milliseconds. */
  readonly now: number
}

/** The row for one delivery in its owner's list, from an attempt and its outcome. */
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
