/** Reads on events: one event, its versions, a list, a thread, and post counts by hour or day. */

import { refusal } from '../../actors/kernel/refusals.ts'
import { type EventsQuery, earlierInThread, findEvents, readThread } from '../../actors/reading.ts'
import { none } from '../../actors/records/event-index.ts'
import type { State } from '../../actors/state.ts'
import { eventJson } from '../reads/event-json.ts'
import { type EventList, type EventView, versionView } from '../reads/event-view.ts'
import { jsonsOf, listedEvent, listedWithin, plainPostAt, scopeOfListed } from '../reads/listed-events.ts'
import {
  badCursor,
  type KnownAnswer,
  known,
  limitOf,
  listed,
  type Made,
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
  scopeOf,
  sealedPlace,
  showing,
  soonest,
  view,
  withEvent,
  withinPage,
  withLists,
  withRoom,
} from '../reads/read.ts'

export const eventsReads = {
  'event.get': (context, request) =>
    withEvent(context, request, (slot) => {
      const plain = plainPostAt(context, slot)
      if (plain !== undefined)
        return okJson<{ readonly event: EventView }>(
          ['{"event":', eventJson(context.state, plain, true), '}'],
          scopeOfListed([plain]),
        )
      const event = view(context, slot, true)
      return ok({ event }, scopeOf([event]))
    }),
  /**
   * The answer to a post: the event as it is shown, and the leaf of the version that the command created. If that is in a log that was
   * closed since, also the last head of that log.
   */
  'event.made': (context, request) =>
    withEvent(context, request, (slot) => {
      const event = view(context, slot, false)
      return { ...ok({ event }, scopeOf([event])), made: { event: event.event_id, ...leafOf(context, slot) } }
    }),
  /** The answer to a hide, a restore and a redaction: the event as all readers now see it. */
  'event.marked': (context, request) =>
    withEvent(context, request, (slot) => {
      const event = view(context, slot, false)
      return { ...ok({ event }, scopeOf([event])), made: { event: event.event_id } }
    }),
  'events.list': listEvents,
  'event.history': (context, request) => withEvent(context, request, (slot) => history(context, request, slot)),
  'thread.get': (context, request) => withEvent(context, request, (slot) => thread(context, request, slot)),
} satisfies Reads

function leafOf({ board, state: { book }, visibility }: ReadContext, slot: number): Pick<Made, 'leaf' | 'head'> {
  if (visibility !== 'public') return {}
  const leaf = board.events.leaf(slot)
  const log = book.holding(leaf)
  return { leaf: leaf - log.base, ...(log === book.newest ? {} : { head: log.head }) }
}

function listEvents(context: ReadContext, request: ReadRequest): ReadAnswer<EventList> {
  const { args } = request
  if (args.order === 'relevance')
    return refused(refusal('missing_field', 'relevance is that of a search: give a query too', 'query'))
  const list = (room: string) => {
    const name = `events:${room}:${args.page ?? ''}:${args.target ?? ''}:${args.kind ?? ''}:${args.order ?? 'desc'}`
    const cursor = opened(context, name, args)
    if (cursor === undefined) return badCursor
    const query: EventsQuery = {
      ...(room === '' ? {} : { room }),
      ...(args.page === undefined ? {} : { page: String(args.page) }),
      ...(args.target === undefined ? {} : { author: String(args.target) }),
      ...(args.kind === undefined ? {} : { kind: String(args.kind) }),
      ...(args.before === undefined ? {} : { before: Number(args.before) }),
      ...(args.after === undefined ? {} : { after: Number(args.after) }),
      order: args.order === 'asc' ? 'asc' : 'desc',
      limit: limitOf(args),
      ...(cursor.from === undefined ? {} : { from: cursor.from }),
      without: mutedAuthors(context, request),
    }
    const { slots, next } = findEvents(context.state, query, context.now())
    const { shown: events, cut } = listedWithin(context, slots)
    const more = { ...paging(context, name, cut ?? next), generation: context.generation }
    const { until } = scopeOfListed(events)
    return okJson(withLists({}, { events: jsonsOf(events) }, more), { ...(room === '' ? {} : { room }), until })
  }
  if (args.room !== undefined) return withRoom(context, request, (room) => list(room.name))
  if (args.before !== undefined || args.after !== undefined) {
    return refused(refusal('missing_field', 'before and after count inside a room: name the room too', 'room'))
  }
  return list('')
}

/** Every version separately, oldest first. */
function history(context: ReadContext, { args }: ReadRequest, slot: number): ReadAnswer {
  const { marks, board } = context.state
  const original = marks.original(slot)
  const list = `history:${board.events.idHex(original)}`
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const slots = [original, ...marks.edits(original)]
  const first = cursor.from === undefined ? 0 : slots.indexOf(cursor.from) + 1
  const shown = slots.slice(first, first + limitOf(args))
  const next = first + shown.length < slots.length ? shown.at(-1) : undefined
  const how = showing(context, true)
  const { views: events, cut } = withinPage(context, shown, (each) =>
    listed(context, each, () => versionView(context.state, each, context.body(each), how)),
  )
  const data = {
    event_id: board.events.idHex(original),
    versions: slots.length,
    first_number: first + 1,
    ...(first === 0 ? {} : { previous_id: board.events.idHex(slots[first - 1]!) }),
    events,
    ...paging(context, list, cut ?? next),
  }
  return ok(data, scopeOf(events))
}

