/**
 * What the main thread knows: newest changes by room, the newest signed head, handles, delegates, and raised limits. It learns these from
 * the answers to its own writes, from the log, and from the feed; all of them only move the state forward.
 */

import { raisedLimits } from '../../actors/kernel/limits.ts'
import { NetworkSet } from '../../actors/kernel/networks.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { namingOf } from '../../actors/kernel/schema.ts'
import type { GrantFacts } from '../../actors/limits/grants.ts'
import { operations } from '../../actors/operations.ts'
import type { Head } from '../../actors/records/answer.ts'
import { registryName } from '../../actors/records/record.ts'
import { shardOf } from '../../actors/shard.ts'
import type { Clock } from '../clock.ts'
import type { Factors } from '../rates/throttle.ts'
import { jsonOf, type ReadAnswer, type ReadRequest, replyWith } from '../reads/read.ts'
import { Delegates } from './delegates.ts'

/** An identity that moved from one public key to another. */
export type Moved = { readonly identity: string; readonly from: string; readonly to: string }

/** Identities whose key or standing changed. */
export type PeopleNews = {
  readonly moved: readonly Moved[]
  readonly suspended: readonly (readonly [identity: string, isSuspended: boolean, hidesPosts: boolean])[]
  readonly erased: readonly string[]
  /** Files that were taken down everywhere, or were restored. */
  readonly takenDown: readonly (readonly [sha256: string, isDown: boolean])[]
}

