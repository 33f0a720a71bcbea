/**
 * The board in memory: rooms, pages, threads, authors and handles, built from records; the order of its changes; its snapshot.
 *
 * There is one state and one `apply` with two uses: a shard has one for the rooms it decides, the feed has one for everything
 * public. Replay is just `apply`.
 */

import { hex } from '../kernel/hex.ts'
import { encode, Packr } from '../kernel/msgpack.ts'
import { Authors, type PackedAuthors } from './authors.ts'
import { type ChangeKind, changeKinds } from './change-kinds.ts'
import { bytesOf, type Columns, grown, type Kept } from './columns.ts'
import { CountedSlots, EventIndex, type GrowingSlots, Names, none, type PackedEvents, SlotList } from './event-index.ts'
import { Handles } from './handles.ts'
import type { EventShelf } from './old-events.ts'
import {
  type BoardRecord,
  type HandleClaimed,
  ownKey,
  type PostRecord,
  RecordType,
  type RoomCreated,
} from './record.ts'
import { noSlots, type Slots } from './slot-lists.ts'

export type Visibility = 'public' | 'private'

/** Anything listed by latest activity: a doubly linked list, newest first. */
export interface Active<Self> {
  version: number
  newer: Self | undefined
  older: Self | undefined
}

export type Page = {
  readonly name: string
  count: number
  threads: number
  last: number
  updatedAt: number
  readonly events: GrowingSlots
}

/** The place of the record of a ban, which says by whom and why. */
export type Ban = {
  readonly shard: number
  readonly seq: number
  /** Unix seconds; 0: until it is lifted. */
  readonly until: number
  /** The operator imposed it, and only the operator can lift it. */
  readonly isOperators: boolean
}

export interface Room extends Active<Room> {
  readonly number: number
  readonly name: string
  readonly visibility: Visibility
  /** Undefined if the operator owns the room. */
  owner: string | undefined
  /** All members except the owner, moderators included. */
  readonly members: Set<string>
  /** At most 16, all of them members. */
  readonly moderators: Set<string>
  /** By identity, oldest first; some have expired. */
  readonly bans: Map<string, Ban>
  readonly about: string | undefined
  readonly createdAt: number
  readonly events: GrowingSlots
  readonly pages: Map<string, Page>
  threads: number
  updatedAt: number
}

/** Where a record is stored, and its number in the order of everything public (in a shard: its journal number). */
export type Place = { readonly shard: number; readonly seq: number; readonly change: number; readonly leaf: number }

export class ByActivity<Entry extends Active<Entry>> {
  newest: Entry | undefined
  /**
   * The same entries in an array, oldest first, to find a position without walking the list. Versions only grow, so both are
   * sorted. An entry's older rows are recognized by their outdated version.
   */
  #entries: Entry[] = []
  #versions: number[] = []
  #count = 0

  touch(entry: Entry, version: number): void {
    const isNew = entry.newer === undefined && entry.older === undefined && this.newest !== entry
    // One change may touch an entry twice.
    if (entry.version === version && !isNew) return
    entry.version = version
    if (this.newest === entry) {
      this.#versions[this.#versions.length - 1] = version
      return
    }
    if (isNew) this.#count++
    this.#entries.push(entry)
    this.#versions.push(version)
    if (this.#entries.length > 2 * this.#count + staleEntriesMin) this.#compact()
    if (entry.newer !== undefined) entry.newer.older = entry.older
    if (entry.older !== undefined) entry.older.newer = entry.newer
    entry.newer = undefined
    entry.older = this.newest
    if (this.newest !== undefined) this.newest.newer = entry
    this.newest = entry
  }

  /** Entries with a version below `below`, newest first. */
  *below(below: number): Generator<Entry> {
    let [from, to] = [0, this.#versions.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if (this.#versions[middle]! < below) from = middle + 1
      else to = middle
    }
    for (let at = from - 1; at >= 0; at--) if (this.#isCurrent(at)) yield this.#entries[at]!
  }

  #isCurrent(at: number): boolean {
    return this.#entries[at]!.version === this.#versions[at]
  }

  #compact(): void {
    const current = this.#entries.filter((_, at) => this.#isCurrent(at))
    this.#entries = current
    this.#versions = current.map(({ version }) => version)
  }
}

const staleEntriesMin = 1_024

