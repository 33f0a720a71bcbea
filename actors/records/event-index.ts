/**
 * The event index: what memory keeps of each event, in columns of typed arrays, found by id.
 *
 * Bodies stay in the segments; a slot here says where. One slot costs 78 bytes, plus 4 to 8 bytes of hash table
 * (open addressing, linear probing, at most 3/4 full) and 4 bytes in its room's list. Slots are never freed:
 * a place in a room is forever, only the text can go.
 */

import { randomInt } from 'node:crypto'
import { bytesOf, type Columns, type Kept } from './columns.ts'

export const none = 0xffff_ffff

type NewSlot = {
  /** 16 bytes. */
  readonly id: Uint8Array
  /** Which journal holds the body. */
  readonly shard: number
  /** Sequence number of the frame in that journal. */
  readonly place: number
  readonly room: number
  readonly page: number
  readonly kind: number
  readonly author: number
  readonly seq: number
  readonly at: number
  /** Slot of the thread's root; `none` on a root. */
  readonly root: number
  /** Slot of the event replied to, or `none`. */
  readonly parent: number
  /** A later version of another event: it belongs to the thread and is not in its list. */
  readonly isEdit: boolean
  /** Unix seconds, 0 = never. */
  readonly expires: number
  /** Number in the order of everything public, 0 in private rooms. */
  readonly change: number
  /** Leaf index in the public log; `none` where there is no leaf. */
  readonly leaf: number
}

const initialCapacity = 1024

const columnNames = [
  'shard',
  'place',
  'room',
  'page',
  'kind',
  'author',
  'seq',
  'at',
  'root',
  'parent',
  'expires',
  'change',
  'leaf',
  'next',
  'tail',
] as const

export type PackedEvents = readonly [count: number, seed: number, ids: Kept, table: Kept, columns: readonly Kept[]]

export class EventIndex {
  #count = 0
  #ids: Buffer = Buffer.alloc(initialCapacity * 16)
  shard = new Uint16Array(initialCapacity)
  place = new Uint32Array(initialCapacity)
  room = new Uint32Array(initialCapacity)
  page = new Uint32Array(initialCapacity)
  kind = new Uint32Array(initialCapacity)
  author = new Uint32Array(initialCapacity)
  seq = new Uint32Array(initialCapacity)
  at = new Uint32Array(initialCapacity)
  root = new Uint32Array(initialCapacity)
  parent = new Uint32Array(initialCapacity)
  expires = new Uint32Array(initialCapacity)
  change = new Float64Array(initialCapacity)
  leaf = new Uint32Array(initialCapacity)
  /** Next event of the same thread, by slot; `none` at its end. */
  next = new Uint32Array(initialCapacity)
  /** On a root: the newest event of its thread. On a reply: the one before it in the thread. */
  tail = new Uint32Array(initialCapacity)
  #table = new Uint32Array(initialCapacity * 2).fill(none)
  #seed = processSeed

  get count(): number {
    return this.#count
  }

