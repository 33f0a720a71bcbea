/** Lists of threads. */

import { refusal } from '../../actors/kernel/refusals.ts'
import { countsOf } from '../../actors/reading.ts'
import type { Room } from '../../actors/records/board.ts'
import { none } from '../../actors/records/event-index.ts'
import { banObjection, isClosed, mayModerate } from '../../actors/rooms/policy.ts'
import type { MoveArgs } from '../../actors/threads/decide.ts'
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
  type KnownAnswer,
  known,
  limitOf,
  listed,
  listScope,
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
  'thread.destination': (context, request) => withRoom(context, request, (room) => destination(context, request, room)),
} satisfies Reads

/**
 * The board asks before a move: how the signer stands to the room that the thread goes to, and to the one that lists it. The feed
 * knows both and has their records from the log, so each reader that sees the move knows the room.
 */
function destination(
  { board, state, now }: ReadContext,
  { args, reader }: ReadRequest,
  room: Room,
): KnownAnswer<Pick<MoveArgs, 'destination' | 'moderatesList'>> {
  const slot = board.events.find(Buffer.from(String(args.event_id), 'hex'))
  const listing = slot === none ? undefined : state.threadFlags.roomOf(board.events.rootOf(state.marks.original(slot)))
  const ban = banObjection(room, reader, now(), 'data.to')
  return known({
    destination: {
      isPublic: room.visibility === 'public',
      isClosed: isClosed(state.rules.policyOf(room.name), now()),
      moderates: mayModerate(room, reader, false),
      ...(ban === undefined ? {} : { ban: ban[1] }),
    },
    moderatesList: listing !== undefined && mayModerate(listing, reader, false) ? listing.name : '',
  })
}

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
  const of = room === undefined ? {} : listScope(context, room)
  const expiry = room === undefined || of.room === undefined ? index.expiry : countsOf(state, room, context.now()).until
  const scope = { ...of, until: soonest([expiry, ends]) }
  const author = args.target === undefined ? undefined : board.authors.get(String(args.target))
  const isUnknown =
    (args.target !== undefined && author === undefined) ||
    (args.page !== undefined && board.pages.find(String(args.page)) === undefined)
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
  const moved = context.state.threadFlags.moveOf(root)
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
    ...(moved === undefined ? {} : { listed_in: moved.to }),
  }
}

function lastView({ board, handleOf }: ReadContext, slot: number) {
  const { id, key } = board.authors.at(board.events.author[slot]!)
  const handle = handleOf(id)
  return {
    event_id: board.events.idHex(slot),
    author: { id, public_key: key, ...(handle === undefined ? {} : { handle }) },
    created_at: board.events.at[slot]!,
  }
}
