/** What is asked of a source when something is to be delivered, and what it answers. */
import type { HookKind } from '../../../actors/webhooks/kind-names.ts'

export type PayloadRequest = {
  readonly kind: HookKind
  readonly subject: string
  readonly item: number
  readonly at: number
  /** Of a work: the state it came into. */
  readonly state: string
  /** Identity id. */
  readonly reader: string
  /** The reader's handle, or ''. */
  readonly handle: string
  /** Identity ids that do not speak to the reader. */
  readonly blocked: readonly string[]
  /** What the hook chose with. */
  readonly filter: Readonly<Record<string, string | number>>
  /** Of a work whose market is in another shard than its room; null: the market has none. */
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

/** What the market says of a work. Who may know of one of a private room, the room says. */
export type Offer = {
  readonly work: WorkRecord
  /** Who asks for works that they may claim has had none accepted. */
  readonly isNewcomer: boolean
}

/** `skip`: there is nothing to tell of it any more. `barred`: the reader may not read where it stands. */
export type Payload =
  | { readonly data: string }
  | { readonly skip: true }
  | { readonly barred: true }
  /** It cannot be built, now or ever, such as of a record that the disk does not give: what and why, for the log of this board. */
  | { readonly fault: string }
