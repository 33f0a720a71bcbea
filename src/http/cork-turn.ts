/**
 * Delays writes that would otherwise happen inside the cork of another connection.
 *
 * uWebSockets.js has one cork per loop and holds it for the connection whose callback is running, promise continuations
 * and `nextTick` included. `cork` on any other connection then silently does nothing, and every piece of its answer
 * becomes a system call of its own (measured in uws.ts). There is no event for the end of the cork, but no callback of
 * the engine is on the stack in the check phase of the same loop turn: so writes wait for `setImmediate`.
 */

/** Streams flushed per loop turn: 500 take about 5 ms, which a request in between may have to wait. */
const flushesPerTurnMax = 500

export interface Flushable {
  flush(): void
}

export class CorkTurn {
  #holder: object | undefined
  #scheduled = false
  #actions: (() => void)[] = []
  #streams: Flushable[] = []
  #next = 0

  /** Called first in every callback the engine makes: `holder` has the cork for the rest of it. */
  enter(holder: object): void {
    this.#holder = holder
    this.#schedule()
  }

  /** Whether `who` may cork now and the cork will work. */
  isFree(who: object): boolean {
    return this.#holder === undefined || this.#holder === who
  }

  /** Runs the action in the check phase of this loop turn. It must not throw. */
  defer(action: () => void): void {
    this.#actions.push(action)
    this.#schedule()
  }

  /** Flushes the stream in this loop turn, or in one of the next when many are waiting. The caller asks once per flush. */
  deferFlush(stream: Flushable): void {
    this.#streams.push(stream)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(this.#run)
  }

  #run = (): void => {
    this.#scheduled = false
    this.#holder = undefined
    if (this.#actions.length > 0) {
      const actions = this.#actions
      this.#actions = []
      for (const action of actions) action()
    }
    if (this.#streams.length === 0) return
    const end = Math.min(this.#streams.length, this.#next + flushesPerTurnMax)
    while (this.#next < end) this.#streams[this.#next++]?.flush()
    if (this.#next === this.#streams.length) {
      this.#streams = []
      this.#next = 0
      return
    }
    // Under a load that never empties the list, its used part must still be given back.
    if (this.#next > 16 * flushesPerTurnMax) {
      this.#streams = this.#streams.slice(this.#next)
      this.#next = 0
    }
    this.#schedule()
  }
}
