/**
 * Retry memory: which nonces and request ids were used lately, in typed arrays.
 *
 * A cell holds a 52-bit fingerprint of (kind, room, identity, text) and the journal number of the record that used it.
 * A fingerprint may collide, so a hit is only a candidate: the caller reads that record and compares. Two generations
 * are kept and the older one is dropped when the newer has filled its time, so a cell lives between one and two spans.
 * Full is an answer (`overloaded`), never an eviction: forgetting early would let a replay through. It ends with the time of the
 * generation that is full. A cell has 12 bytes, and at most two of three are in use: 4,000,000 entries are 100 MB.
 */
import { randomInt } from 'node:crypto'
import { bytesOf, type Columns, type Kept } from './columns.ts'

type PackedGeneration = readonly [startedAt: number, count: number, fingerprints: Kept, places: Kept]
export type PackedMemory = readonly [now: PackedGeneration, before: PackedGeneration]

class Generation {
  startedAt: number
  count = 0
  #fingerprints = new Float64Array(256)
  #places = new Uint32Array(256)

  constructor(startedAt: number) {
    this.startedAt = startedAt
  }

  find(fingerprint: number, each: (place: number) => boolean): boolean {
    const mask = this.#places.length - 1
    for (let cell = fingerprint % this.#places.length; this.#places[cell] !== 0; cell = (cell + 1) & mask) {
      if (this.#fingerprints[cell] === fingerprint && each(this.#places[cell]!)) return true
    }
    return false
  }

  add(fingerprint: number, place: number): void {
    if (++this.count * 3 > this.#places.length * 2) this.#grow()
    this.#insert(fingerprint, place)
  }

  pack(columns: Columns): PackedGeneration {
    const cells = this.#places.length
    const [fingerprints, places] = [bytesOf(this.#fingerprints, cells), bytesOf(this.#places, cells)]
    return [this.startedAt, this.count, columns.put(fingerprints), columns.put(places)]
  }

  static of([startedAt, count, fingerprints, places]: PackedGeneration, columns: Columns): Generation {
    const generation = new Generation(startedAt)
    generation.count = count
    generation.#fingerprints = new Float64Array(columns.take(fingerprints).buffer)
    generation.#places = new Uint32Array(columns.take(places).buffer)
    return generation
  }

  #insert(fingerprint: number, place: number): void {
    const mask = this.#places.length - 1
    let cell = fingerprint % this.#places.length
    while (this.#places[cell] !== 0) cell = (cell + 1) & mask
    this.#fingerprints[cell] = fingerprint
    this.#places[cell] = place
  }

  #grow(): void {
    const fingerprints = this.#fingerprints
    const places = this.#places
    this.#fingerprints = new Float64Array(places.length * 2)
    this.#places = new Uint32Array(places.length * 2)
    for (let cell = 0; cell < places.length; cell++) {
      if (places[cell] !== 0) this.#insert(fingerprints[cell]!, places[cell]!)
    }
  }
}

export class RetryMemory {
  readonly #spanSeconds: number
  readonly #countMax: number
  #now: Generation
  #before: Generation

  /** Remembers for at least `spanSeconds`; at most `countMax` entries a generation. */
  constructor(options: { spanSeconds: number; countMax: number }) {
    this.#spanSeconds = options.spanSeconds
    this.#countMax = options.countMax
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

  /** Unix seconds at which there is room for one more: `at` itself, or when the generation that is full has filled its time. */
  roomAt(at: number): number {
    this.#turn(at)
    return this.#now.count < this.#countMax ? at : this.#now.startedAt + this.#spanSeconds
  }

  /** Calls `each` with the journal number of every record that may have used this; true as soon as one call is. */
  find(fingerprint: number, each: (place: number) => boolean): boolean {
    return this.#now.find(fingerprint, each) || this.#before.find(fingerprint, each)
  }

  /** `at`: Unix seconds of the record. */
  add(fingerprint: number, place: number, at: number): void {
    this.#turn(at)
    this.#now.add(fingerprint, place)
  }

  #turn(at: number): void {
    const age = at - this.#now.startedAt
    if (age < this.#spanSeconds) return
    this.#before = age >= 2 * this.#spanSeconds ? new Generation(at) : this.#now
    this.#now = new Generation(at)
  }
}

/** Two secret numbers: with them nobody can choose texts that crowd one cell. */
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
