/**
 * The event index: what stays in memory of each event, in columns of typed arrays, looked up by id.
 *
 * Bodies stay in the segments; a slot says where. A slot costs 52 to 66 bytes, plus 6 to 8 bytes of hash table and 4 bytes in
 * its room's list. With a shelf, old events are moved to it, and their slots cost 2 bytes each, or more if the event expires or
 * has a leaf. Slots are never freed: an event keeps its place in the room permanently, and only its text can be removed.
 */

import { keyWords, shelvedRows } from '../../storage/shelved-rows.ts'
import { capacityFor } from '../../storage/snapshot.ts'
import {
  bytesOf,
  type Columns,
  Doubling,
  grown,
  type Kept,
  keepNarrow,
  longer,
  type Narrow,
  takeNarrow,
  widened,
} from './columns.ts'
import { IdTable, none, type PackedIds } from './id-table.ts'
import { type EventShelf, OldEvents, type OldFile, oldColumns, oldPlan, type PackedOld } from './old-events.ts'
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
  /** A later version of another event: it belongs to the thread but is not in the thread's list. */
  readonly isEdit: boolean
  /** Unix seconds, 0 = never. */
  readonly expires: number
  /** Change number in everything public; in a shard, the frame number. */
  readonly change: number
  /** Leaf index in the public log; `none` if there is no leaf. */
  readonly leaf: number
}

const initialCapacity = 1024

const wideNames = ['place', 'author', 'seq', 'at', 'root', 'parent', 'next', 'tail'] as const
/** Columns of small numbers. */
const narrowNames = ['room', 'page', 'kind'] as const

export type PackedEvents = readonly [
  ids: PackedIds,
  wide: readonly Kept[],
  narrow: readonly Kept[],
  /** Shards, expiry times, leaves: mostly zeros, which take no memory. */
  sparse: readonly Kept[],
  /** Null if it equals `place`. */
  change: Kept | null,
  /** `linked`: links of slots below it are stored with the old events. */
  old: readonly [linked: number, PackedOld] | null,
]

/** Columns of the events that are in memory, starting at slot `from`. */
class Recent {
  readonly from: number
  ids = new IdTable(16)
  place = new Uint32Array(initialCapacity)
  author = new Uint32Array(initialCapacity)
  seq = new Uint32Array(initialCapacity)
  at = new Uint32Array(initialCapacity)
  root = new Uint32Array(initialCapacity)
  parent = new Uint32Array(initialCapacity)
  next = new Uint32Array(initialCapacity)
  tail = new Uint32Array(initialCapacity)
  room: Narrow = new Uint8Array(initialCapacity)
  page: Narrow = new Uint8Array(initialCapacity)
  kind: Narrow = new Uint8Array(initialCapacity)
  #longer: Doubling<Uint32Array<ArrayBuffer>> | undefined

  constructor(from: number) {
    this.from = from
  }

  /** The columns without the first `count` events; `ids` holds the ids of the others. */
  after(count: number, ids: IdTable): Recent {
    const later = new Recent(this.from + count)
    const left = this.ids.count - count
    const capacity = Math.max(initialCapacity, capacityFor(left))
    later.ids = ids
    for (const name of wideNames)
      later[name] = grown(this[name].subarray(count, count + left), new Uint32Array(capacity))
    for (const name of narrowNames) later[name] = longer(this[name].subarray(count, count + left), capacity)
    return later
  }

