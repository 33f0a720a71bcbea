/**
 * Ends hooks: each request is repeated until the hook's actor says that it has ended, or is live. A full disk, a busy shard or
 * a missing answer are all reasons to retry later, with growing intervals: thousands of hooks may expire at the same time.
 */

import type { Cancel, Timers } from '../../actors/kernel/timers.ts'
import type { HookView } from './reads.ts'
import type { HookRun } from './subscription-run.ts'

type SubscriptionExpiryOptions = {
  /** Sends one request; its outcome is not reported here. */
  readonly end: (view: HookView) => Promise<void>
  /** Unix milliseconds. */
  readonly now: () => number
  /** Multiplies all waits; 1 except in tests. */
  readonly scale: number
}

/** Requests pending at the same time. */
export const endRequestsMax = 16
const againFirstMs = 1_000
const againMaxMs = 300_000

type EndRequest = { isAsked: boolean; notBefore: number; againMs: number }

export class SubscriptionExpiry {
  readonly #options: SubscriptionExpiryOptions
  readonly #requests = new Map<HookRun, EndRequest>()
  /** Hooks whose turn has not come yet. */
  readonly #waiting = new Set<HookRun>()
  #inProgress = 0

  constructor(options: SubscriptionExpiryOptions) {
    this.#options = options
  }

  /** The hook is over: its end is requested now, or when its next retry is due. */
  over(run: HookRun): void {
    const request = this.#requests.get(run) ?? { isAsked: false, notBefore: 0, againMs: againFirstMs }
    this.#requests.set(run, request)
    if (request.isAsked || this.#options.now() < request.notBefore) return
    this.#waiting.add(run)
    this.#next()
  }

  /** The hook is live, or gone. */
  forget(run: HookRun): void {
    this.#requests.delete(run)
    this.#waiting.delete(run)
  }

  #next(): void {
    for (const run of this.#waiting) {
      if (this.#inProgress >= endRequestsMax) return
      this.#waiting.delete(run)
      this.#ask(run, this.#requests.get(run)!)
    }
  }

  #ask(run: HookRun, request: EndRequest): void {
    const { end, now, scale } = this.#options
    request.isAsked = true
    this.#inProgress++
    const asked = () => {
      request.isAsked = false
      request.notBefore = now() + request.againMs * scale
      request.againMs = Math.min(2 * request.againMs, againMaxMs)
      this.#inProgress--
      this.#next()
    }
    end(run.view).then(asked, asked)
  }
}

export type WaitsOptions<Item> = {
  /** When the item is due, in the milliseconds of `now`. */
  readonly due: (item: Item) => number
  readonly now: () => number
  readonly timers: Pick<Timers, 'later'>
  readonly onDue: (item: Item) => void
}

const checkEveryMs = 50

/** Items that are not due yet. One timer serves all of them, and none runs while there are none. */
export class Waits<Item> {
  readonly #options: WaitsOptions<Item>
  readonly #items = new Set<Item>()
  #stopChecking: Cancel | undefined

  constructor(options: WaitsOptions<Item>) {
    this.#options = options
  }

  add(item: Item): void {
    this.#items.add(item)
    this.#stopChecking ??= this.#options.timers.later(() => this.#check(), checkEveryMs)
  }

  remove(item: Item): void {
    this.#items.delete(item)
  }

  close(): void {
    this.#stopChecking?.()
    this.#items.clear()
  }

  #check(): void {
    const { due, now, onDue } = this.#options
    const time = now()
    this.#stopChecking = undefined
    const over = [...this.#items].filter((item) => due(item) <= time)
    for (const item of over) this.#items.delete(item)
    for (const item of over) onDue(item)
    if (this.#items.size > 0) this.#stopChecking ??= this.#options.timers.later(() => this.#check(), checkEveryMs)
  }
}
