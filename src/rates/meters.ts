/** The rates and quotas that are counted while the board runs: what is counted, for whom, how much, and the text of each refusal. */

import { type Rates, rates } from '../../actors/kernel/limits.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { fingerprint, freshSeeds } from '../../actors/records/retry-memory.ts'

/**
 * One allowance: at most `limit` at once, of which `regained` are restored evenly within `per_seconds`. Without these fields there is no
 * limit.
 */
export type Allowance = {
  readonly limit?: number
  readonly regained?: number
  readonly per_seconds: number
  readonly used: number
  readonly remaining?: number
  /** Seconds until nothing is used. */
  readonly whole_in: number
}

export type Limit = {
  /** Names of limits, as /capabilities shows them. Without `burst`, the rate is also the burst. */
  readonly rate: keyof Rates
  readonly burst?: keyof Rates
  /** The period that the rate is stated for. */
  readonly seconds: number
  readonly code: 'rate_limited' | 'quota_exhausted'
  readonly message: string
  /** The field without which the command would be accepted. */
  readonly field?: string
}

const minute = 60
const hour = 3_600
const day = 86_400

/** Per network: an IPv4 address, or an IPv6 /64 and its enclosing /48. */
export const networkLimits = {
  reads: {
    rate: 'reads_per_address_per_minute',
    seconds: minute,
    code: 'rate_limited',
    message: 'too many reads from this address: wait retry_after seconds',
  },
  unsigned_commands: {
    rate: 'unsigned_commands_per_address_per_minute',
    seconds: minute,
    code: 'rate_limited',
    message: 'too many unsigned or invalid commands from this address: wait retry_after seconds, or sign',
  },
  bad_signatures: {
    rate: 'bad_signatures_per_address_per_minute',
    seconds: minute,
    code: 'rate_limited',
    message: 'too many bad signatures from this address: wait retry_after seconds',
  },
  writes: {
    rate: 'writes_per_network_per_minute',
    burst: 'writes_per_network_burst',
    seconds: minute,
    code: 'rate_limited',
    message: 'this network writes faster than its limit: wait retry_after seconds',
  },
  bytes: {
    rate: 'bytes_per_network_per_day',
    seconds: day,
    code: 'quota_exhausted',
    message: 'this network has reached its daily limit of written bytes: wait retry_after seconds',
  },
  new_identities: {
    rate: 'new_identities_per_network_per_hour',
    burst: 'new_identities_per_network_burst',
    seconds: hour,
    code: 'rate_limited',
    message:
      'this network has reached its limit of new identities: wait retry_after seconds, or sign with a key that has written here before',
  },
  request_ids: {
    rate: 'request_ids_per_network_per_day',
    seconds: day,
    code: 'quota_exhausted',
    message:
      'this network has reached its daily limit of request ids: wait retry_after seconds, or leave request_id out',
    field: 'request_id',
  },
  rooms: {
    rate: 'new_rooms_per_network_per_day',
    seconds: day,
    code: 'quota_exhausted',
    message: 'this network has reached its daily limit of new rooms: wait retry_after seconds',
  },
  conversations: {
    rate: 'new_conversations_per_network_per_day',
    seconds: day,
    code: 'quota_exhausted',
    message: 'this network has reached its daily limit of new conversations: wait retry_after seconds',
  },
  deliveries: {
    rate: 'deliveries_per_address_per_minute',
    seconds: minute,
    code: 'rate_limited',
    message: 'too many deliveries from this address: wait retry_after seconds',
  },
  export_starts: {
    rate: 'export_starts_per_network_per_hour',
    seconds: hour,
    code: 'rate_limited',
    message:
      'this network has reached its limit of exports: wait retry_after seconds, or take pages with limit and cursor',
  },
  client_registrations: {
    rate: 'client_registrations_per_address_per_hour',
    seconds: hour,
    code: 'rate_limited',
    message: 'too many clients were registered from this address: wait retry_after seconds',
  },
  sign_ins: {
    rate: 'sign_ins_per_network_per_hour',
    seconds: hour,
    code: 'rate_limited',
    message: 'too many sign-ins were started from this network: wait retry_after seconds',
  },
  probes: {
    rate: 'probes_per_network_per_day',
    seconds: day,
    code: 'quota_exhausted',
    message: 'this network has reached its daily limit of requested probes: wait retry_after seconds',
  },
  verifications: {
    rate: 'verifications_per_network_per_hour',
    seconds: hour,
    code: 'rate_limited',
    message: 'too many addresses were verified for this network: wait retry_after seconds',
  },
} as const satisfies Readonly<Record<string, Limit>>

