/**
 * Places limit how many things of one kind (streams, waits, downloads) may be open at the same time, in total and per holder. A client
 * takes a place before any work is done for it, and leaves it when both the work and the connection are over: a client that hangs up
 * immediately cannot start the next one while the board still works on the last.
 */

import type { Rates } from '../../actors/kernel/limits.ts'
import { TurnoverMap } from '../../storage/turnover-map.ts'
import type { Source, Subject } from './meters.ts'

/** Determines whom an open thing counts against (networks, or the identity of a sign-in), and counts refusals. */
export type PlaceKeeper = {
  /** Called for each kind of places, to show what is open. */
  keeps(places: Places): void
  holders(source: Source): readonly Subject[]
  placeRefused(limit: keyof Rates): void
}

/** Releases the place. Further calls have no effect. */
export type Release = () => void

export type Held = { readonly limit?: number; readonly open: number }

type PlacesOptions = {
  /** Name of the limit, as /capabilities shows it. */
  readonly limit: keyof Rates
  /** Places per holder; Infinity for no limit. */
  readonly each: number
  readonly max?: number
  /** If absent, each address counts separately. */
  readonly keeper?: PlaceKeeper | undefined
}

/** The wait suggested to a client that is refused a place. */
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

  /** A place for this client, or who has none left: a holder, or the board. */
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

  /** What one holder has open. */
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

/** How a refusal names the holders of a client's places. */
export const fromYou = 'from your network (an IPv4 address, or an IPv6 /64 or /48), or by your sign-in'
