/**
 * The board in memory: rooms, pages, threads, authors and handles, as the records say.
 *
 * One state and one `apply`, used twice: a shard keeps one for the rooms it decides over, the feed keeps one
 * for everything public. Replay is `apply` and nothing else.
 */

import { hex } from '../kernel/hex.ts'
import { EventIndex, Names, none, SlotList } from './event-index.ts'
import { Handles } from './handles.ts'
import {
  type BoardRecord,
  type HandleClaimed,
  ownKey,
  type PostRecord,
  RecordType,
  type RoomCreated,
} from './record.ts'

export type Visibility = 'public' | 'private'

/** Anything that is listed by latest activity: a doubly linked list, newest first. */
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
  readonly events: SlotList
}

export interface Room extends Active<Room> {
  readonly number: number
  readonly name: string
  readonly visibility: Visibility
  /** Undefined: the operator owns it. */
  owner: string | undefined
  /** All members but the owner, moderators included. */
  readonly members: Set<string>
  /** At most 16, all of them members. */
  readonly moderators: Set<string>
  readonly about: string | undefined
  readonly createdAt: number
  readonly events: SlotList
  readonly pages: Map<string, Page>
  threads: number
  updatedAt: number
}

export interface Author extends Active<Author> {
  readonly number: number
  readonly id: string
  /** base64url of the public key. */
  key: string
  handle: string | undefined
  readonly createdAt: number
  lastSeen: number
  readonly events: SlotList
}

/** Where a record lies, and its number in the order of everything public (in a shard: the journal's own number). */
export type Place = { readonly shard: number; readonly seq: number; readonly change: number; readonly leaf: number }

export class ByActivity<Entry extends Active<Entry>> {
  newest: Entry | undefined
  /**
   * The same again, oldest first, to find a place in it without a walk. Versions only grow, so both are in order. Where an entry stood
   * before, it has another version now.
   */
  #entries: Entry[] = []
  #versions: number[] = []
  #count = 0

  touch(entry: Entry, version: number): void {
    const isNew = entry.newer === undefined && entry.older === undefined && this.newest !== entry
    // One change may touch it twice.
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

  /** Newest first, those whose version is below `below`. */
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
  readonly authors = new Map<string, Author>()
  readonly authorList: Author[] = []
  readonly authorsByActivity = new ByActivity<Author>()
  readonly handles = new Handles()
  readonly pages = new Names()
  readonly kinds = new Names()
  /** Number of the newest change applied. */
  change = 0

  constructor(events = new EventIndex()) {
    this.events = events
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
        // Who acts exists: an identity begins with its first accepted command. What it did is kept by the parts of the state.
        if (record.by !== undefined) this.#seen(hex(record.author), ownKey(record.by), record.at, place)
        break
    }
  }

  page(slot: number): string {
    return this.pages.name(this.events.page[slot]!)
  }

  kind(slot: number): string {
    return this.kinds.name(this.events.kind[slot]!)
  }

  #roomCreated(record: RoomCreated, place: Place): void {
    const room: Room = {
      number: this.roomList.length,
      name: record.room,
      visibility: record.visibility,
      owner: record.owner === undefined ? undefined : hex(record.owner),
      members: new Set((record.members ?? []).map(hex)),
      moderators: new Set(),
      about: record.about,
      createdAt: record.at,
      events: new SlotList(),
      pages: new Map(),
      threads: 0,
      updatedAt: record.at,
      version: 0,
      newer: undefined,
      older: undefined,
    }
    this.rooms.set(record.room, room)
    this.roomList.push(room)
    this.roomsByActivity.touch(room, place.change)
    if (record.by !== undefined && record.owner !== undefined)
      this.#seen(hex(record.owner), ownKey(record.by), record.at, place)
  }

  #event(record: PostRecord, key: Uint8Array, place: Place): void {
    const room = this.rooms.get(record.room)
    if (room === undefined) throw new Error(`event in a room that no record created: ${record.room}`)
    const author = this.#seen(hex(record.author), ownKey(record.by), record.at, place)
    const page = this.#page(room, record.page)
    const slot = this.events.add({
      id: key,
      shard: place.shard,
      place: place.seq,
      room: room.number,
      page: this.pages.number(record.page),
      kind: this.kinds.number(record.kind),
      author: author.number,
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
    author.events.push(slot)
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
    const author = this.#seen(hex(record.author), record.key, record.at, place)
    author.handle = record.handle
    this.handles.set(record.handle, author.id)
  }

  #seen(id: string, key: Uint8Array, at: number, place: Place): Author {
    let author = this.authors.get(id)
    if (author === undefined) {
      author = {
        number: this.authorList.length,
        id,
        key: Buffer.from(key).toString('base64url'),
        handle: undefined,
        createdAt: at,
        lastSeen: at,
        events: new SlotList(),
        version: 0,
        newer: undefined,
        older: undefined,
      }
      this.authors.set(id, author)
      this.authorList.push(author)
    }
    author.lastSeen = at
    this.authorsByActivity.touch(author, place.change)
    return author
  }

  #page(room: Room, name: string): Page {
    let page = room.pages.get(name)
    if (page === undefined) {
      page = { name, count: 0, threads: 0, last: none, updatedAt: 0, events: new SlotList() }
      room.pages.set(name, page)
    }
    return page
  }
}