export class Board {
  readonly events: EventIndex
  readonly rooms = new Map<string, Room>()
  readonly roomList: Room[] = []
  readonly roomsByActivity = new ByActivity<Room>()
  readonly authors = new Authors()
  readonly handles = new Handles()
  readonly pages = new Names()
  readonly kinds = new Names()
  readonly #publicLists: boolean
  /** By identity, for those who are in a room. Most are in one: an array for each of them would take 50 bytes more. */
  readonly #roomsOf = new Map<string, Room | Room[]>()
  /** Number of the newest change applied. */
  change = 0

  /** `publicLists`: public rooms are listed by member, and their events and pages are listed, not just counted. */
  constructor(events = new EventIndex(), publicLists = true) {
    this.events = events
    this.#publicLists = publicLists
  }

  /** Applies one record; `key` is the 16-byte id of the command that caused it. */
  apply(record: BoardRecord, key: Uint8Array, place: Place): void {
    if (place.change > this.change) this.change = place.change
    switch (record.type) {
      case RecordType.roomCreated:
        this.#roomCreated(record, place)
        break
      case RecordType.event:
        this.#event(record, key, place)
        break
      case RecordType.handleClaimed:
        this.#handleClaimed(record, place)
        break
      case RecordType.act:
        // Every identity begins with its first accepted command. What it did is remembered by the parts of the state.
        if (record.by !== undefined) this.authors.seen(record.author, ownKey(record.by), record.at, place.change)
        break
    }
  }

  /** Whether a room is listed by member here, and its events are listed. */
  lists({ visibility }: Pick<Room, 'visibility'>): boolean {
    return this.#publicLists || visibility === 'private'
  }

  /** The rooms that this identity owns or is a member of, among those that are listed here; in no order. */
  roomsOf(identity: string): readonly Room[] {
    const found = this.#roomsOf.get(identity) ?? []
    return Array.isArray(found) ? found : [found]
  }

  /** Makes the identity a member. */
  admit(room: Room, identity: string): void {
    if (!isIn(room, identity)) this.#enter(room, identity)
    room.members.add(identity)
  }

  /** Ends the membership of the identity. */
  dismiss(room: Room, identity: string): void {
    room.moderators.delete(identity)
    if (room.members.delete(identity) && !isIn(room, identity)) this.#leave(room, identity)
  }

  /** Gives the room to the identity; the previous owner stays as a member. */
  transfer(room: Room, identity: string): void {
    this.dismiss(room, identity)
    if (room.owner !== undefined) room.members.add(room.owner)
    if (!isIn(room, identity)) this.#enter(room, identity)
    room.owner = identity
  }

  /** Adds a room that a record or a snapshot has. */
  add(room: Room): void {
    this.rooms.set(room.name, room)
    this.roomList.push(room)
    if (room.owner !== undefined) this.#enter(room, room.owner)
    for (const member of room.members) if (member !== room.owner) this.#enter(room, member)
  }

  page(slot: number): string {
    return this.pages.name(this.events.page(slot))
  }

  kind(slot: number): string {
    return this.kinds.name(this.events.kind(slot))
  }

