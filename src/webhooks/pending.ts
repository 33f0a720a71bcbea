/**
 * One delivery to make: a change, as one of the kinds it is delivered as. All hooks that get it share the object, so a delivery
 * waiting for ten thousand of them is as many pointers, and what is the same for all is built once.
 */
import type { HookKind } from '../../actors/webhooks/kind-names.ts'
import type { Signal } from './payloads/signals.ts'

export type Pending = {
  readonly source: number
  readonly signal: Signal
  readonly kind: HookKind
  /** Index of the kind among those of its change. */
  readonly nth: number
  /** The common beginning of all deliveries of it; built when the first is sent. */
  named: Named | undefined
}

export type Named = {
  /** `webhook-id`. */
  readonly event: string
  /** The body up to the part that depends on the reader. */
  readonly opening: string
}

/** A change, as all the kinds that it is delivered as. */
export function pendingOf(source: number, signal: Signal): readonly Pending[] {
  return signal.kinds.map((kind, nth) => ({ source, signal, kind, nth, named: undefined }))
}

/** For deliveries that are not about a change. */
export const noSignal: Signal = {
  position: 0,
  at: 0,
  kinds: [],
  room: '',
  page: '',
  kind: '',
  subject: 'head',
  item: 0,
  state: '',
  to: [],
  handles: [],
}