export const identityLimits = {
  /** Of a sign-in at /mcp. */
  reads: {
    rate: 'reads_per_identity_per_minute',
    seconds: minute,
    code: 'rate_limited',
    message: 'this identity reads faster than its limit: wait retry_after seconds',
  },
  writes: {
    rate: 'writes_per_identity_per_minute',
    burst: 'writes_per_identity_burst',
    seconds: minute,
    code: 'rate_limited',
    message: 'this identity writes faster than its limit: wait retry_after seconds',
  },
  bytes: {
    rate: 'bytes_per_identity_per_day',
    seconds: day,
    code: 'quota_exhausted',
    message: 'this identity has reached its daily limit of written bytes: wait retry_after seconds',
  },
  rooms: {
    rate: 'new_rooms_per_identity_per_day',
    seconds: day,
    code: 'quota_exhausted',
    message: 'this identity has reached its daily limit of new rooms: wait retry_after seconds',
  },
  conversations: {
    rate: 'new_conversations_per_identity_per_day',
    seconds: day,
    code: 'quota_exhausted',
    message: 'this identity has reached its daily limit of new conversations: wait retry_after seconds',
  },
  probes: {
    rate: 'probes_per_identity_per_day',
    seconds: day,
    code: 'quota_exhausted',
    message: 'this identity has reached its daily limit of requested probes: wait retry_after seconds',
  },
} as const satisfies Readonly<Record<string, Limit>>

/** Where a request came from. `signedIn`: the identity of a sign-in at /mcp. */
export type Source = { readonly address: string; readonly signedIn?: string }

/** What something is counted against: a network or an identity. `share` is how much of a unit each item costs: 1, or less with a grant. */
export type Subject = { readonly key: string; readonly share: number }

export class Meter {
  readonly #limit: Limit
  readonly #of: 'network' | 'identity'
  readonly #limiter: Limiter

  constructor(limit: Limit, of: 'network' | 'identity', now: () => number) {
    this.#limit = limit
    this.#of = of
    this.#limiter = new Limiter({ perSecond: rates[limit.rate] / limit.seconds, burst: this.#burst }, now)
  }

  /** Name of the limit, as /capabilities shows it. */
  get name(): string {
    return this.#limit.rate
  }

  get #burst(): number {
    return rates[this.#limit.burst ?? this.#limit.rate]
  }

  /** Seconds to wait, in which case nothing is taken; otherwise 0. */
  take({ key, share }: Subject, units: number): number {
    return this.#limiter.take(key, units * share)
  }

  giveBack({ key, share }: Subject, units: number): void {
    this.#limiter.giveBack(key, units * share)
  }

  /** Seconds until one more would be allowed. */
  peek({ key, share }: Subject): number {
    return this.#limiter.peek(key, share)
  }

