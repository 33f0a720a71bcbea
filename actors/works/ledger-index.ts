/**
 * Where the entries of the public ledger are: of each record that bears some, its place, its first leaf and the number of its
 * first posting. In the feed alone, which knows leaves. Postings are numbered without gaps, so a number finds its record.
 */

import type { Projection, RecordPlace } from '../records/core.ts'
import type { FactRecord } from '../records/record.ts'
import { type CreditFacts, marketName, type Posting, type StepFacts } from './market/letters.ts'

/** A record with entries `first` to `first + count - 1`; `leaf`: of the first, counted through all logs of the board. */
export type LedgerRecord = {
  readonly first: number
  readonly count: number
  readonly shard: number
  readonly place: number
  readonly leaf: number
}

type Packed = readonly LedgerRecord[]

export class LedgerIndex implements Projection {
  readonly acts: Projection['acts'] = {}
  readonly #records: LedgerRecord[] = []

  /** Number of the newest posting, 0: there is none. */
  get newest(): number {
    const last = this.#records.at(-1)
    return last === undefined ? 0 : last.first + last.count - 1
  }

  /** The records that hold posting `first` and those after it, in order. */
  *from(first: number): Generator<LedgerRecord, void, undefined> {
    let low = 0
    let high = this.#records.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const { first: begin, count } = this.#records[middle]!
      if (begin + count <= first) low = middle + 1
      else high = middle
    }
    for (; low < this.#records.length; low++) yield this.#records[low]!
  }

  onAct(act: FactRecord<Partial<StepFacts> & Partial<CreditFacts>>, { shard, seq: place, leaf }: RecordPlace): void {
    if (act.room !== marketName) return
    const { steps = [], postings = [] } = act.facts
    const all: readonly Posting[] = [...steps.flatMap((step) => step.postings), ...postings]
    const numbers = all.flatMap(({ seq }) => seq ?? [])
    if (numbers.length > 0) this.#records.push({ first: numbers[0]!, count: numbers.length, shard, place, leaf })
  }

  pack(): Packed {
    return this.#records
  }

  restore(packed: Packed): void {
    this.#records.push(...packed)
  }
}
