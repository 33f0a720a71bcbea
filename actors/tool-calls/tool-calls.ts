/**
 * Calls of tools: the daily allowance, calls whose outcome is open, the places of recent outcomes, who has called what, and
 * which tools the wallet pays for. All of it is decided by one actor, `@calls`, because the board has one allowance and one
 * wallet. Only the wallet permissions are public.
 *
 * The steps of a call to a third-party tool, each a record that is on disk before the next step is taken:
 *
 *   tools.call (reserved; it may now be sent) -> [call.pay (the payment, signed; it may now be sent)] -> call.settled
 *
 * A call without `call.settled` is open: it is unknown whether it was made. Outcomes stay in the journal.
 */

import { createHash } from 'node:crypto'
import { absurdSeconds, dayOf, daySeconds } from '../kernel/day.ts'
import type { Projection, RecordPlace } from '../records/core.ts'
import type { FactRecord } from '../records/record.ts'

/** Name of the actor that decides all calls. */
export const callsActor = '@calls'

/** How long an outcome can be found by its command; the record of the call itself is permanent. */
const outcomesKeptSeconds = 2 * 86_400

/** Where and how a third-party tool is called, as its listing said when the call was accepted. */
export type Address = {
  readonly url: string
  readonly method: string
  readonly mcp: boolean
  /** Name of the tool on an MCP server. */
  readonly name: string
}

/**
 * What a call counts against besides its identity. `network`: hash of the client's network, so that no address is stored; for a
 * sign-in, of its host's network, which is counted separately. `wider`: hash of the enclosing /48, if there is one.
 */
export type CallOrigin = { readonly network: string; readonly wider?: string; readonly isHosted?: true }

/** Facts of `tools.call`. */
export type CallFacts = CallOrigin & {
  readonly tool: string
  readonly subject: string
  readonly own: boolean
  /** Millionths of a dollar reserved: the price in the listing, if the wallet may pay. */
  readonly micros: number
  /** The listing says that it is free. */
  readonly isFree?: true
  readonly address: Address
}

/** Facts of `call.pay`: a payment as it is sent, and nothing that could sign another. */
export type PayFacts = {
  readonly call: string
  readonly protocol: string
  readonly network: string
  readonly payee: string
  readonly micros: number
  /** The operator's own call, which they pay for: the allowance does not apply. */
  readonly isOperators: boolean
  /** Name and value of the header that carries it. */
  readonly header: readonly [name: string, value: string]
  /** Unix seconds after which the payment can no longer be collected. */
  readonly validUntil: number
  /** Identifies it on its network. */
  readonly reference: Readonly<Record<string, string>>
}

export type CallState = 'done' | 'failed' | 'unknown'

/** Facts of `call.settled`. */
export type SettledFacts = {
  readonly call: string
  readonly state: CallState
  /** The call is returned to the allowance. Money that was reserved but not paid is always returned. */
  readonly isCallBack: boolean
  /** The signed payment is known not to have been collected, and never will be. */
  readonly isUnpaid: boolean
  /** The answer as the caller gets it: JSON text without the allowance. */
  readonly outcome: string
}

export type RelayFacts = {
  readonly tool: string
  readonly relay: boolean
  readonly micros: number
  readonly payees: readonly string[]
}
export type Mark = { readonly micros: number; readonly payees: readonly string[] }

export type Open = CallOrigin & {
  readonly id: string
  /** Identity id. */
  readonly identity: string
  readonly subject: string
  readonly at: number
  /** Money reserved now. */
  micros: number
  readonly shard: number
  readonly seq: number
  /** Where `call.pay` is stored. */
  paid:
    | {
        readonly seq: number
        readonly micros: number
        readonly at: number
        readonly validUntil: number
        readonly isOperators: boolean
      }
    | undefined
}

type Settled = { readonly seq: number; readonly shard: number; readonly at: number }
type Packed = readonly [
  day: PackedDay,
  open: readonly Open[],
  settled: readonly (readonly [id: string, seq: number, shard: number, at: number])[],
  callers: readonly string[],
  marks: readonly (readonly [tool: string, micros: number, payees: readonly string[]])[],
]

