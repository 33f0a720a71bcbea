/** Lists of threads. */

import { refusal } from '../../actors/kernel/refusals.ts'
import type { Infer } from '../../actors/kernel/schema.ts'
import { toUtf8, type Utf8 } from '../../actors/kernel/utf8.ts'
import type { Declaration } from '../../actors/operations.ts'
import { countsOf } from '../../actors/reading.ts'
import type { Room } from '../../actors/records/board.ts'
import { none } from '../../actors/records/event-index.ts'
import { banObjection, isClosed, mayModerate } from '../../actors/rooms/policy.ts'
import type { MoveArgs } from '../../actors/threads/decide.ts'
import { type VoteWindow, voteWindows } from '../../actors/threads/scores.ts'
import { type ThreadIndex, type ThreadOrder, type ThreadsQuery, threadOrders } from '../../actors/threads/threads.ts'
import { authorJson, quoted } from '../reads/event-json.ts'
import type { EventView } from '../reads/event-view.ts'
import { jsonsOf, jsonWithin, plainPostAt, prefetchGroup, titleOfPost } from '../reads/listed-events.ts'
import {
  badCursor,
  type KnownAnswer,
  known,
  limitOf,
  listed,
  listScope,
  mutedAuthors,
  ok,
  okJson,
  opened,
  paging,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  refused,
  soonest,
  unending,
  withLists,
  withRoom,
} from '../reads/read.ts'
import { type ThreadTitle, titleOf } from '../reads/thread-title.ts'

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
 * Used by the board before a move: the signer's rights in the destination room, and in the room that lists the thread. The feed knows both
 * and has their records from the log, so each reader that sees the move knows the room.
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
  const { shown, cut } = jsonWithin(roots, (root, n) => {
    prefetchGroup(roots, n, (some) => {
      index.prefetch(some)
      context.prefetch(some)
    })
    return { json: threadJson(context, index, root) }
  })
  const place = cut === undefined ? next : index.placeOf(query, cut)
  const isFirst = order === 'active' && args.cursor === undefined && args.page === undefined && author === undefined
  const pinned = room === undefined || !isFirst ? [] : pinnedIn(context, index, room)
  const more = paging(context, name, place)
  const lists = { threads: jsonsOf(shown), ...(pinned.length === 0 ? {} : { pinned }) }
  return okJson(withLists({}, lists, more), scope)
}

/** Only threads in which something is shown. */
function pinnedIn(context: ReadContext, index: ThreadIndex, room: Room): Utf8[] {
  const roots = context.state.threadFlags.pinnedIn(room.number)
  return roots.filter((root) => index.isShown(root)).map((root) => threadJson(context, index, root))
}

function isWindow(word: unknown): word is VoteWindow {
  return typeof word === 'string' && Object.hasOwn(voteWindows, word)
}

type ThreadList = Infer<Declaration<'threads.list'>['result']>

/** A thread in a list, as JSON. */
function threadJson(context: ReadContext, index: ThreadIndex, root: number): Utf8 {
  const { events } = context.board
  const { threadFlags } = context.state
  const { title, excerpt, room, page, kind, author, source, created_at, edited_at = 0 } = firstOf(context, root)
  const { replies, participants, last } = index.sums(root)
  const moved = threadFlags.moveOf(root)
  const votes = index.votes(root)
  const more = excerpt === undefined ? '' : `,"excerpt":${toUtf8(JSON.stringify(excerpt))}`
  const from = source === undefined ? '' : `,"source":${toUtf8(JSON.stringify(source))}`
  const flags = `${threadFlags.isPinned(root) ? ',"pinned":true' : ''}${threadFlags.isLocked(root) ? ',"locked":true' : ''}`
  const listed = moved === undefined ? '' : `,"listed_in":${quoted(moved.to)}`
  return `{"thread":"${events.idHex(root)}","room":${quoted(room)},"page":${quoted(page)},"title":${toUtf8(JSON.stringify(title))}${more},"kind":${quoted(kind)},"author":${authorJson(author)}${from},"created_at":${created_at},"replies":${replies},"participants":${participants},"last":${lastJson(context, last)},"votes":{"up":${votes.up},"down":${votes.down},"score":${votes.score}},"updated_at":${Math.max(events.at(last), edited_at)}${flags}${listed}}`
}

type First = Pick<EventView, 'room' | 'page' | 'kind' | 'author' | 'created_at' | 'edited_at' | 'source'> & ThreadTitle

function firstOf(context: ReadContext, root: number): First {
  const { board } = context
  const plain = plainPostAt(context, root)
  if (plain !== undefined)
    return { ...plain, ...titleOfPost(plain), kind: board.kind(root), created_at: board.events.at(root) }
  const view = listed(context, root)
  return { ...view, ...titleOf(view) }
}

function lastJson({ board, handleOf }: ReadContext, slot: number): Utf8 {
  const { id, key } = board.authors.at(board.events.author(slot))
  const author = authorJson({ id, public_key: key, handle: handleOf(id) })
  return `{"event_id":"${board.events.idHex(slot)}","author":${author},"created_at":${board.events.at(slot)}}`
}
