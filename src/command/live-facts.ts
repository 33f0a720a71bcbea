/**
 * What the main thread knows: newest changes by room, the newest signed head, handles, delegates and raised limits. It learns
 * them from the answers to its own writes and from the log and the feed; both only ever move it forward.
 */

import { raisedLimits } from '../../actors/kernel/limits.ts'
import { NetworkSet } from '../../actors/kernel/networks.ts'
import type { GrantFacts } from '../../actors/limits/grants.ts'
import type { Head } from '../../actors/records/answer.ts'
import { registryName } from '../../actors/records/record.ts'
import { shardOf } from '../../actors/shard.ts'
import type { Clock } from '../clock.ts'
import type { Factors } from '../rates/throttle.ts'
import { Delegates } from './delegates.ts'
import { HandleCache } from './handles.ts'

export type ToldGrant = Pick<GrantFacts, 'target' | 'factor' | 'expires'>
type Load = (told: (found: readonly ToldGrant[] | undefined) => void) => void

const againMs = 100
const identity = /^[0-9a-f]{64}$/

/**
 * How many times its limits a caller may use, as it has to be known for every request: what LIMITS says, and what operators
 * granted. The registry decides and remembers grants; they are read from it at the start, and whenever its answer may be lost.
 */
export class KnownGrants implements Factors {
  readonly #granted = new Map<string, ToldGrant>()
  /** Unix seconds. */
  readonly #now: () => number
  readonly #later: Clock['later']
  #load: Load | undefined
  #identities = new Map<string, number>()
  /** The largest factor first. */
  #networks: (readonly [factor: number, networks: NetworkSet])[] = []
  /** When the next grant ends. */
  #nextEnd = Number.POSITIVE_INFINITY

  constructor({ wallSeconds, later }: Pick<Clock, 'wallSeconds' | 'later'>) {
    this.#now = wallSeconds
    this.#later = later
    this.#arrange()
  }

  /** Reads what the registry has, now and by `refresh`. `load` gives undefined while it has no answer. */
  begin(load: Load): Promise<void> {
    this.#load = load
    return new Promise((resolve) => this.#reload(resolve))
  }

  /** An answer was lost, or the registry was restarted. */
  refresh(): void {
    if (this.#load !== undefined) this.#reload(() => {})
  }

  add(grant: ToldGrant): void {
    this.#granted.set(grant.target, grant)
    this.#arrange()
  }

  end(target: string): void {
    this.#granted.delete(target)
    this.#arrange()
  }

  ofIdentity(id: string): number {
    this.#passTime()
    return this.#identities.get(id) ?? 1
  }

  ofAddress(address: string): number {
    this.#passTime()
    return this.#networks.find(([, networks]) => networks.has(address))?.[0] ?? 1
  }

  #passTime(): void {
    if (this.#nextEnd !== Number.POSITIVE_INFINITY && this.#now() >= this.#nextEnd) this.#arrange()
  }

  #arrange(): void {
    const now = this.#now()
    for (const { target, expires } of this.#granted.values()) if (expires <= now) this.#granted.delete(target)
    const granted = [...this.#granted.values()]
    this.#nextEnd = Math.min(Number.POSITIVE_INFINITY, ...granted.map(({ expires }) => expires))
    const raised = [
      ...raisedLimits.identities,
      ...raisedLimits.networks,
      ...granted.map(({ target, factor }) => [target, factor === 0 ? Number.POSITIVE_INFINITY : factor] as const),
    ]
    const byFactor = new Map<number, string[]>()
    this.#identities = new Map()
    for (const [target, factor] of raised) {
      if (identity.test(target)) this.#identities.set(target, Math.max(factor, this.#identities.get(target) ?? factor))
      else byFactor.set(factor, [...(byFactor.get(factor) ?? []), target])
    }
    this.#networks = [...byFactor]
      .sort(([a], [b]) => b - a)
      .map(([factor, networks]) => [factor, new NetworkSet(networks)])
  }

  #reload(done: () => void): void {
    this.#load!((found) => {
      if (found === undefined) {
        this.#later(() => this.#reload(done), againMs)
        return
      }
      this.#granted.clear()
      for (const grant of found) this.#granted.set(grant.target, grant)
      this.#arrange()
      done()
    })
  }
}

