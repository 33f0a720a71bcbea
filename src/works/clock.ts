/**
 * The market's clock: timeouts are written down, and with that posted, told and logged, though nobody asks about them.
 *
 * Every few seconds the market is told that time has passed. It answers when the next timeout is due, and how many it has written:
 * as many as it may in one turn means that there may be more.
 */

import { internalLetter } from '../../actors/internal-letter.ts'
import { sizes } from '../../actors/kernel/limits.ts'
import { type BeginArgs, marketName, type TickArgs, type TickReply } from '../../actors/works/market/letters.ts'
import type { Actors } from '../command/ports.ts'

/** A timeout is written down so soon after it is due; readers see it at once. */
const everyMs = 5_000
const againMs = 1_000
/** Works written in one turn: their records take a few milliseconds, and whoever writes meanwhile waits for them. */
const worksMax = 100

const nobody = '0'.repeat(64)

export class MarketClock {
  readonly #actors: Pick<Actors, 'write'>
  /** Recovery epoch. */
  readonly #generation: string
  #closed = false

  constructor(actors: Pick<Actors, 'write'>, generation: string) {
    this.#actors = actors
    this.#generation = generation
  }

  /** Resolves when the market knows of this start and everything that fell due while the board was down is written, or cannot be now. */
  begin(): Promise<void> {
    return new Promise((resolve) => {
      const args: BeginArgs = { generation: this.#generation, rewards: sizes.credit_rewards_pool }
      const ask = (): void =>
        this.#actors.write(internalLetter('market.begin', marketName, nobody, args), (answer) => {
          if (answer?.ok === true) return this.#tick(resolve)
          // On a full disk, say: what can be read is read meanwhile.
          if (!this.#closed) later(ask, againMs)
          resolve()
        })
      ask()
    })
  }

  close(): void {
    this.#closed = true
  }

  /** `idle`: called when nothing more is due. */
  #tick(idle?: () => void): void {
    if (this.#closed) return
    const args: TickArgs = { generation: this.#generation, works_max: worksMax }
    this.#actors.write(internalLetter('work.tick', marketName, nobody, args), (answer) => {
      const written = answer?.ok === true ? (answer.reply as TickReply).written : 0
      if (written === worksMax) return this.#tick(idle)
      later(() => this.#tick(), everyMs)
      idle?.()
    })
  }
}

/** Keeps no process alive. */
function later(callback: () => void, ms: number): void {
  setTimeout(callback, ms).unref()
}
