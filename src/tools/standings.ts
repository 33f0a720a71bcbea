/**
 * The standing of a name: how many requesters accepted a work of it, reviews that a probe confirmed afterwards, disputes that were
 * lost. A user with any number of keys can have any number of works and reviews: a requester counts once, and only as
 * credit-ties.ts has it, and reviews count as so many works at most.
 */

import type { Review } from '../../actors/tools/reviews.ts'
import type { OpenFacts, StepFacts } from '../../actors/works/market/letters.ts'
import type { CreditTies } from './credit-ties.ts'
import { standingOf } from './rank.ts'

type Count = { confirmed: number; upheld: number }

/** A review that a probe confirms is worth half a work, and ten of them all that reviews are worth. */
const confirmedWorth = 0.5
const confirmedMax = 10

export class Standings {
  readonly #ties: CreditTies
  readonly #counts = new Map<string, Count>()
  /** Reviews that were confirmed. */
  readonly #confirmed = new Set<string>()

  constructor(ties: CreditTies) {
    this.#ties = ties
  }

  /** In [-1, 1]. */
  of(identity: string): number {
    const { confirmed, upheld } = this.#counts.get(identity) ?? nothing
    const works = this.#ties.requesters(identity)
    return standingOf(works + confirmedWorth * Math.min(confirmed, confirmedMax), upheld)
  }

  /** A work has moved, by `author`. */
  moved(author: string, facts: StepFacts | OpenFacts): void {
    const loser = this.#ties.moved(author, facts)
    if (loser !== '') this.#of(loser).upheld++
  }

  /** The subjects of these reviews were probed. */
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
      confirmed: [...this.#confirmed],
    }
  }

  restore({ counts, confirmed }: ReturnType<Standings['pack']>): void {
    for (const [identity, count] of counts) this.#counts.set(identity, { ...count })
    for (const id of confirmed) this.#confirmed.add(id)
  }

  #of(identity: string): Count {
    const known = this.#counts.get(identity)
    if (known !== undefined) return known
    const made = { confirmed: 0, upheld: 0 }
    this.#counts.set(identity, made)
    return made
  }
}

const nothing: Count = { confirmed: 0, upheld: 0 }
