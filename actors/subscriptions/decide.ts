/** Decisions about what an identity follows, has seen and has muted: pure functions of the state. */

import { sizes } from '../kernel/limits.ts'
import type { RefusalCode } from '../kernel/refusals.ts'
import { accept, act, type Deciders, refuse, type Situation, type WriteLetter } from '../records/write.ts'
import { type FollowFacts, keyOf, type MuteFacts, type SeenFacts, type UnfollowFacts } from './subscriptions.ts'

/** Name of the actor that decides the subscriptions of an identity. */
export const subscriptionsOf = (identity: string) => `@sub-${identity}`

/** `barred`: why there is nothing to follow, as reported by the room or the feed. */
type FollowArgs = FollowFacts & { readonly barred?: readonly [code: RefusalCode, message: string] }

const follow = ({ state, now }: Situation, letter: WriteLetter<FollowArgs>) => {
  const { barred, room, thread, seen } = letter.args
  if (barred !== undefined) return refuse(...barred, letter.op === 'room.follow' ? 'room' : 'event_id')
  const follows = state.subscriptions.of(letter.author)?.follows
  const known = follows?.get(keyOf({ room, thread }))
  if (known === undefined && (follows?.size ?? 0) >= sizes.follows) {
    const words = 'end one with room.unfollow or thread.unfollow'
    return refuse('wrong_state', `an identity can follow ${sizes.follows} rooms and threads: ${words}`)
  }
  return act(letter, now, { facts: { room, thread, seen: known?.seen ?? seen }, isPublic: false })
}

const unfollow = ({ now }: Situation, letter: WriteLetter<UnfollowFacts>) => {
  const { room, thread } = letter.args
  return act(letter, now, { facts: { room, thread }, isPublic: false })
}

const mute = ({ state, now }: Situation, letter: WriteLetter<MuteFacts>) => {
  const { target } = letter.args
  const muted = state.subscriptions.of(letter.author)?.muted
  if (muted?.has(target) !== true && (muted?.size ?? 0) >= sizes.mutes)
    return refuse('wrong_state', `an identity can mute ${sizes.mutes} others: end one with identity.unmute`)
  return act(letter, now, { facts: { target }, isPublic: false })
}

const unmute = ({ now }: Situation, letter: WriteLetter<MuteFacts>) => {
  const { target } = letter.args
  return act(letter, now, { facts: { target }, isPublic: false })
}

/** Positions only grow, and positions of rooms or threads that are not followed are ignored. If none grows, nothing is written. */
const seen = ({ state, now }: Situation, letter: WriteLetter<SeenFacts>) => {
  const own = state.subscriptions.of(letter.author)
  const positions = letter.args.positions.filter(([key, seen]) => (own?.follows.get(key)?.seen ?? seen) < seen)
  const inbox = Math.min(letter.args.inbox, now)
  const facts: SeenFacts = { positions, inbox: inbox > (own?.inboxSeen ?? 0) ? inbox : 0 }
  if (positions.length === 0 && facts.inbox === 0) return accept([], { at: now, isPublic: false, facts })
  const wait = (own?.seenAt ?? 0) + sizes.seen_seconds - now
  if (wait > 0) {
    const words = `positions can be written once per ${sizes.seen_seconds} seconds: then send the newest ones`
    return refuse('rate_limited', words, undefined, wait)
  }
  return act(letter, now, { facts, isPublic: false })
}

export const subscriptionsDeciders = {
  'room.follow': follow,
  'room.unfollow': unfollow,
  'thread.follow': follow,
  'thread.unfollow': unfollow,
  'identity.mute': mute,
  'identity.unmute': unmute,
  'inbox.seen': seen,
} satisfies Deciders
