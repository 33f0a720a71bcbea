/**
 * Search operations: how the feed queries the index and shows what was found, and the search of a private room.
 *
 * The index is asked for one hit more than a page holds. The feed shows the hits, since only it knows what may be shown now. A search stops
 * when its time is used up, so a page may hold fewer events than fit, or none, while more follow.
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
  withRoom,
} from '../reads/read.ts'
import { costOfWords, highlighter, matcher, rankOf, readQuery, wordsOf } from './query.ts'
import type { SearchAnswer, SearchAsk } from './search.ts'

export const searchReads = { 'search.begin': begin, 'search.show': show } satisfies Reads

function listName({ args }: ReadRequest): string {
  const { room = '', page = '', target = '', kind = '', before = '', after = '', order = 'desc', query } = args
  return `search:${JSON.stringify([room, page, target, kind, before, after, order, query])}`
}

/** The query for the index, and the frame of the log that its answer must cover. */
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
    ...daysOf(context, args),
    order: args.order === 'asc' || args.order === 'relevance' ? args.order : 'desc',
    ...(cursor.from === undefined ? {} : { from: cursor.from }),
    limit: limitOf(args) + 1,
    ...(cursor.from === undefined || args.order === 'relevance' ? { count: countedMax } : {}),
  }
  return known({ ask, through: context.applied!() })
}

/** Number of matches that a search counts, and among which the most relevant are found. */
const countedMax = 1_000

/** The row range for the days in a query. In the feed, rows are in order of time. */
function daysOf(
  { board: { events } }: ReadContext,
  { since, until }: ReadRequest['args'],
): Pick<SearchAsk, 'since' | 'until'> {
  const firstFrom = (seconds: number): number => {
    let [low, high] = [0, events.count]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (events.at(middle) < seconds) low = middle + 1
      else high = middle
    }
    return low === events.count ? Number.MAX_SAFE_INTEGER : events.change(low)
  }
  return {
    ...(since === undefined ? {} : { since: firstFrom(Number(since)) }),
    ...(until === undefined ? {} : { until: firstFrom(Number(until)) }),
  }
}

export function unreadable(fault: string) {
  return refused(refusal('invalid_field', fault, 'query'))
}

/** A page's hits as arguments of `search.show`; `total` if it is known, `percent` and `seconds` while the index is being built. */
export function shownHits(
  { hits, reached, total, indexing }: Extract<SearchAnswer, { ok: true }>,
  { limit, order, from = 0, count }: SearchAsk,
): { hits: string; next: number; from: number; total?: number; percent?: number; seconds?: number } {
  const counted = { ...(total === undefined || count === undefined ? {} : { total }), ...indexing }
  if (order === 'relevance') {
    const ranked = hits.toSorted((a, b) => b.rank! - a.rank! || b.change - a.change)
    const end = from + limit - 1
    const shown = ranked.slice(from, end)
    return { hits: shown.map(({ id }) => id).join(','), next: end < hits.length ? end : 0, from, ...counted }
  }
  const shown = hits.slice(0, limit - 1)
  const next = hits.length >= limit ? shown.at(-1)!.change : (reached ?? 0)
  return { hits: shown.map(({ id }) => id).join(','), next, from, ...counted }
}

function show(context: ReadContext, request: ReadRequest): ReadAnswer {
  const { args } = request
  const ids = args.hits === '' ? [] : String(args.hits).split(',')
  const { events } = context.board
  const muted = mutedAuthors(context, request)
  const slots = ids
    .map((id) => events.find(Buffer.from(id, 'hex')))
    .filter((slot) => slot !== none && !muted.has(events.author(slot)))
  const { views, cut } = markedWithin(context, slots)
  const next = args.next === 0 ? undefined : Number(args.next)
  // The index continues after a change number; by relevance, after this many matches.
  const after = (slot: number) =>
    args.order === 'relevance' ? Number(args.from) + ids.indexOf(events.idHex(slot)) + 1 : events.change(slot)
  return answer(context, request, views.filter(isShown), cut === undefined ? next : after(cut))
}