  /** Ensures capacity for one more event. */
  ensureCapacity(): void {
    const rows = this.place.length
    const isFull = this.ids.count === rows
    if (!isFull && !Doubling.isDue(this.ids.count, rows)) return
    const wide = wideNames.map((name) => this[name])
    this.#longer ??= new Doubling(wide, rows, (length) => new Uint32Array(length))
    if (!isFull) return this.#longer.copySome(this.ids.count)
    for (const [n, column] of this.#longer.finish().entries()) this[wideNames[n]!] = column
    for (const name of narrowNames) this[name] = longer(this[name], 2 * rows)
    this.#longer = undefined
  }

  /** Ends every thread at the last event in this snapshot: links to later ones may have been added while it was written. */
  relink(): void {
    const { from, next, tail, root } = this
    const { count } = this.ids
    const end = from + count
    let hasLater = false
    for (let number = 0; number < count; number++) {
      if (next[number]! >= end) next[number] = none
      if (tail[number]! < end) continue
      tail[number] = from + number
      hasLater = true
    }
    if (!hasLater) return
    for (let number = 0; number < count; number++) {
      const of = root[number]!
      // A version of a post is in no list: its tail is itself.
      if (of === none || of < from || tail[number] === from + number) continue
      tail[of - from] = from + number
    }
  }

  setLink(column: 'next' | 'tail', number: number, to: number): void {
    this[column][number] = to
    if (this.#longer !== undefined && number < this.#longer.copied)
      this.#longer.columns[wideNames.indexOf(column)]![number] = to
  }
}

export class EventIndex {
  readonly #old: OldEvents | undefined
  #recent = new Recent(0)
  /** One per event; undefined while each number equals that of `place`. */
  #change: Uint32Array | undefined
  #shard: Narrow = new Uint8Array(initialCapacity)
  #expires: Narrow = new Uint8Array(initialCapacity)
  #leaf: Narrow = new Uint8Array(initialCapacity)
  /** Links of slots below this one are stored with the old events: those events are old or were to be shelved. */
  #linked = 0
  #isShelving = false
  /** At this many events, the next batch is shelved. */
  #shelvesAt: number

  /** `shelf`: where old events go; without it, all events stay in memory. */
  constructor(shelf?: EventShelf) {
    this.#old = shelf && new OldEvents(shelf)
    this.#shelvesAt = shelf === undefined ? Number.POSITIVE_INFINITY : 2 * shelf.eventsEach
  }

  get count(): number {
    return this.#recent.from + this.#recent.ids.count
  }

  /** Everything, for a snapshot, cut to the slots in use. */
  pack(columns: Columns): PackedEvents {
    const recent = this.#recent
    const { ids } = recent
    // Links may change during the write: `relink` undoes what was added later.
    const wide = wideNames.map((name) => columns.putGrowing(bytesOf(recent[name], ids.count)))
    const narrow = narrowNames.map((name) => keepNarrow(recent[name], ids.count, columns))
    const sparse = [this.#shard, this.#expires, this.#leaf].map((column) => keepNarrow(column, this.count, columns))
    const change = this.#change === undefined ? null : columns.putGrowing(bytesOf(this.#change, this.count))
    const old = this.#old === undefined ? null : ([this.#linked, this.#old.pack(columns)] as const)
    return [ids.pack(columns), wide, narrow, sparse, change, old]
  }

  /** Restores a packed index. Undefined if the shelf lacks a part of it. */
  static of(
    [ids, wide, narrow, sparse, change, old]: PackedEvents,
    columns: Columns,
    shelf?: EventShelf,
  ): EventIndex | undefined {
    const index = new EventIndex(shelf)
    if (old !== null) {
      const [linked, packed] = old
      if (index.#old?.restore(packed, columns) !== true) return undefined
      index.#linked = linked
    }
    const recent = new Recent(index.#old?.end ?? 0)
    index.#recent = recent
    recent.ids.restore(ids, columns)
    for (const [n, name] of wideNames.entries())
      recent[name] = new Uint32Array(columns.take(wide[n]!, initialCapacity * 4).buffer)
    recent.relink()
    for (const [n, name] of narrowNames.entries())
      recent[name] = takeNarrow(narrow[n]!, recent.ids.count, initialCapacity, columns)
    const [shard, expires, leaf] = sparse.map((kept) => takeNarrow(kept, index.count, initialCapacity, columns))
    index.#shard = shard!
    index.#expires = expires!
    index.#leaf = leaf!
    if (change !== null) index.#change = new Uint32Array(columns.take(change, initialCapacity * 4).buffer)
    if (shelf !== undefined) index.#shelvesAt = recent.from + 2 * shelf.eventsEach
    return index
  }

  /** Slot of the event with this 16-byte id, or `none`. `since` (Unix seconds): files whose events are all older are skipped. */
  find(id: Uint8Array, since = 0): number {
    const number = this.#recent.ids.find(id)
    return number === none ? (this.#old?.find(id, since) ?? none) : this.#recent.from + number
  }

  /** Whether old events are on a disk with slow reads, where prefetching pays off. */
  get readsAreSlow(): boolean {
    return this.#old?.shelf.readsAreSlow() === true
  }

  /** Prefetches the rows of these events, which will be read next. */
  prefetch(slots: readonly number[]): void {
    const { from } = this.#recent
    this.#old?.prefetch(slots.filter((slot) => slot < from))
  }

  /** Adds an event whose id is not present yet, at the end of its thread; returns its slot. */
  add(event: NewSlot): number {
    const recent = this.#recent
    recent.ensureCapacity()
    const number = recent.ids.add(event.id)
    const slot = recent.from + number
    recent.place[number] = event.place
    recent.author[number] = event.author
    recent.seq[number] = event.seq
    recent.at[number] = event.at
    recent.root[number] = event.root
    recent.parent[number] = event.parent
    for (const name of narrowNames) recent[name] = withNumber(recent[name], number, event[name])
    this.#setChange(slot, event)
    this.#shard = withNumber(this.#shard, slot, event.shard)
    this.#expires = withNumber(this.#expires, slot, event.expires)
    this.#leaf = withNumber(this.#leaf, slot, event.leaf)
    recent.next[number] = none
    recent.tail[number] = slot
    if (event.root !== none && !event.isEdit) {
      const before = this.tail(event.root)
      this.#link('next', before, slot)
      recent.tail[number] = before
      this.#link('tail', event.root, slot)
    }
    return slot
  }

  place(slot: number): number {
    const { from, place } = this.#recent
    return slot < from ? this.#old!.read(slot, 'place') : place[slot - from]!
  }

  author(slot: number): number {
    const { from, author } = this.#recent
    return slot < from ? this.#old!.read(slot, 'author') : author[slot - from]!
  }

  seq(slot: number): number {
    const { from, seq } = this.#recent
    return slot < from ? this.#old!.read(slot, 'seq') : seq[slot - from]!
  }

  /** Unix seconds. */
  at(slot: number): number {
    const { from, at } = this.#recent
    return slot < from ? this.#old!.read(slot, 'at') : at[slot - from]!
  }

  /** Slot of the root of its thread; `none` on a root. */
  root(slot: number): number {
    const { from, root } = this.#recent
    return slot < from ? this.#old!.read(slot, 'root') : root[slot - from]!
  }

  parent(slot: number): number {
    const { from, parent } = this.#recent
    return slot < from ? this.#old!.read(slot, 'parent') : parent[slot - from]!
  }

  /** Slot of the next event in the same thread; `none` at its end. */
  next(slot: number): number {
    const { from, next } = this.#recent
    return slot < from ? this.#old!.read(slot, 'next') : next[slot - from]!
  }

  /** On a root: the newest event of its thread. On a reply: the previous event in the thread. */
  tail(slot: number): number {
    const { from, tail } = this.#recent
    return slot < from ? this.#old!.read(slot, 'tail') : tail[slot - from]!
  }

  room(slot: number): number {
    const { from, room } = this.#recent
    return slot < from ? this.#old!.read(slot, 'room') : room[slot - from]!
  }

  page(slot: number): number {
    const { from, page } = this.#recent
    return slot < from ? this.#old!.read(slot, 'page') : page[slot - from]!
  }

  kind(slot: number): number {
    const { from, kind } = this.#recent
    return slot < from ? this.#old!.read(slot, 'kind') : kind[slot - from]!
  }

  change(slot: number): number {
    return this.#change === undefined ? this.place(slot) : this.#change[slot]!
  }

  shard(slot: number): number {
    return this.#shard[slot]!
  }

  /** Unix seconds, 0 = never. */
  expires(slot: number): number {
    return this.#expires[slot]!
  }

  /** Leaf index in the public log; `none` if there is no leaf. */
  leaf(slot: number): number {
    return this.#leaf[slot]!
  }

  /** Whether some events are on disk, so that reading many of them is slow. */
  get hasOld(): boolean {
    return this.#recent.from > 0
  }

  /** Unix seconds of the newest event; 0 if there is none. */
  get newestAt(): number {
    return this.count === 0 ? 0 : this.at(this.count - 1)
  }

  /** The 16-byte id of a slot, as a view that is valid until the next add or read of another event. */
  id(slot: number): Buffer {
    const { from, ids } = this.#recent
    return slot < from ? this.#old!.id(slot) : ids.id(slot - from)
  }

  /** Slot of the root of its thread: itself if it is the root. */
  rootOf(slot: number): number {
    const root = this.root(slot)
    return root === none ? slot : root
  }

  /** Slots of events that expire. Unix seconds need a wide column, so the narrowest column has none. */
  *expiring(): Generator<number> {
    if (this.#expires.BYTES_PER_ELEMENT === 1) return
    for (let slot = 0; slot < this.count; slot++) if (this.#expires[slot] !== 0) yield slot
  }

  idHex(slot: number): string {
    const { from, ids } = this.#recent
    return slot < from ? this.#old!.id(slot).toString('hex') : ids.hex(slot - from)
  }

  /**
   * Moves the oldest events in memory to the shelf if there are enough. `atOnce`: synchronously, not in the background. All
   * events must be durable: the shelf must not hold anything that a crash could roll back.
   */
  shelve(atOnce = false): void {
    if (this.#isShelving || this.count < this.#shelvesAt) return
    const old = this.#old!
    const each = old.shelf.eventsEach
    const recent = this.#recent
    this.#linked = recent.from + each
    // If the disk is full, this is tried again later.
    this.#shelvesAt += each
    let ids: IdTable | undefined
    const rows = shelvedRows({ ...oldPlan, rows: each, seed: old.shelf.seed() }, (n, row) => fillRow(recent, n, row))
    function* made(): Generator<void, Buffer> {
      const bytes = yield* rows
      ids = yield* recent.ids.after(each)
      return bytes
    }
    if (atOnce) return this.#leave(old.shelf.putNow(old.files, made()), ids)
    this.#isShelving = true
    void old.shelf.put(old.files, made()).then((file) => {
      this.#isShelving = false
      this.#leave(file, ids)
    })
  }

  /** Drops the oldest events from memory once they are in a file. `ids`: the ids of the rest, except those added since. */
  #leave(file: OldFile | undefined, ids: IdTable | undefined): void {
    if (file === undefined || ids === undefined) return
    const old = this.#old!
    const { eventsEach } = old.shelf
    old.add(file)
    ids.addRest(this.#recent.ids, eventsEach)
    this.#recent = this.#recent.after(eventsEach, ids)
    this.#shelvesAt = this.#recent.from + 2 * eventsEach
  }

  #link(column: 'next' | 'tail', slot: number, to: number): void {
    const recent = this.#recent
    if (slot < this.#linked) this.#old!.setLink(column, slot, to)
    if (slot >= recent.from) recent.setLink(column, slot - recent.from, to)
  }

  #setChange(slot: number, { place, change }: NewSlot): void {
    if (this.#change === undefined) {
      if (change === place) return
      this.#change = new Uint32Array(Math.max(initialCapacity, capacityFor(slot + 1)))
      for (let before = 0; before < slot; before++) this.#change[before] = this.place(before)
    } else if (slot === this.#change.length) this.#change = grown(this.#change, new Uint32Array(2 * slot))
    this.#change[slot] = change
  }
}

function fillRow(recent: Recent, n: number, row: Uint32Array): void {
  const id = recent.ids.id(n)
  for (let word = 0; word < keyWords; word++) row[word] = id.readUInt32LE(4 * word)
  for (const [at, name] of oldColumns.entries()) row[keyWords + at] = recent[name][n]!
}

/** The same column, or a longer or wider one, with this number set. */
function withNumber(column: Narrow, at: number, value: number): Narrow {
  const long = at < column.length ? column : longer(column, 2 * column.length)
  if (value === 0) return long
  const wide = widened(long, value)
  wide[at] = value
  return wide
}

/** A list of slots that can grow. */
export type GrowingSlots = Slots & {
  push(slot: number): void
  pack(columns: Columns): Kept | { readonly count: number }
}

/** A list that stores only the number of its slots. */
export class CountedSlots implements GrowingSlots {
  length: number

  constructor(length = 0) {
    this.length = length
  }

  push(): void {
    this.length++
  }

  at(): never {
    throw new Error('events of a public room are listed by the feed; this shard only counts them')
  }

  /** Callers that hold a position here never read what is at it. */
  lowerBound(): number {
    return 0
  }

  pack() {
    return { count: this.length }
  }
}

/** A list of slots, in memory. */
export class SlotList implements GrowingSlots {
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

  /** Restores a packed list. */
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

  /** The number of a known name, or undefined; unlike `number`, it adds nothing. */
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
