/**
 * Retry memory: which nonces and request ids were used recently.
 *
 * An entry has a 52-bit fingerprint of (kind, room, identity, text) and the journal number of the record that used it.
 * Fingerprints may collide, so a hit is only a candidate: the caller reads that record and compares. There are two generations.
 * When the newer one has lasted its full span, the older one is dropped, so an entry lives between one and two spans.
 *
 * Memory holds the newest entries, in a table with 12 bytes per cell that is at most two thirds full. A full table is moved to
 * the shelf, which is on disk, and is searched there: nothing is forgotten early, and there is always room.
 *
 * Each generation also counts the entries of every owner, so that no owner exceeds its share. These counts take another cell
 * per owner.
 */

import { randomInt } from 'node:crypto'
import type { Cells } from '../../storage/shelved-table.ts'
import { absurdSeconds } from '../kernel/day.ts'
import { bytesOf, type Columns, type Kept } from './columns.ts'

type PackedTable = readonly [count: number, fingerprints: Kept, values: Kept]
type PackedGeneration = readonly [
  startedAt: number,
  entries: PackedTable,
  owners: PackedTable,
  /** A name on the shelf, or a table that was not there yet. */
  full: readonly (string | PackedTable)[],
]
export type PackedMemory = readonly [now: PackedGeneration, before: PackedGeneration]

/** A table on the shelf. */
export type Shelved = {
  /** Calls `each` with the value of every entry with this fingerprint; returns true as soon as one call does. */
  find(fingerprint: number, each: (value: number) => boolean): boolean
  remove(): void
}

/** Where full tables are stored. */
export type Shelf = {
  /** The number of entries at which a table in memory is moved to the shelf. */
  readonly tableEntries: number
  /** Stores a table in the background. Undefined if it could not be stored. */
  put(name: string, cells: Cells): Promise<Shelved | undefined>
  /** Undefined if the table is missing or damaged. */
  open(name: string): Shelved | undefined
}

/** An open-addressed table from fingerprints to numbers above 0: a fingerprint is in the cell of its remainder, or in one after it. */
class Table {
  count = 0
  #fingerprints = new Float64Array(256)
  #values = new Uint32Array(256)

