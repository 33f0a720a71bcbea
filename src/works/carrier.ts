/**
 * Carries letters about works between shards, and their answers back (actors/works/delivery.ts). Nothing is lost with it: a letter lies
 * in the journal of its shard until that shard knows that it was delivered.
 */

import type { Head, ShardAnswer } from '../../actors/records/answer.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import type { Carried } from '../../actors/works/delivery.ts'
import type { Actors, NoAnswer } from '../command/ports.ts'

export type CarrierTell =
  /** What came of a letter to another shard; no answer: nobody knows, and it is not sent again. */
  | readonly ['carried', n: number, answer: ShardAnswer | NoAnswer, head: Head | undefined]
  /** Results that an earlier life of the board has bound, and the market did not take, are let go. */
  | readonly ['release']

type CarrierOptions = {
  readonly actors: Pick<Actors, 'write' | 'shards'> & { tellShard(shard: number, tell: CarrierTell): void }
  /** A public change of a room that answers kept at the front have to know of. */
  readonly noteChange: (room: string, change: number) => void
  readonly later: (callback: () => void, ms: number) => void
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

const againMs = 100
const againMaxMs = 5_000

export class Carrier {
  readonly #options: CarrierOptions
  /** By shard: which of its lives this is. What an earlier one has sent is sent again by the next. */
  readonly #lives: number[]
  readonly #resting = new Set<number>()
  #stuck = false
  #closed = false
  #rested: (() => void) | undefined

  constructor(options: CarrierOptions) {
    this.#options = options
    this.#lives = Array.from({ length: options.actors.shards }, () => 0)
  }

  carry(shard: number, letters: readonly Carried[]): void {
    for (const each of letters) this.#send(shard, this.#lives[shard]!, each, 0)
  }

  /** Everything that an earlier life of this shard has left is said, or cannot be said now. */
  atRest(shard: number): void {
    this.#resting.add(shard)
    this.#check()
  }

  shardLost(shard: number): void {
    this.#lives[shard]!++
  }

  /** Resolves when all that an earlier run has left is said, or cannot be said now; what was bound and never taken is let go then. */
  async resume(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#rested = resolve
      this.#check()
    })
    for (let shard = 0; shard < this.#options.actors.shards; shard++) this.#options.actors.tellShard(shard, ['release'])
  }

  close(): void {
    this.#closed = true
  }

  #check(): void {
    if (this.#stuck || this.#resting.size === this.#options.actors.shards) this.#rested?.()
  }

  #send(shard: number, life: number, { n, letter, once }: Carried, failures: number): void {
    const { actors, later } = this.#options
    actors.write(letter, (answer, head) => {
      if (this.#closed || this.#lives[shard] !== life) return
      if (answer?.ok === true || once) {
        if (answer?.ok === true && answer.change !== undefined) this.#options.noteChange(letter.to, answer.change)
        return actors.tellShard(shard, ['carried', n, answer, head])
      }
      this.#reportRefusal(letter, answer?.refusal.code ?? '')
      later(
        () => this.#again(shard, life, { n, letter, once }, failures + 1),
        Math.min(againMaxMs, againMs * 2 ** failures),
      )
    })
  }

  #again(shard: number, life: number, each: Carried, failures: number): void {
    if (!this.#closed && this.#lives[shard] === life) this.#send(shard, life, each, failures)
  }

  /** An actor refuses such a letter only for what passes: too much to do, a full disk. It is sent again then. */
  #reportRefusal({ op, to }: WriteLetter, code: string): void {
    this.#options.report({ op, to, code })
    this.#stuck = true
    this.#check()
  }
}
