/**
 * The market's clock: it has timeouts recorded, and so posted, announced and logged, even if no command asks about them.
 *
 * Every few seconds the market is notified that time has passed. It answers how many timeouts it has recorded. If that is the maximum of
 * one turn, there may be more.
 */

import { sizes } from '../../actors/kernel/limits.ts'
import { internalLetter } from '../../actors/records/internal-operations.ts'
import { type BeginArgs, marketName, type TickArgs } from '../../actors/works/market/letters.ts'
import type { Clock } from '../clock.ts'
import type { Actors } from '../command/ports.ts'

/** A timeout is recorded within this time after it is due; readers see it immediately. */
const everyMs = 5_000
const againMs = 1_000
/** Works recorded in one turn: their records take a few milliseconds, while other writes wait. */
const worksMax = 100

const nobody = '0'.repeat(64)

export class MarketClock {
  readonly #actors: Pick<Actors, 'write'>
  /** Recovery epoch. */
  readonly #generation: string
  readonly #later: Clock['later']
  #closed = false

  constructor(actors: Pick<Actors, 'write'>, generation: string, { later }: Pick<Clock, 'later'>) {
    this.#actors = actors
    this.#generation = generation
    this.#later = later
  }

  /**
   * Resolves when the market knows of this start, and everything that fell due while the board was down is written or cannot be for now.
   */
  begin(): Promise<void> {
    return new Promise((resolve) => {
      const args: BeginArgs = { generation: this.#generation, rewards: sizes.credit_rewards_pool }
      const ask = (): void =>
        this.#actors.write(internalLetter('market.begin', marketName, nobody, args), (answer) => {
          if (answer?.ok === true) return this.#tick(resolve)
          // For example on a full disk: reads still work meanwhile.
          if (!this.#closed) this.#later(ask, againMs)
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
      const written = answer?.ok === true ? answer.reply.written : 0
      if (written === worksMax) return this.#tick(idle)
      this.#later(() => this.#tick(), everyMs)
      idle?.()
    })
  }
}
