/**
 * What calls have used of one UTC day: for each identity, each client network and the whole board, calls and millionths of a
 * dollar, and what the wallet has signed away. A new day begins with the first record of it; the clock of a journal never goes
 * back, so neither does the day, and no caller gets a day twice.
 */
import { dayOf, daySeconds } from '../kernel/day.ts'

/** What may be used in a day. Dollars are counted in millionths, which are the atomic units of the usual tokens too. */
export type DayLimits = {
  readonly calls: number
  readonly micros: number
  readonly boardCalls: number
  readonly boardMicros: number
}

type Used = { calls: number; micros: number }
type Holder = { readonly identity: string; readonly network: string }
type PackedUsed = readonly [key: string, calls: number, micros: number]
export type PackedDay = readonly [
  day: number,
  board: readonly [calls: number, micros: number],
  wallet: number,
  identities: readonly PackedUsed[],
  networks: readonly PackedUsed[],
]

/** A network may hold several people: it has so many times what one identity has. */
const networkTimes = 3
/** No identity uses more than this part of what the whole board has. */
const boardPart = 10

/** What one identity has, as it follows from its own limit and its part of the board's. */
export function identityLimits(limits: DayLimits): Used {
  return {
    calls: Math.min(limits.calls, Math.floor(limits.boardCalls / boardPart)),
    micros: Math.min(limits.micros, Math.floor(limits.boardMicros / boardPart)),
  }
}

export class Day {
  #day = 0
  #board: Used = { calls: 0, micros: 0 }
  #wallet = 0
  #identities = new Map<string, Used>()
  #networks = new Map<string, Used>()

  /** The moment by which is counted: a clock that was set back shows no day that is over. */
  moment(now: number): number {
    return Math.max(now, this.#day * daySeconds)
  }

  /** Millionths of a dollar that the wallet has signed away on the day of `now`. */
  wallet(now: number): number {
    return dayOf(now) === this.#day ? this.#wallet : 0
  }

  /** What is left on the day of `now`: the least of what identity, network and board have. Never below 0. */
  left({ identity, network }: Holder, limits: DayLimits, now: number): Used {
    const own = identityLimits(limits)
    const isToday = dayOf(now) === this.#day
    const used = (held: Used | undefined): Used => (isToday && held !== undefined ? held : { calls: 0, micros: 0 })
    const bounds: readonly (readonly [Used, Used])[] = [
      [own, used(this.#identities.get(identity))],
      [{ calls: own.calls * networkTimes, micros: own.micros * networkTimes }, used(this.#networks.get(network))],
      [{ calls: limits.boardCalls, micros: limits.boardMicros }, used(this.#board)],
    ]
    const least = (pick: (used: Used) => number) =>
      Math.max(0, Math.min(...bounds.map(([limit, taken]) => pick(limit) - pick(taken))))
    return { calls: least(({ calls }) => calls), micros: least(({ micros }) => micros) }
  }

  /** Takes, or with negative numbers gives back; of another day than the newest nothing is changed. */
  take({ identity, network }: Holder, { calls, micros }: Used, at: number): void {
    const day = dayOf(at)
    if (day > this.#day) this.#begin(day)
    if (day < this.#day) return
    for (const [held, key] of [
      [this.#identities, identity],
      [this.#networks, network],
    ] as const) {
      const used = held.get(key) ?? { calls: 0, micros: 0 }
      held.set(key, { calls: used.calls + calls, micros: used.micros + micros })
    }
    this.#board = { calls: this.#board.calls + calls, micros: this.#board.micros + micros }
  }

  /** The wallet signs so much away, or, with a negative number, has found that it was never taken. */
  pay(micros: number, at: number): void {
    const day = dayOf(at)
    if (day > this.#day) this.#begin(day)
    if (day === this.#day) this.#wallet += micros
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

  #begin(day: number): void {
    this.#day = day
    this.#board = { calls: 0, micros: 0 }
    this.#wallet = 0
    this.#identities = new Map()
    this.#networks = new Map()
  }
}
