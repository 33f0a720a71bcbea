/**
 * Hooks that are to end: each is asked for until it is found to have ended, or to live, by its actor. A full disk, a busy shard and
 * one that does not answer are each a reason to ask again later, and less and less often: thousands may run out at the same time.
 */

import type { Cancel, Timers } from '../../actors/kernel/timers.ts'
import type { HookView } from './reads.ts'
import type { HookRun } from './subscription-run.ts'

type SubscriptionExpiryOptions = {
  /** Asks once; what has come of it is not said here. */
  readonly end: (view: HookView) => Promise<void>
  /** Unix milliseconds. */
  readonly now: () => number
  /** Of all waits; 1 but in tests. */
  readonly scale: number
}

/** Asked for at the same time. */
export const endingsMax = 16
const againFirstMs = 1_000
const againMaxMs = 300_000

type Ending = { isAsked: boolean; notBefore: number; againMs: number }

export class SubscriptionExpiry {
  readonly #options: SubscriptionExpiryOptions
  readonly #endings = new Map<HookRun, Ending>()
  /** Whose turn has not come yet. */
  readonly #waiting = new Set<HookRun>()
  #underWay = 0

  constructor(options: SubscriptionExpiryOptions) {
    this.#options = options
  }

  /** It is over, or still is: it is asked for as soon as its time comes. */
  over(run: HookRun): void {
    const ending = this.#endings.get(run) ?? { isAsked: false, notBefore: 0, againMs: againFirstMs }
    this.#endings.set(run, ending)
    if (ending.isAsked || this.#options.now() < ending.notBefore) return
    this.#waiting.add(run)
    this.#next()
  }

  /** It lives, or is gone. */
  forget(run: HookRun): void {
    this.#endings.delete(run)
    this.#waiting.delete(run)
  }

  #next(): void {
    for (const run of this.#waiting) {
      if (this.#underWay >= endingsMax) return
      this.#waiting.delete(run)
      this.#ask(run, this.#endings.get(run)!)
    }
  }

  #ask(run: HookRun, ending: Ending): void {
    const { end, now, scale } = this.#options
    ending.isAsked = true
    this.#underWay++
    const asked = () => {
      ending.isAsked = false
      ending.notBefore = now() + ending.againMs * scale
      ending.againMs = Math.min(2 * ending.againMs, againMaxMs)
      this.#underWay--
      this.#next()
    }
    end(run.view).then(asked, asked)
  }
}

export type WaitsOptions<Item> = {
  /** When its time comes, in milliseconds of `now`. */
  readonly due: (item: Item) => number
  readonly now: () => number
  readonly timers: Pick<Timers, 'later'>
  readonly come: (item: Item) => void
}

const lookEveryMs = 50

/** Those whose time has not come yet: one timer serves all of them, however many they are, and none runs while there are none. */
export class Waits<Item> {
  readonly #options: WaitsOptions<Item>
  readonly #items = new Set<Item>()
  #stopLooking: Cancel | undefined

  constructor(options: WaitsOptions<Item>) {
    this.#options = options
  }

  add(item: Item): void {
    this.#items.add(item)
    this.#stopLooking ??= this.#options.timers.later(() => this.#look(), lookEveryMs)
  }

  remove(item: Item): void {
    this.#items.delete(item)
  }

  close(): void {
    this.#stopLooking?.()
    this.#items.clear()
  }

  #look(): void {
    const { due, now, come } = this.#options
    const time = now()
    this.#stopLooking = undefined
    const over = [...this.#items].filter((item) => due(item) <= time)
    for (const item of over) this.#items.delete(item)
    for (const item of over) come(item)
    if (this.#items.size > 0) this.#stopLooking ??= this.#options.timers.later(() => this.#look(), lookEveryMs)
  }
}
