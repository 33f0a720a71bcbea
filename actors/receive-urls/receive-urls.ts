/**
 * Receive URLs and the items that arrived there. All receive URLs of one identity are decided by one actor, `@in-<identity
 * id>`.
 *
 * Bodies stay in the journal: memory holds the places of the newest items, and what is needed to recognize repeated deliveries.
 * None of this is ever public. Only the hash of a URL's secret is stored, not the secret.
 */

import { nowhere } from '../records/board.ts'
import type { Core, Projection, RecordPlace } from '../records/core.ts'
import { ActsOf, delegationOf, type FactRecord } from '../records/record.ts'

const itemsKept = 1_000
/** How long a value of the dedupe header is remembered, in seconds. */
export const dedupeSeconds = 86_400
/** Values remembered at once: more than a day of deliveries at the highest rate. */
const dedupeMax = 10_000

/** The options chosen by its creator. Empty texts and lists: not chosen. */
export type ReceiverFacts = {
  readonly label: string
  readonly room: string
  /** Lower case. */
  readonly dedupe: string
  /** The key that signs deliveries, sealed with the board's key. */
  readonly sealed?: string | undefined
  /** The same as older releases stored it: in plain text. */
  readonly hmac?: string
  /** Addresses and networks in CIDR notation. */
  readonly allow: readonly string[]
  /** Each item is posted to the room. */
  readonly post: boolean
}

/** Facts of one item, as in its record. */
export type ItemFacts = {
  readonly receiver: string
  readonly item: number
  readonly type: string
  /** Of the address, without its question mark; absent if there was none. */
  readonly query?: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array
  readonly verified: boolean
  /** Hash of the value of the dedupe header, or ''. */
  readonly dedupe: string
}

/** Acts that record an arrived item. */
export const arrivals = new ActsOf<ItemFacts>('receiver.item')

/** Where an item is stored. */
export type Item = { readonly item: number; readonly shard: number; readonly seq: number; readonly at: number }

export type Receiver = {
  readonly id: string
  /** Identity id. */
  readonly owner: string
  readonly createdAt: number
  readonly facts: ReceiverFacts
  /** Hex SHA-256 of the secret in the URL. */
  hash: string
  /** 32 hex: the delegation whose key this secret was shown to, and with which it ends; '' if shown to the identity's own key. */
  delegation: string
  /** Unix seconds; 0: it accepts items. */
  deletedAt: number
  /** Total number of items, which is the number of the newest. */
  count: number
  /** The newest items, oldest first. */
  readonly items: Item[]
  /** Number of the newest item that is posted, or never will be. */
  posted: number
  /** Dedupe value (hashed) -> the item it came with, oldest first. */
  readonly seen: Map<string, { readonly item: number; readonly at: number; readonly bytes: number }>
}

/** Whether deliveries must be signed. */
export function asksSignature({ sealed = '', hmac = '' }: ReceiverFacts): boolean {
  return sealed !== '' || hmac !== ''
}

type Packed = readonly (readonly [
  id: string,
  owner: string,
  createdAt: number,
  facts: ReceiverFacts,
  hash: string,
  deletedAt: number,
  count: number,
  posted: number,
  items: readonly (readonly [item: number, shard: number, seq: number, at: number])[],
  seen: readonly (readonly [value: string, item: number, at: number, bytes: number])[],
  delegation?: string,
])[]

export class Receivers implements Projection {
  readonly acts: Projection['acts'] = {
    'receiver.create': (act) => this.#created(act),
    'receiver.rotate': (act) => this.#rotated(act),
    'receiver.delete': ({ facts, at }: FactRecord<{ receiver: string }>) => this.#deleted(facts.receiver, at),
    'receiver.item': (act, place) => this.#arrived(act, place),
    'receiver.posted': ({ facts }: FactRecord<{ receiver: string; item: number }>) =>
      this.#posted(facts.receiver, facts.item),
  }
  readonly #core: Core
  readonly #byId = new Map<string, Receiver>()
  readonly #byOwner = new Map<string, Receiver[]>()

  constructor(core: Core) {
    this.#core = core
  }

