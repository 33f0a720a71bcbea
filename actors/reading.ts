/**
 * Reading a board: which slots answer a question. Pure walks over the index with a bound on each;
 * what a slot looks like to a reader is not decided here.
 */
import type { Active, Board, Page, Room } from './board.ts'
import { none } from './event-index.ts'

export type EventsQuery = {
  readonly room?: string
  readonly page?: string
  readonly author?: string
  readonly kind?: string
  /** Numbers inside the room, exclusive. */
  readonly before?: number
  readonly after?: number
  readonly order: 'asc' | 'desc'
  readonly limit: number
  /** Go on behind this slot. */
  readonly from?: number
}

export type Slots = { readonly slots: number[]; readonly next: number | undefined }

/** Slots looked at for one page of answers: a rare kind in a large room ends a page early, with `next` to go on. */
const scanMax = 20_000

const nothing: Slots = { slots: [], next: undefined }

export function findEvents(board: Board, query: EventsQuery): Slots {
  const list = candidates(board, query)
  if (list === undefined) return nothing
  const kind = query.kind === undefined ? undefined : board.kinds.find(query.kind)
  const page = query.page === undefined ? undefined : board.pages.find(query.page)
  const author = query.author === undefined ? undefined : board.authors.get(query.author)?.number
  if ((query.kind !== undefined && kind === undefined) || (query.page !== undefined && page === undefined))
    return nothing
  if (query.author !== undefined && author === undefined) return nothing
  const { events } = board
  const matches = (slot: number): boolean =>
    (kind === undefined || events.kind[slot] === kind) &&
    (page === undefined || events.page[slot] === page) &&
    (author === undefined || events.author[slot] === author) &&
    (query.before === undefined || events.seq[slot]! < query.before) &&
    (query.after === undefined || events.seq[slot]! > query.after)
  return walk(list, start(list, query), query, matches)
}

type List = { readonly length: number; at(position: number): number; lowerBound(slot: number): number }

function candidates(board: Board, query: EventsQuery): List | undefined {
  if (query.room !== undefined) {
    const room = board.rooms.get(query.room)
    if (room === undefined) return undefined
    return query.page === undefined ? room.events : room.pages.get(query.page)?.events
  }
  if (query.author !== undefined) return board.authors.get(query.author)?.events
  const { count } = board.events
  return { length: count, at: (position) => position, lowerBound: (slot) => Math.min(slot, count) }
}

function start(list: List, { order, from }: EventsQuery): number {
  if (order === 'desc') return from === undefined ? list.length - 1 : list.lowerBound(from) - 1
  return from === undefined ? 0 : list.lowerBound(from + 1)
}

function walk(list: List, begin: number, query: EventsQuery, matches: (slot: number) => boolean): Slots {
  const step = query.order === 'desc' ? -1 : 1
  const slots: number[] = []
  let looked = 0
  let position = begin
  for (; position >= 0 && position < list.length; position += step) {
    if (slots.length === query.limit || looked === scanMax) break
    looked++
    const slot = list.at(position)
    if (matches(slot)) slots.push(slot)
  }
  const more = position >= 0 && position < list.length
  return { slots, next: more ? list.at(position - step) : undefined }
}

/** A thread, oldest first. `slot` is any event of it; `from` goes on behind that slot. */
export function readThread(
  board: Board,
  slot: number,
  limit: number,
  from: number | undefined,
): Slots & { root: number } {
  const { events } = board
  const root = events.root[slot] === none ? slot : events.root[slot]!
  const slots: number[] = []
  let at = from === undefined ? root : events.next[from]!
  while (at !== none && slots.length < limit) {
    slots.push(at)
    at = events.next[at]!
  }
  return { root, slots, next: at === none ? undefined : slots.at(-1) }
}

/** Pages of a room, latest activity first. */
export function pagesOf(room: Room): Page[] {
  return [...room.pages.values()].filter(({ count }) => count > 0).sort((a, b) => b.last - a.last)
}

/** Entries by latest activity whose version is below `below`. */
export function byActivity<Entry extends Active<Entry>>(
  newest: Entry | undefined,
  { limit, below, accept }: { limit: number; below: number; accept: (entry: Entry) => boolean },
): { entries: Entry[]; next: number | undefined } {
  const entries: Entry[] = []
  for (let at = newest; at !== undefined; at = at.older) {
    if (at.version >= below || !accept(at)) continue
    if (entries.length === limit) return { entries, next: entries.at(-1)?.version }
    entries.push(at)
  }
  return { entries, next: undefined }
}
