/** Reading a board: which slots match a query. Pure, bounded walks over the index; how a slot is shown to a reader is decided elsewhere. */
import { prefetchBatchMax } from '../storage/disk.ts'
import { allSlots, type Board, type Room, slotsIn } from './records/board.ts'
import { type EventIndex, none } from './records/event-index.ts'
import type { Slots as List } from './records/slot-lists.ts'
import type { State } from './state.ts'

export type EventsQuery = {
  readonly room?: string
  readonly page?: string
  readonly author?: string
  readonly kind?: string
  /** Seqs in the room, exclusive. */
  readonly before?: number
  readonly after?: number
  readonly order: 'asc' | 'desc'
  readonly limit: number
  /** Continue after this slot. */
  readonly from?: number
  /** Numbers of authors whose events are left out. */
  readonly without?: ReadonlySet<number>
}

type Slots = { readonly slots: number[]; readonly next: number | undefined }

/** Slots examined for one page of results: for a rare kind in a large room the page ends early, with `next` to continue. */
const scanMax = 20_000

const nothing: Slots = { slots: [], next: undefined }

/** Visible events at `now` (Unix seconds), one for each original. Edits and hidden, redacted or expired events are left out. */
export function findEvents(state: State, query: EventsQuery, now: number): Slots {
  const { board, marks } = state
  const { events } = board
  const room = query.room === undefined ? undefined : board.rooms.get(query.room)
  const kind = query.kind === undefined ? undefined : board.kinds.find(query.kind)
  const page = query.page === undefined ? undefined : board.pages.find(query.page)
  const author = query.author === undefined ? undefined : board.authors.get(query.author)
  const isUnknown =
    (query.room !== undefined && room === undefined) ||
    (query.kind !== undefined && kind === undefined) ||
    (query.page !== undefined && page === undefined) ||
    (query.author !== undefined && author === undefined)
  if (isUnknown) return nothing
  const matches = (slot: number): boolean =>
    (room === undefined || events.room(slot) === room.number) &&
    (kind === undefined || events.kind(slot) === kind) &&
    (page === undefined || events.page(slot) === page) &&
    (author === undefined || events.author(slot) === author.number) &&
    query.without?.has(events.author(slot)) !== true &&
    (query.before === undefined || events.seq(slot) < query.before) &&
    (query.after === undefined || events.seq(slot) > query.after) &&
    !marks.isEdit(slot) &&
    marks.gone(slot, now) === undefined
  const ofRoom = room === undefined ? undefined : slotsIn(room, query.page)
  const own = author?.events
  if (own !== undefined && (ofRoom === undefined || own.length < ofRoom.length))
    return walk(events, own, cursorBounds(own, query), query, matches)
  const list = ofRoom ?? allSlots(board)
  const bounds = cursorBounds(list, query)
  return walk(events, list, ofRoom === undefined ? bounds : seqBounds(events, list, bounds, query), query, matches)
}

/** First position, and the one after the last. */
type Bounds = { readonly low: number; readonly high: number }

function cursorBounds(list: List, { order, from }: EventsQuery): Bounds {
  if (from === undefined) return { low: 0, high: list.length }
  return order === 'asc'
    ? { low: list.lowerBound(from + 1), high: list.length }
    : { low: 0, high: list.lowerBound(from) }
}

/** Seqs in a room increase with its slots, so the events that `before` and `after` exclude are never examined. */
function seqBounds(events: EventIndex, list: List, { low, high }: Bounds, { before, after }: EventsQuery): Bounds {
  const firstAbove = (value: number): number => {
    let [from, to] = [low, high]
    // A complete room has no gaps: event n is at index n - 1.
    const guess = Math.max(low, Math.min(value, high))
    if (guess < high && events.seq(list.at(guess)) > value) to = guess
    if (guess > low && events.seq(list.at(guess - 1)) <= value) from = guess
    while (from < to) {
      const middle = (from + to) >>> 1
      if (events.seq(list.at(middle)) <= value) from = middle + 1
      else to = middle
    }
    return from
  }
  return {
    low: after === undefined ? low : firstAbove(after),
    high: before === undefined ? high : firstAbove(before - 1),
  }
}

/** `next` is set if there is, or may be, another match: the walk looks for one more match, within its limit on slots. */
function walk(
  events: EventIndex,
  list: List,
  { low, high }: Bounds,
  query: EventsQuery,
  matches: (slot: number) => boolean,
): Slots {
  const step = query.order === 'desc' ? -1 : 1
  const slots: number[] = []
  let looked = 0
  let position = query.order === 'desc' ? high - 1 : low
  const isSlow = events.readsAreSlow
  for (; position >= low && position < high; position += step) {
    if (looked++ === scanMax)
      return { slots, next: slots.length === query.limit ? slots.at(-1) : list.at(position - step) }
    if (isSlow && (looked - 1) % prefetchBatchMax === 0) {
      const left = step < 0 ? position - low + 1 : high - position
      events.prefetch(Array.from({ length: Math.min(prefetchBatchMax, left) }, (_, n) => list.at(position + n * step)))
    }
    const slot = list.at(position)
    if (!matches(slot)) continue
    if (slots.length === query.limit) return { slots, next: slots.at(-1) }
    slots.push(slot)
  }
  return { slots, next: undefined }
}

