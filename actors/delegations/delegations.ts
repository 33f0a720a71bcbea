/**
 * Delegations: which keys may act for which identity, with which scopes, and until when. The registry decides all of them, so a
 * delegate key serves one identity on the whole board, and ending a delegation is the same decision as moving its identity to
 * another key.
 *
 * A delegation is private until its key first does something public; then one public record (`delegation.published`, a leaf
 * `delegate`) is in the log before that act. The end of a published delegation is public too (a leaf `undelegate`); that of any
 * other is not. Times are those that were signed: it ends at `timestamp + ttl`, which anyone can check offline.
 */

import type { Core, Projection, RecordPlace } from '../records/core.ts'
import { ActsOf, type FactRecord } from '../records/record.ts'

/** What a delegation.create asked for, checked by the main thread. Empty texts: not given. */
export type DelegationFacts = {
  /** Public key of the delegate, 43 characters. */
  readonly key: string
  readonly scopes: readonly string[]
  /** Unix seconds. */
  readonly expires: number
  readonly label: string
  readonly clientId: string
  readonly redirectHost: string
}

const stops = new ActsOf<{ readonly target: string }>('identity.suspend', 'identity.erase')

export type EndedBy = 'revoked' | 'rotated' | 'suspended'

export type Delegation = DelegationFacts & {
  /** 32 hex: event id of its delegation.create. */
  readonly id: string
  /** Identity id. */
  readonly identity: string
  readonly createdAt: number
  /** Number of the record in the registry's journal. */
  readonly place: number
  /** It has a leaf in the public log. */
  isPublished: boolean
  /** Unix seconds, 0 = not ended. */
  endedAt: number
  /** `restored`: a backup replaced a lost board, as board.json says. */
  endedBy: EndedBy | 'restored' | ''
}

/** One delegation as the registry reports it: bytes in base64url; `signed` is empty if it has ended. */
export type ToldDelegation = {
  readonly id: string
  readonly identity: string
  readonly key: string
  readonly scopes: readonly string[]
  readonly expires: number
  readonly published: boolean
  readonly ended: boolean
  /** The disk cannot currently return what was signed, so nothing proves what it permits. */
  readonly unread: boolean
  readonly by: string
  readonly sig: string
  readonly signed: string
}

/** The end of a published delegation, as in the public log. `shard` and `place`: where the act is stored. */
export type DelegationEnd = {
  /** 32 hex: the command that ended it. */
  readonly id: string
  readonly delegation: string
  readonly identity: string
  readonly by: EndedBy
  readonly at: number
  readonly change: number
  /** Index in the public log (in the feed only). */
  readonly leaf: number
  readonly shard: number
  readonly place: number
}

type Packed = readonly [delegations: readonly Delegation[], ends: readonly DelegationEnd[]]

export class Delegations implements Projection {
  readonly acts: Projection['acts'] = {
    'delegation.create': (act, place) => this.#created(act, place),
    'delegation.published': ({ facts }: FactRecord<{ readonly id: string }>) => {
      const found = this.#byId.get(facts.id)
      if (found !== undefined) found.isPublished = true
    },
    'delegation.revoke': (act, place) => this.#ended(act, place, 'revoked'),
    'delegation.ended': (act: FactRecord<{ readonly id: string; readonly by: EndedBy }>, place: RecordPlace) =>
      this.#ended(act, place, act.facts.by),
  }
  /** Ends that are in the public log, oldest first; in a shard, also those that are not. */
  readonly ends: DelegationEnd[] = []
  readonly #byId = new Map<string, Delegation>()
  readonly #byKey = new Map<string, Delegation>()
  /** Oldest first. */
  readonly #byIdentity = new Map<string, Delegation[]>()

  // Every part gets the core; this one does not use it.
  // biome-ignore lint/complexity/noUselessConstructor: the signature is that of all parts
  constructor(_core: Core) {}

  find(id: string): Delegation | undefined {
    return this.#byId.get(id)
  }

  /** The delegation that this key acts by, or once acted by. */
  ofKey(key: string): Delegation | undefined {
    return this.#byKey.get(key)
  }

  /** All of one identity, oldest first. */
  of(identity: string): readonly Delegation[] {
    return this.#byIdentity.get(identity) ?? []
  }

  /** The live ones at this time. */
  liveOf(identity: string, now: number): Delegation[] {
    return this.of(identity).filter((each) => isLive(each, now))
  }

  get all(): IterableIterator<Delegation> {
    return this.#byId.values()
  }

  /** An identity that moves to another key, or is suspended or erased, loses all its delegates. */
  onAct(act: FactRecord): void {
    if (act.op === 'identity.rotate') this.#endAll(Buffer.from(act.author).toString('hex'), 'rotated', act.at)
    if (stops.is(act)) this.#endAll(act.facts.target, 'suspended', act.at)
  }

  /** A backup replaced a lost board: delegations made until then (Unix seconds) have ended. */
  endMadeUntil(at: number): void {
    for (const each of this.all) if (each.createdAt <= at && isLive(each, at)) end(each, 'restored', at)
  }

  pack(): Packed {
    return [[...this.#byId.values()], this.ends]
  }

  restore([delegations, ends]: Packed = [[], []]): void {
    for (const delegation of delegations) this.#add(delegation)
    this.ends.push(...ends)
  }

  #created({ author, at, facts }: FactRecord<DelegationFacts>, { id, seq }: RecordPlace): void {
    this.#add({
      ...facts,
      id: Buffer.from(id).toString('hex'),
      identity: Buffer.from(author).toString('hex'),
      createdAt: at,
      place: seq,
      isPublished: false,
      endedAt: 0,
      endedBy: '',
    })
  }

  #ended(
    { author, facts, at }: FactRecord<{ readonly id: string }>,
    { id, change, leaf, shard, seq }: RecordPlace,
    by: EndedBy,
  ): void {
    const delegation = facts.id
    end(this.#byId.get(delegation), by, at)
    const identity = Buffer.from(author).toString('hex')
    this.ends.push({
      id: Buffer.from(id).toString('hex'),
      delegation,
      identity,
      by,
      at,
      change,
      leaf,
      shard,
      place: seq,
    })
  }

  #add(delegation: Delegation): void {
    this.#byId.set(delegation.id, delegation)
    this.#byKey.set(delegation.key, delegation)
    const own = this.#byIdentity.get(delegation.identity)
    if (own === undefined) this.#byIdentity.set(delegation.identity, [delegation])
    else own.push(delegation)
  }

  #endAll(identity: string, by: EndedBy, at: number): void {
    for (const delegation of this.of(identity)) end(delegation, by, at)
  }
}

export function isLive({ endedAt, expires }: Delegation, now: number): boolean {
  return endedAt === 0 && now < expires
}

function end(delegation: Delegation | undefined, by: Delegation['endedBy'], at: number): void {
  if (delegation === undefined || delegation.endedAt !== 0) return
  delegation.endedAt = at
  delegation.endedBy = by
}