  #roomCreated(record: RoomCreated, place: Place): void {
    const room: Room = {
      number: this.roomList.length,
      name: record.room,
      visibility: record.visibility,
      owner: record.owner === undefined ? undefined : hex(record.owner),
      members: new Set((record.members ?? []).map(hex)),
      moderators: new Set(),
      bans: new Map(),
      about: record.about,
      createdAt: record.at,
      events: this.#newList(record.visibility),
      pages: new Map(),
      threads: 0,
      updatedAt: record.at,
      version: 0,
      newer: undefined,
      older: undefined,
    }
    this.add(room)
    this.roomsByActivity.touch(room, place.change)
    if (record.by !== undefined && record.owner !== undefined)
      this.authors.seen(record.owner, ownKey(record.by), record.at, place.change)
  }

  #enter(room: Room, identity: string): void {
    if (!this.lists(room)) return
    const found = this.#roomsOf.get(identity)
    if (Array.isArray(found)) found.push(room)
    else this.#roomsOf.set(identity, found === undefined ? room : [found, room])
  }

  #leave(room: Room, identity: string): void {
    const rest = this.roomsOf(identity).filter((each) => each !== room)
    if (rest.length === 0) this.#roomsOf.delete(identity)
    else this.#roomsOf.set(identity, rest.length === 1 ? rest[0]! : rest)
  }

  #event(record: PostRecord, key: Uint8Array, place: Place): void {
    const room = this.rooms.get(record.room)
    if (room === undefined) throw new Error(`event in a room that no record created: ${record.room}`)
    const author = this.authors.seen(record.author, ownKey(record.by), record.at, place.change)
    const page = this.#page(room, record.page)
    const slot = this.events.add({
      id: key,
      shard: place.shard,
      place: place.seq,
      room: room.number,
      page: this.pages.number(record.page),
      kind: this.kinds.number(record.kind),
      author,
      seq: record.seq,
      at: record.at,
      root: record.root === undefined ? none : this.events.find(record.root),
      parent: record.reply === undefined ? none : this.events.find(record.reply),
      isEdit: record.original !== undefined,
      expires: record.expires ?? 0,
      change: place.change,
      leaf: place.leaf,
    })
    room.events.push(slot)
    room.updatedAt = record.at
    this.roomsByActivity.touch(room, place.change)
    if (record.original !== undefined) return
    this.authors.posts.push(author, slot)
    page.events.push(slot)
    page.count++
    page.last = slot
    page.updatedAt = record.at
    if (record.root === undefined) {
      room.threads++
      page.threads++
    }
  }

  #handleClaimed(record: HandleClaimed, place: Place): void {
    const author = this.authors.seen(record.author, record.key, record.at, place.change)
    this.authors.handles.set(author, record.handle)
    this.handles.set(record.handle, hex(record.author))
  }

  #newList(visibility: Visibility): GrowingSlots {
    return this.lists({ visibility }) ? new SlotList() : new CountedSlots()
  }

  #page(room: Room, name: string): Page {
    let page = room.pages.get(name)
    if (page === undefined) {
      page = { name, count: 0, threads: 0, last: none, updatedAt: 0, events: this.#newList(room.visibility) }
      room.pages.set(name, page)
    }
    return page
  }
}

function isIn({ owner, members }: Room, identity: string): boolean {
  return owner === identity || members.has(identity)
}

/** Kinds that are about something other than an event or a room. */
const ofSubjects: ReadonlySet<ChangeKind> = new Set(
  changeKinds.filter((kind) => kind === 'document.written' || kind === 'receiver.item' || kind.startsWith('work.')),
)

export type Change = {
  /** Change number, or journal number in a shard. */
  readonly position: number
  readonly kind: ChangeKind
  /** Number of the room, or `nowhere`. */
  readonly room: number
  /** Slot of the event it is about; for an edit, the slot of the edit. 0xffff_ffff if it is about something else. */
  readonly slot: number
  /** Id (32 hex) of the document, receive URL or work it is about, else ''. */
  readonly subject: string
  /** Unix seconds. */
  readonly at: number
}

export const nowhere = 0xffff_ffff

type PackedChanges = readonly [count: number, kind: Kept, about: Kept, others: PackedOthers]
type PackedOthers = readonly [count: number, Kept, Kept, Kept, Kept, subjects: readonly string[]]

const initialRows = 1024

/**
 * The changes in order: one row for every change that followers are notified of.
 *
 * The position of a row is the change number in the feed, and the journal number in a shard. Both only grow and are never
 * reused, so a position is a cursor that survives restarts. A row takes 5 bytes: its kind, and for a new post the slot of the
 * event, which has the rest. For any other kind, it is a row number in `Others`.
 */
export class Changes {
  readonly #events: EventIndex
  #count = 0
  #kind = new Uint8Array(initialRows)
  #about = new Uint32Array(initialRows)
  readonly #others = new Others()

  constructor(events: EventIndex) {
    this.#events = events
  }

  get count(): number {
    return this.#count
  }

  /** An event of this board was posted: the event itself has its room, time and change number. */
  posted(slot: number): void {
    this.#add('event.posted', slot)
  }

  add(kind: Exclude<ChangeKind, 'event.posted'>, change: Omit<Change, 'kind'>): void {
    this.#add(kind, this.#others.add(change))
  }

