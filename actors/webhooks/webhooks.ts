/**
 * Hooks: what is told to whom over there. Subscriptions of MCP Events and plain webhooks alike; all of one identity are decided
 * by one actor, `@hooks-<identity id>`, and none of them is public.
 *
 * Here stands what was agreed: address, kinds, filter, sealed secret, and the places from which on it is owed what happens. How
 * far deliveries have come since is no decision of anybody, and is kept beside the journals (src/webhooks/store.ts).
 */
import type { ActPlace, Part } from '../part.ts'
import type { Act } from '../record.ts'

/** Seconds for which deliveries are signed with the secret before, too, when it was changed. */
export const overlapSeconds = 300
/** Redeliveries that are known at once. */
const redeliveriesMax = 50

export type HookForm = 'mcp' | 'webhook'

/** What a hook hears of: texts and numbers by their names, as the kind of event takes them. */
type HookFilter = Readonly<Record<string, string | number>>

export type HookFacts = {
  /** `sub_` and 32 hex, made from what it is; of a plain webhook the event id of its `webhook.create`. */
  readonly hook: string
  readonly form: HookForm
  readonly url: string
  readonly kinds: readonly string[]
  readonly filter: HookFilter
  /** The secret, sealed with the board's key, and what it is recognised by: the secret itself stands nowhere. */
  readonly sealed: string
  readonly tag: string
  /** Next place of the feed, then of each shard, that it has not heard of. */
  readonly marks: readonly number[]
  /** Unix seconds, 0 = never. */
  readonly expires: number
  /** 32 hex: the delegation by which it was asked for, and with which it ends. Absent: the identity's own key. */
  readonly delegation?: string
  /** It was asked for by a token that may not read in private: it is told of what is public alone. */
  readonly publicOnly?: true
}

/** The secret before, good until then (Unix seconds). */
type FormerSecret = { readonly sealed: string; readonly until: number }

type Redelivery = { readonly number: number; readonly event: string }

export type Hook = {
  readonly owner: string
  /** Number of its first record in the journal: another life of the same id begins with another. */
  readonly epoch: number
  readonly createdAt: number
  facts: HookFacts
  former: FormerSecret | undefined
  /** How often it was refreshed or woken: one that was suspended goes on when this has grown. */
  wakes: number
  redeliveries: readonly Redelivery[]
}

type Packed = readonly (readonly [
  owner: string,
  epoch: number,
  createdAt: number,
  facts: HookFacts,
  former: FormerSecret | null,
  wakes: number,
  redeliveries: readonly Redelivery[],
])[]

export class Hooks implements Part {
  readonly acts: Part['acts'] = {
    'webhook.create': (act, place) => this.#put(act, place),
    'hook.subscribe': (act, place) => this.#put(act, place),
    'webhook.delete': ({ facts }) => this.#remove(facts.hook as string),
    'hook.end': ({ facts }) => this.#remove(facts.hook as string),
    'webhook.redeliver': ({ facts }) => this.#redeliver(facts.hook as string, facts.event as string),
  }
  readonly #byId = new Map<string, Hook>()
  readonly #byOwner = new Map<string, Hook[]>()

  get count(): number {
    return this.#byId.size
  }

  find(id: string): Hook | undefined {
    return this.#byId.get(id)
  }

  /** All of one identity, oldest first, those that have run out included until somebody takes them away. */
  of(owner: string): readonly Hook[] {
    return this.#byOwner.get(owner) ?? []
  }

  all(): IterableIterator<Hook> {
    return this.#byId.values()
  }

  pack(): Packed {
    return [...this.#byId.values()].map((each) => [
      each.owner,
      each.epoch,
      each.createdAt,
      each.facts,
      each.former ?? null,
      each.wakes,
      each.redeliveries,
    ])
  }

  restore(packed: Packed = []): void {
    for (const [owner, epoch, createdAt, facts, former, wakes, redeliveries] of packed)
      this.#add({ owner, epoch, createdAt, facts, former: former ?? undefined, wakes, redeliveries })
  }

  /** Made, or refreshed: a new secret leaves the one before good for a while, everything else is as it is told now. */
  #put({ author, at, facts: told }: Act, { seq }: ActPlace): void {
    const facts = told as unknown as HookFacts
    const known = this.#byId.get(facts.hook)
    if (known === undefined) {
      const owner = Buffer.from(author).toString('hex')
      return this.#add({ owner, epoch: seq, createdAt: at, facts, former: undefined, wakes: 0, redeliveries: [] })
    }
    if (known.facts.tag !== facts.tag) known.former = { sealed: known.facts.sealed, until: at + overlapSeconds }
    known.facts = facts
    known.wakes++
  }

  #add(hook: Hook): void {
    this.#byId.set(hook.facts.hook, hook)
    const own = this.#byOwner.get(hook.owner)
    if (own === undefined) this.#byOwner.set(hook.owner, [hook])
    else own.push(hook)
  }

  #remove(id: string): void {
    const hook = this.#byId.get(id)
    if (hook === undefined) return
    this.#byId.delete(id)
    const left = this.of(hook.owner).filter((each) => each !== hook)
    if (left.length === 0) this.#byOwner.delete(hook.owner)
    else this.#byOwner.set(hook.owner, left)
  }

  /** `event` is '' where it is only woken. */
  #redeliver(id: string, event: string): void {
    const hook = this.#byId.get(id)
    if (hook === undefined) return
    hook.wakes++
    if (event === '') return
    hook.redeliveries = [...hook.redeliveries, { number: hook.wakes, event }].slice(-redeliveriesMax)
  }
}
