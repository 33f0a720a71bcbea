/**
 * Up to where writes may be answered: as far as the stream has the journals, and where it is wanted, as far as a follower has them too.
 *
 * A start waits for no follower, because those wait for it: what is written until then has to be in the stream alone.
 */
import type { Ends } from './journals-out.ts'

export class Acknowledgments {
  readonly #tell: (ends: Ends) => void
  readonly #waitsForCopy: boolean
  #isStarted = false
  #stream: Ends | undefined
  /** Of each journal as much as some follower has of it; until the start as much as the stream has. */
  #copied: Ends | undefined

  constructor(waitsForCopy: boolean, tell: (ends: Ends) => void) {
    this.#waitsForCopy = waitsForCopy
    this.#tell = tell
  }

  /** The board answers from now on. */
  started(): void {
    this.#isStarted = true
  }

  stream(ends: Ends): void {
    this.#stream = ends
    if (!this.#isStarted) this.#copied = ends
    this.#tellOn()
  }

  /** Only where a copy is waited for. */
  copy(ends: Ends): void {
    this.#copied = this.#copied === undefined ? ends : byJournal(Math.max, this.#copied, ends)
    this.#tellOn()
  }

  #tellOn(): void {
    if (this.#stream === undefined) return
    if (!this.#waitsForCopy) this.#tell(this.#stream)
    else if (this.#copied !== undefined) this.#tell(byJournal(Math.min, this.#stream, this.#copied))
  }
}

function byJournal(chosen: (a: number, b: number) => number, some: Ends, others: Ends): Ends {
  return {
    log: chosen(some.log, others.log),
    shards: some.shards.map((end, shard) => chosen(end, others.shards[shard] ?? 0)),
  }
}
