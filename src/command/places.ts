/**
 * Places: how many things of one kind (streams, waits, downloads) may be open at the same time, in all and for each who holds them.
 * Whoever opens one takes its place before any work is done for it, and leaves it when the work and the connection are over:
 * a client that hangs up at once may not start the next one while the board still works on the last.
 */
import type { Subject } from './meters.ts'
import type { Source } from './throttle.ts'

/** Whom something that stays open counts against: networks, or the identity of a sign-in. */
export type Holders = (source: Source) => readonly Subject[]

/** Gives the place back; again, it does nothing. */
export type Leave = () => void

export type PlacesOptions = {
  /** Places of one holder; Infinity: no bound. */
  readonly each: number
  readonly max?: number
  /** Absent: each address by itself. */
  readonly holders?: Holders | undefined
}

/** How long who is refused a place is told to wait. */
export const streamWaitSeconds = 5

export class Places {
  readonly #each: number
  readonly #max: number
  readonly #holders: Holders
  readonly #open = new Map<string, number>()
  taken = 0

  constructor({ each, max = Number.POSITIVE_INFINITY, holders = byAddress }: PlacesOptions) {
    this.#each = each
    this.#max = max
    this.#holders = holders
  }

  /** A place for this client, or what has none left: those whom it counts against, or the board. */
  take(source: Source): Leave | 'holder' | 'board' {
    const holders = this.#holders(source)
    if (holders.some(({ key, share }) => (this.#open.get(key) ?? 0) >= Math.round(this.#each / share))) return 'holder'
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

  #vacate(key: string): void {
    const left = this.#open.get(key)! - 1
    if (left === 0) this.#open.delete(key)
    else this.#open.set(key, left)
  }
}

const byAddress: Holders = ({ address }) => [{ key: address, share: 1 }]

/** How a refusal names what a client's places count against. */
export const fromYou = 'from your network (an IPv4 address, or an IPv6 /64 or /48), or by your sign-in'
