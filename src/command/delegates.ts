/**
 * Delegates: the keys that act for an identity, as the front knows them. The registry decides and stores delegations; this copy answers for
 * every command in whose name a key acts, with which scopes, and whether it still may.
 *
 * Endings are strict: before an ending is sent to the registry, the key is blocked here, and its pending writes are awaited. So no actor
 * accepts anything from a delegate after its end is on record, and an offline check of the timestamps passes.
 */

import type { ToldDelegation } from '../../actors/delegations/delegations.ts'
import type { ShardAnswer } from '../../actors/records/answer.ts'
import type { Delegated } from '../../actors/records/record.ts'
import type { Clock } from '../clock.ts'

export type Delegate = {
  /** 32 hex: event id of its delegation.create. */
  readonly id: string
  /** Identity id. */
  readonly identity: string
  /** Public key, 43 characters. */
  readonly key: string
  readonly scopes: ReadonlySet<string>
  /** Unix seconds. */
  readonly expires: number
  /** What each record of the delegate stores about its delegation. */
  readonly proof: Delegated
  isPublished: boolean
  isEnded: boolean
  /** The signed delegation cannot be read from disk now; the key is refused until it can. */
  readonly isUnread: boolean
  /** The number of pending commands that may end it. */
  holds: number
  /** Callers that wait for its publication in the public log, while that is in progress. */
  publishing: ((answer: ShardAnswer | undefined) => void)[] | undefined
  /** Writes that were sent to an actor and not answered. */
  pendingWrites: number
}

const retryMs = 100
/** How often delegations that could not be read from disk are loaded again. */
const unreadRetryMs = 60_000
const nothing = Buffer.alloc(0)

export class Delegates {
  readonly #byKey = new Map<string, Delegate>()
  readonly #byId = new Map<string, Delegate>()
  readonly #byIdentity = new Map<string, Set<Delegate>>()
  readonly #idle = new Set<() => void>()
  readonly #listeners: ((ended: readonly Delegate[]) => void)[] = []
  /** Unix seconds. */
  readonly #now: () => number
  readonly #later: Clock['later']
  #load: ((answer: (found: readonly ToldDelegation[] | undefined) => void) => void) | undefined
  /** The registry may have decided something that is not known here, so answers that depend on it are withheld. */
  isStale = false
  /** Became stale again during a reload, so the loaded state may be too old. */
  #isStaleAgain = false
  #isRenewing = false
  /** A reload for delegations that could not be read is scheduled. */
  #isUnreadAwaited = false

  constructor({ wallSeconds, later }: Pick<Clock, 'wallSeconds' | 'later'>) {
    this.#now = wallSeconds
    this.#later = later
  }