/** An identity that moved from one public key to another. */
export type Moved = { readonly identity: string; readonly from: string; readonly to: string }

/** Identities whose key or standing changed. */
export type PeopleNews = {
  readonly moved: readonly Moved[]
  readonly suspended: readonly (readonly [identity: string, isSuspended: boolean])[]
}

export class LiveFacts {
  readonly handles = new HandleCache()
  /** Keys that act for an identity. */
  readonly delegates: Delegates
  /** Whose limits are raised. */
  readonly grants: KnownGrants
  /** Public keys (43 characters) that an identity has moved away from. */
  readonly #retired = new Set<string>()
  /** Key of a rotation, old or new -> identity id. */
  readonly #moved = new Map<string, string>()
  /** Identity ids. */
  readonly #suspended = new Set<string>()
  readonly #roomChange = new Map<string, number>()
  /** Number of the newest public change. */
  change = 0
  #covered = 0
  /** Newest signed head. */
  head: Head = { size: 0, checkpoint: '' }

  constructor(clock: Pick<Clock, 'wallSeconds' | 'later'>) {
    this.delegates = new Delegates(clock)
    this.grants = new KnownGrants(clock)
  }

  noteChange(room: string, change: number): void {
    if (change > this.change) this.change = change
    if (change > (this.#roomChange.get(room) ?? 0)) this.#roomChange.set(room, change)
  }

  /** A public room that was written into since the start; there may be others. */
  hasHeardOf(room: string): boolean {
    return this.#roomChange.has(room)
  }

  isRetired(publicKey: string): boolean {
    return this.#retired.has(publicKey)
  }

  /** The key is refused from now on: moved away from, or a delegate's whose delegation has ended. */
  isOver(publicKey: string): boolean {
    return this.#retired.has(publicKey) || this.delegates.isKeyOver(publicKey)
  }

  /** The identity that a key names by a rotation; undefined: the one of its own hash. */
  identityOf(publicKey: string): string | undefined {
    return this.#moved.get(publicKey)
  }

  notePeople({ moved, suspended }: PeopleNews): void {
    for (const each of moved) this.noteRotation(each)
    for (const [identity, isSuspended] of suspended) this.noteSuspension(identity, isSuspended)
  }

  noteRotation({ identity, from, to }: Moved): void {
    this.#moved.set(from, identity).set(to, identity)
    this.#retired.add(from)
    this.delegates.endOf(identity)
  }

  /** A shard was restarted: what it decided last may never have arrived here. */
  shardRestarted(shard: number, shards: number): void {
    if (shard !== shardOf(registryName, shards)) return
    this.delegates.refresh()
    this.grants.refresh()
  }

  noteSuspension(identity: string, isSuspended: boolean): void {
    if (!isSuspended) this.#suspended.delete(identity)
    else {
      this.#suspended.add(identity)
      this.delegates.endOf(identity)
    }
  }

  get suspended(): ReadonlySet<string> {
    return this.#suspended
  }

  isSuspended(identity: string): boolean {
    return this.#suspended.has(identity)
  }

  /** `change`: one that the head covers. What was made before it and shows a head is old now. */
  noteHead(head: Head, change: number): void {
    if (head.size >= this.head.size) this.head = head
    this.change = Math.max(this.change, change)
    this.#covered = Math.max(this.#covered, change)
  }

  /**
   * The change that an answer made now is valid for. Changes come from the answers to writes, heads from the log at its
   * own pace: an answer that was made between the two shows a head from before the change.
   */
  get settled(): number {
    return Math.min(this.change, this.#covered)
  }

  /** Newest change that an answer about this room (undefined: about the whole board) depends on. */
  newestChange(room: string | undefined): number {
    if (room === undefined) return this.change
    // Handles are shown with every event, so a new one makes every answer old.
    return Math.max(this.#roomChange.get(room) ?? 0, this.#roomChange.get(registryName) ?? 0)
  }
}