export class Calls implements Projection {
  readonly acts: Projection['acts'] = {
    'tools.call': (act, place) => this.#called(act, place),
    'call.pay': (act, place) => this.#paid(act, place),
    'call.settled': (act, place) => this.#settled(act, place),
    'tools.relay': ({ facts: { tool, relay, micros, payees } }: FactRecord<RelayFacts>) => {
      if (relay) this.#marks.set(tool, { micros, payees })
      else this.#marks.delete(tool)
    },
  }
  readonly day = new Day()
  readonly #open = new Map<string, Open>()
  /** Ordered by time. */
  readonly #outcomes = new Map<string, Settled>()
  readonly #callers = new Set<string>()
  readonly #marks = new Map<string, Mark>()

  /** A call whose outcome is open, by the id of its command (32 hex). */
  open(id: string): Open | undefined {
    return this.#open.get(id)
  }

  allOpen(): readonly Open[] {
    return [...this.#open.values()]
  }

  /** Where the outcome of a call is stored. */
  outcome(id: string): Settled | undefined {
    return this.#outcomes.get(id)
  }

  /** Whether this identity has completed a call of the subject; for the board's own tools, the subject is the tool's id. */
  hasCalled(identity: string, subject: string): boolean {
    return this.#callers.has(callerKey(identity, subject))
  }

  /** What the operator lets the wallet pay for this tool. */
  mark(tool: string): Mark | undefined {
    return this.#marks.get(tool)
  }

  marks(): readonly (readonly [tool: string, mark: Mark])[] {
    return [...this.#marks]
  }

  pack(): Packed {
    return [
      this.day.pack(),
      [...this.#open.values()],
      [...this.#outcomes].map(([id, { seq, shard, at }]) => [id, seq, shard, at] as const),
      [...this.#callers],
      [...this.#marks].map(([tool, { micros, payees }]) => [tool, micros, payees] as const),
    ]
  }

  restore([day, open, settled, callers, marks]: Packed): void {
    this.day.restore(day)
    for (const each of open) this.#open.set(each.id, each)
    for (const [id, seq, shard, at] of settled) this.#outcomes.set(id, { seq, shard, at })
    for (const caller of callers) this.#callers.add(caller)
    for (const [tool, micros, payees] of marks) this.#marks.set(tool, { micros, payees })
  }

  #called({ author, at, facts }: FactRecord<CallFacts>, { id, shard, seq }: RecordPlace): void {
    const { tool, subject, own, micros } = facts
    const identity = Buffer.from(author).toString('hex')
    if (own) {
      this.#callers.add(callerKey(identity, tool))
      return
    }
    const call = Buffer.from(id).toString('hex')
    const origin = originOf(facts)
    this.day.take({ identity, ...origin }, { calls: 1, micros }, at)
    this.#open.set(call, { id: call, identity, ...origin, subject, at, micros, shard, seq, paid: undefined })
  }

  /** Replaces the reserved amount with the paid one. */
  #paid({ at, facts }: FactRecord<PayFacts>, { seq }: RecordPlace): void {
    const { call, micros, validUntil, isOperators } = facts
    const open = this.#open.get(call)
    if (open === undefined) return
    const charged = isOperators ? 0 : micros
    // The reserved amount is returned to the day it was reserved on; the paid amount counts on the current day.
    this.day.giveBack(open, { calls: 0, micros: open.micros }, open.at)
    this.day.take(open, { calls: 0, micros: charged }, at)
    this.day.pay(micros, at)
    open.micros = charged
    open.paid = { seq, micros, at, validUntil, isOperators }
  }

  #settled({ at, facts }: FactRecord<SettledFacts>, { shard, seq }: RecordPlace): void {
    const { call, state, isCallBack, isUnpaid } = facts
    const open = this.#open.get(call)
    if (open === undefined) return
    const isSpent = open.paid !== undefined && !isUnpaid
    // Both sums are returned to the day on which they were taken, unless that day is over.
    if (isCallBack) this.day.giveBack(open, { calls: 1, micros: 0 }, open.at)
    if (!isSpent) this.day.giveBack(open, { calls: 0, micros: open.micros }, open.paid?.at ?? open.at)
    if (open.paid !== undefined && isUnpaid) this.day.payBack(open.paid.micros, open.paid.at)
    this.#open.delete(call)
    if (state === 'done') this.#callers.add(callerKey(open.identity, open.subject))
    for (const [id, { at: then }] of this.#outcomes) {
      if (at - then < outcomesKeptSeconds) break
      this.#outcomes.delete(id)
    }
    this.#outcomes.set(call, { seq, shard, at })
  }
}

/** The fields that say what the call counts against. */
export function originOf({ network, wider, isHosted }: CallOrigin): CallOrigin {
  return { network, ...(wider === undefined ? {} : { wider }), ...(isHosted === true ? { isHosted } : {}) }
}

/** 128 bits of a hash: a set of these is small, and reveals nothing. */
function callerKey(identity: string, subject: string): string {
  return createHash('sha256').update(`${identity}\n${subject}`).digest('base64url').slice(0, 22)
}

/** What may be used in a day. Dollars are counted in millionths, which are the atomic units of the usual tokens too. */
export type DayLimits = {
  readonly calls: number
  readonly micros: number
  readonly boardCalls: number
  readonly boardMicros: number
  /** All networks of one /48 together may use this multiple of one network's limit. */
  readonly widerTimes: number
  /** The same multiple for all sign-ins at one address. */
  readonly hostTimes: number
}

type Used = { calls: number; micros: number }
type Holder = CallOrigin & { readonly identity: string }
type PackedUsed = readonly [key: string, calls: number, micros: number]
type PackedDay = readonly [
  day: number,
  board: readonly [calls: number, micros: number],
  wallet: number,
  identities: readonly PackedUsed[],
  networks: readonly PackedUsed[],
]

/** A network may be shared by several people: its limit is this multiple of one identity's. */
const networkTimes = 3
/** Keys are free: anything that stands for many networks may use at most this fraction (1/n) of the board's limit. */
const manyPart = 2
/** No identity may use more than this fraction (1/n) of the board's limit. */
const boardPart = 10

/** The limits of one identity: its own, and its fraction of the board's. */
export function identityLimits(limits: DayLimits): Used {
  return {
    calls: Math.min(limits.calls, Math.floor(limits.boardCalls / boardPart)),
    micros: Math.min(limits.micros, Math.floor(limits.boardMicros / boardPart)),
  }
}

/** The limits of a call's networks, by the hash of each. */
function networkLimits(
  { network, wider, isHosted }: CallOrigin,
  limits: DayLimits,
): readonly (readonly [network: string, limit: Used])[] {
  const own = identityLimits(limits)
  const { widerTimes, hostTimes, boardCalls, boardMicros } = limits
  const one = { calls: own.calls * networkTimes, micros: own.micros * networkTimes }
  const partOf = (board: number, most: number) => Math.min(most, Math.floor(board / manyPart))
  // Zero times any factor, even Infinity, is zero.
  const times = (count: number, factor: number) => (count === 0 ? 0 : count * factor)
  const many = (factor: number): Used => ({
    calls: partOf(boardCalls, times(one.calls, factor)),
    micros: partOf(boardMicros, times(one.micros, factor)),
  })
  const factor = isHosted === true ? hostTimes : 1
  const nearest = [network, isHosted === true ? many(factor) : one] as const
  return wider === undefined ? [nearest] : [nearest, [wider, many(factor * widerTimes)]]
}

/**
 * Usage of one UTC day: for each identity, each client network, the enclosing /48 and the whole board, in calls and millionths
 * of a dollar; and what the wallet has signed away. A new day begins with its first record. The clock of a journal never goes
 * back, so neither does the day, and no caller gets a day twice. The exception is a clock that was wrong by a month: then the
 * day is that of the corrected clock, and its usage counts.
 */
class Day {
  #day = 0
  #board: Used = { calls: 0, micros: 0 }
  #wallet = 0
  #identities = new Map<string, Used>()
  #networks = new Map<string, Used>()

  /** The time to count at: after a clock was set back it is never in a day that is over, nor in one that the clock was wrong about. */
  moment(now: number): number {
    const since = this.#day * daySeconds
    return since > now + absurdSeconds ? now : Math.max(now, since)
  }

  /** Millionths of a dollar that the wallet has signed away on the day of `now`. */
  wallet(now: number): number {
    return dayOf(now) === this.#day ? this.#wallet : 0
  }

  /** What is left on the day of `now`: the minimum over identity, networks and board. Never below 0. */
  left({ identity, ...origin }: Holder, limits: DayLimits, now: number): Used {
    const own = identityLimits(limits)
    const isToday = dayOf(now) === this.#day
    const used = (held: Used | undefined): Used => (isToday && held !== undefined ? held : { calls: 0, micros: 0 })
    const bounds: readonly (readonly [Used, Used])[] = [
      [own, used(this.#identities.get(identity))],
      ...networkLimits(origin, limits).map(([key, limit]) => [limit, used(this.#networks.get(key))] as const),
      [{ calls: limits.boardCalls, micros: limits.boardMicros }, used(this.#board)],
    ]
    const least = (pick: (used: Used) => number) =>
      Math.max(0, Math.min(...bounds.map(([limit, taken]) => pick(limit) - pick(taken))))
    return { calls: least(({ calls }) => calls), micros: least(({ micros }) => micros) }
  }

  /** Adds usage now. */
  take(holder: Holder, used: Used, now: number): void {
    this.#begin(dayOf(now))
    this.#add(holder, used)
  }

  /** Returns what was taken at `then`; does nothing if that is not the newest day. */
  giveBack(holder: Holder, { calls, micros }: Used, then: number): void {
    if (dayOf(then) === this.#day) this.#add(holder, { calls: -calls, micros: -micros })
  }

  #add({ identity, network, wider }: Holder, { calls, micros }: Used): void {
    for (const [held, key] of [
      [this.#identities, identity],
      [this.#networks, network],
      ...(wider === undefined ? [] : [[this.#networks, wider] as const]),
    ] as const) {
      const used = held.get(key) ?? { calls: 0, micros: 0 }
      held.set(key, sum(used, { calls, micros }))
    }
    this.#board = sum(this.#board, { calls, micros })
  }

  /** The wallet signs away this amount now. */
  pay(micros: number, now: number): void {
    this.#begin(dayOf(now))
    this.#wallet += micros
  }

  /** What it signed away at `then` was never collected. */
  payBack(micros: number, then: number): void {
    if (dayOf(then) === this.#day) this.#wallet = Math.max(0, this.#wallet - micros)
  }

  pack(): PackedDay {
    const packed = (held: Map<string, Used>) =>
      [...held].map(([key, { calls, micros }]) => [key, calls, micros] as const)
    const board = [this.#board.calls, this.#board.micros] as const
    return [this.#day, board, this.#wallet, packed(this.#identities), packed(this.#networks)]
  }

  restore([day, [calls, micros], wallet, identities, networks]: PackedDay): void {
    const unpacked = (held: readonly PackedUsed[]) =>
      new Map(held.map(([key, taken, spent]) => [key, { calls: taken, micros: spent }]))
    this.#day = day
    this.#board = { calls, micros }
    this.#wallet = wallet
    this.#identities = unpacked(identities)
    this.#networks = unpacked(networks)
  }

  /** Starts counting for this day, if it is not the newest one already. */
  #begin(day: number): void {
    if (day === this.#day) return
    this.#day = day
    this.#board = { calls: 0, micros: 0 }
    this.#wallet = 0
    this.#identities = new Map()
    this.#networks = new Map()
  }
}

/** Never below 0: a day interrupted by a wrong clock starts again from zero, and may get back amounts that it never counted. */
function sum(one: Used, other: Used): Used {
  return { calls: Math.max(0, one.calls + other.calls), micros: Math.max(0, one.micros + other.micros) }
}
