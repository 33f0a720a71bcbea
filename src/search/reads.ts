/**
 * Searching: what the feed asks of the index and how it shows what was found, and the search of one private room.
 *
 * The index is asked one hit more than a page holds. What it finds is shown by the feed, which alone knows what may be shown
 * now, and a search ends where it has taken its time: a page may hold fewer events than it has room for, and none, while more
 * follow.
 */

import { refusal } from '../../actors/kernel/refusals.ts'
import { findEvents } from '../../actors/reading.ts'
import type { Room } from '../../actors/records/board.ts'
import { none } from '../../actors/records/event-index.ts'
import type { EventList, EventView } from '../reads/event-view.ts'
import {
  badCursor,
  endOf,
  eventsWithin,
  type KnownAnswer,
  known,
  limitOf,
  mutedAuthors,
  ok,
  opened,
  paging,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  refused,
  view,
  withRoom,
} from '../reads/read.ts'
import { matcher, readQuery } from './query.ts'
import type { SearchAnswer, SearchAsk } from './search.ts'

export const searchReads = { 'search.begin': begin, 'search.show': show } satisfies Reads

function listName({ args }: ReadRequest): string {
  const { room = '', page = '', target = '', kind = '', before = '', after = '', order = 'desc', query } = args
  return `search:${JSON.stringify([room, page, target, kind, before, after, order, query])}`
}

/** What the index is to be asked, and the frame of the log that it must know of. */
function begin(context: ReadContext, request: ReadRequest): KnownAnswer<{ ask: SearchAsk; through: number }> {
  if (request.args.room !== undefined) return withRoom(context, request, () => beginAny(context, request))
  if (request.args.before === undefined && request.args.after === undefined) return beginAny(context, request)
  return refused(refusal('missing_field', 'before and after count inside a room: name the room too', 'room'))
}

function beginAny(context: ReadContext, request: ReadRequest): KnownAnswer<{ ask: SearchAsk; through: number }> {
  const { args } = request
  const read = readQuery(String(args.query))
  if (!read.ok) return unreadable(read.fault)
  const cursor = opened(context, listName(request), args)
  if (cursor === undefined) return badCursor
  const ask: SearchAsk = {
    query: read.query,
    ...(args.room === undefined ? {} : { room: String(args.room) }),
    ...(args.page === undefined ? {} : { page: String(args.page) }),
    ...(args.kind === undefined ? {} : { kind: String(args.kind) }),
    ...(args.target === undefined ? {} : { author: String(args.target) }),
    ...(args.before === undefined ? {} : { before: Number(args.before) }),
    ...(args.after === undefined ? {} : { after: Number(args.after) }),
    order: args.order === 'asc' ? 'asc' : 'desc',
    ...(cursor.from === undefined ? {} : { from: cursor.from }),
    limit: limitOf(args) + 1,
  }
  return known({ ask, through: context.applied!() })
}

export function unreadable(fault: string) {
  return refused(refusal('invalid_field', fault, 'query'))
}

/** The hits of a page as arguments of `search.show`. */
export function shownHits(
  { hits, reached = 0 }: Extract<SearchAnswer, { ok: true }>,
  { limit }: SearchAsk,
): { hits: string; next: number } {
  const shown = hits.slice(0, limit - 1)
  return { hits: shown.map(({ id }) => id).join(','), next: hits.length === limit ? shown.at(-1)!.change : reached }
}

function show(context: ReadContext, request: ReadRequest): ReadAnswer {
  const { args } = request
  const ids = args.hits === '' ? [] : String(args.hits).split(',')
  const { events } = context.board
  const muted = mutedAuthors(context, request)
  const slots = ids
    .map((id) => events.find(Buffer.from(id, 'hex')))
    .filter((slot) => slot !== none && !muted.has(events.author[slot]!))
  const { views, cut } = eventsWithin(context, slots)
  const next = args.next === 0 ? undefined : Number(args.next)
  // The index continues after a change number.
  return answer(context, request, views.filter(isShown), cut === undefined ? next : events.change[cut]!)
}

function isShown({ type, hidden }: EventView): boolean {
  return type === 'event' && !hidden
}

function answer(
  context: ReadContext,
  request: ReadRequest,
  events: readonly EventView[],
  next: number | undefined,
): ReadAnswer<EventList> {
  const { room } = request.args
  const data = { events, ...paging(context, listName(request), next), generation: context.generation }
  return ok(data, { ...(room === undefined ? {} : { room: String(room) }), until: endOf(events) })
}

/** Events, and bytes of their texts, looked at for one page, which takes 20 ms, or 50 where letters bear marks: a whole shard waits. */
const looksMax = 2_000
const lookedBytesMax = 512 * 1024
const looksAtOnce = 200

/** Events of a room that hold what `query` asks for. What is public is found by the index before it comes here. */
export function searchInRoom(context: ReadContext, request: ReadRequest): ReadAnswer<EventList> {
  return withRoom(context, request, (room) => searchRoom(context, request, room))
}

/** A private room is in no index: its texts are read, so many and so long ones for each page, from the newest (or oldest) on. */
function searchRoom(context: ReadContext, request: ReadRequest, room: Room): ReadAnswer<EventList> {
  const { args } = request
  const read = readQuery(String(args.query))
  if (!read.ok) return unreadable(read.fault)
  const holds = matcher(read.query)
  const cursor = opened(context, listName(request), args)
  if (cursor === undefined) return badCursor
  const limit = limitOf(args)
  const found: EventView[] = []
  let from = cursor.from
  let lookedBytes = 0
  for (let looks = 0; looks < looksMax; looks += looksAtOnce) {
    const { slots, next } = findEvents(
      context.state,
      {
        room: room.name,
        ...(args.page === undefined ? {} : { page: String(args.page) }),
        ...(args.target === undefined ? {} : { author: String(args.target) }),
        ...(args.kind === undefined ? {} : { kind: String(args.kind) }),
        ...(args.before === undefined ? {} : { before: Number(args.before) }),
        ...(args.after === undefined ? {} : { after: Number(args.after) }),
        order: args.order === 'asc' ? 'asc' : 'desc',
        limit: looksAtOnce,
        ...(from === undefined ? {} : { from }),
        without: mutedAuthors(context, request),
      },
      context.now(),
    )
    for (const [at, slot] of slots.entries()) {
      const event = view(context, slot, false)
      if (!isShown(event)) continue
      const { text = '' } = event
      lookedBytes += Buffer.byteLength(text)
      if (holds(text)) found.push(event)
      const isLast = at === slots.length - 1 && next === undefined
      if (found.length === limit || lookedBytes >= lookedBytesMax)
        return answer(context, request, found, isLast ? undefined : slot)
    }
    if (next === undefined) return answer(context, request, found, undefined)
    from = next
  }
  return answer(context, request, found, from)
}
