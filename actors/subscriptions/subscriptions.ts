/**
 * Subscriptions: what an identity follows, how far it has read, and whom it has muted. All of one identity is decided by one
 * actor, `@sub-<identity id>`, and none of it is ever public.
 *
 * A position is the number of an event inside its room, for a followed room and a followed thread alike: everything up to it
 * was seen.
 */

import { hex } from '../kernel/hex.ts'
import type { Projection } from '../records/core.ts'
import type { FactRecord } from '../records/record.ts'

/** A room, or a thread (32 hex of its root) in one. */
export type Followed = {
  readonly room: string
  /** '': the room itself. */
  readonly thread: string
  /** Unix seconds. */
  readonly at: number
  /** Number of the newest event in the room that was seen. */
  seen: number
}

export type FollowFacts = { readonly room: string; readonly thread: string; readonly seen: number }
export type UnfollowFacts = Pick<FollowFacts, 'room' | 'thread'>
export type MuteFacts = { readonly target: string }
/** Positions by `keyOf` of the room or thread; `inbox`: Unix seconds, 0 if not given. */
export type SeenFacts = {
  readonly positions: readonly (readonly [key: string, seen: number])[]
  readonly inbox: number
}

export type Subscription = {
  /** By `keyOf`, in the order in which they were followed. */
  readonly follows: Map<string, Followed>
  /** Identity id -> when, Unix seconds. */
  readonly muted: Map<string, number>
  /** Unix seconds: the newest inbox item that was seen. */
  inboxSeen: number
  /** When positions were last recorded, Unix seconds. */
  seenAt: number
}

/** An identity's subscriptions, as its actor reports them. */
export type OwnSubscription = {
  /** Newest follow first. */
  readonly follows: readonly Followed[]
  /** Identity ids. */
  readonly muted: readonly string[]
  /** Unix seconds. */
  readonly inboxSeen: number
}

/** The key of a followed room or thread: names of rooms have no slash. */
export function keyOf({ room, thread }: UnfollowFacts): string {
  return thread === '' ? room : `/${thread}`
}

type Packed = readonly (readonly [
  identity: string,
  follows: readonly Followed[],
  muted: readonly (readonly [identity: string, at: number])[],
  inboxSeen: number,
  seenAt: number,
])[]

export class IdentitySubscriptions implements Projection {
  readonly acts: Projection['acts'] = {
    'room.follow': (act) => this.#follow(act),
    'thread.follow': (act) => this.#follow(act),
    'room.unfollow': (act) => this.#unfollow(act),
    'thread.unfollow': (act) => this.#unfollow(act),
    'identity.mute': (act) => this.#mute(act),
    'identity.unmute': (act: FactRecord<MuteFacts>) => void this.#own(act).muted.delete(act.facts.target),
    'inbox.seen': (act) => this.#seen(act),
  }
  readonly #byIdentity = new Map<string, Subscription>()

  /** Undefined if it never followed or muted anything. */
  of(identity: string): Subscription | undefined {
    return this.#byIdentity.get(identity)
  }

  /** Identity ids. */
  mutedBy(identity: string): string[] {
    return [...(this.#byIdentity.get(identity)?.muted.keys() ?? [])]
  }

  pack(): Packed {
    return [...this.#byIdentity].map(([identity, { follows, muted, inboxSeen, seenAt }]) => [
      identity,
      [...follows.values()],
      [...muted],
      inboxSeen,
      seenAt,
    ])
  }

  restore(packed: Packed): void {
    for (const [identity, follows, muted, inboxSeen, seenAt] of packed) {
      const byKey = follows.map((each): [string, Followed] => [keyOf(each), { ...each }])
      this.#byIdentity.set(identity, { follows: new Map(byKey), muted: new Map(muted), inboxSeen, seenAt })
    }
  }

  #own({ author }: FactRecord<object>): Subscription {
    const identity = hex(author)
    let own = this.#byIdentity.get(identity)
    if (own === undefined) {
      own = { follows: new Map(), muted: new Map(), inboxSeen: 0, seenAt: 0 }
      this.#byIdentity.set(identity, own)
    }
    return own
  }

  #follow(act: FactRecord<FollowFacts>): void {
    const { follows } = this.#own(act)
    const key = keyOf(act.facts)
    if (!follows.has(key)) follows.set(key, { ...act.facts, at: act.at })
  }

  #unfollow(act: FactRecord<UnfollowFacts>): void {
    this.#own(act).follows.delete(keyOf(act.facts))
  }

  #mute(act: FactRecord<MuteFacts>): void {
    const { muted } = this.#own(act)
    const { target } = act.facts
    if (!muted.has(target)) muted.set(target, act.at)
  }

  #seen(act: FactRecord<SeenFacts>): void {
    const own = this.#own(act)
    const { positions, inbox } = act.facts
    for (const [key, seen] of positions) {
      const followed = own.follows.get(key)
      if (followed !== undefined) followed.seen = Math.max(followed.seen, seen)
    }
    own.inboxSeen = Math.max(own.inboxSeen, inbox)
    own.seenAt = act.at
  }
}