function thread(context: ReadContext, request: ReadRequest, slot: number): ReadAnswer {
  const { args } = request
  const { board } = context
  const order = args.order === 'desc' ? 'desc' : 'asc'
  const list = `thread:${board.events.idHex(slot)}${order === 'desc' ? ':desc' : ''}`
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const limit = limitOf(args)
  const beginsNear = args.start === 'event' && order === 'asc' && cursor.from === undefined
  // A quarter of the page precedes the event.
  const near = beginsNear
    ? earlierInThread(board, context.state.marks.original(slot), Math.floor(limit / 4) + 1)
    : undefined
  const from = cursor.from ?? near
  const found = readThread(board, slot, { order, limit, ...(from === undefined ? {} : { from }) })
  const muted = mutedAuthors(context, request)
  const unmuted = found.slots.filter((each) => !muted.has(board.events.author(each)))
  const { shown: events, cut } = listedWithin(context, unmuted)
  const index = context.state.threads.at(context.now())
  const { replies, participants, until: changes } = index.sums(found.root)
  const root = unmuted[0] === found.root ? events[0]! : listedEvent(context, found.root)
  const before = {
    root_id: board.events.idHex(found.root),
    requested_event_id: board.events.idHex(slot),
    room: board.roomList[board.events.room(slot)]!.name,
    page: board.page(found.root),
    title: root.title().title,
    ...(context.state.threadFlags.isPinned(found.root) ? { pinned: true } : {}),
    ...(context.state.threadFlags.isLocked(found.root) ? { locked: true } : {}),
    ...movedView(context, found.root),
    replies,
    participants,
  }
  const more = {
    ...(order === 'asc' ? earlier(context, list, { first: found.slots[0], limit }) : {}),
    ...paging(context, list, cut ?? found.next),
  }
  const { until, ...scope } = scopeOfListed([root, ...events])
  // A reply on another page of this answer may expire, and is counted here.
  return okJson(withLists(before, { events: jsonsOf(events) }, more), { ...scope, until: soonest([until, changes]) })
}

/** Where moderators have listed a thread, and who did. */
function movedView({ state, handleOf }: ReadContext, root: number) {
  const moved = state.threadFlags.moveOf(root)
  if (moved === undefined) return {}
  const { reason, ...where } = moved
  const handle = handleOf(moved.by)
  return {
    moved: { ...where, ...(handle === undefined ? {} : { handle }), ...(reason === '' ? {} : { reason }) },
  }
}

/** The page before the one that begins with this slot. */
function earlier(
  context: ReadContext,
  list: string,
  { first, limit }: { readonly first: number | undefined; readonly limit: number },
) {
  if (first === undefined || context.board.events.root(first) === none) return { has_earlier: false }
  const from = earlierInThread(context.board, first, limit + 1)
  return { has_earlier: true, ...(from === undefined ? {} : { earlier_cursor: sealedPlace(context, list, from) }) }
}

/**
 * How busy the board, or one public room, was: counts of posts by hour or day. As in every count of posts, edits and posts that are not
 * shown are left out. Used by the board itself for the pictures on pages. Slots are in order of acceptance, so each boundary of the plot is
 * one binary search; only what is left out is examined individually. If a clock was set back, a post may be counted in a neighboring bar.
 */
export const activityReads = {
  'board.activity': (context, request) => {
    if (request.args.room === undefined) {
      const { events } = context.board
      return activity(context, request, { length: events.count, at: (position) => position })
    }
    return withRoom(context, request, (room) => activity(context, request, room.events, room.number))
  },
} satisfies Reads

type Slots = { readonly length: number; at(position: number): number }

function activity(
  { state, board, now }: ReadContext,
  { args }: ReadRequest,
  slots: Slots,
  room?: number,
): KnownAnswer<{ readonly from: number; readonly step: number; readonly counts: readonly number[] }> {
  const { events } = board
  const step = Number(args.step)
  const bars = Number(args.bars)
  const from = (Math.floor(now() / step) + 1 - bars) * step
  const firstFrom = (seconds: number): number => {
    let [low, high] = [0, slots.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (events.at(slots.at(middle)) < seconds) low = middle + 1
      else high = middle
    }
    return low
  }
  const borders = Array.from({ length: bars + 1 }, (_, n) => firstFrom(from + n * step))
  const counts = borders.slice(1).map((border, n) => border - borders[n]!)
  for (const slot of leftOut(state, now(), room)) {
    const bar = Math.floor((events.at(slot) - from) / step)
    if (counts[bar] !== undefined) counts[bar] = Math.max(0, counts[bar] - 1)
  }
  const found = { from, step, counts }
  return known(found, { ...(room === undefined ? {} : { room: String(args.room) }), until: from + bars * step })
}

/** What does not count as a post: edits, hidden, redacted and expired posts. */
function leftOut({ board: { events }, marks }: State, now: number, room: number | undefined): ReadonlySet<number> {
  const found = new Set<number>()
  const add = (slot: number): void => {
    if (room === undefined || events.room(slot) === room) found.add(slot)
  }
  for (const slot of marks.marked()) add(slot)
  for (const slot of marks.removedTextSlots(now)) add(slot)
  return found
}
