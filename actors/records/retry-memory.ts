/**
 * Retry memory: which nonces and request ids were used lately, in typed arrays.
 *
 * An entry holds a 52-bit fingerprint of (kind, room, identity, text) and the journal number of the record that used it.
 * A fingerprint may collide, so a hit is only a candidate: the caller reads that record and compares. Two generations
 * are kept and the older one is dropped when the newer has filled its time, so an entry lives between one and two spans.
 * Full is an answer, never an eviction: forgetting early would let a replay through. It ends with the time of the
 * generation that is full. A cell has 12 bytes, and at most two of three are in use: 4,000,000 entries are 100 MB.
 *
 * Each generation also counts the entries of every owner, so that one owner fills its share and not the memory (`Share`).
 * These counts cost another cell per owner, at most as much again where every owner has one entry.
 */
import { randomInt } from 'node:crypto'
import { bytesOf, type Columns, type Kept } from './columns.ts'

type PackedTable = readonly [count: number, fingerprints: Kept, values: Kept]
/** Without `owners`: written by a release that counted none. */
type PackedGeneration = readonly [
  startedAt: number,
  count: number,
  fingerprints: Kept,
  places: Kept,
  owners?: PackedTable,
]
export type PackedMemory = readonly [now: PackedGeneration, before: PackedGeneration]

/** How many entries one owner may have in a generation. */
export type Share = {
  readonly most: number
  /** The same once three quarters of the memory are in use: the rest is for the many who use it little. */
  readonly scarce: number
}

const absurdSeconds = 30 * 86_400

const unshared: Share = { most: Number.POSITIVE_INFINITY, scarce: Number.POSITIVE_INFINITY }

/** An open-addressed table from fingerprints to numbers above 0. */
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

  /** Adds an entry; there may be others with the same fingerprint. */
  add(fingerprint: number, value: number): void {
    if (++this.count * 3 > this.#values.length * 2) this.#grow()
    this.#insert(fingerprint, value)
  }

  /** The value of a fingerprint that has one entry at most; 0: it has none. */
  get(fingerprint: number): number {
    return this.#values[this.#cellOf(fingerprint)]!
  }

  increment(fingerprint: number): void {
    const cell = this.#cellOf(fingerprint)
    if (this.#values[cell] === 0) this.add(fingerprint, 1)
    else this.#values[cell]!++
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

  /** Where this fingerprint is, or the empty cell where it would be. */
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

class Generation {
  readonly startedAt: number
  readonly entries: Table
  /** Owner -> its entries. Nothing is added to a generation that has filled its time, and it needs them no more. */
  owners: Table

  constructor(startedAt: number, entries = new Table(), owners = new Table()) {
    this.startedAt = startedAt
    this.entries = entries
    this.owners = owners
  }

  pack(columns: Columns): PackedGeneration {
    return [this.startedAt, ...this.entries.pack(columns), this.owners.pack(columns)]
  }

  static of([startedAt, count, fingerprints, places, owners]: PackedGeneration, columns: Columns): Generation {
    const entries = Table.of([count, fingerprints, places], columns)
    return new Generation(startedAt, entries, owners === undefined ? new Table() : Table.of(owners, columns))
  }
}

export class RetryMemory {
  readonly #spanSeconds: number
  readonly #countMax: number
  readonly #share: Share
  #now: Generation
  #before: Generation

  /** Remembers for at least `spanSeconds`; at most `countMax` entries a generation, of which one owner has its `share`. */
  constructor(options: { spanSeconds: number; countMax: number; share?: Share }) {
    this.#spanSeconds = options.spanSeconds
    this.#countMax = options.countMax
    this.#share = options.share ?? unshared
    this.#now = new Generation(0)
    this.#before = new Generation(0)
  }

  /** The cells as they are, for a snapshot. */
  pack(columns: Columns): PackedMemory {
    return [this.#now.pack(columns), this.#before.pack(columns)]
  }

  /** Takes over what `pack` gave. */
  restore([now, before]: PackedMemory, columns: Columns): void {
    this.#now = Generation.of(now, columns)
    this.#before = Generation.of(before, columns)
  }

  /**
   * Unix seconds at which there is room for one more: `at` itself, or when the generation that is full has filled its time.
   * `factor`: how many times its share this owner may have.
   */
  roomAt(at: number, owner = 0, factor = 1): number {
    this.#turn(at)
    const { entries, owners, startedAt } = this.#now
    const isScarce = entries.count * 4 >= this.#countMax * 3
    const most = this.#share.most * factor
    const allowed = isScarce ? Math.min(this.#share.scarce, most) : most
    const hasRoom = entries.count < this.#countMax && owners.get(owner) < allowed
    return hasRoom ? at : startedAt + this.#spanSeconds
  }

  /** This owner has used up its share; others still have room. */
  isSpent(owner: number, factor = 1): boolean {
    return this.#now.owners.get(owner) >= this.#share.most * factor
  }

  /** Calls `each` with the journal number of every record that may have used this; true as soon as one call is. */
  find(fingerprint: number, each: (place: number) => boolean): boolean {
    return this.#now.entries.find(fingerprint, each) || this.#before.entries.find(fingerprint, each)
  }

  /** `at`: Unix seconds of the record. */
  add(fingerprint: number, place: number, at: number, owner = 0): void {
    this.#turn(at)
    this.#now.entries.add(fingerprint, place)
    this.#now.owners.increment(owner)
  }

  #turn(at: number): void {
    const age = at - this.#now.startedAt
    // A clock that was far ahead must not keep a generation until its own time has come.
    if (age < this.#spanSeconds && age > -absurdSeconds) return
    this.#now.owners = new Table()
    this.#before = age >= 2 * this.#spanSeconds ? new Generation(at) : this.#now
    this.#now = new Generation(at)
  }
}

/** Two secret numbers, so that no user can choose texts that crowd one cell. */
export type Seeds = readonly [number, number]

export function freshSeeds(): Seeds {
  return [randomInt(0xffff_ffff), randomInt(0xffff_ffff)]
}

/** 52 bits over the parts. */
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