  /**
   * Loads the registry's delegations, now and whenever one of its answers was lost. `load` gives undefined while the registry does not
   * answer.
   */
  begin(load: (answer: (found: readonly ToldDelegation[] | undefined) => void) => void): Promise<void> {
    this.#load = load
    return new Promise((resolve) => this.#reload(resolve))
  }

  /** An answer of the registry was lost, or the registry was restarted. */
  refresh(): void {
    if (this.#load === undefined) return
    if (this.isStale) this.#isStaleAgain = true
    else this.#reload(() => {})
  }

  /**
   * Another machine has made a decision. The delegations are reloaded soon, and the known ones apply until then. A reload is complete, so
   * calls in the meantime are combined.
   */
  renew(): void {
    if (this.#load === undefined || this.#isRenewing) return
    this.#isRenewing = true
    this.#later(() => {
      this.#isRenewing = false
      this.#load!((found) => {
        if (found === undefined) return this.renew()
        this.#take(found)
      })
    }, retryMs)
  }

  #take(found: readonly ToldDelegation[]): void {
    for (const delegation of found) this.add(delegation)
    if (this.#isUnreadAwaited || !found.some(({ unread }) => unread)) return
    this.#isUnreadAwaited = true
    this.#later(() => {
      this.#isUnreadAwaited = false
      this.renew()
    }, unreadRetryMs)
  }

  /** Called whenever delegations are ended by a decision (not by expiry). */
  onEnd(listener: (ended: readonly Delegate[]) => void): void {
    this.#listeners.push(listener)
  }

  /** By the id of the delegation. */
  find(id: string): Delegate | undefined {
    return this.#byId.get(id)
  }

  of(key: string): Delegate | undefined {
    return this.#byKey.get(key)
  }

  /** The delegates of an identity that are active, including those whose end is being decided and may be refused. */
  activeOf(identity: string): Delegate[] {
    return [...(this.#byIdentity.get(identity) ?? [])].filter(({ id }) => this.isActive(id))
  }

  /** Its key is refused, permanently or while its end is being decided. */
  isOver({ isEnded, isUnread, holds, expires }: Delegate): boolean {
    return isEnded || isUnread || holds > 0 || this.#now() >= expires
  }

  /** The delegation with this id is active, or will be again if its pending end is refused. */
  isActive(id: string): boolean {
    const delegate = this.#byId.get(id)
    return delegate !== undefined && !delegate.isEnded && this.#now() < delegate.expires
  }

  isKeyOver(key: string): boolean {
    const delegate = this.#byKey.get(key)
    return delegate !== undefined && this.isOver(delegate)
  }

  add(delegation: ToldDelegation): void {
    const known = this.#byKey.get(delegation.key)
    const isReadNow = known?.isUnread === true && !delegation.unread && !delegation.ended
    if (isReadNow) this.#byIdentity.get(known.identity)?.delete(known)
    else if (known !== undefined) {
      known.isPublished ||= delegation.published
      if (delegation.ended) this.#end([known])
      return
    }
    const delegate: Delegate = {
      id: delegation.id,
      identity: delegation.identity,
      key: delegation.key,
      scopes: new Set(delegation.scopes),
      expires: delegation.expires,
      proof: {
        id: Buffer.from(delegation.id, 'hex'),
        key: Buffer.from(delegation.by, 'base64url'),
        sig: Buffer.from(delegation.sig, 'base64url'),
        signed: delegation.signed === '' ? nothing : Buffer.from(delegation.signed, 'base64url'),
      },
      isPublished: delegation.published,
      isEnded: delegation.ended,
      isUnread: delegation.unread,
      holds: 0,
      publishing: undefined,
      pendingWrites: 0,
    }
    this.#byKey.set(delegation.key, delegate)
    this.#byId.set(delegation.id, delegate)
    const own = this.#byIdentity.get(delegation.identity)
    if (own === undefined) this.#byIdentity.set(delegation.identity, new Set([delegate]))
    else own.add(delegate)
  }

  /** Every delegation of this identity has ended. */
  endOf(identity: string): void {
    this.#end([...(this.#byIdentity.get(identity) ?? [])])
  }

  /** The delegation with this id has ended. */
  end(id: string): void {
    const delegate = this.#byId.get(id)
    if (delegate !== undefined) this.#end([delegate])
  }

  /** Blocks these keys and calls back once they have no pending writes; `release` unblocks those that have not ended. */
  hold(delegates: readonly Delegate[], then: () => void): () => void {
    for (const delegate of delegates) delegate.holds++
    const isIdle = () => delegates.every(({ pendingWrites }) => pendingWrites === 0)
    const check = (): void => {
      if (!isIdle()) return
      this.#idle.delete(check)
      then()
    }
    this.#idle.add(check)
    check()
    return () => {
      for (const delegate of delegates) delegate.holds--
    }
  }

  /** A write of this delegate is sent to an actor; call the returned function once it is answered. */
  sent(delegate: Delegate): () => void {
    delegate.pendingWrites++
    return () => {
      delegate.pendingWrites--
      if (delegate.pendingWrites === 0) for (const check of [...this.#idle]) check()
    }
  }

  #end(delegates: readonly Delegate[]): void {
    const ended = delegates.filter(({ isEnded }) => !isEnded)
    for (const delegate of ended) delegate.isEnded = true
    if (ended.length > 0) for (const listener of this.#listeners) listener(ended)
  }

  #reload(done: () => void): void {
    this.isStale = true
    this.#isStaleAgain = false
    this.#load!((found) => {
      if (found === undefined) {
        this.#later(() => this.#reload(done), retryMs)
        return
      }
      this.#take(found)
      if (this.#isStaleAgain) return this.#reload(done)
      this.isStale = false
      done()
    })
  }
}
