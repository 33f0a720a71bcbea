/**
 * Events that are too old to stay in memory. Their rows are in files, ordered by slot, `EventShelf.eventsEach` in each. A row
 * never changes. The links of an old event in its thread may change; changed links are in memory and take precedence.
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

/** The layout of a file: the length of a row, and that the newest of its events is known. */
export const oldPlan = { words: keyWords + oldColumns.length, largestOf: wordOf.at }

/** Where rows of old events are stored. */
export type EventShelf = {
  /** See Disk. */
  readsAreSlow(): boolean
  /** Events per file: a power of two, at least 16. */
  readonly eventsEach: number
  /** A secret seed (32 bits) for the hashes of a file, so that nobody can choose ids whose hashes collide. */
  seed(): number
  /**
   * Writes file number `file` in the background, from the bytes that `made` computes step by step. Undefined if it could not be
   * stored.
   */
  put(file: number, made: Generator<void, Buffer>): Promise<OldFile | undefined>
  /** The same, synchronously. */
  putNow(file: number, made: Generator<void, Buffer>): OldFile | undefined
  /** Undefined if the file is missing or damaged. */
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

  /** A column of an old event. Throws whatever reads of its file throw. */
  read(slot: number, column: OldColumn): number {
    const changed = column === 'next' ? this.#nexts.get(slot) : column === 'tail' ? this.#tails.get(slot) : undefined
    return changed ?? this.#rows(slot).word(slot % this.shelf.eventsEach, wordOf[column])
  }

  /** Prefetches the rows of these events, which will be read next. */
  prefetch(slots: readonly number[]): void {
    const each = this.shelf.eventsEach
    for (const [rows, held] of Map.groupBy(slots, (slot) => this.#rows(slot)))
      rows.prefetch(held.map((slot) => slot % each))
  }

  /** Sets a link of an event that is old, or is being shelved. */
  setLink(column: 'next' | 'tail', slot: number, to: number): void {
    const links = column === 'next' ? this.#nexts : this.#tails
    links.set(slot, to)
  }

  /** The 16 bytes of an id: read-only, and valid until another old event is read. */
  id(slot: number): Buffer {
    return this.#rows(slot).key(slot % this.shelf.eventsEach)
  }

  /**
   * The slot of this 16-byte id; undefined if no old event from `since` (Unix seconds) on has it. Newer files are searched
   * first, because newer events are looked up more often.
   */
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

  /** Restores what `pack` returned. False if the shelf lacks a file. */
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

/** A map from slots to slots: an open-addressed table that is at most half full. */
class Links {
  #count = 0
  /** The slot plus 1; 0 if the cell is empty. */
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
    // The high bits: evenly spaced slots share their low bits.
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
