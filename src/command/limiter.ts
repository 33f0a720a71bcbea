/**
 * Rate limits by the generic cell rate algorithm: one number per key, the theoretical arrival time.
 * The map is bounded: when it is full of keys that are all still charged, a new key is refused rather than an old one forgotten.
 */

export type Rate = {
  /** Units a second. */
  readonly perSecond: number
  /** Units that may come at once. */
  readonly burst: number
}

const keysMax = 200_000

export class Limiter {
  readonly #increment: number
  readonly #tolerance: number
  readonly #now: () => number
  /** key -> milliseconds of the moment when it is paid off. */
  readonly #due = new Map<string, number>()

  /** `now`: monotonic milliseconds. */
  constructor(rate: Rate, now: () => number) {
    this.#increment = 1000 / rate.perSecond
    // Without a limit nothing is ever owed.
    this.#tolerance = rate.perSecond === Number.POSITIVE_INFINITY ? 0 : this.#increment * rate.burst
    this.#now = now
  }

  /** Takes `cost` units; 0, or the whole seconds to wait (nothing is taken then). */
  take(key: string, cost = 1): number {
    const now = this.#now()
    const due = Math.max(this.#due.get(key) ?? 0, now) + cost * this.#increment
    if (due - now > this.#tolerance) return Math.max(1, Math.ceil((due - now - this.#tolerance) / 1000))
    if (!this.#due.has(key) && this.#due.size >= keysMax && !this.#forget(now)) return 1
    this.#due.set(key, due)
    return 0
  }

  /** 0, or the whole seconds until one unit would be given; takes nothing. */
  peek(key: string): number {
    const now = this.#now()
    const due = Math.max(this.#due.get(key) ?? 0, now) + this.#increment
    return due - now > this.#tolerance ? Math.max(1, Math.ceil((due - now - this.#tolerance) / 1000)) : 0
  }

  /** Units taken and not yet won back, and the whole seconds until all are. */
  owed(key: string): { units: number; seconds: number } {
    const milliseconds = Math.max(0, (this.#due.get(key) ?? 0) - this.#now())
    return {
      units: this.#increment === 0 ? 0 : Math.ceil(milliseconds / this.#increment),
      seconds: Math.ceil(milliseconds / 1000),
    }
  }

  /** Gives back what a refused or repeated request took. */
  giveBack(key: string, cost = 1): void {
    const due = this.#due.get(key)
    if (due !== undefined) this.#due.set(key, due - cost * this.#increment)
  }

  /** Drops keys that are paid off; true when there is room again. */
  #forget(now: number): boolean {
    for (const [key, due] of this.#due) if (due <= now) this.#due.delete(key)
    return this.#due.size < keysMax
  }
}
