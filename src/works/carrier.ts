/**
 * Carries letters about works between shards, and returns their answers (actors/works/delivery.ts). It may lose its state: a letter stays
 * in the journal of its shard until that shard knows that it was delivered.
 */

import type { Head, ShardAnswer } from '../../actors/records/answer.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import type { Carried } from '../../actors/works/delivery.ts'
import type { Actors, NoAnswer } from '../command/ports.ts'

export type CarrierTell =
  /** The outcome of a letter to another shard; without an answer it is unknown, and the letter is not sent again. */
  | readonly ['carried', n: number, answer: ShardAnswer | NoAnswer, head: Head | undefined]
  /** Release results that an earlier run of the board has bound and the market did not take. */
  | readonly ['release']

type CarrierOptions = {
  readonly actors: Pick<Actors, 'write' | 'shards'> & { tellShard(shard: number, tell: CarrierTell): void }
  /** Reports a public change of a room, for the answers cached by the main thread. */
  readonly noteChange: (room: string, change: number) => void
  readonly later: (callback: () => void, ms: number) => void
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

const againMs = 100
const againMaxMs = 5_000

export class Carrier {
  readonly #options: CarrierOptions
  /** By shard: number of its current run. What an earlier run sent is sent again by the next one. */
  readonly #runs: number[]
  readonly #resting = new Set<number>()
  #stuck = false
  #closed = false
  #rested: (() => void) | undefined

  constructor(options: CarrierOptions) {
    this.#options = options
    this.#runs = Array.from({ length: options.actors.shards }, () => 0)
  }

  carry(shard: number, letters: readonly Carried[]): void {
    for (const each of letters) this.#send(shard, this.#runs[shard]!, each, 0)
  }

  /** Everything that an earlier run of this shard left has been sent, or cannot be sent now. */
  atRest(shard: number): void {
    this.#resting.add(shard)
    this.#check()
  }

  shardLost(shard: number): void {
    this.#runs[shard]!++
  }

  /**
   * Resolves when everything that an earlier run left has been sent, or cannot be sent now. Then what was bound and never taken is
   * released.
   */
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

  #send(shard: number, run: number, { n, letter, once }: Carried, failures: number): void {
    const { actors, later } = this.#options
    actors.write(letter, (answer, head) => {
      if (this.#closed || this.#runs[shard] !== run) return
      if (answer?.ok === true || once) {
        if (answer?.ok === true && answer.change !== undefined) this.#options.noteChange(letter.to, answer.change)
        return actors.tellShard(shard, ['carried', n, answer, head])
      }
      this.#reportRefusal(letter, answer?.refusal.code ?? '')
      later(
        () => this.#again(shard, run, { n, letter, once }, failures + 1),
        Math.min(againMaxMs, againMs * 2 ** failures),
      )
    })
  }

  #again(shard: number, run: number, each: Carried, failures: number): void {
    if (!this.#closed && this.#runs[shard] === run) this.#send(shard, run, each, failures)
  }

  /** An actor refuses such a letter only for temporary reasons: too much load, a full disk. It is then sent again. */
  #reportRefusal({ op, to }: WriteLetter, code: string): void {
    this.#options.report({ op, to, code })
    this.#stuck = true
    this.#check()
  }
}
