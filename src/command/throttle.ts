/** The rates of the house: who may do how much. Each question answers 0, or the seconds to wait. */

import { networkOf } from '../format/networks.ts'
import { rates } from '../limits.ts'
import { Limiter } from './limiter.ts'

/** One allowance: at most `limit` at once, of which `regained` come back in `per_seconds`, evenly; without them no limit. */
export type Allowance = {
  readonly limit?: number
  readonly regained?: number
  readonly per_seconds: number
  readonly used: number
  readonly remaining?: number
  /** Seconds until nothing is used. */
  readonly whole_in: number
}
export type Allowances = Readonly<Record<string, Allowance>>

export class Throttle {
  readonly #on: boolean
  readonly #unsigned: Limiter
  readonly #badSignatures: Limiter
  readonly #reads: Limiter
  readonly #writes: Limiter
  readonly #bytes: Limiter
  readonly #rooms: Limiter
  readonly #probes: Limiter
  readonly #conversations: Limiter

  constructor(options: { on: boolean; now: () => number }) {
    this.#on = options.on
    const perMinute = (count: number, burst = count) => new Limiter({ perSecond: count / 60, burst }, options.now)
    const perDay = (count: number) => new Limiter({ perSecond: count / 86_400, burst: count }, options.now)
    this.#unsigned = perMinute(rates.unsigned_commands_per_address_per_minute)
    this.#badSignatures = perMinute(rates.bad_signatures_per_address_per_minute)
    this.#reads = perMinute(rates.reads_per_address_per_minute)
    this.#writes = perMinute(rates.writes_per_identity_per_minute, rates.writes_per_identity_burst)
    this.#bytes = perDay(rates.bytes_per_identity_per_day)
    this.#rooms = perDay(rates.new_rooms_per_identity_per_day)
    this.#probes = perDay(rates.probes_per_identity_per_day)
    this.#conversations = perDay(rates.new_conversations_per_identity_per_day)
  }

  /** What is left to an identity ('' for nobody) and to an address. */
  allowances(identity: string, address: string): Allowances {
    const network = networkOf(address)
    const ofAddress = {
      reads: this.#allowance(this.#reads, network, rates.reads_per_address_per_minute, 60),
      unsigned_commands: this.#allowance(this.#unsigned, network, rates.unsigned_commands_per_address_per_minute, 60),
      bad_signatures: this.#allowance(this.#badSignatures, network, rates.bad_signatures_per_address_per_minute, 60),
    }
    if (identity === '') return ofAddress
    return {
      ...ofAddress,
      bytes: this.#allowance(this.#bytes, identity, rates.bytes_per_identity_per_day, 86_400),
      writes: this.#allowance(
        this.#writes,
        identity,
        rates.writes_per_identity_burst,
        60,
        rates.writes_per_identity_per_minute,
      ),
      rooms: this.#allowance(this.#rooms, identity, rates.new_rooms_per_identity_per_day, 86_400),
      conversations: this.#allowance(
        this.#conversations,
        identity,
        rates.new_conversations_per_identity_per_day,
        86_400,
      ),
    }
  }

  #allowance(limiter: Limiter, key: string, limit: number, seconds: number, per = limit): Allowance {
    const isLimited = this.#on && limit !== Number.POSITIVE_INFINITY
    const owed = limiter.owed(key)
    const bounds = isLimited ? { limit, regained: per, remaining: Math.max(0, limit - owed.units) } : {}
    return { ...bounds, per_seconds: seconds, used: owed.units, whole_in: owed.seconds }
  }

  unsigned(address: string): number {
    return this.#on ? this.#unsigned.take(networkOf(address)) : 0
  }

  /** Seconds until a signature from this address is checked again: it sent too many bad ones. */
  signaturesWait(address: string): number {
    return this.#on ? this.#badSignatures.peek(networkOf(address)) : 0
  }

  /** One more did not hold. */
  badSignature(address: string): void {
    if (this.#on) this.#badSignatures.take(networkOf(address))
  }

  reads(address: string): number {
    return this.#on ? this.#reads.take(networkOf(address)) : 0
  }

  /** One write of `bytes` signed bytes. The second answer names what ran out. */
  write(identity: string, bytes: number): { wait: number; daily: boolean } {
    if (!this.#on) return { wait: 0, daily: false }
    const wait = this.#writes.take(identity)
    if (wait > 0) return { wait, daily: false }
    const day = this.#bytes.take(identity, bytes)
    if (day > 0) this.#writes.giveBack(identity)
    return { wait: day, daily: day > 0 }
  }

  /** A write that was refused, or that repeated an earlier one, costs nothing. */
  giveBack(identity: string, bytes: number): void {
    if (!this.#on) return
    this.#writes.giveBack(identity)
    this.#bytes.giveBack(identity, bytes)
  }

  /** A write that was refused leaves no bytes behind, but its place in the minute is taken. */
  giveBackBytes(identity: string, bytes: number): void {
    if (this.#on) this.#bytes.giveBack(identity, bytes)
  }

  room(identity: string): number {
    return this.#on ? this.#rooms.take(identity) : 0
  }

  giveBackRoom(identity: string): void {
    if (this.#on) this.#rooms.giveBack(identity)
  }

  /** One more look of the lab; 0, or seconds to wait. */
  probe(identity: string): number {
    return this.#on ? this.#probes.take(identity) : 0
  }

  giveBackProbe(identity: string): void {
    if (this.#on) this.#probes.giveBack(identity)
  }

  /** Seconds until this identity may open one more conversation. */
  conversationsWait(identity: string): number {
    return this.#on ? this.#conversations.peek(identity) : 0
  }

  /** It has opened one. */
  conversation(identity: string): void {
    if (this.#on) this.#conversations.take(identity)
  }
}
