/** Those whose time has not come yet: one timer serves all of them, however many they are, and none runs while there are none. */
import type { Cancel, Timers } from '../../actors/kernel/timers.ts'

export type WaitsOptions<Item> = {
  /** When its time comes, in milliseconds of `now`. */
  readonly due: (item: Item) => number
  readonly now: () => number
  readonly timers: Pick<Timers, 'later'>
  readonly come: (item: Item) => void
}

const lookEveryMs = 50

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
