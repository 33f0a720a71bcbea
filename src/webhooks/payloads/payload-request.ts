/** The request to a source for the payload of a delivery, and the answer. */
import type { HookKind } from '../../../actors/webhooks/kind-names.ts'

export type PayloadRequest = {
  readonly kind: HookKind
  readonly subject: string
  readonly item: number
  readonly at: number
  /** For a work: the state it entered. */
  readonly state: string
  /** Identity id. */
  readonly reader: string
  /** The reader's handle, or ''. */
  readonly handle: string
  /** Identity ids that the reader has blocked. */
  readonly blocked: readonly string[]
  /** The filter of the hook. */
  readonly filter: Readonly<Record<string, string | number>>
  /** For a work whose market is in another shard than its room; null: the market has no such work. */
  readonly offer?: Offer | null
}

/** The fields of a work record that are examined. */
type WorkRecord = {
  readonly room?: string
  readonly title?: string
  readonly capabilities?: readonly string[]
  readonly state: string
  readonly eligibility?: string
  readonly simulated?: boolean
  readonly requester?: Person
  readonly reviewer?: Person
  readonly worker?: Person
  readonly reward?: { readonly amount: number }
  readonly request?: { readonly text?: string }
}
type Person = { readonly id: string; readonly handle?: string }

/** What the market knows about a work. Who may see a work in a private room is known to the room. */
export type Offer = {
  readonly work: WorkRecord
  /** The identity in `eligible_for` has had no result accepted. */
  readonly isNewcomer: boolean
}

/** `skip`: there is nothing to report any more. `barred`: the reader may not read there. */
export type Payload =
  | { readonly data: string }
  | { readonly skip: true }
  | { readonly barred: true }
  /** It cannot be built, now or ever, for example because the disk does not return a record: what and why, for this board's log. */
  | { readonly fault: string }