  find(id: string): Receiver | undefined {
    return this.#byId.get(id)
  }

  /** All receive URLs of one identity, oldest first, including deleted ones that still hold items. */
  of(owner: string): readonly Receiver[] {
    return this.#byOwner.get(owner) ?? []
  }

  /** Receive URLs with items that should be posted to a room and are not known to be: all of them, or only this one. */
  unposted(id?: string): Receiver[] {
    const one = id === undefined ? undefined : this.#byId.get(id)
    const asked = id === undefined ? [...this.#byId.values()] : one === undefined ? [] : [one]
    return asked.filter(({ facts, count, posted }) => facts.post && posted < count)
  }

  pack(): Packed {
    return [...this.#byId.values()].map((each) => [
      each.id,
      each.owner,
      each.createdAt,
      each.facts,
      each.hash,
      each.deletedAt,
      each.count,
      each.posted,
      each.items.map(({ item, shard, seq, at }) => [item, shard, seq, at] as const),
      [...each.seen].map(([value, { item, at, bytes }]) => [value, item, at, bytes] as const),
      each.delegation,
    ])
  }

  restore(packed: Packed): void {
    for (const [id, owner, createdAt, facts, hash, deletedAt, count, posted, items, seen, delegation = ''] of packed)
      this.#add({
        id,
        owner,
        createdAt,
        facts,
        hash,
        delegation,
        deletedAt,
        count,
        posted,
        items: items.map(([item, shard, seq, at]) => ({ item, shard, seq, at })),
        seen: new Map(seen.map(([value, item, at, bytes = 0]) => [value, { item, at, bytes }])),
      })
  }

  #created(act: FactRecord<ReceiverFacts & { receiver: string; hash: string }>): void {
    const { author, at, facts } = act
    const { receiver, hash, ...chosen } = facts
    this.#add({
      id: receiver,
      owner: Buffer.from(author).toString('hex'),
      createdAt: at,
      facts: chosen,
      hash,
      delegation: delegationOf(act),
      deletedAt: 0,
      count: 0,
      posted: 0,
      items: [],
      seen: new Map(),
    })
  }

  #add(receiver: Receiver): void {
    this.#byId.set(receiver.id, receiver)
    const own = this.#byOwner.get(receiver.owner)
    if (own === undefined) this.#byOwner.set(receiver.owner, [receiver])
    else own.push(receiver)
  }

  #rotated(act: FactRecord<{ receiver: string; hash: string }>): void {
    const receiver = this.#byId.get(act.facts.receiver)!
    receiver.hash = act.facts.hash
    receiver.delegation = delegationOf(act)
  }

  /** Items that arrived stay readable; a URL that never received any is forgotten. */
  #deleted(id: string, at: number): void {
    const receiver = this.#byId.get(id)!
    const { owner, count, seen } = receiver
    receiver.hash = ''
    receiver.deletedAt = at
    seen.clear()
    if (count > 0) return
    this.#byId.delete(id)
    this.#byOwner.set(
      owner,
      this.of(owner).filter((each) => each.id !== id),
    )
  }

  #arrived({ at, facts }: FactRecord<ItemFacts>, { shard, seq, change }: RecordPlace): void {
    const { receiver: id, item, dedupe, body } = facts
    const receiver = this.#byId.get(id)!
    receiver.count = item
    receiver.items.push({ item, shard, seq, at })
    if (receiver.items.length > itemsKept) receiver.items.shift()
    for (const [value, { at: came }] of receiver.seen) {
      if (at - came < dedupeSeconds && receiver.seen.size < dedupeMax) break
      receiver.seen.delete(value)
    }
    if (dedupe !== '') {
      // Delete and set again, to move it to the end: the map is ordered by time.
      receiver.seen.delete(dedupe)
      receiver.seen.set(dedupe, { item, at, bytes: body.length })
    }
    this.#core.changes.add('receiver.item', { position: change, room: nowhere, slot: nowhere, subject: id, at })
  }

  #posted(id: string, item: number): void {
    const receiver = this.#byId.get(id)
    if (receiver !== undefined) receiver.posted = Math.max(receiver.posted, item)
  }
}
