/**
 * Effects of what an operator decided once, in the rooms of every shard: posts that are hidden or shown, files that are removed. Each is
 * carried out until that succeeds, and one that sets something is looked at once more, because what was under way when it was decided may
 * be written after it. What is left to do is never written down: a start finds it again.
 */
import { type Clock, pause } from '../clock.ts'

const againMs = 500
const lookAgainMs = 5_000

type EffectsOptions = {
  readonly later: Clock['later']
  /** Brings about that it is so, or no longer so, of this name. False: an actor gives no answer now, or something else is wanted since. */
  readonly carryOut: (name: string, isSet: boolean) => Promise<boolean>
  /** It was decided, and has not ended since. */
  readonly isSet: (name: string) => boolean
}

export class Effects {
  readonly #options: EffectsOptions
  /** Name -> what is wanted of it, and not known to be done. */
  readonly #wanted = new Map<string, boolean>()
  /** Those that are looked at once more. */
  readonly #lookedAt = new Set<string>()
  #isRunning = false
  #closed = true

  constructor(options: EffectsOptions) {
    this.#options = options
  }

  get isClosed(): boolean {
    return this.#closed
  }

  /** From now on what is wanted is carried out. */
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
    void this.#carryOut().finally(() => {
      this.#isRunning = false
      if (this.#wanted.size > 0) this.#run()
    })
  }

  async #carryOut(): Promise<void> {
    for (const [name, isSet] of this.#wanted) {
      const isDone = await this.#options.carryOut(name, isSet)
      if (this.#closed) return
      if (!this.isWanted(name, isSet)) continue
      if (isDone) {
        this.#wanted.delete(name)
        if (isSet) this.#lookAgain(name)
      } else await pause(this.#options, againMs)
    }
  }

  #lookAgain(name: string): void {
    if (this.#lookedAt.delete(name)) return
    this.#lookedAt.add(name)
    this.#options.later(() => {
      if (this.#options.isSet(name)) this.want(name, true)
      else this.#lookedAt.delete(name)
    }, lookAgainMs)
  }
}
