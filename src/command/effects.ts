/**
 * Effects of operator decisions in the rooms of every shard: posts that are hidden or shown, files that are removed. Each is retried until
 * it succeeds. One that sets something is repeated once more later, because a write that was pending at the decision may be stored after
 * it. The pending effects are not stored: a start finds them again.
 */
import { type Clock, pause } from '../clock.ts'

const retryMs = 500
const recheckMs = 5_000

type EffectsOptions = {
  readonly later: Clock['later']
  /** Applies or reverts the effect for this name. False if an actor gives no answer now, or the wanted state has changed since. */
  readonly apply: (name: string, isSet: boolean) => Promise<boolean>
  /** Whether the decision is in effect. */
  readonly isSet: (name: string) => boolean
}

export class Effects {
  readonly #options: EffectsOptions
  /** Name -> wanted state, if it is not known to be reached. */
  readonly #wanted = new Map<string, boolean>()
  /** Names that will be applied once more. */
  readonly #rechecked = new Set<string>()
  #isRunning = false
  #closed = true

  constructor(options: EffectsOptions) {
    this.#options = options
  }

  get isClosed(): boolean {
    return this.#closed
  }

  /** From now on, wanted effects are carried out. */
  begin(): void {
    this.#closed = false
    this.#run()
  }

  close(): void {
    this.#closed = true
  }

  want(name: string, isSet: boolean): void {
    this.#wanted.set(name, isSet)
    this.#run()
  }

  isWanted(name: string, isSet: boolean): boolean {
    return this.#wanted.get(name) === isSet
  }

  #run(): void {
    if (this.#isRunning || this.#closed) return
    this.#isRunning = true
    void this.#applyWanted().finally(() => {
      this.#isRunning = false
      if (this.#wanted.size > 0) this.#run()
    })
  }

  async #applyWanted(): Promise<void> {
    for (const [name, isSet] of this.#wanted) {
      const isDone = await this.#options.apply(name, isSet)
      if (this.#closed) return
      if (!this.isWanted(name, isSet)) continue
      if (isDone) {
        this.#wanted.delete(name)
        if (isSet) this.#recheck(name)
      } else await pause(this.#options, retryMs)
    }
  }

  #recheck(name: string): void {
    if (this.#rechecked.delete(name)) return
    this.#rechecked.add(name)
    this.#options.later(() => {
      if (this.#options.isSet(name)) this.want(name, true)
      else this.#rechecked.delete(name)
    }, recheckMs)
  }
}
