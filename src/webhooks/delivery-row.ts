/** What the owner of a webhook is shown of one delivery, made from an attempt and what came of it. */
import type { Pending } from './pending.ts'
import type { Sent } from './sender.ts'
import type { DeliveryRow } from './store.ts'

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
