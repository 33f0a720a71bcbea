/**
 * Rate limits by the generic cell rate algorithm: one number per key, the theoretical arrival time.
 *
 * Keys lie in a table of fixed size, in sets of eight places each. A place whose key owes nothing any more is free for another, so
 * nothing is ever swept and a call costs the same however many keys there are. A key whose set is full of keys that still owe is
 * let pass uncounted: the limit of its network holds, and no caller is refused because others came before.
 */
import { fingerprint, freshSeeds } from '../../actors/records/retry-memory.ts'

type Rate = {
  /** Units a second. */
  readonly perSecond: number
  /** Units that may come at once. */
  readonly burst: number
}

const placesPerSet = 8
/** Half a MiB of memory, touched where keys lie. */
const places = 32_768

type Table = {
  /** 52-bit hashes of keys, under secret seeds, so that no caller can choose keys that crowd one set. */
  readonly hashes: Float64Array
  /** Milliseconds of the moment when the key at this place has paid off. */
  readonly due: Float64Array
}

export class Limiter {
  readonly #increment: number
  readonly #tolerance: number
  readonly #now: () => number
  readonly #seeds = freshSeeds()
  #table: Table | undefined

  /** `now`: monotonic milliseconds. */
  constructor(rate: Rate, now: () => number) {
    this.#increment = 1000 / rate.perSecond
    // Without a limit nothing is ever owed.
    this.#tolerance = rate.perSecond === Number.POSITIVE_INFINITY ? 0 : this.#increment * rate.burst
    this.#now = now
  }

  /** Takes `cost` units; 0, or the whole seconds to wait (nothing is taken then). */
  take(key: string, cost = 1): number {
    if (this.#increment === 0) return 0
    const now = this.#now()
    this.#table ??= newTable()
    const { due, hashes } = this.#table
    const hash = this.#hash(key)
    const place = placeOf(this.#table, hash, now)
    const owed = hashes[place] === hash ? Math.max(0, due[place]! - now) : 0
    const wait = this.#wait(owed + cost * this.#increment)
    if (wait > 0) return wait
    if (hashes[place] !== hash && due[place]! > now) return 0
    hashes[place] = hash
    due[place] = now + owed + cost * this.#increment
    return 0
  }

  /** 0, or the whole seconds until `cost` units would be given; takes nothing. */
  peek(key: string, cost = 1): number {
    return this.#wait(this.#owedMs(key) + cost * this.#increment)
  }

  /** What was taken and is not yet won back, in parts of `part` units, and the whole seconds until all is. */
  owed(key: string, part = 1): { units: number; seconds: number } {
    const ms = this.#owedMs(key)
    // A unit that was just taken is one, though a fraction of it is back already; sums of fractions are a little more than they are.
    return { units: ms === 0 ? 0 : Math.ceil(ms / (this.#increment * part) - 1e-6), seconds: Math.ceil(ms / 1000) }
  }

  /** Gives back what a refused or repeated request took. */
  giveBack(key: string, cost = 1): void {
    if (this.#table === undefined) return
    const hash = this.#hash(key)
    const place = placeOf(this.#table, hash, this.#now())
    if (this.#table.hashes[place] === hash) this.#table.due[place]! -= cost * this.#increment
  }

  #wait(owedMs: number): number {
    const over = owedMs - this.#tolerance
    return over > 0 ? Math.max(1, Math.ceil(over / 1000)) : 0
  }

  #owedMs(key: string): number {
    if (this.#table === undefined) return 0
    const now = this.#now()
    const hash = this.#hash(key)
    const place = placeOf(this.#table, hash, now)
    return this.#table.hashes[place] === hash ? Math.max(0, this.#table.due[place]! - now) : 0
  }

  #hash(key: string): number {
    return fingerprint(this.#seeds, '', '', key)
  }
}

function newTable(): Table {
  return { hashes: new Float64Array(places), due: new Float64Array(places) }
}

/** Where this key lies, else a free place of its set, else any place of it, which holds another key that owes. */
function placeOf({ hashes, due }: Table, hash: number, now: number): number {
  const first = (hash % (places / placesPerSet)) * placesPerSet
  let free = first
  for (let place = first; place < first + placesPerSet; place++) {
    if (hashes[place] === hash) return place
    if (due[place]! <= now) free = place
  }
  return free
}
