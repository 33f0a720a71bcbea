/**
 * A board as bytes and back: what a thread writes so that its next start need not replay from the first frame.
 * An optimisation and never truth: whatever does not fit is thrown away and the journal is replayed.
 *
 * The bytes are one msgpack map; event columns and slot lists are raw little-endian arrays, inside it or beside it (columns.ts).
 */

import { encode, Packr } from '../kernel/msgpack.ts'
import { type Author, Board, type Page, type Room, type Visibility } from './board.ts'
import type { Columns, Kept } from './columns.ts'
import { EventIndex, type PackedEvents, SlotList } from './event-index.ts'

const format = 8
/** In format 7 retry memory does not count by identity, nor the market its rewards by day: those parts begin with none. */
const oldestFormat = 7
const codec = new Packr({ useRecords: false })

type PackedPage = readonly [name: string, threads: number, last: number, updatedAt: number, events: Kept]
type PackedRoom = {
  readonly name: string
  readonly visibility: Visibility
  readonly owner: string | null
  readonly members: readonly string[]
  readonly moderators: readonly string[]
  readonly about: string | null
  readonly at: number
  readonly updated: number
  readonly version: number
  readonly threads: number
  readonly events: Kept
  readonly pages: readonly PackedPage[]
}
type PackedAuthor = readonly [
  id: string,
  key: string,
  handle: string | null,
  at: number,
  seen: number,
  version: number,
  events: Kept,
]
type Packed = {
  readonly format: number
  readonly change: number
  readonly events: PackedEvents
  readonly pages: readonly string[]
  readonly kinds: readonly string[]
  readonly rooms: readonly PackedRoom[]
  readonly authors: readonly PackedAuthor[]
  readonly more: unknown
}

/** `more`: what else the thread needs to continue, anything msgpack can hold. */
export function packBoard(board: Board, more: unknown, columns: Columns): Buffer {
  const packed: Packed = {
    format,
    change: board.change,
    events: board.events.pack(columns),
    pages: board.pages.all(),
    kinds: board.kinds.all(),
    rooms: board.roomList.map((room) => packRoom(room, columns)),
    authors: board.authorList.map((author) => packAuthor(author, columns)),
    more,
  }
  return encode(codec, packed)
}

/** Undefined: bytes of another format. */
export function unpackBoard(bytes: Uint8Array, columns: Columns): { board: Board; more: unknown } | undefined {
  const packed = codec.unpack(bytes) as Packed
  if (packed.format < oldestFormat || packed.format > format) return undefined
  const board = new Board(EventIndex.of(packed.events, columns))
  board.change = packed.change
  for (const name of packed.pages) board.pages.number(name)
  for (const name of packed.kinds) board.kinds.number(name)
  for (const room of packed.rooms) {
    const unpacked = unpackRoom(room, board.roomList.push(undefined as never) - 1, columns)
    board.roomList[unpacked.number] = unpacked
    board.rooms.set(unpacked.name, unpacked)
  }
  for (const [number, author] of packed.authors.entries()) {
    const unpacked = unpackAuthor(author, number, columns)
    board.authorList.push(unpacked)
    board.authors.set(unpacked.id, unpacked)
    if (unpacked.handle !== undefined) board.handles.set(unpacked.handle, unpacked.id)
  }
  for (const room of [...board.roomList].sort((a, b) => a.version - b.version))
    board.roomsByActivity.touch(room, room.version)
  for (const author of [...board.authorList].sort((a, b) => a.version - b.version))
    board.authorsByActivity.touch(author, author.version)
  return { board, more: packed.more }
}

function packRoom(room: Room, columns: Columns): PackedRoom {
  return {
    name: room.name,
    visibility: room.visibility,
    owner: room.owner ?? null,
    members: [...room.members],
    moderators: [...room.moderators],
    about: room.about ?? null,
    at: room.createdAt,
    updated: room.updatedAt,
    version: room.version,
    threads: room.threads,
    events: room.events.pack(columns),
    pages: [...room.pages.values()].map(
      (page): PackedPage => [page.name, page.threads, page.last, page.updatedAt, page.events.pack(columns)],
    ),
  }
}

function unpackRoom(packed: PackedRoom, number: number, columns: Columns): Room {
  return {
    number,
    name: packed.name,
    visibility: packed.visibility,
    owner: packed.owner ?? undefined,
    members: new Set(packed.members),
    moderators: new Set(packed.moderators),
    about: packed.about ?? undefined,
    createdAt: packed.at,
    updatedAt: packed.updated,
    version: packed.version,
    threads: packed.threads,
    events: SlotList.of(packed.events, columns),
    pages: new Map(packed.pages.map((page): [string, Page] => [page[0], unpackPage(page, columns)])),
    newer: undefined,
    older: undefined,
  }
}

function unpackPage([name, threads, last, updatedAt, slots]: PackedPage, columns: Columns): Page {
  const events = SlotList.of(slots, columns)
  return { name, count: events.length, threads, last, updatedAt, events }
}

function packAuthor(author: Author, columns: Columns): PackedAuthor {
  const { id, key, handle, createdAt, lastSeen, version, events } = author
  return [id, key, handle ?? null, createdAt, lastSeen, version, events.pack(columns)]
}

function unpackAuthor(
  [id, key, handle, createdAt, lastSeen, version, slots]: PackedAuthor,
  number: number,
  columns: Columns,
): Author {
  return {
    number,
    id,
    key,
    handle: handle ?? undefined,
    createdAt,
    lastSeen,
    version,
    events: SlotList.of(slots, columns),
    newer: undefined,
    older: undefined,
  }
}
