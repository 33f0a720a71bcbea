/**
 * The event index: what memory keeps of each event, in columns of typed arrays, found by id.
 *
 * Bodies stay in the segments; a slot here says where. One slot costs 52 to 66 bytes, plus 4 to 8 bytes of hash table
 * and 4 bytes in its room's list. Slots are never freed:
 * a place in a room is forever, only the text can go.
 */

import {
  bytesOf,
  type Columns,
  grown,
  type Kept,
  keepNarrow,
  longer,
  type Narrow,
  takeNarrow,
  wideEnough,
} from './columns.ts'
import { IdTable, none, type PackedIds } from './id-table.ts'
import { lowerBound, type Slots } from './slot-lists.ts'

export { none }

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
  /** Number in the order of everything public; in a shard that of the frame. */
  readonly change: number
  /** Leaf index in the public log; `none` where there is no leaf. */
  readonly leaf: number
}

const initialCapacity = 1024

const wideNames = ['place', 'author', 'seq', 'at', 'root', 'parent', 'change', 'next', 'tail'] as const
/** Of small numbers, or mostly zeros. */
const narrowNames = ['shard', 'room', 'page', 'kind', 'expires', 'leaf'] as const

export type PackedEvents = readonly [ids: PackedIds, wide: readonly Kept[], narrow: readonly Kept[]]

export class EventIndex {
  readonly #ids = new IdTable(16)
  place = new Uint32Array(initialCapacity)
  author = new Uint32Array(initialCapacity)
  seq = new Uint32Array(initialCapacity)
  at = new Uint32Array(initialCapacity)
  root = new Uint32Array(initialCapacity)
  parent = new Uint32Array(initialCapacity)
  /** The same array as `place` while each of its numbers is. */
  change = this.place
  /** Next event of the same thread, by slot; `none` at its end. */
  next = new Uint32Array(initialCapacity)
  /** On a root: the newest event of its thread. On a reply: the one before it in the thread. */
  tail = new Uint32Array(initialCapacity)
  shard: Narrow = new Uint8Array(initialCapacity)
  room: Narrow = new Uint8Array(initialCapacity)
  page: Narrow = new Uint8Array(initialCapacity)
  kind: Narrow = new Uint8Array(initialCapacity)
  expires: Narrow = new Uint8Array(initialCapacity)
  leaf: Narrow = new Uint8Array(initialCapacity)

  get count(): number {
    return this.#ids.count
  }

  /** Everything, for a snapshot, cut to the slots in use. */
  pack(columns: Columns): PackedEvents {
    const wide = wideNames.map((name) => {
      const bytes = bytesOf(this[name], name === 'change' && this.change === this.place ? 0 : this.count)
      return name === 'next' || name === 'tail' ? columns.put(bytes) : columns.putGrowing(bytes)
    })
    return [this.#ids.pack(columns), wide, narrowNames.map((name) => keepNarrow(this[name], this.count, columns))]
  }

  /** The index that was packed. */
  static of([ids, wide, narrow]: PackedEvents, columns: Columns): EventIndex {
    const index = new EventIndex()
    index.#ids.restore(ids, columns)
    for (const [n, name] of wideNames.entries()) {
      const { buffer, length } = columns.take(wide[n]!, initialCapacity * 4)
      index[name] = name === 'change' && length === 0 ? index.place : new Uint32Array(buffer)
    }
    for (const [n, name] of narrowNames.entries())
      index[name] = takeNarrow(narrow[n]!, index.count, initialCapacity, columns)
    return index
  }

  /** Slot of the event with this 16-byte id, or `none`. */
  find(id: Uint8Array): number {
    return this.#ids.find(id)
  }

  /** Adds an event whose id is not there yet, at the end of its thread; returns its slot. */
  add(event: NewSlot): number {
    if (this.count === this.place.length) this.#grow()
    const slot = this.#ids.add(event.id)
    this.place[slot] = event.place
    this.author[slot] = event.author
    this.seq[slot] = event.seq
    this.at[slot] = event.at
    this.root[slot] = event.root
    this.parent[slot] = event.parent
    if (event.change !== event.place && this.change === this.place) this.change = this.place.slice()
    this.change[slot] = event.change
    for (const name of narrowNames) this.#setNarrow(name, slot, event[name])
    this.next[slot] = none
    this.tail[slot] = slot
    if (event.root !== none && !event.isEdit) {
      const before = this.tail[event.root]!
      this.next[before] = slot
      this.tail[slot] = before
      this.tail[event.root] = slot
    }
    return slot
  }

  /** The 16-byte id of a slot, as a view that is good until the next add. */
  id(slot: number): Buffer {
    return this.#ids.id(slot)
  }

  /** Slot of the first event of its thread: itself, if it began one. */
  rootOf(slot: number): number {
    const root = this.root[slot]!
    return root === none ? slot : root
  }

  /** Slots of events that expire. Unix seconds need a wide column: while it is the narrowest, there are none. */
  *expiring(): Generator<number> {
    if (this.expires.BYTES_PER_ELEMENT === 1) return
    for (let slot = 0; slot < this.count; slot++) if (this.expires[slot] !== 0) yield slot
  }

  idHex(slot: number): string {
    return this.#ids.hex(slot)
  }

  #grow(): void {
    const capacity = this.place.length * 2
    const isPlace = this.change === this.place
    for (const name of wideNames)
      if (name !== 'change' || !isPlace) this[name] = grown(this[name], new Uint32Array(capacity))
    if (isPlace) this.change = this.place
    for (const name of narrowNames) this[name] = longer(this[name], capacity)
  }

  #setNarrow(name: (typeof narrowNames)[number], slot: number, value: number): void {
    if (value === 0) return
    this[name] = wideEnough(this[name], value)
    this[name][slot] = value
  }
}

/** A list of slots that only grows. */
export class SlotList implements Slots {
  #slots = new Uint32Array(8)
  length = 0

  push(slot: number): void {
    if (this.length === this.#slots.length) this.#slots = grown(this.#slots, new Uint32Array(this.length * 2))
    this.#slots[this.length++] = slot
  }

  at(position: number): number {
    return this.#slots[position]!
  }

  pack(columns: Columns): Kept {
    return columns.putGrowing(bytesOf(this.#slots, this.length))
  }

  /** The list that was packed. */
  static of(kept: Kept, columns: Columns): SlotList {
    const list = new SlotList()
    const { buffer, length } = columns.take(kept, 32)
    list.#slots = new Uint32Array(buffer)
    list.length = length / 4
    return list
  }

  lowerBound(slot: number): number {
    return lowerBound(this, slot)
  }
}

/** Strings that repeat (pages, kinds), numbered from 0. */
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