  at(row: number): Change {
    const kind = changeKinds[this.#kind[row]!]!
    const about = this.#about[row]!
    if (kind !== 'event.posted') return { kind, ...this.#others.at(about, ofSubjects.has(kind)) }
    const [room, at] = [this.#events.room(about), this.#events.at(about)]
    return { position: this.#positionOf(row), kind, room, slot: about, subject: '', at }
  }

  /** First row after this position, by binary search. */
  after(position: number): number {
    let low = 0
    let high = this.#count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#positionOf(middle) <= position) low = middle + 1
      else high = middle
    }
    return low
  }

  pack(columns: Columns): PackedChanges {
    const [kind, about] = [bytesOf(this.#kind, this.#count), bytesOf(this.#about, this.#count)]
    return [this.#count, columns.putGrowing(kind), columns.putGrowing(about), this.#others.pack(columns)]
  }

  /** Restores what `pack` returned. */
  restore([count, kind, about, others]: PackedChanges, columns: Columns): void {
    this.#count = count
    this.#kind = new Uint8Array(columns.take(kind, initialRows).buffer)
    this.#about = new Uint32Array(columns.take(about, initialRows * 4).buffer)
    this.#others.restore(others, columns)
  }

  #add(kind: ChangeKind, about: number): void {
    if (this.#count === this.#kind.length) {
      this.#kind = grown(this.#kind, new Uint8Array(this.#count * 2))
      this.#about = grown(this.#about, new Uint32Array(this.#count * 2))
    }
    this.#kind[this.#count] = changeKinds.indexOf(kind)
    this.#about[this.#count++] = about
  }

  #positionOf(row: number): number {
    const about = this.#about[row]!
    return changeKinds[this.#kind[row]!] === 'event.posted' ? this.#events.change(about) : this.#others.position(about)
  }
}

/** Details of changes other than new events. Columns of typed arrays, 20 bytes a row. */
class Others {
  #count = 0
  #position = new Float64Array(initialRows)
  #room = new Uint32Array(initialRows)
  #about = new Uint32Array(initialRows)
  #at = new Uint32Array(initialRows)
  /** Ids of subjects other than events. */
  readonly #subjects: string[] = []

  /** Returns the number of the row. */
  add(change: Omit<Change, 'kind'>): number {
    if (this.#count === this.#room.length) this.#grow()
    const row = this.#count++
    this.#position[row] = change.position
    this.#room[row] = change.room
    this.#about[row] = change.subject === '' ? change.slot : this.#subjects.push(change.subject) - 1
    this.#at[row] = change.at
    return row
  }

  at(row: number, hasSubject: boolean): Omit<Change, 'kind'> {
    return {
      position: this.#position[row]!,
      room: this.#room[row]!,
      slot: hasSubject ? nowhere : this.#about[row]!,
      subject: hasSubject ? this.#subjects[this.#about[row]!]! : '',
      at: this.#at[row]!,
    }
  }

  position(row: number): number {
    return this.#position[row]!
  }

  pack(columns: Columns): PackedOthers {
    const keep = (column: Float64Array | Uint32Array) => columns.putGrowing(bytesOf(column, this.#count))
    const kept = [keep(this.#position), keep(this.#room), keep(this.#about), keep(this.#at)] as const
    return [this.#count, ...kept, this.#subjects]
  }

  restore([count, position, room, about, at, subjects]: PackedOthers, columns: Columns): void {
    const bufferOf = (kept: Kept, bytesEach: number) => columns.take(kept, initialRows * bytesEach).buffer
    this.#count = count
    this.#position = new Float64Array(bufferOf(position, 8))
    this.#room = new Uint32Array(bufferOf(room, 4))
    this.#about = new Uint32Array(bufferOf(about, 4))
    this.#at = new Uint32Array(bufferOf(at, 4))
    for (const subject of subjects) this.#subjects.push(subject)
  }

  #grow(): void {
    const rows = this.#room.length * 2
    this.#position = grown(this.#position, new Float64Array(rows))
    this.#room = grown(this.#room, new Uint32Array(rows))
    this.#about = grown(this.#about, new Uint32Array(rows))
    this.#at = grown(this.#at, new Uint32Array(rows))
  }
}

/** The row of a change to an event. */
export function eventChange(board: Board, slot: number, position: number, at: number): Omit<Change, 'kind'> {
  return { position, room: board.events.room(slot), slot, subject: '', at }
}

/**
 * From format 15 on, arrays may hold ids and links added while they were written, which a reader of 14 would mistake for its
 * own. Formats before 14 have full event columns, those up to 9 have identities one by one, and some lack things that replay
 * restores.
 */
const snapshotFormat = 15
const formatsRead: readonly number[] = [14, snapshotFormat]
const codec = new Packr({ useRecords: false })

/** `count`: for slots that are only counted. */
type PackedSlots = Kept | { readonly count: number }
type PackedPage = readonly [name: string, threads: number, last: number, updatedAt: number, events: PackedSlots]
type PackedRoom = {
  readonly name: string
  readonly visibility: Visibility
  readonly owner: string | null
  readonly members: readonly string[]
  readonly moderators: readonly string[]
  /** Absent in snapshots of older releases. */
  readonly bans?: readonly (readonly [identity: string, ban: Ban])[]
  readonly about: string | null
  readonly at: number
  readonly updated: number
  readonly version: number
  readonly threads: number
  readonly events: PackedSlots
  readonly pages: readonly PackedPage[]
}
type Packed = {
  readonly format: number
  readonly change: number
  readonly events: PackedEvents
  readonly pages: readonly string[]
  readonly kinds: readonly string[]
  readonly rooms: readonly PackedRoom[]
  readonly authors: PackedAuthors
  readonly more: unknown
}

/**
 * A board as bytes and back: a thread writes it so that its next start need not replay from the first frame. It is only an
 * optimization: if anything does not match, it is discarded and the journal is replayed.
 *
 * The bytes are one msgpack map; event columns and slot lists are raw little-endian arrays, inside it or in columns
 * (columns.ts).
 *
 * `more`: whatever else the thread needs to continue, anything msgpack can hold.
 */
export function packBoard(board: Board, more: unknown, columns: Columns): Buffer {
  const packed: Packed = {
    format: snapshotFormat,
    change: board.change,
    events: board.events.pack(columns),
    pages: board.pages.all(),
    kinds: board.kinds.all(),
    rooms: board.roomList.map((room) => packRoom(room, columns)),
    authors: board.authors.pack(columns),
    more,
  }
  return encode(codec, packed)
}

/** How a board is stored in memory. */
export type Keeping = {
  /** Where its old events are; absent if all are in memory. */
  readonly shelf?: EventShelf | undefined
  /** As in the constructor of the board. */
  readonly publicLists?: boolean
}

/** Undefined if the bytes have another format, or the shelf lacks a part. */
export function unpackBoard(
  bytes: Uint8Array,
  columns: Columns,
  { shelf, publicLists }: Keeping = {},
): { board: Board; more: unknown } | undefined {
  const packed = codec.unpack(bytes) as Packed
  if (!formatsRead.includes(packed.format)) return undefined
  const events = EventIndex.of(packed.events, columns, shelf)
  if (events === undefined) return undefined
  const board = new Board(events, publicLists)
  board.change = packed.change
  for (const name of packed.pages) board.pages.number(name)
  for (const name of packed.kinds) board.kinds.number(name)
  for (const room of packed.rooms) board.add(unpackRoom(room, board.roomList.length, columns))
  board.authors.restore(packed.authors, columns)
  for (const [number, handle] of board.authors.handles) board.handles.set(handle, board.authors.idOf(number))
  for (const room of [...board.roomList].sort((a, b) => a.version - b.version))
    board.roomsByActivity.touch(room, room.version)
  return { board, more: packed.more }
}

function packRoom(room: Room, columns: Columns): PackedRoom {
  return {
    name: room.name,
    visibility: room.visibility,
    owner: room.owner ?? null,
    members: [...room.members],
    moderators: [...room.moderators],
    bans: [...room.bans],
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
    bans: new Map(packed.bans),
    about: packed.about ?? undefined,
    createdAt: packed.at,
    updatedAt: packed.updated,
    version: packed.version,
    threads: packed.threads,
    events: slotsOf(packed.events, columns),
    pages: new Map(packed.pages.map((page): [string, Page] => [page[0], unpackPage(page, columns)])),
    newer: undefined,
    older: undefined,
  }
}

function slotsOf(packed: PackedSlots, columns: Columns): GrowingSlots {
  const isCounted = typeof packed === 'object' && 'count' in packed
  return isCounted ? new CountedSlots(packed.count) : SlotList.of(packed, columns)
}

function unpackPage([name, threads, last, updatedAt, slots]: PackedPage, columns: Columns): Page {
  const events = slotsOf(slots, columns)
  return { name, count: events.length, threads, last, updatedAt, events }
}

/** The events of a room, or of one of its pages. */
export function slotsIn(room: Room, page: string | undefined): Slots {
  return (page === undefined ? room.events : room.pages.get(page)?.events) ?? noSlots
}

/** The events of all rooms. */
export function allSlots({ events: { count } }: Board): Slots {
  return { length: count, at: (position) => position, lowerBound: (slot) => Math.min(slot, count) }
}
