/**
 * Where each record of the old journals is in the new ones: on the shard of the actor that decided it. References to places in shards are
 * translated: the positions of webhooks, and the numbers by which the market and the rooms refer to its records.
 */

import { ActsOf, fromFrame } from '../../actors/records/record.ts'
import { shardOf } from '../../actors/shard.ts'
import type { HookFacts } from '../../actors/webhooks/webhooks.ts'
import { marketName } from '../../actors/works/market/letters.ts'
import { UnusableDirectory } from '../board-directory.ts'
import type { OldJournals } from './old-journals.ts'

/** Operations that create or renew a webhook. */
export const hookActs = new ActsOf<HookFacts>('webhook.create', 'hook.subscribe')

export type PlaceInShard = { readonly shard: number; readonly seq: number }

export class Places {
  /** Number of records in each new shard. */
  readonly counts: number[]
  /** By old shard and number: the new shard, and the number there. */
  readonly #shards: Uint8Array[]
  readonly #seqs: Uint32Array[]
  /** The old shard of the market. */
  readonly #market: number
  /** Webhook -> the old shard of its owner. */
  readonly #hooks = new Map<string, number>()

  /** Reads all of the journals. */
  constructor(old: OldJournals, shards: number, onProgress: (records: number) => void) {
    this.counts = Array<number>(shards).fill(0)
    this.#shards = old.ends.map((end) => new Uint8Array(end))
    this.#seqs = old.ends.map((end) => new Uint32Array(end))
    this.#market = shardOf(marketName, old.ends.length)
    let done = 0
    for (const step of old.inOrder()) {
      if ('head' in step) continue
      const { shard, frame } = step
      const record = fromFrame(frame)
      const { room: actor } = record
      if (hookActs.is(record)) this.#hooks.set(record.facts.hook, shard)
      if (shardOf(actor, old.ends.length) !== shard)
        throw new UnusableDirectory(
          `Frame ${frame.seq} of shard ${shard} was decided by an actor of shard ${shardOf(actor, old.ends.length)}, which a board never does. Run broadside fsck.`,
        )
      const to = shardOf(actor, shards)
      this.#shards[shard]![frame.seq - 1] = to
      this.#seqs[shard]![frame.seq - 1] = ++this.counts[to]!
      onProgress(++done)
    }
  }

  of(shard: number, seq: number): PlaceInShard {
    const place = this.find(shard, seq)
    if (place === undefined) throw new Error(`no journal of a shard ${shard} has a frame ${seq}`)
    return place
  }

  /** Undefined if the old journals have no such frame. */
  find(shard: number, seq: number): PlaceInShard | undefined {
    const to = this.#shards[shard]?.[seq - 1]
    return to === undefined ? undefined : { shard: to, seq: this.#seqs[shard]![seq - 1]! }
  }

  /** The new number of a record of the market. */
  ofMarket(seq: number): number {
    return this.of(this.#market, seq).seq
  }

  /** The new number of the record that created a webhook; 0 if there is none with this name. */
  ofHook(hook: string, seq: number): number {
    const shard = this.#hooks.get(hook)
    return shard === undefined ? 0 : (this.find(shard, seq)?.seq ?? 0)
  }

  /**
   * Translates the next places of the feed and of each old shard to those of the feed and of each new one. Nothing after the old places is
   * before the new ones. If an old shard was behind the others, some earlier records may be repeated.
   */
  marks([feed, ...old]: readonly number[]): number[] {
    if (feed === undefined) return []
    if (old.length === 0) return [feed]
    return [feed, ...this.counts.map((count, shard) => this.#next(shard, count + 1, old))]
  }

  #next(to: number, end: number, old: readonly number[]): number {
    let next = end
    for (const [shard, shards] of this.#shards.entries()) {
      const from = (old[shard] ?? Number.POSITIVE_INFINITY) - 1
      const found = from < shards.length ? shards.indexOf(to, Math.max(0, from)) : -1
      if (found >= 0) next = Math.min(next, this.#seqs[shard]![found]!)
    }
    return next
  }
}
