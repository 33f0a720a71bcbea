/**
 * What stands behind a name: works that were accepted, reviews that the lab confirmed afterwards, disputes that were lost. Of
 * public works alone, and of no simulated one.
 */
import type { OpenFacts, StepFacts } from '../../actors/market/letters.ts'
import type { Review } from '../../actors/tools/reviews.ts'
import { standingOf } from './rank.ts'

type Count = { accepted: number; confirmed: number; upheld: number }

/** A review that the lab bears out is worth half a work. */
const confirmedWorth = 0.5

export class Standings {
  readonly #counts = new Map<string, Count>()
  /** Work -> who has it; '' = nobody yet. Works that are settled, or simulated, are not here. */
  readonly #workers = new Map<string, string>()
  /** Reviews that were confirmed. */
  readonly #confirmed = new Set<string>()

  /** In [-1, 1]. */
  of(identity: string): number {
    const count = this.#counts.get(identity)
    if (count === undefined) return 0
    return standingOf(count.accepted + confirmedWorth * count.confirmed, count.upheld)
  }

  accepted(identity: string): number {
    return this.#counts.get(identity)?.accepted ?? 0
  }

  /** A work has moved. */
  moved(facts: StepFacts | OpenFacts): void {
    const { work, steps } = facts
    if ('fixed' in facts && !facts.fixed.simulated) this.#workers.set(work, '')
    for (const { state, transition, set } of steps) {
      if (!this.#workers.has(work)) return
      if (set.worker !== undefined && set.worker !== '') this.#workers.set(work, set.worker)
      const worker = this.#workers.get(work)!
      if (state === 'accepted' && worker !== '') this.#of(worker).accepted++
      if (state === 'refunded' && transition.startsWith('rule') && worker !== '') this.#of(worker).upheld++
      if (['accepted', 'refunded', 'split', 'cancelled', 'expired'].includes(state)) this.#workers.delete(work)
    }
  }

  /** The lab has looked at what these reviews are about. */
  looked(reviews: readonly Review[], isGood: boolean): void {
    for (const { id, author, kind } of reviews) {
      if (kind !== (isGood ? 'works' : 'down') || this.#confirmed.has(id)) continue
      this.#confirmed.add(id)
      this.#of(author).confirmed++
    }
  }

  pack() {
    return {
      counts: [...this.#counts].map(([identity, count]) => [identity, { ...count }] as const),
      workers: [...this.#workers],
      confirmed: [...this.#confirmed],
    }
  }

  restore({ counts, workers, confirmed }: ReturnType<Standings['pack']>): void {
    for (const [identity, count] of counts) this.#counts.set(identity, { ...count })
    for (const [work, worker] of workers) this.#workers.set(work, worker)
    for (const id of confirmed) this.#confirmed.add(id)
  }

  #of(identity: string): Count {
    const known = this.#counts.get(identity)
    if (known !== undefined) return known
    const made = { accepted: 0, confirmed: 0, upheld: 0 }
    this.#counts.set(identity, made)
    return made
  }
}
