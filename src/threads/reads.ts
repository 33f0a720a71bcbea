/** Lists of threads. */

import { refusal } from '../../actors/kernel/refusals.ts'
import { countsOf } from '../../actors/reading.ts'
import type { Room } from '../../actors/records/board.ts'
import {
  type ThreadIndex,
  type ThreadOrder,
  type ThreadsQuery,
  threadOrders,
  type VoteWindow,
  voteWindows,
} from '../../actors/threads/threads.ts'
import {
  badCursor,
  limitOf,
  listed,
  mutedAuthors,
  ok,
  opened,
  paging,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  refused,
  soonest,
  unending,
  withinPage,
  withRoom,
} from '../reads/read.ts'
import { titleOf } from '../reads/thread-title.ts'

export const threadsReads = {
  'threads.list': (context, request) => {
    if (request.args.room !== undefined) return withRoom(context, request, (room) => list(context, request, room))
    if (request.args.page !== undefined)
      return refused(refusal('missing_field', 'a page is inside a room: name the room too', 'room'))
    return list(context, request)
  },
} satisfies Reads

const windowDefault: VoteWindow = 'week'

function list(context: ReadContext, request: ReadRequest, room?: Room): ReadAnswer<ThreadList> {
  const { args } = request
  const { board, state } = context
  const order: ThreadOrder = threadOrders.find((each) => each === args.order) ?? 'active'
  const window = isWindow(args.window) ? args.window : windowDefault
  const name = `threads:${room?.name ?? ''}:${args.page ?? ''}:${args.target ?? ''}:${order}:${order === 'top' ? window : ''}`
  const cursor = opened(context, name, args)
  if (cursor === undefined) return badCursor
  const index = state.threads.at(context.now())
  const ends = order === 'top' ? index.turn(window) : unending
  const scope =
    room === undefined
      ? { until: soonest([index.expiry, ends]) }
      : { room: room.name, until: soonest([countsOf(state, room, context.now()).until, ends]) }
  const author = args.target === undefined ? undefined : board.authors.get(String(args.target))
  const isUnknown =
    (args.target !== undefined && author === undefined) ||
    (args.page !== undefined && room?.pages.has(String(args.page)) !== true)
  if (isUnknown) return ok({ threads: [], ...paging(context, name, undefined) }, scope)
  const query: ThreadsQuery = {
    ...(room === undefined ? {} : { room }),
    ...(args.page === undefined ? {} : { page: String(args.page) }),
    ...(author === undefined ? {} : { author: author.number }),
    order,
    window,
    limit: limitOf(args),
    from: cursor.from,
    without: mutedAuthors(context, request),
  }
  const { roots, next } = index.find(query)
  const { views: threads, cut } = withinPage(roots, (root) => threadView(context, index, root))
  const place = cut === undefined ? next : index.placeOf(query, cut)
  const isFirst = order === 'active' && args.cursor === undefined && args.page === undefined && author === undefined
  const pinned = room === undefined || !isFirst ? [] : pinnedIn(context, index, room)
  return ok({ threads, ...(pinned.length === 0 ? {} : { pinned }), ...paging(context, name, place) }, scope)
}

/** Those in which something is shown. */
function pinnedIn(context: ReadContext, index: ThreadIndex, room: Room) {
  const roots = context.state.threadFlags.pinnedIn(room.number)
  return roots.filter((root) => index.isShown(root)).map((root) => threadView(context, index, root))
}

function isWindow(word: unknown): word is VoteWindow {
  return typeof word === 'string' && Object.hasOwn(voteWindows, word)
}

type ThreadList = {
  readonly threads: readonly ReturnType<typeof threadView>[]
  readonly pinned?: readonly ReturnType<typeof threadView>[]
  readonly next_cursor?: string
  readonly has_more: boolean
}

function threadView(context: ReadContext, index: ThreadIndex, root: number) {
  const { events } = context.board
  const first = listed(context, root)
  const { replies, participants, last } = index.sums(root)
  const { event_id: thread, room, page, kind, author, created_at, edited_at = 0, source } = first
  return {
    thread,
    room,
    page,
    ...titleOf(first),
    kind,
    author,
    ...(source === undefined ? {} : { source }),
    created_at,
    replies,
    participants,
    last: lastView(context, last),
    votes: index.votes(root),
    updated_at: Math.max(events.at[last]!, edited_at),
    ...(context.state.threadFlags.isPinned(root) ? { pinned: true } : {}),
    ...(context.state.threadFlags.isLocked(root) ? { locked: true } : {}),
  }
}

function lastView({ board, handleOf }: ReadContext, slot: number) {
  const { id, key } = board.authorList[board.events.author[slot]!]!
  const handle = handleOf(id)
  return {
    event_id: board.events.idHex(slot),
    author: { id, public_key: key, ...(handle === undefined ? {} : { handle }) },
    created_at: board.events.at[slot]!,
  }
}
