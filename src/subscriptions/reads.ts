/** Reads on subscriptions: what an identity follows and has muted lies with its own actor; what is new there, with that of the room. */

import type { Followed, OwnSubscription } from '../../actors/subscriptions/subscriptions.ts'
import { type FollowNews, newsIn } from '../reads/follow-news.ts'
import {
  badCursor,
  type KnownAnswer,
  known,
  limitOf,
  ok,
  opened,
  paging,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  withEvent,
  withinPage,
  withRoom,
} from '../reads/read.ts'

/** One page of what is followed; the page says so where there is more. */
type FollowsPage = Pick<OwnSubscription, 'follows' | 'muted'> & {
  readonly paging: { readonly has_more: boolean; readonly next_cursor?: string }
}

export const subscriptionsReads = {
  'subscription.muted': ({ state }, { reader }) => known(state.subscriptions.mutedBy(reader)),
  'subscription.own': own,
  'subscription.page': page,
  'subscription.place': place,
  'follows.list': news,
  'mutes.list': mutes,
} satisfies Reads

function own({ state }: ReadContext, { reader }: ReadRequest): KnownAnswer<OwnSubscription> {
  const found = state.subscriptions.of(reader)
  if (found === undefined) return known({ follows: [], muted: [], inboxSeen: 0 })
  const { follows, muted, inboxSeen } = found
  return known({ follows: [...follows.values()].reverse(), muted: [...muted.keys()], inboxSeen })
}

/** Newest follow first. A cursor is how many were shown, so that one that ends meanwhile repeats none. */
function page(context: ReadContext, request: ReadRequest): KnownAnswer<FollowsPage> {
  const { args, reader } = request
  const list = `follows:${reader}`
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const subscription = context.state.subscriptions.of(reader)
  const all = [...(subscription?.follows.values() ?? [])].reverse()
  const from = cursor.from ?? 0
  const end = from + limitOf(args)
  return known({
    follows: all.slice(from, end),
    muted: context.state.subscriptions.mutedBy(reader),
    paging: paging(context, list, end < all.length ? end : undefined),
  })
}

/** Where a follow begins: the room, the first event of the thread, and the number of the newest event there. */
function place(context: ReadContext, request: ReadRequest): KnownAnswer<Omit<Followed, 'at'>> {
  if (request.args.event_id === undefined)
    return withRoom(context, request, ({ name, events }) => known({ room: name, thread: '', seen: events.length }))
  return withEvent(context, request, (slot) => {
    const { events, roomList } = context.board
    const { name, events: all } = roomList[events.room[slot]!]!
    return known({ room: name, thread: events.idHex(events.rootOf(slot)), seen: all.length })
  })
}

/** This actor's share of what is new: of the follows on the page, by their places there. */
function news(
  context: ReadContext,
  { reader, found }: ReadRequest,
): KnownAnswer<{ readonly page: FollowsPage; readonly news: readonly (readonly [place: number, news: FollowNews])[] }> {
  const page = found as FollowsPage
  const muted = new Set(page.muted)
  const all = page.follows.flatMap((followed, at): [number, FollowNews][] => {
    const one = newsIn(context, followed, { reader, muted })
    return one === undefined ? [] : [[at, one]]
  })
  return known({ page, news: all })
}

function mutes(context: ReadContext, { args, reader }: ReadRequest): ReadAnswer {
  const list = `mutes:${reader}`
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const all = [...(context.state.subscriptions.of(reader)?.muted ?? [])].reverse()
  const from = cursor.from ?? 0
  const end = from + limitOf(args)
  const { views } = withinPage(all.slice(from, end), ([target, at]) => ({ target, at }))
  return ok({ mutes: views, ...paging(context, list, end < all.length ? end : undefined) })
}
