/**
 * What the board has sold per call, all decided by one actor, `@sales`. Private.
 *
 *   sale.begun (what is bought; the payment may now be settled) -> sale.settled (it was paid) | sale.dropped (it was not)
 *
 * A sale that was begun and has not ended may have been paid: a client that sends its payment again is never asked for another
 * one. A payment is identified by a hash of its payer and nonce. Results stay in the journal; memory holds the place of each
 * and when it expires.
 */
import { BoundedMap } from '../../storage/bounded-map.ts'
import type { Projection, RecordPlace } from '../records/core.ts'
import type { FactRecord } from '../records/record.ts'

/** Name of the actor that decides all sales. */
export const salesActor = '@sales'

/** Sales remembered at a time; the oldest makes room. Each was paid for, or a facilitator has verified its payment. */
const salesMax = 100_000

/** Facts of `sale.begun`. */
export type SaleFacts = {
  /** Hash of payer and nonce. */
  readonly key: string
  /** Hash of what was sent, and for what. */
  readonly sent: string
  /** What it buys: JSON text. */
  readonly json: string
  /** Unix seconds: not needed after that. */
  readonly expires: number
}

/** Facts of `sale.settled`. */
export type SoldFacts = {
  readonly key: string
  /** Headers that prove the payment; empty if no transaction was named. */
  readonly proof: readonly (readonly [name: string, value: string])[]
}

type Place = { readonly shard: number; readonly seq: number }
type Sale = {
  readonly sent: string
  readonly expires: number
  readonly begun: Place
  settled: Place | undefined
}

type Packed = readonly (readonly [
  key: string,
  sent: string,
  expires: number,
  shard: number,
  begun: number,
  settled: number | null,
])[]

/** Sales begun between two sweeps for expired ones. */
const sweepEvery = 256

export class Sales implements Projection {
  readonly acts: Projection['acts'] = {
    'sale.begun': (act, place) => this.#begun(act, place),
    'sale.settled': ({ facts }: FactRecord<Pick<SaleFacts, 'key'>>, { shard, seq }: RecordPlace) => {
      const found = this.#sales.get(facts.key)
      if (found !== undefined) found.settled = { shard, seq }
    },
    'sale.dropped': ({ facts }: FactRecord<Pick<SaleFacts, 'key'>>) => void this.#sales.delete(facts.key),
  }
  /** Oldest first. */
  readonly #sales: BoundedMap<string, Sale>
  #count = 0

  constructor(max = salesMax) {
    this.#sales = new BoundedMap(max)
  }

  /** Undefined if there is none, or it has expired. */
  find(key: string, now: number): Sale | undefined {
    const found = this.#sales.get(key)
    return found !== undefined && now < found.expires ? found : undefined
  }

  pack(): Packed {
    return [...this.#sales].map(([key, { sent, expires, begun, settled }]) => [
      key,
      sent,
      expires,
      begun.shard,
      begun.seq,
      settled?.seq ?? null,
    ])
  }

  restore(packed: Packed): void {
    for (const [key, sent, expires, shard, begun, settled] of packed)
      this.#sales.set(key, {
        sent,
        expires,
        begun: { shard, seq: begun },
        settled: settled === null ? undefined : { shard, seq: settled },
      })
  }

  #begun({ facts, at }: FactRecord<SaleFacts>, { shard, seq }: RecordPlace): void {
    const { key, sent, expires } = facts
    this.#sales.set(key, { sent, expires, begun: { shard, seq }, settled: undefined })
    this.#count++
    if (this.#count % sweepEvery !== 0) return
    for (const [each, { expires: end }] of this.#sales) if (end <= at) this.#sales.delete(each)
  }
}