export class LiveFacts {
  readonly handles = new HandleCache()
  /** Keys that act for an identity. */
  readonly delegates: Delegates
  /** Callers with raised limits. */
  readonly grants: KnownGrants
  /** Public keys (43 characters) that an identity has moved away from. */
  readonly #retired = new Set<string>()
  /** Old or new key of a rotation -> identity id. */
  readonly #moved = new Map<string, string>()
  /** Identity ids. */
  readonly #suspended = new Set<string>()
  /** Suspended identities whose posts are hidden. */
  readonly #hidden = new Set<string>()
  readonly #onSuspension: ((identity: string, hidesPosts: boolean) => void)[] = []
  readonly #erased = new Set<string>()
  /** SHA-256 of files that no room serves. */
  readonly #takenDown = new Set<string>()
  #onTakedown: (sha256: string) => void = () => {}
  readonly #roomChange = new Map<string, number>()
  #onChange: (room: string) => void = () => {}
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
    if (change <= (this.#roomChange.get(room) ?? 0)) return
    this.#roomChange.set(room, change)
    this.#onChange(room)
  }

  /** Calls back with each public room, or other actor, that has changed. */
  onChange(listener: (room: string) => void): void {
    this.#onChange = listener
  }

  /** Whether this public room was written to since the start; others may exist. */
  knowsRoom(room: string): boolean {
    return this.#roomChange.has(room)
  }

  isRetired(publicKey: string): boolean {
    return this.#retired.has(publicKey)
  }

  /** The key is refused from now on: its identity moved to another key, or its delegation has ended. */
  isOver(publicKey: string): boolean {
    return this.#retired.has(publicKey) || this.delegates.isKeyOver(publicKey)
  }

  /** The identity that a key belongs to by a rotation; undefined for the identity of its own hash. */
  identityOf(publicKey: string): string | undefined {
    return this.#moved.get(publicKey)
  }

  notePeople({ moved, suspended, erased, takenDown }: PeopleNews): void {
    for (const each of moved) this.noteRotation(each)
    for (const each of suspended) this.noteSuspension(...each)
    for (const each of erased) this.noteErased(each)
    for (const each of takenDown) this.noteTakedown(...each)
  }

  isErased(identity: string): boolean {
    return this.#erased.has(identity)
  }

  noteErased(identity: string): void {
    this.#erased.add(identity)
    this.handles.forget(identity)
  }

  noteTakedown(sha256: string, isDown: boolean): void {
    if (!isDown) this.#takenDown.delete(sha256)
    else if (!this.#takenDown.has(sha256)) {
      this.#takenDown.add(sha256)
      this.#onTakedown(sha256)
    }
  }

  /** Calls back with each file that is taken down. */
  onTakedown(listener: (sha256: string) => void): void {
    this.#onTakedown = listener
  }

  get takenDown(): ReadonlySet<string> {
    return this.#takenDown
  }

  /** Calls back with each suspension and each end of one. */
  onSuspension(listener: (identity: string, hidesPosts: boolean) => void): void {
    this.#onSuspension.push(listener)
  }

  noteRotation({ identity, from, to }: Moved): void {
    this.#moved.set(from, identity).set(to, identity)
    this.#retired.add(from)
    this.delegates.endOf(identity)
  }

  /** A shard was restarted, so news of its last decisions may have been lost. */
  shardRestarted(shard: number, shards: number): void {
    if (shard !== shardOf(registryName, shards)) return
    this.delegates.refresh()
    this.grants.refresh()
  }

  noteSuspension(identity: string, isSuspended: boolean, hidesPosts: boolean): void {
    if (hidesPosts) this.#hidden.add(identity)
    else this.#hidden.delete(identity)
    if (!isSuspended) this.#suspended.delete(identity)
    else {
      this.#suspended.add(identity)
      this.delegates.endOf(identity)
    }
    for (const listener of this.#onSuspension) listener(identity, hidesPosts)
  }

  /** Identities whose posts are hidden while they are suspended. */
  get hidden(): ReadonlySet<string> {
    return this.#hidden
  }

  get suspended(): ReadonlySet<string> {
    return this.#suspended
  }

  isSuspended(identity: string): boolean {
    return this.#suspended.has(identity)
  }

  /** `change`: covered by the head. Cached answers from before it that show a head are stale now. */
  noteHead(head: Head, change: number): void {
    if (head.size >= this.head.size) this.head = head
    this.change = Math.max(this.change, change)
    this.#covered = Math.max(this.#covered, change)
  }

  /**
   * The change that an answer made now is valid for. Changes come from the answers to writes, heads from the log at its own pace: an answer
   * made between the two shows a head from before the change.
   */
  get settled(): number {
    return Math.min(this.change, this.#covered)
  }

  /** Newest change that an answer about this room (undefined: about the whole board) depends on. */
  newestChange(room: string | undefined): number {
    if (room === undefined) return this.change
    // Handles are shown with every event, so a new one makes every answer stale.
    return Math.max(this.#roomChange.get(room) ?? 0, this.#roomChange.get(registryName) ?? 0)
  }
}

/**
 * Handles, learned from the answers to claims and from the feed. Shards of private rooms show handles too but do not know them: each new
 * one is sent to them before its claim is answered.
 */
export class HandleCache {
  /** identity id -> handle. */
  readonly #handles = new Map<string, string>()
  /** handle -> identity id. */
  readonly #identities = new Map<string, string>()
  #onNew: (identity: string, handle: string) => void = () => {}

  /** Called with each new handle, and with '' for an identity that lost its handle. */
  onNew(listener: (identity: string, handle: string) => void): void {
    this.#onNew = listener
  }

  get(identity: string): string | undefined {
    return this.#handles.get(identity)
  }

  /** The identity (64 hex) that has this handle. */
  identityOf(handle: string): string | undefined {
    return this.#identities.get(handle)
  }

  /** A handle stays with its identity, so repeated news changes nothing. */
  set(identity: string, handle: string): void {
    if (this.#handles.get(identity) === handle) return
    this.#handles.set(identity, handle)
    this.#identities.set(handle, identity)
    this.#onNew(identity, handle)
  }

  /** The identity was erased. */
  forget(identity: string): void {
    const handle = this.#handles.get(identity)
    if (handle === undefined) return
    this.#handles.delete(identity)
    this.#identities.delete(handle)
    this.#onNew(identity, '')
  }

  all(): (readonly [identity: string, handle: string])[] {
    return [...this.#handles]
  }
}

/** Arguments of each read that may name an identity by its handle: the argument, and the field it came from. */
const named: ReadonlyMap<string, readonly (readonly [arg: string, field: string])[]> = new Map(
  operations.flatMap(({ name, kind, narrowed = {}, data }) => {
    const properties = data?.properties ?? {}
    const shapes = [
      ...Object.entries(narrowed).map(([field, { schema }]) => [field, field, schema] as const),
      ...Object.entries(properties).map(([key, schema]) => [key, `data.${key}`, schema] as const),
    ]
    const found = shapes.filter(([, , schema]) => namingOf(schema) === 'handle')
    return kind === 'read' && found.length > 0 ? [[name, found.map(([arg, field]) => [arg, field] as const)]] : []
  }),
)

/**
 * The identity id that `@handle` stands for, or why there is none. A handle stays with its identity permanently, so the current answer
 * never becomes wrong.
 */
export function resolveHandle(handles: HandleCache, text: string, field: string): string | Refusal {
  return (
    handles.identityOf(text.slice(1)) ?? refusal('not_found', `no identity on this board has the handle ${text}`, field)
  )
}

/** The request with handles replaced by ids, and the id of each handle; or a refusal. */
export function resolveRequest(
  handles: HandleCache,
  request: ReadRequest,
): { readonly request: ReadRequest; readonly resolved: Readonly<Record<string, string>> | undefined } | Refusal {
  const resolved: Record<string, string> = {}
  const args = { ...request.args }
  for (const [arg, field] of named.get(request.op) ?? []) {
    const text = args[arg]
    if (typeof text !== 'string' || !text.startsWith('@')) continue
    const id = resolveHandle(handles, text, field)
    if (typeof id !== 'string') return id
    args[arg] = id
    resolved[text] = id
  }
  const isAny = Object.keys(resolved).length > 0
  return isAny ? { request: { ...request, args }, resolved } : { request, resolved: undefined }
}

/** The answer with the resolved ids added. */
export function withResolved(answer: ReadAnswer, resolved: Readonly<Record<string, string>>): ReadAnswer {
  if (!answer.ok) return answer
  const { value: _, ...scope } = answer
  return { ...scope, reply: replyWith(`${jsonOf(answer).slice(0, -1)},"resolved":${JSON.stringify(resolved)}}`) }
}

export type ToldGrant = Pick<GrantFacts, 'target' | 'factor' | 'expires'>
type Load = (told: (found: readonly ToldGrant[] | undefined) => void) => void

const retryMs = 100
const identity = /^[0-9a-f]{64}$/

/**
 * How many times the normal limits a caller may use, needed for every request: from LIMITS and from operators' grants. The registry decides
 * and stores grants; they are loaded from it at the start, and whenever one of its answers may be lost.
 */
export class KnownGrants implements Factors {
  readonly #granted = new Map<string, ToldGrant>()
  /** Unix seconds. */
  readonly #now: () => number
  readonly #later: Clock['later']
  #load: Load | undefined
  #identities = new Map<string, number>()
  /** Sorted by factor, the largest first. */
  #networks: (readonly [factor: number, networks: NetworkSet])[] = []
  /** When the next grant ends. */
  #nextEnd = Number.POSITIVE_INFINITY

  constructor({ wallSeconds, later }: Pick<Clock, 'wallSeconds' | 'later'>) {
    this.#now = wallSeconds
    this.#later = later
    this.#arrange()
  }

  /** Loads the registry's grants, now and on `refresh`. `load` gives undefined while it has no answer. */
  begin(load: Load): Promise<void> {
    this.#load = load
    return new Promise((resolve) => this.#reload(resolve))
  }

  /** An answer of the registry was lost, or the registry was restarted. */
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
        this.#later(() => this.#reload(done), retryMs)
        return
      }
      this.#granted.clear()
      for (const grant of found) this.#granted.set(grant.target, grant)
      this.#arrange()
      done()
    })
  }
}