/** A thread, oldest or newest first. `slot` is any of its events; `from` continues after that slot. */
export function readThread(
  board: Board,
  slot: number,
  { order, limit, from }: Pick<EventsQuery, 'order' | 'limit' | 'from'>,
): Slots & { root: number } {
  const { events } = board
  const root = events.rootOf(slot)
  const before = (at: number) => (at === root ? none : events.tail(at))
  const after = (at: number) => (order === 'asc' ? events.next(at) : before(at))
  const slots: number[] = []
  let at = from === undefined ? (order === 'asc' ? root : events.tail(root)) : after(from)
  while (at !== none && slots.length < limit) {
    slots.push(at)
    at = after(at)
  }
  return { root, slots, next: at === none ? undefined : slots.at(-1) }
}

/** The event this many places earlier in the thread; undefined if there are fewer before it. */
export function earlierInThread({ events }: Board, slot: number, places: number): number | undefined {
  let at = slot
  for (let left = places; left > 0; left--) {
    if (events.root(at) === none) return undefined
    at = events.tail(at)
  }
  return at
}

/**
 * What a room shows at `now` (Unix seconds), and when the next visible event expires (0: none will). Posts and pages
 * are those of the room itself; threads are those that it lists.
 */
export function countsOf(
  state: State,
  room: Room,
  now: number,
): { readonly count: number; readonly threads: number; readonly pages: number; readonly until: number } {
  const { marks } = state
  const guests = shownRoots(state, state.threadFlags.movedInto(room), now)
  let [count, threads, pages, until] = [0, 0, 0, guests.until]
  threads += guests.count - shownRoots(state, state.threadFlags.movedFrom(room), now).count
  for (const page of room.pages.values()) {
    const visible = marks.visible(page, now)
    count += visible.count
    threads += visible.threads
    if (visible.count > 0) pages++
    if (visible.until !== 0) until = until === 0 ? visible.until : Math.min(until, visible.until)
  }
  return { count, threads, pages, until }
}

/** How many of these root events are shown, and when the next of them expires (0: none will). */
function shownRoots({ board: { events }, marks }: State, roots: ReadonlySet<number>, now: number) {
  let [count, until] = [0, 0]
  for (const root of roots) {
    if (marks.gone(root, now) !== undefined) continue
    count++
    const end = events.expires(root)
    if (end !== 0 && (until === 0 || end < until)) until = end
  }
  return { count, until }
}

type VisiblePage = {
  readonly name: string
  readonly count: number
  readonly threads: number
  /** Slot of the newest event, shown or not; pages are ordered by it. */
  readonly order: number
  /** Slot of the newest event that is shown. */
  readonly last: number
  /** Unix seconds. */
  readonly updatedAt: number
  /** When the next of its events expires, Unix seconds; 0: none will. */
  readonly until: number
}

/** Pages with at least one visible event at `now` (Unix seconds), latest activity first. */
export function pagesOf({ board: { events }, marks }: State, room: Room, now: number): VisiblePage[] {
  const pages: VisiblePage[] = []
  for (const page of room.pages.values()) {
    const { count, threads, until } = marks.visible(page, now)
    if (count === 0) continue
    const last = marks.newestShown(page, now)
    pages.push({ name: page.name, count, threads, order: page.last, last, updatedAt: events.at(last), until })
  }
  return pages.sort((a, b) => b.order - a.order)
}

/** How many entries are examined for one page. */
export const looksPerPage = 20_000

/** Entries by latest activity whose version is below `below`. The page ends early if too few are accepted. */
export function byActivity<Entry extends { readonly version: number }>(
  list: { below(version: number): Iterable<Entry> },
  { limit, below, accept }: { limit: number; below: number; accept: (entry: Entry) => boolean },
): { entries: Entry[]; next: number | undefined } {
  const entries: Entry[] = []
  let looks = 0
  let last = below
  for (const entry of list.below(below)) {
    if (looks++ === looksPerPage) return { entries, next: last }
    const isAccepted = accept(entry)
    if (isAccepted && entries.length === limit) return { entries, next: last }
    if (isAccepted) entries.push(entry)
    last = entry.version
  }
  return { entries, next: undefined }
}
