/**
 * Carries out takedowns: removes every blob with the bytes that an operator took down from the rooms of every shard, including private
 * ones.
 *
 * The registry decides once; from then on the bytes are not served and cannot be uploaded. Each room marks its own blobs as gone, in
 * records of its journal, and its files are removed. A start queries every shard again. An upload that passed the main thread before the
 * takedown may be decided after it, so each takedown is checked once more.
 */
import { internalLetter } from '../../actors/records/internal-operations.ts'
import { nameOn } from '../../actors/shard.ts'
import type { BlobFiles } from '../../storage/blob-files.ts'
import type { Clock } from '../clock.ts'
import { Effects } from '../command/effects.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import { type Actors, whenDecided } from '../command/ports.ts'
import { dataOf } from '../reads/read.ts'

type TakedownsOptions = {
  readonly actors: Pick<Actors, 'write' | 'readPrivate' | 'shards'>
  readonly news: Pick<LiveFacts, 'onTakedown' | 'noteChange' | 'takenDown'>
  readonly files: Pick<BlobFiles, 'drop'>
  /** Identity id of the board, which carries this out. */
  readonly board: string
  readonly later: Clock['later']
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

const reason = 'an operator took these bytes down'

export class Takedowns {
  readonly #options: TakedownsOptions
  readonly #effects: Effects

  constructor(options: TakedownsOptions) {
    const { news, later } = options
    this.#options = options
    this.#effects = new Effects({
      later,
      // When a takedown ends, the file may be uploaded again; nothing is restored.
      apply: (sha256) => this.#removeEverywhere(sha256),
      isSet: (sha256) => news.takenDown.has(sha256),
    })
    news.onTakedown((sha256) => this.#effects.want(sha256, true))
  }

  /** Continues what an earlier run left. */
  resume(): void {
    for (const sha256 of this.#options.news.takenDown) this.#effects.want(sha256, true)
    this.#effects.begin()
  }

  close(): void {
    this.#effects.close()
  }

  /** Returns false if an actor gives no answer now. */
  async #removeEverywhere(sha256: string): Promise<boolean> {
    const { actors, news } = this.#options
    for (let shard = 0; shard < actors.shards; shard++) {
      // An upload that was in progress at the takedown is decided first.
      const isDecided = await new Promise((resolve) => whenDecided(actors, nameOn(shard, actors.shards), resolve))
      const rooms = isDecided === true ? await this.#roomsHolding(shard, sha256) : undefined
      if (rooms === undefined) return false
      for (const room of rooms) {
        // The takedown may have ended, after which the bytes may be uploaded again.
        if (!news.takenDown.has(sha256)) return true
        if (!(await this.#removeFrom(room, sha256))) return false
      }
    }
    return true
  }

  #roomsHolding(shard: number, sha256: string): Promise<readonly string[] | undefined> {
    return new Promise((resolve) =>
      this.#options.actors.readPrivate(shard, { op: 'blob.holders', args: { sha256 }, reader: '' }, (found) =>
        resolve(found?.ok === true ? dataOf(found) : undefined),
      ),
    )
  }

  async #removeFrom(room: string, sha256: string): Promise<boolean> {
    for (let left: number | undefined = 1; left > 0; ) {
      left = await this.#step(room, sha256)
      if (left === undefined || this.#effects.isClosed) return false
    }
    this.#options.files.drop(room, sha256)
    return true
  }

  /** How many blobs are left in this room. */
  #step(room: string, sha256: string): Promise<number | undefined> {
    const { actors, news, board, report } = this.#options
    return new Promise((resolve) =>
      actors.write(internalLetter('blob.remove', room, board, { sha256, reason }), (answer) => {
        if (answer?.ok !== true) {
          report({ room, code: answer?.refusal.code ?? '' })
          return resolve(undefined)
        }
        if (answer.change !== undefined) news.noteChange(room, answer.change)
        resolve(answer.reply.left)
      }),
    )
  }
}
