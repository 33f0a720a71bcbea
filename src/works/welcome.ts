/**
 * The welcome grant: credits for an identity, once, after its first accepted public post.
 *
 * The market decides, and remembers permanently who was given one. It counts a day's grants per network by a keyed hash, so no address is
 * ever on disk.
 *
 * If a crash comes between a post and its grant, the next start makes up for it by checking the users who first posted shortly before.
 * Their networks are then unknown, so together they get at most what one network gets; otherwise a restart would bypass that limit. Users
 * who came after the day's grants were used up get theirs with a later post.
 */

import { createHmac } from 'node:crypto'
import { dayOf } from '../../actors/kernel/day.ts'
import { rates, sizes } from '../../actors/kernel/limits.ts'
import { networkOf, widerNetworkOf } from '../../actors/kernel/networks.ts'
import { internalLetter } from '../../actors/records/internal-operations.ts'
import { marketName, type WelcomeArgs } from '../../actors/works/market/letters.ts'
import type { Actors } from '../command/ports.ts'
import { dataOf } from '../reads/read.ts'

type WelcomeOptions = {
  readonly actors: Actors
  readonly limitsOn: boolean
  /** Secret of this board. */
  readonly secret: Buffer
  /** Identity id of the board, which gets no grant. */
  readonly board: string
  /** Unix seconds. */
  readonly wallSeconds: () => number
  readonly later: (callback: () => void, ms: number) => void
}

const againMs = 1_000
/** Identities known to be settled. For others the market is asked again, which costs a letter and no sync. */
const knownMax = 100_000
/** A grant follows its post immediately: users who first posted longer than this before the newest change were given it, or refused. */
const recentSeconds = 60

export class Welcome {
  readonly #options: WelcomeOptions
  /** Identity -> the day until which nothing more need be requested. */
  readonly #settled = new Map<string, number>()
  #closed = false

  constructor(options: WelcomeOptions) {
    this.#options = options
  }

  /** Call when this identity has posted in public. `address`: of the client, '' if unknown. */
  greet(identity: string, address: string): void {
    const { actors, board, wallSeconds } = this.#options
    const day = dayOf(wallSeconds())
    if (this.#closed || identity === board || (this.#settled.get(identity) ?? -1) >= day) return
    this.#settle(identity, day)
    const letter = internalLetter('credit.welcome', marketName, board, this.#args(identity, address, day))
    actors.write(letter, (answer) => {
      if (answer?.ok !== true) {
        this.#settled.delete(identity)
        return this.#options.later(() => this.greet(identity, address), againMs)
      }
      const { given, why } = answer.reply
      if (given > 0 || why === 'already') this.#settle(identity, Number.POSITIVE_INFINITY)
      else if (address === '') this.#settled.delete(identity)
    })
  }

  /** Looks for posts whose grant a crash may have prevented. */
  resume(): void {
    const args = { seconds: recentSeconds }
    this.#options.actors.read({ op: 'credit.unwelcomed', args, reader: '' }, (found) => {
      if (found === undefined || !found.ok) return this.#options.later(() => this.resume(), againMs)
      for (const identity of dataOf(found).identities) this.greet(identity, '')
    })
  }

  close(): void {
    this.#closed = true
  }

  #args(identity: string, address: string, day: number): WelcomeArgs {
    const { limitsOn, secret } = this.#options
    const purpose = `welcome ${day}`
    const most = (count: number) => (limitsOn ? count : Number.POSITIVE_INFINITY)
    return {
      identity,
      network: networkMark(secret, purpose, address),
      wider: widerNetworkMark(secret, purpose, address),
      amount: sizes.credit_welcome,
      network_max: most(rates.welcome_grants_per_network_per_day),
      wider_max: most(rates.ipv6_48_factor * rates.welcome_grants_per_network_per_day),
      board_max: most(rates.welcome_grants_per_board_per_day),
    }
  }

  #settle(identity: string, day: number): void {
    if (this.#settled.size >= knownMax) this.#settled.clear()
    this.#settled.set(identity, day)
  }
}

const markBytes = 12

/**
 * Opaque names for networks: keyed hashes under a secret of this board. Each is for one purpose, such as a count of one day or one work;
 * marks for different purposes cannot be compared. '' if the address is unknown.
 */
export function networkMark(secret: Buffer, purpose: string, address: string): string {
  return address === '' ? '' : markOf(secret, purpose, networkOf(address))
}

/** The same for the enclosing /48; '' if there is none. */
export function widerNetworkMark(secret: Buffer, purpose: string, address: string): string {
  const wider = widerNetworkOf(address)
  return wider === undefined ? '' : markOf(secret, purpose, wider)
}

function markOf(secret: Buffer, purpose: string, network: string): string {
  return createHmac('sha256', secret).update(`${purpose} ${network}`).digest().toString('base64url', 0, markBytes)
}
