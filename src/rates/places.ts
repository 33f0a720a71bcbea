/**
 * Places: how many things of one kind (streams, waits, downloads) may be open at the same time, in all and for each who holds them.
 * A client that opens one takes its place before any work is done for it, and leaves it when the work and the connection are over:
 * a client that hangs up at once may not start the next one while the board still works on the last.
 */

import type { Rates } from '../../actors/kernel/limits.ts'
import { TurnoverMap } from '../../storage/turnover-map.ts'
import type { Source, Subject } from './meters.ts'

/** Knows whom something that stays open counts against (networks, or the identity of a sign-in), and counts who was refused. */
export type PlaceKeeper = {
  /** Told of each kind of places, to show what is open. */
  keeps(places: Places): void
  holders(source: Source): readonly Subject[]
  placeRefused(limit: keyof Rates): void
}

/** Gives the place back; again, it does nothing. */
export type Release = () => void

export type Held = { readonly limit?: number; readonly open: number }

type PlacesOptions = {
  /** Name of the limit, as /capabilities shows it. */
  readonly limit: keyof Rates
  /** Places of one holder; Infinity: no bound. */
  readonly each: number
  readonly max?: number
  /** Absent: each address counts by itself. */
  readonly keeper?: PlaceKeeper | undefined
}

/** The wait that is advised to a client that is refused a place. */
export const streamWaitSeconds = 5

export class Places {
  readonly limit: keyof Rates
  readonly #each: number
  readonly #max: number
  readonly #keeper: PlaceKeeper
  readonly #open = new TurnoverMap<string, number>()
  taken = 0

  constructor({ limit, each, max = Number.POSITIVE_INFINITY, keeper = byAddress }: PlacesOptions) {
    this.limit = limit
    this.#each = each
    this.#max = max
    this.#keeper = keeper
    keeper.keeps(this)
  }

  /** A place for this client, or what has none left: those whom it counts against, or the board. */
  take(source: Source): Release | 'holder' | 'board' {
    const holders = this.#keeper.holders(source)
    if (holders.some(({ key, share }) => (this.#open.get(key) ?? 0) >= this.#placesOf(share))) {
      this.#keeper.placeRefused(this.limit)
      return 'holder'
    }
    if (this.taken >= this.#max) return 'board'
    for (const { key } of holders) this.#open.set(key, (this.#open.get(key) ?? 0) + 1)
    this.taken++
    let isLeft = false
    return () => {
      if (isLeft) return
      isLeft = true
      this.taken--
      for (const { key } of holders) this.#vacate(key)
    }
  }

  /** What one of those whom places count against has open. */
  heldBy({ key, share }: Subject): Held {
    const limit = this.#placesOf(share)
    return { ...(Number.isFinite(limit) ? { limit } : {}), open: this.#open.get(key) ?? 0 }
  }

  #placesOf(share: number): number {
    return Math.round(this.#each / share)
  }

  #vacate(key: string): void {
    const left = this.#open.get(key)! - 1
    if (left === 0) this.#open.delete(key)
    else this.#open.set(key, left)
  }
}

const byAddress: PlaceKeeper = {
  keeps: () => {},
  holders: ({ address }) => [{ key: address, share: 1 }],
  placeRefused: () => {},
}

/** How a refusal names what a client's places count against. */
export const fromYou = 'from your network (an IPv4 address, or an IPv6 /64 or /48), or by your sign-in'
