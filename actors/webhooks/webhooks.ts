/**
 * Hooks: who is notified of what. They include subscriptions of MCP Events and plain webhooks. All hooks of one identity are
 * decided by one actor, `@hooks-<identity id>`, and none of them is public.
 *
 * This part holds what was agreed: address, kinds, filter, sealed secret, and the positions from which events are to be
 * delivered. How far deliveries have got since is not decided here, and is stored separately from the journals
 * (src/webhooks/store.ts).
 */
import type { Projection, RecordPlace } from '../records/core.ts'
import type { FactRecord } from '../records/record.ts'

/** After a change of secret, deliveries are also signed with the previous one for this many seconds. */
export const overlapSeconds = 300
/** The same after `webhook.rotate`: a person, not a client of MCP Events, replaces the secret of a plain webhook. */
export const rotationOverlapSeconds = 86_400
/** Redeliveries remembered at once. */
const redeliveriesMax = 50

export type HookForm = 'mcp' | 'webhook'

/** What a hook subscribes to: texts and numbers by name, as the kind of event defines them. */
type HookFilter = Readonly<Record<string, string | number>>

export type HookFacts = {
  /** `sub_` and 32 hex, derived from its content; for a plain webhook, the event id of its `webhook.create`. */
  readonly hook: string
  readonly form: HookForm
  readonly url: string
  readonly kinds: readonly string[]
  readonly filter: HookFilter
  /** The secret sealed with the board's key, and a tag to recognize it: the secret itself is stored nowhere. */
  readonly sealed: string
  readonly tag: string
  /** The next position to deliver, in the feed and then in each shard. */
  readonly marks: readonly number[]
  /** Unix seconds, 0 = never. */
  readonly expires: number
  /** 32 hex: the delegation that requested it, and with which it ends. Absent: the identity's own key. */
  readonly delegation?: string
  /** It was requested with a token that may not read private content: it gets only what is public. */
  readonly publicOnly?: true
}

/** The previous secret, valid until then (Unix seconds). */
type FormerSecret = { readonly sealed: string; readonly until: number }

/** A new secret; and of a delegate who has seen it, the delegation and its end. */
export type RotatedFacts = Pick<HookFacts, 'hook' | 'sealed' | 'tag'> &
  Partial<Pick<HookFacts, 'expires' | 'delegation'>>

type Redelivery = { readonly number: number; readonly event: string }

export type Hook = {
  readonly owner: string
  /** Number of its first record in the journal; it distinguishes hooks that had the same id at different times. */
  readonly epoch: number
  readonly createdAt: number
  facts: HookFacts
  former: FormerSecret | undefined
  /** How often it was refreshed or woken: a suspended hook resumes when this has grown. */
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

export class Hooks implements Projection {
  readonly acts: Projection['acts'] = {
    'webhook.create': (act, place) => this.#put(act, place),
    'hook.subscribe': (act, place) => this.#put(act, place),
    'webhook.rotate': ({ facts, at }: FactRecord<RotatedFacts>) => this.#rotated(facts, at),
    'webhook.delete': ({ facts }: FactRecord<{ hook: string }>) => this.#remove(facts.hook),
    'hook.end': ({ facts }: FactRecord<{ hook: string }>) => this.#remove(facts.hook),
    'webhook.redeliver': ({ facts }: FactRecord<{ hook: string; event: string }>) =>
      this.#redeliver(facts.hook, facts.event),
  }
  readonly #byId = new Map<string, Hook>()
  readonly #byOwner = new Map<string, Hook[]>()

  get count(): number {
    return this.#byId.size
  }

  find(id: string): Hook | undefined {
    return this.#byId.get(id)
  }

  /** All hooks of one identity, oldest first, including expired ones until they are removed. */
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

  /** Creates or refreshes a hook. The previous secret stays valid for a while; everything else is replaced. */
  #put({ author, at, facts }: FactRecord<HookFacts>, { seq }: RecordPlace): void {
    const known = this.#byId.get(facts.hook)
    if (known === undefined) {
      const owner = Buffer.from(author).toString('hex')
      return this.#add({ owner, epoch: seq, createdAt: at, facts, former: undefined, wakes: 0, redeliveries: [] })
    }
    if (known.facts.tag !== facts.tag) known.former = { sealed: known.facts.sealed, until: at + overlapSeconds }
    known.facts = facts
    known.wakes++
  }

  #rotated(facts: RotatedFacts, at: number): void {
    const hook = this.#byId.get(facts.hook)
    if (hook === undefined) return
    hook.former = { sealed: hook.facts.sealed, until: at + rotationOverlapSeconds }
    hook.facts = { ...hook.facts, ...facts }
    hook.wakes++
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

  /** `event` is '' if the hook is only woken. */
  #redeliver(id: string, event: string): void {
    const hook = this.#byId.get(id)
    if (hook === undefined) return
    hook.wakes++
    if (event === '') return
    hook.redeliveries = [...hook.redeliveries, { number: hook.wakes, event }].slice(-redeliveriesMax)
  }
}
