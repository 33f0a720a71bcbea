/**
 * Hides all posts of an identity that was suspended with `hide_posts`, and shows them again when that ends.
 *
 * The registry decides once; the posts lie in the rooms of every shard. Each room marks its own, some hundred in a turn, in records of
 * its journal: so every thread that follows has as little to do at a time. What is left to do is never written down. It is the
 * difference between who is suspended and which posts are marked, so a start finds it again.
 */

import { internalLetter } from '../../actors/records/internal-operations.ts'
import { nameOn } from '../../actors/shard.ts'
import { type Clock, pause } from '../clock.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import { type Actors, whenDecided } from '../command/ports.ts'
import { type AnswerOf, dataOf } from '../reads/read.ts'

type AuthorPostsOptions = {
  readonly actors: Pick<Actors, 'write' | 'readPrivate' | 'shards'>
  readonly news: Pick<LiveFacts, 'onSuspension' | 'noteChange' | 'hidden'>
  /** Identity id of the board, which does this. */
  readonly board: string
  readonly later: Clock['later']
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

type RoomsLeft = AnswerOf<'author.rooms'>

const againMs = 500
/** A work that was requested before the suspension may be posted after it, by a letter between shards. */
const lookAgainMs = 5_000

export class AuthorPosts {
  readonly #options: AuthorPostsOptions
  /** Identity -> whether its posts are to be hidden: what is not known to be done. */
  readonly #wanted = new Map<string, boolean>()
  /** Identities that are looked at once more. */
  readonly #lookedAt = new Set<string>()
  #isRunning = false
  #closed = true

  constructor(options: AuthorPostsOptions) {
    this.#options = options
    options.news.onSuspension((identity, hidesPosts) => this.#want(identity, hidesPosts))
  }

  /** Carries on with what an earlier run has left. */
  resume(): void {
    this.#closed = false
    for (const identity of this.#options.news.hidden) this.#want(identity, true)
    void this.#findEnded()
    this.#run()
  }

  close(): void {
    this.#closed = true
  }

  /** Suspensions that ended, whose posts are not all shown yet. */
  async #findEnded(): Promise<void> {
    const { actors, news } = this.#options
    for (let shard = 0; shard < actors.shards; ) {
      const authors = await this.#ended(shard)
      if (this.#closed) return
      if (authors === undefined) await pause(this.#options, againMs)
      else shard++
      for (const identity of authors ?? []) if (!news.hidden.has(identity)) this.#want(identity, false)
    }
  }

  #want(identity: string, isHidden: boolean): void {
    this.#wanted.set(identity, isHidden)
    this.#run()
  }

  #run(): void {
    if (this.#isRunning || this.#closed) return
    this.#isRunning = true
    void this.#carryOut().finally(() => {
      this.#isRunning = false
      if (this.#wanted.size > 0) this.#run()
    })
  }

  async #carryOut(): Promise<void> {
    for (const [identity, isHidden] of this.#wanted) {
      const isDone = await this.#mark(identity, isHidden)
      if (this.#closed) return
      if (this.#wanted.get(identity) !== isHidden) continue
      if (isDone) {
        this.#wanted.delete(identity)
        if (isHidden) this.#lookAgain(identity)
      } else await pause(this.#options, againMs)
    }
  }

  #lookAgain(identity: string): void {
    if (this.#lookedAt.delete(identity)) return
    this.#lookedAt.add(identity)
    this.#options.later(() => {
      if (this.#options.news.hidden.has(identity)) this.#want(identity, true)
      else this.#lookedAt.delete(identity)
    }, lookAgainMs)
  }

  /** False: an actor gives no answer now, or something else is wanted since. */
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
      if (this.#closed || this.#wanted.get(identity) !== isHidden) return false
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

  /** Resolves when everything is decided that was sent to this shard before: what the identity wrote last among it. */
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

  /** Slot to go on at, 0: this room is done. */
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
