/** A circuit breaker for each tool: after failures in a row it is not called for a while, then tried once. */
import { BoundedMap } from '../../storage/bounded-map.ts'

export class Breaker {
  readonly #now: () => number
  readonly #after: number
  readonly #restMs: number
  /** What failed longest ago is forgotten first. */
  readonly #tools: BoundedMap<string, { failures: number; until: number }>

  /** `now`: monotonic milliseconds. Opens `after` so many failures in a row, for `restMs`. */
  constructor({
    now,
    after,
    restMs,
    toolsMax,
  }: { now: () => number; after: number; restMs: number; toolsMax: number }) {
    this.#now = now
    this.#after = after
    this.#restMs = restMs
    this.#tools = new BoundedMap(toolsMax)
  }

  /** When it was open and has rested, the next failure opens it again. */
  isOpen(tool: string): boolean {
    return (this.#tools.get(tool)?.until ?? 0) > this.#now()
  }

  note(tool: string, isGood: boolean): void {
    if (isGood) {
      this.#tools.delete(tool)
      return
    }
    const failures = (this.#tools.get(tool)?.failures ?? 0) + 1
    this.#tools.set(tool, { failures, until: failures >= this.#after ? this.#now() + this.#restMs : 0 })
  }
}
