/**
 * Hides all posts of an identity that was suspended with `hide_posts`, and shows them again when the suspension ends.
 *
 * The registry decides once; the posts are in rooms of every shard. Each room marks its own posts, some hundred per turn, in records of its
 * journal, so that every thread that follows has as little to do at a time. What is left to do is the difference between the suspensions
 * and the marked posts. A work requested before the suspension may be posted after it, by a letter between shards, so each identity is
 * checked once more.
 */

import { internalLetter } from '../../actors/records/internal-operations.ts'
import { nameOn } from '../../actors/shard.ts'
import { type Clock, pause } from '../clock.ts'
import { Effects } from '../command/effects.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import { type Actors, whenDecided } from '../command/ports.ts'
import { type AnswerOf, dataOf } from '../reads/read.ts'

type AuthorPostsOptions = {
  readonly actors: Pick<Actors, 'write' | 'readPrivate' | 'shards'>
  readonly news: Pick<LiveFacts, 'onSuspension' | 'noteChange' | 'hidden'>
  /** Identity id of the board, which carries this out. */
  readonly board: string
  readonly later: Clock['later']
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

type RoomsLeft = AnswerOf<'author.rooms'>

const retryMs = 500

export class AuthorPosts {
  readonly #options: AuthorPostsOptions
  readonly #effects: Effects

  constructor(options: AuthorPostsOptions) {
    const { news, later } = options
    this.#options = options
    this.#effects = new Effects({
      later,
      apply: (identity, isHidden) => this.#mark(identity, isHidden),
      isSet: (identity) => news.hidden.has(identity),
    })
    news.onSuspension((identity, hidesPosts) => this.#effects.want(identity, hidesPosts))
  }

  /** Continues what an earlier run left. */
  resume(): void {
    for (const identity of this.#options.news.hidden) this.#effects.want(identity, true)
    this.#effects.begin()
    void this.#findEnded()
  }

  close(): void {
    this.#effects.close()
  }

  /** Finds suspensions that have ended and whose posts are not all shown yet. */
  async #findEnded(): Promise<void> {
    const { actors, news } = this.#options
    for (let shard = 0; shard < actors.shards; ) {
      const authors = await this.#ended(shard)
      if (this.#effects.isClosed) return
      if (authors === undefined) await pause(this.#options, retryMs)
      else shard++
      for (const identity of authors ?? []) if (!news.hidden.has(identity)) this.#effects.want(identity, false)
    }
  }

  /** Returns false if an actor gives no answer now, or something else has been requested since. */
  async #mark(identity: string, isHidden: boolean): Promise<boolean> {
    for (let shard = 0; shard < this.#options.actors.shards; shard++) {
      if (!(await this.#isDecided(shard))) return false
      for (let from = 0; ; ) {
        const left = await this.#roomsLeft(shard, identity, isHidden, from)
        if (left === undefined) return false
        for (const room of left.rooms) if (!(await this.#markIn(room, identity, isHidden, from))) return false
        if (left.next === 0) break
        from = left.next
      }
    }
    return true
  }

  async #markIn(room: string, identity: string, isHidden: boolean, begin: number): Promise<boolean> {
    for (let from = begin; ; ) {
      if (this.#effects.isClosed || !this.#effects.isWanted(identity, isHidden)) return false
      const next = await this.#step(room, identity, isHidden, from)
      if (next === undefined || next === 0) return next === 0
      from = next
    }
  }

  #ended(shard: number): Promise<readonly string[] | undefined> {
    return new Promise((resolve) =>
      this.#options.actors.readPrivate(shard, { op: 'author.hidden', args: {}, reader: '' }, (found) =>
        resolve(found?.ok === true ? dataOf(found).authors : undefined),
      ),
    )
  }

  /** Resolves when everything sent to this shard earlier has been decided, including what the identity wrote last. */
  #isDecided(shard: number): Promise<boolean> {
    const { actors } = this.#options
    return new Promise((resolve) => whenDecided(actors, nameOn(shard, actors.shards), resolve))
  }

  #roomsLeft(shard: number, target: string, isHidden: boolean, from: number): Promise<RoomsLeft | undefined> {
    const request = { op: 'author.rooms', args: { target, hidden: Number(isHidden), from }, reader: '' } as const
    return new Promise((resolve) =>
      this.#options.actors.readPrivate(shard, request, (found) =>
        resolve(found?.ok === true ? dataOf(found) : undefined),
      ),
    )
  }

  /** Slot at which to continue; 0 if this room is done. */
  #step(room: string, target: string, isHidden: boolean, from: number): Promise<number | undefined> {
    const { actors, news, board, report } = this.#options
    const op = isHidden ? 'author.hide' : 'author.show'
    return new Promise((resolve) =>
      actors.write(internalLetter(op, room, board, { target, from }), (answer) => {
        if (answer?.ok !== true) {
          report({ op, room, code: answer?.refusal.code ?? '' })
          return resolve(undefined)
        }
        if (answer.change !== undefined) news.noteChange(room, answer.change)
        resolve(answer.reply.next)
      }),
    )
  }
}