  allowance({ key, share }: Subject): Allowance {
    const { rate, seconds } = this.#limit
    if (rates[rate] === Number.POSITIVE_INFINITY || share === 0) return { per_seconds: seconds, used: 0, whole_in: 0 }
    const { units: used, seconds: wholeIn } = this.#limiter.owed(key, share)
    const limit = Math.floor(this.#burst / share)
    const regained = Math.floor(rates[rate] / share)
    return { limit, regained, per_seconds: seconds, used, remaining: Math.max(0, limit - used), whole_in: wholeIn }
  }

  refusal({ key, share }: Subject, wait: number): Refusal {
    const { rate, code, message, seconds, field } = this.#limit
    const details = {
      limit: rate,
      of: this.#of,
      [this.#of]: key,
      at_once: Math.floor(this.#burst / share),
      regained: Math.floor(rates[rate] / share),
      per_seconds: seconds,
    }
    return { ...refusal(code, message, field, wait), details }
  }
}

/** The cost of one request, for each subject. It is taken completely or not at all. */
export class Charge {
  /** The meter that was exhausted, and the seconds to wait. */
  full: { readonly meter: Meter; readonly subject: Subject; readonly wait: number } | undefined
  #parts: { readonly meter: Meter; readonly subject: Subject; readonly units: number }[] = []

  add(meter: Meter, subjects: readonly Subject[], units: number): void {
    for (const subject of subjects) this.#parts.push({ meter, subject, units })
  }

  /** Seconds to wait; if not 0, nothing was taken. */
  get wait(): number {
    return this.full?.wait ?? 0
  }

  take(): void {
    for (const [at, { meter, subject, units }] of this.#parts.entries()) {
      const wait = meter.take(subject, units)
      if (wait === 0) continue
      this.#parts = this.#parts.slice(0, at)
      this.giveBack()
      this.full = { meter, subject, wait }
      return
    }
  }

  /** Returns what was taken from these meters, or from all if none are given; once. */
  giveBack(...meters: readonly Meter[]): void {
    const isBack = ({ meter }: { meter: Meter }) => meters.length === 0 || meters.includes(meter)
    for (const { meter, subject, units } of this.#parts.filter(isBack)) meter.giveBack(subject, units)
    this.#parts = this.#parts.filter((part) => !isBack(part))
  }
}

type Rate = {
  /** Units a second. */
  readonly perSecond: number
  /** Units that may be taken at once. */
  readonly burst: number
}

const placesPerSet = 8
/** Half a MiB, touched only where there are keys. */
const places = 32_768

type Table = {
  /** 52-bit hashes of keys under secret seeds, so that callers cannot choose keys that crowd one set. */
  readonly hashes: Float64Array
  /** The time, in milliseconds, at which the key in this place no longer owes anything. */
  readonly due: Float64Array
}

/**
 * Rate limits by the generic cell rate algorithm (GCRA): one number per key, the theoretical arrival time.
 *
 * Keys are in a table of fixed size, in sets of eight places. A place whose key no longer owes anything can be reused, so nothing is ever
 * swept, and a call costs the same however many keys there are. If all places of a key's set are taken by keys that still owe, the key
 * passes uncounted: the limit of its network still applies, and no caller is refused because others came first.
 */
export class Limiter {
  readonly #increment: number
  readonly #tolerance: number
  readonly #now: () => number
  readonly #seeds = freshSeeds()
  #table: Table | undefined

  /** `now`: monotonic milliseconds. */
  constructor(rate: Rate, now: () => number) {
    this.#increment = 1000 / rate.perSecond
    // Without a limit, nothing is ever owed.
    this.#tolerance = rate.perSecond === Number.POSITIVE_INFINITY ? 0 : this.#increment * rate.burst
    this.#now = now
  }

  /** Takes `cost` units. Returns 0, or the whole seconds to wait, in which case nothing is taken. */
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

  /** 0, or the whole seconds until `cost` units would be allowed; takes nothing. */
  peek(key: string, cost = 1): number {
    return this.#wait(this.#owedMs(key) + cost * this.#increment)
  }

  /** What was taken and is not restored yet, in parts of `part` units, and the whole seconds until everything is. */
  owed(key: string, part = 1): { units: number; seconds: number } {
    const ms = this.#owedMs(key)
    // A unit just taken counts as one, though a fraction of it is already restored. Sums of fractions come out slightly too large.
    return { units: ms === 0 ? 0 : Math.ceil(ms / (this.#increment * part) - 1e-6), seconds: Math.ceil(ms / 1000) }
  }

  /** Returns what a refused or repeated request took. */
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

/** The place of this key; or a free place in its set; or any place in it, which holds another key that still owes. */
function placeOf({ hashes, due }: Table, hash: number, now: number): number {
  const first = (hash % (places / placesPerSet)) * placesPerSet
  let free = first
  for (let place = first; place < first + placesPerSet; place++) {
    if (hashes[place] === hash) return place
    if (due[place]! <= now) free = place
  }
  return free
}