  /** Everything, for a snapshot, cut to the slots in use. */
  pack(columns: Columns): PackedEvents {
    const count = this.#count
    const ids = columns.put(this.#ids.subarray(0, count * 16))
    const table = columns.put(bytesOf(this.#table, this.#table.length))
    return [count, this.#seed, ids, table, columnNames.map((name) => columns.put(bytesOf(this[name], count)))]
  }

  /** The index that was packed. */
  static of([count, seed, ids, table, kept]: PackedEvents, columns: Columns): EventIndex {
    const index = new EventIndex()
    const bufferOf = (n: number, bytesEach: number) => columns.take(kept[n]!, initialCapacity * bytesEach).buffer
    index.#count = count
    index.#seed = seed
    index.#ids = Buffer.from(columns.take(ids, initialCapacity * 16).buffer)
    index.#table = new Uint32Array(columns.take(table).buffer)
    for (const [n, name] of columnNames.entries()) {
      if (name === 'shard') index.shard = new Uint16Array(bufferOf(n, 2))
      else if (name === 'change') index.change = new Float64Array(bufferOf(n, 8))
      else index[name] = new Uint32Array(bufferOf(n, 4))
    }
    return index
  }

  /** Slot of the event with this 16-byte id, or `none`. Ids are hashes, so their first bytes are the hash of the table. */
  find(id: Uint8Array): number {
    const mask = this.#table.length - 1
    let cell = hashOf(this.#seed, id, 0) & mask
    for (;;) {
      const slot = this.#table[cell]!
      if (slot === none) return none
      if (this.#equals(slot, id)) return slot
      cell = (cell + 1) & mask
    }
  }

  /** Adds an event whose id is not there yet, at the end of its thread; returns its slot. */
  add(event: NewSlot): number {
    if (this.#count === this.place.length) this.#grow()
    const slot = this.#count++
    this.#ids.set(event.id, slot * 16)
    this.shard[slot] = event.shard
    this.place[slot] = event.place
    this.room[slot] = event.room
    this.page[slot] = event.page
    this.kind[slot] = event.kind
    this.author[slot] = event.author
    this.seq[slot] = event.seq
    this.at[slot] = event.at
    this.root[slot] = event.root
    this.parent[slot] = event.parent
    this.expires[slot] = event.expires
    this.change[slot] = event.change
    this.leaf[slot] = event.leaf
    this.next[slot] = none
    this.tail[slot] = slot
    if (event.root !== none && !event.isEdit) {
      const before = this.tail[event.root]!
      this.next[before] = slot
      this.tail[slot] = before
      this.tail[event.root] = slot
    }
    this.#insert(slot)
    return slot
  }

  /** The 16-byte id of a slot, as a view that is good until the next add. */
  id(slot: number): Buffer {
    return this.#ids.subarray(slot * 16, slot * 16 + 16)
  }

  /** Slot of the first event of its thread: itself, if it began one. */
  rootOf(slot: number): number {
    const root = this.root[slot]!
    return root === none ? slot : root
  }

  idHex(slot: number): string {
    return this.#ids.toString('hex', slot * 16, slot * 16 + 16)
  }

  #equals(slot: number, id: Uint8Array): boolean {
    const base = slot * 16
    for (let i = 0; i < 16; i++) if (this.#ids[base + i] !== id[i]) return false
    return true
  }

  #insert(slot: number): void {
    if (this.#count * 4 > this.#table.length * 3) {
      this.#table = new Uint32Array(this.#table.length * 2).fill(none)
      for (let each = 0; each < this.#count; each++) this.#place(each)
      return
    }
    this.#place(slot)
  }

  #place(slot: number): void {
    const mask = this.#table.length - 1
    let cell = hashOf(this.#seed, this.#ids, slot * 16) & mask
    while (this.#table[cell] !== none) cell = (cell + 1) & mask
    this.#table[cell] = slot
  }

  #grow(): void {
    const capacity = this.place.length * 2
    const ids = Buffer.alloc(capacity * 16)
    ids.set(this.#ids)
    this.#ids = ids
    this.shard = grown(this.shard, new Uint16Array(capacity))
    this.place = grown(this.place, new Uint32Array(capacity))
    this.room = grown(this.room, new Uint32Array(capacity))
    this.page = grown(this.page, new Uint32Array(capacity))
    this.kind = grown(this.kind, new Uint32Array(capacity))
    this.author = grown(this.author, new Uint32Array(capacity))
    this.seq = grown(this.seq, new Uint32Array(capacity))
    this.at = grown(this.at, new Uint32Array(capacity))
    this.root = grown(this.root, new Uint32Array(capacity))
    this.parent = grown(this.parent, new Uint32Array(capacity))
    this.expires = grown(this.expires, new Uint32Array(capacity))
    this.change = grown(this.change, new Float64Array(capacity))
    this.leaf = grown(this.leaf, new Uint32Array(capacity))
    this.next = grown(this.next, new Uint32Array(capacity))
    this.tail = grown(this.tail, new Uint32Array(capacity))
  }
}

/** Signers choose ids by trying nonces: a secret seed keeps these from crowding one cell. A snapshot has it, and the table with it. */
const processSeed = randomInt(0x1_0000_0000 - 1)

function hashOf(seed: number, bytes: Uint8Array, at: number): number {
  const first = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
  const second = bytes[at + 4]! | (bytes[at + 5]! << 8) | (bytes[at + 6]! << 16) | (bytes[at + 7]! << 24)
  const mixed = Math.imul(first ^ seed, 0x9e37_79b1) ^ second
  return (Math.imul(mixed ^ (mixed >>> 15), 0x85eb_ca6b) ^ (mixed >>> 13)) >>> 0
}

function grown<Column extends Uint16Array | Uint32Array | Float64Array>(from: Column, to: Column): Column {
  to.set(from)
  return to
}

/** A list of slots that only grows. */
export class SlotList {
  #slots = new Uint32Array(8)
  length = 0

  push(slot: number): void {
    if (this.length === this.#slots.length) this.#slots = grown(this.#slots, new Uint32Array(this.length * 2))
    this.#slots[this.length++] = slot
  }

  at(position: number): number {
    return this.#slots[position]!
  }

  has(slot: number): boolean {
    const position = this.lowerBound(slot)
    return position < this.length && this.at(position) === slot
  }

  pack(columns: Columns): Kept {
    return columns.put(bytesOf(this.#slots, this.length))
  }

  /** The list that was packed. */
  static of(kept: Kept, columns: Columns): SlotList {
    const list = new SlotList()
    const { buffer, length } = columns.take(kept, 32)
    list.#slots = new Uint32Array(buffer)
    list.length = length / 4
    return list
  }

  /** Position of the first slot whose value is at least `value`; the list is sorted, because slots are given out in order. */
  lowerBound(value: number): number {
    let low = 0
    let high = this.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#slots[middle]! < value) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Strings that repeat (rooms, pages, kinds, authors), numbered from 0. */
export class Names {
  readonly #numbers = new Map<string, number>()
  readonly #names: string[] = []

  number(name: string): number {
    const known = this.#numbers.get(name)
    if (known !== undefined) return known
    const next = this.#names.push(name) - 1
    this.#numbers.set(name, next)
    return next
  }

  /** The number of a name that is already known, or undefined: asking adds nothing. */
  find(name: string): number | undefined {
    return this.#numbers.get(name)
  }

  get count(): number {
    return this.#names.length
  }

  name(number: number): string {
    return this.#names[number]!
  }

  /** All names by number. */
  all(): readonly string[] {
    return this.#names
  }
}