/** What the texts of one page may cost that are searched for what to mark: some 30 ms of the feed. */
const markedCostMax = 256 * 1024

/** A page ends earlier if marking its texts would cost too much, but has at least one. */
function markedWithin(context: ReadContext, slots: readonly number[]): ReturnType<typeof eventsWithin> {
  const { views, cut } = eventsWithin(context, slots)
  let cost = 0
  const last = views.findIndex(({ text = '' }) => {
    cost += costOfWords(text)
    return cost >= markedCostMax
  })
  return last === -1 || last === slots.length - 1
    ? { views, cut }
    : { views: views.slice(0, last + 1), cut: slots[last] }
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
  const { room, total, query, percent, seconds } = request.args
  const read = readQuery(String(query))
  const highlightsOf = read.ok ? highlighter(read.query) : () => []
  const data = {
    events: events.map((event) => ({ ...event, highlights: highlightsOf(event.text ?? '') })),
    ...(total === undefined ? {} : { total: Number(total) }),
    ...(percent === undefined ? {} : { indexing: { percent: Number(percent), seconds: Number(seconds) } }),
    ...paging(context, listName(request), next),
    generation: context.generation,
  }
  return ok(data, { ...(room === undefined ? {} : { room: String(room) }), until: endOf(events) })
}

/** Events examined for one page, and what their texts may cost. This takes 20 to 60 ms, and blocks the whole shard. */
const examinedMax = 2_000
const examinedCostMax = 512 * 1024
const examinedPerStep = 200

/** Events of a room that match `query`. Public rooms are searched in the index before this is called. */
export function searchInRoom(context: ReadContext, request: ReadRequest): ReadAnswer<EventList> {
  return withRoom(context, request, (room) => searchRoom(context, request, room))
}

/** Private rooms are not indexed: their texts are read, up to a limit per page, from the newest (or oldest) on. */
function searchRoom(context: ReadContext, request: ReadRequest, room: Room): ReadAnswer<EventList> {
  const { args } = request
  const read = readQuery(String(args.query))
  if (!read.ok) return unreadable(read.fault)
  const holds = matcher(read.query)
  const rank = rankOf(read.query)
  // Private rooms are not indexed, so each page is sorted by itself.
  const ranked = (events: readonly EventView[]): readonly EventView[] => {
    if (args.order !== 'relevance') return events
    const ranks = new Map(events.map((event) => [event, rank(wordsOf(event.text ?? '').join(' '))]))
    return events.toSorted((a, b) => ranks.get(b)! - ranks.get(a)!)
  }
  const cursor = opened(context, listName(request), args)
  if (cursor === undefined) return badCursor
  const limit = limitOf(args)
  const { since = 0, until = Number.POSITIVE_INFINITY } = args
  const found: EventView[] = []
  let from = cursor.from
  let examinedCost = 0
  for (let examined = 0; examined < examinedMax; examined += examinedPerStep) {
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
        limit: examinedPerStep,
        ...(from === undefined ? {} : { from }),
        without: mutedAuthors(context, request),
      },
      context.now(),
    )
    for (const [at, slot] of slots.entries()) {
      const event = listed(context, slot)
      if (!isShown(event) || event.created_at < Number(since) || event.created_at >= Number(until)) continue
      const { text = '' } = event
      examinedCost += costOfWords(text)
      if (holds(text)) found.push(event)
      const isLast = at === slots.length - 1 && next === undefined
      if (found.length === limit || examinedCost >= examinedCostMax)
        return answer(context, request, ranked(found), isLast ? undefined : slot)
    }
    if (next === undefined) return answer(context, request, ranked(found), undefined)
    from = next
  }
  return answer(context, request, ranked(found), from)
}
