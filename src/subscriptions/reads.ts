/** Reads on subscriptions: an identity's own actor knows what it follows and has muted; the actor of a room knows what is new there. */

import type { Followed, OwnSubscription } from '../../actors/subscriptions/subscriptions.ts'
import { type FollowNews, newsIn } from '../reads/follow-news.ts'
import {
  badCursor,
  countedPage,
  type KnownAnswer,
  known,
  ok,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  withEvent,
  withRoom,
} from '../reads/read.ts'

/** One page of follows; it says whether there is more. */
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

/** Newest follow first, so that ending one in the meantime repeats none. */
function page(context: ReadContext, request: ReadRequest): KnownAnswer<FollowsPage> {
  const { reader } = request
  const { subscriptions } = context.state
  const all = [...(subscriptions.of(reader)?.follows.values() ?? [])].reverse()
  const page = countedPage(context, request, { name: `follows:${reader}`, all, show: (followed) => followed })
  if (page === undefined) return badCursor
  return known({ follows: page.views, muted: subscriptions.mutedBy(reader), paging: page.paging })
}

/** Where a follow begins: the room, the first event of the thread, and the number of the newest event. */
function place(context: ReadContext, request: ReadRequest): KnownAnswer<Omit<Followed, 'at'>> {
  if (request.args.event_id === undefined)
    return withRoom(context, request, ({ name, events }) => known({ room: name, thread: '', seen: events.length }))
  return withEvent(context, request, (slot) => {
    const { events, roomList } = context.board
    const { name, events: all } = roomList[events.room(slot)]!
    return known({ room: name, thread: events.idHex(events.rootOf(slot)), seen: all.length })
  })
}

/** This actor's share of what is new in the follows on the page, by their index there. */
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

function mutes(context: ReadContext, request: ReadRequest): ReadAnswer {
  const { reader } = request
  const all = [...(context.state.subscriptions.of(reader)?.muted ?? [])].reverse()
  const show = ([target, at]: (typeof all)[number]) => ({ target, at })
  const page = countedPage(context, request, { name: `mutes:${reader}`, all, show })
  return page === undefined ? badCursor : ok({ mutes: page.views, ...page.paging })
}