  find(fingerprint: number, each: (value: number) => boolean): boolean {
    const mask = this.#values.length - 1
    for (let cell = fingerprint % this.#values.length; this.#values[cell] !== 0; cell = (cell + 1) & mask) {
      if (this.#fingerprints[cell] === fingerprint && each(this.#values[cell]!)) return true
    }
    return false
  }

  /** Adds an entry; others may have the same fingerprint. */
  add(fingerprint: number, value: number): void {
    if (++this.count * 3 > this.#values.length * 2) this.#grow()
    this.#insert(fingerprint, value)
  }

  /** The value of a fingerprint that has at most one entry; 0 if it has none. */
  get(fingerprint: number): number {
    return this.#values[this.#cellOf(fingerprint)]!
  }

  increment(fingerprint: number): void {
    const cell = this.#cellOf(fingerprint)
    if (this.#values[cell] === 0) this.add(fingerprint, 1)
    else this.#values[cell]!++
  }

  /** Its cells, for the shelf. */
  get cells(): Cells {
    return { fingerprints: this.#fingerprints, values: this.#values }
  }

  pack(columns: Columns): PackedTable {
    const cells = this.#values.length
    const [fingerprints, values] = [bytesOf(this.#fingerprints, cells), bytesOf(this.#values, cells)]
    return [this.count, columns.put(fingerprints), columns.put(values)]
  }

  static of([count, fingerprints, values]: PackedTable, columns: Columns): Table {
    const table = new Table()
    table.count = count
    table.#fingerprints = new Float64Array(columns.take(fingerprints).buffer)
    table.#values = new Uint32Array(columns.take(values).buffer)
    return table
  }

  /** The cell with this fingerprint, or the empty cell where it would go. */
  #cellOf(fingerprint: number): number {
    const mask = this.#values.length - 1
    let cell = fingerprint % this.#values.length
    while (this.#values[cell] !== 0 && this.#fingerprints[cell] !== fingerprint) cell = (cell + 1) & mask
    return cell
  }

  #insert(fingerprint: number, value: number): void {
    const mask = this.#values.length - 1
    let cell = fingerprint % this.#values.length
    while (this.#values[cell] !== 0) cell = (cell + 1) & mask
    this.#fingerprints[cell] = fingerprint
    this.#values[cell] = value
  }

  #grow(): void {
    const fingerprints = this.#fingerprints
    const values = this.#values
    this.#fingerprints = new Float64Array(values.length * 2)
    this.#values = new Uint32Array(values.length * 2)
    for (let cell = 0; cell < values.length; cell++) {
      if (values[cell] !== 0) this.#insert(fingerprints[cell]!, values[cell]!)
    }
  }
}

/** A table that takes no more entries: in memory until it is on the shelf. */
class Full {
  #at: Table | Shelved
  readonly #name: string
  #isRemoved = false

  private constructor(name: string, at: Table | Shelved) {
    this.#name = name
    this.#at = at
  }

  /** Starts moving the table to the shelf. */
  static of(table: Table, name: string, shelf: Shelf): Full {
    const full = new Full(name, table)
    void shelf.put(name, table.cells).then((shelved) => {
      if (shelved === undefined) return
      if (full.#isRemoved) shelved.remove()
      else full.#at = shelved
    })
    return full
  }

  /** Undefined if the shelf does not have it. */
  static restored(packed: string | PackedTable, columns: Columns, shelf: Shelf | undefined): Full | undefined {
    if (typeof packed !== 'string') return new Full('', Table.of(packed, columns))
    const shelved = shelf?.open(packed)
    return shelved === undefined ? undefined : new Full(packed, shelved)
  }

  find(fingerprint: number, each: (value: number) => boolean): boolean {
    return this.#at.find(fingerprint, each)
  }

  pack(columns: Columns): string | PackedTable {
    return this.#at instanceof Table ? this.#at.pack(columns) : this.#name
  }

  remove(): void {
    this.#isRemoved = true
    if (!(this.#at instanceof Table)) this.#at.remove()
  }
}

class Generation {
  readonly startedAt: number
  entries = new Table()
  full: Full[] = []
  /** Owner -> number of entries. Only needed while entries are added to the generation. */
  owners = new Table()

  constructor(startedAt: number) {
    this.startedAt = startedAt
  }

  find(fingerprint: number, each: (place: number) => boolean): boolean {
    return this.entries.find(fingerprint, each) || this.full.some((table) => table.find(fingerprint, each))
  }

  pack(columns: Columns): PackedGeneration {
    const full = this.full.map((table) => table.pack(columns))
    return [this.startedAt, this.entries.pack(columns), this.owners.pack(columns), full]
  }

  /** `mayLack`: entries missing from the shelf have expired anyway. Undefined if one is missing and has not. */
  static restored(
    [startedAt, entries, owners, full]: PackedGeneration,
    columns: Columns,
    shelf: Shelf | undefined,
    mayLack: boolean,
  ): Generation | undefined {
    const generation = new Generation(startedAt)
    generation.entries = Table.of(entries, columns)
    generation.owners = Table.of(owners, columns)
    for (const packed of full) {
      const table = Full.restored(packed, columns, shelf)
      if (table !== undefined) generation.full.push(table)
      else if (!mayLack) return undefined
    }
    return generation
  }

  remove(): void {
    for (const table of this.full) table.remove()
  }
}

type MemoryOptions = {
  readonly spanSeconds: number
  /** How many entries one owner may have in a generation. Absent: unbounded. */
  readonly share?: number
  /** Absent: everything stays in memory. */
  readonly shelf?: Shelf
  /** The prefix for the names of its tables, called when one is put on the shelf. */
  readonly name: () => string
}

export class RetryMemory {
  readonly #options: MemoryOptions
  #now = new Generation(0)
  #before = new Generation(0)

  /** Remembers for at least `spanSeconds`. */
  constructor(options: MemoryOptions) {
    this.#options = options
  }

  /** The cells as they are, for a snapshot. */
  pack(columns: Columns): PackedMemory {
    return [this.#now.pack(columns), this.#before.pack(columns)]
  }

  /** Restores what `pack` returned, at time `at` (Unix seconds). False if the shelf lacks a table that has not expired. */
  restore([now, before]: PackedMemory, columns: Columns, at: number): boolean {
    const { shelf, spanSeconds } = this.#options
    const [newer, older] = [now[0], before[0]]
    const kept = Generation.restored(now, columns, shelf, at - newer >= 2 * spanSeconds)
    const keptBefore = Generation.restored(before, columns, shelf, at - Math.max(newer, older) >= spanSeconds)
    if (kept === undefined || keptBefore === undefined) return false
    this.#now = kept
    this.#before = keptBefore
    return true
  }

  /**
   * Unix seconds at which this owner may add an entry: `at`, or the end of the current generation if its share is used up.
   * `factor`: multiplies the share.
   */
  roomAt(at: number, owner: number, factor = 1): number {
    this.#turn(at)
    const { share = Number.POSITIVE_INFINITY, spanSeconds } = this.#options
    return this.#now.owners.get(owner) < share * factor ? at : this.#now.startedAt + spanSeconds
  }

  /** Calls `each` with the journal number of every record that may have used this; returns true as soon as one call does. */
  find(fingerprint: number, each: (place: number) => boolean): boolean {
    return this.#now.find(fingerprint, each) || this.#before.find(fingerprint, each)
  }

  /** `at`: Unix seconds of the record. */
  add(fingerprint: number, place: number, at: number, owner = 0): void {
    this.#turn(at)
    const { shelf, name } = this.#options
    const now = this.#now
    now.entries.add(fingerprint, place)
    now.owners.increment(owner)
    if (shelf === undefined || now.entries.count < shelf.tableEntries) return
    now.full.push(Full.of(now.entries, `${name()}-${place}`, shelf))
    now.entries = new Table()
  }

  #turn(at: number): void {
    const { spanSeconds } = this.#options
    const age = at - this.#now.startedAt
    // A clock that was far ahead must not keep a generation alive until real time catches up.
    if (age < spanSeconds && age > -absurdSeconds) return
    this.#now.owners = new Table()
    this.#before.remove()
    if (age >= 2 * spanSeconds) this.#now.remove()
    this.#before = age >= 2 * spanSeconds ? new Generation(at) : this.#now
    this.#now = new Generation(at)
  }
}

/** Two secret numbers, so that no user can choose texts that crowd one cell. */
export type Seeds = readonly [number, number]

export function freshSeeds(): Seeds {
  return [randomInt(0xffff_ffff), randomInt(0xffff_ffff)]
}

/** A 52-bit hash of the parts. */
export function fingerprint(seeds: Seeds, scope: string, identity: string, text: string): number {
  let [a, b] = seeds
  for (const part of [scope, identity, text]) {
    for (let i = 0; i < part.length; i++) {
      const code = part.charCodeAt(i)
      a = Math.imul(a ^ code, 0x85eb_ca6b)
      b = Math.imul(b ^ code, 0xc2b2_ae35)
    }
    a = Math.imul(a ^ 0xffff, 0x2765_7fd5) ^ (a >>> 15)
    b = Math.imul(b ^ 0xffff, 0x1656_67b1) ^ (b >>> 13)
  }
  return (a >>> 0) * 0x10_0000 + ((b >>> 0) & 0xf_ffff)
}
