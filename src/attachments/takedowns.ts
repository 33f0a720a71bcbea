/**
 * Carries out takedowns: every blob with the bytes that an operator took down goes, in the rooms of every shard, private ones too.
 *
 * The registry decides once, and from then on the bytes are not served and cannot be uploaded. Each room marks its own blobs as
 * gone, in records of its journal, and its files are removed. What is left to do is never written down: a start asks every shard again.
 */
import { internalLetter } from '../../actors/records/internal-operations.ts'
import { nameOn } from '../../actors/shard.ts'
import type { BlobFiles } from '../../storage/blob-files.ts'
import { type Clock, pause } from '../clock.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import { type Actors, whenDecided } from '../command/ports.ts'
import { dataOf } from '../reads/read.ts'

type TakedownsOptions = {
  readonly actors: Pick<Actors, 'write' | 'readPrivate' | 'shards'>
  readonly news: Pick<LiveFacts, 'onTakedown' | 'noteChange' | 'takenDown'>
  readonly files: Pick<BlobFiles, 'drop'>
  /** Identity id of the board, which does this. */
  readonly board: string
  readonly later: Clock['later']
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

const againMs = 500
/** An upload that passed the front before the takedown may be decided after it. */
const lookAgainMs = 5_000
const reason = 'an operator took these bytes down'

export class Takedowns {
  readonly #options: TakedownsOptions
  /** SHA-256 of what is not known to be gone everywhere. */
  readonly #wanted = new Set<string>()
  /** Those that are looked at once more. */
  readonly #lookedAt = new Set<string>()
  #isRunning = false
  #closed = true

  constructor(options: TakedownsOptions) {
    this.#options = options
    options.news.onTakedown((sha256) => this.#want(sha256))
  }

  /** Carries on with what an earlier run has left. */
  resume(): void {
    this.#closed = false
    for (const sha256 of this.#options.news.takenDown) this.#want(sha256)
  }

  close(): void {
    this.#closed = true
  }

  #want(sha256: string): void {
    this.#wanted.add(sha256)
    if (this.#isRunning || this.#closed) return
    this.#isRunning = true
    void this.#carryOut().finally(() => {
      this.#isRunning = false
    })
  }

  async #carryOut(): Promise<void> {
    for (const sha256 of this.#wanted) {
      const isDone = await this.#removeEverywhere(sha256)
      if (this.#closed) return
      if (isDone) this.#done(sha256)
      else await pause(this.#options, againMs)
    }
    if (this.#wanted.size > 0) return this.#carryOut()
  }

  /** What was found gone is looked at once more. */
  #done(sha256: string): void {
    this.#wanted.delete(sha256)
    if (this.#lookedAt.delete(sha256)) return
    this.#lookedAt.add(sha256)
    this.#options.later(() => this.#want(sha256), lookAgainMs)
  }

  /** False: an actor gives no answer now. */
  async #removeEverywhere(sha256: string): Promise<boolean> {
    const { actors, news } = this.#options
    for (let shard = 0; shard < actors.shards; shard++) {
      // An upload that was under way when the file was taken down is decided first.
      const isDecided = await new Promise((resolve) => whenDecided(actors, nameOn(shard, actors.shards), resolve))
      const rooms = isDecided === true ? await this.#roomsHolding(shard, sha256) : undefined
      if (rooms === undefined) return false
      for (const room of rooms) {
        // The takedown may have ended: from then on the bytes may be uploaded again.
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
      if (left === undefined || this.#closed) return false
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
