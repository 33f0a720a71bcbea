/**
 * Events that are too old to be kept in memory: their rows lie in files, as many in each as `EventShelf` says, in the order of slots.
 * A row never changes. What changes of an old event, its links in its thread, is in memory and counts instead.
 */
import { keyWords, type ShelvedRows } from '../../storage/shelved-rows.ts'
import { bytesOf, type Columns, type Kept } from './columns.ts'

/** Columns of a row, after the id. */
export const oldColumns = [
  'place',
  'author',
  'seq',
  'at',
  'root',
  'parent',
  'next',
  'tail',
  'room',
  'page',
  'kind',
] as const
export type OldColumn = (typeof oldColumns)[number]

const wordOf = Object.fromEntries(oldColumns.map((name, n) => [name, keyWords + n])) as Readonly<
  Record<OldColumn, number>
>

/** Of a file: how long a row is, and that the newest of its events is known. */
export const oldPlan = { words: keyWords + oldColumns.length, largestOf: wordOf.at }

/** Where rows of old events are put. */
export type EventShelf = {
  /** See Disk. */
  readsAreSlow(): boolean
  /** Events of a file: a power of two, at least 16. */
  readonly eventsEach: number
  /** A secret seed (32 bits) for the hashes of a file, so that nobody can choose ids whose hashes collide. */
  seed(): number
  /** Number `file`, beside other work, from the bytes that `made` makes step by step. Undefined: it could not be kept. */
  put(file: number, made: Generator<void, Buffer>): Promise<OldFile | undefined>
  /** The same at once. */
  putNow(file: number, made: Generator<void, Buffer>): OldFile | undefined
  /** Undefined: it is not there, or not as it was put there. */
  open(name: string): OldFile | undefined
}
export type OldFile = { readonly name: string; readonly rows: ShelvedRows }

export type PackedOld = readonly [names: readonly string[], nexts: PackedLinks, tails: PackedLinks]

export class OldEvents {
  readonly shelf: EventShelf
  readonly #files: OldFile[] = []
  readonly #nexts = new Links()
  readonly #tails = new Links()

  constructor(shelf: EventShelf) {
    this.shelf = shelf
  }

  /** Slots below this one are in files. */
  get end(): number {
    return this.#files.length * this.shelf.eventsEach
  }

  get files(): number {
    return this.#files.length
  }

  add(file: OldFile): void {
    this.#files.push(file)
  }

  /** A column of an old event. Throws what reads of its file throw. */
  read(slot: number, column: OldColumn): number {
    const changed = column === 'next' ? this.#nexts.get(slot) : column === 'tail' ? this.#tails.get(slot) : undefined
    return changed ?? this.#rows(slot).word(slot % this.shelf.eventsEach, wordOf[column])
  }

  /** The rows of these events will be read next. */
  prefetch(slots: readonly number[]): void {
    const each = this.shelf.eventsEach
    for (const [rows, held] of Map.groupBy(slots, (slot) => this.#rows(slot)))
      rows.prefetch(held.map((slot) => slot % each))
  }

  /** Of an event that is old, or is being put away. */
  setLink(column: 'next' | 'tail', slot: number, to: number): void {
    const links = column === 'next' ? this.#nexts : this.#tails
    links.set(slot, to)
  }

  /** The 16 bytes of an id, not to be changed, and valid until another old event is read. */
  id(slot: number): Buffer {
    return this.#rows(slot).key(slot % this.shelf.eventsEach)
  }

  /** The slot of this 16-byte id; undefined: it is none of an old event from `since` (Unix seconds) on. Newer ones are asked for more often. */
  find(id: Uint8Array, since: number): number | undefined {
    if (this.#files.length === 0) return undefined
    for (let byte = 0; byte < 4 * keyWords; byte++) keyBytes[byte] = id[byte]!
    for (let file = this.#files.length - 1; file >= 0; file--) {
      const { rows } = this.#files[file]!
      const row = rows.largest < since ? undefined : rows.find(key)
      if (row !== undefined) return file * this.shelf.eventsEach + row
    }
    return undefined
  }

  pack(columns: Columns): PackedOld {
    return [this.#files.map(({ name }) => name), this.#nexts.pack(columns), this.#tails.pack(columns)]
  }

  /** Takes over what `pack` gave. False: the shelf lacks a file. */
  restore([names, nexts, tails]: PackedOld, columns: Columns): boolean {
    for (const name of names) {
      const found = this.shelf.open(name)
      if (found === undefined) return false
      this.#files.push(found)
    }
    this.#nexts.restore(nexts, columns)
    this.#tails.restore(tails, columns)
    return true
  }

  #rows(slot: number): ShelvedRows {
    return this.#files[Math.floor(slot / this.shelf.eventsEach)]!.rows
  }
}

const key = new Uint32Array(keyWords)
const keyBytes = new Uint8Array(key.buffer)

type PackedLinks = readonly [count: number, slots: Kept, to: Kept]

const initialCells = 16

/** From slots to slots: an open-addressed table that is at most half full. */
class Links {
  #count = 0
  /** 1 more than the slot; 0: the cell is empty. */
  #slots = new Uint32Array(initialCells)
  #to = new Uint32Array(initialCells)

  get(slot: number): number | undefined {
    const cell = this.#cellOf(slot)
    return this.#slots[cell] === 0 ? undefined : this.#to[cell]
  }

  set(slot: number, to: number): void {
    let cell = this.#cellOf(slot)
    if (this.#slots[cell] === 0) {
      if (++this.#count * 2 > this.#slots.length) {
        this.#grow()
        cell = this.#cellOf(slot)
      }
      this.#slots[cell] = slot + 1
    }
    this.#to[cell] = to
  }

  pack(columns: Columns): PackedLinks {
    const keep = (cells: Uint32Array) => columns.put(bytesOf(cells, cells.length))
    return [this.#count, keep(this.#slots), keep(this.#to)]
  }

  restore([count, slots, to]: PackedLinks, columns: Columns): void {
    const taken = (kept: Kept) => new Uint32Array(columns.take(kept, 4 * initialCells).buffer)
    this.#count = count
    this.#slots = taken(slots)
    this.#to = taken(to)
  }

  #cellOf(slot: number): number {
    const mask = this.#slots.length - 1
    // The high bits: slots that are far apart alike have the same low ones.
    let cell = (Math.imul(slot, 0x9e37_79b1) >>> 7) & mask
    while (this.#slots[cell] !== 0 && this.#slots[cell] !== slot + 1) cell = (cell + 1) & mask
    return cell
  }

  #grow(): void {
    const [slots, to] = [this.#slots, this.#to]
    this.#slots = new Uint32Array(2 * slots.length)
    this.#to = new Uint32Array(2 * to.length)
    for (const [cell, slot] of slots.entries()) {
      if (slot === 0) continue
      const place = this.#cellOf(slot - 1)
      this.#slots[place] = slot
      this.#to[place] = to[cell]!
    }
  }
}
