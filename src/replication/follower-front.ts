/** A follower as its clients see it: how far it is behind, what it does not answer then, and their writes, passed on to the leader. */

import { type Refusal, refusal, tooBusy } from '../../actors/kernel/refusals.ts'
import type { Cancel } from '../../actors/kernel/timers.ts'
import type { Clock } from '../clock.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import type { CommandSource, SignedCommand } from '../command/verified.ts'
import { type Respond, refused } from '../format/reply.ts'
import type { Exchange, Header } from '../http/port.ts'
import type { Notices } from '../notices.ts'
import type { Standing } from './follower.ts'
import type { Ends } from './journals-out.ts'
import { type Leader, OutOfReach } from './leader.ts'

type FollowerFrontOptions = {
  readonly clock: Clock
  readonly leader: Pick<Leader, 'leading' | 'command' | 'turnTo'>
  readonly notices: Notices
  readonly news: Pick<LiveFacts, 'delegates' | 'grants'>
}

/** Who may read a private room may have changed since. */
const privateWithinMs = 5_000
/** What is on its way is no notice. */
const noticedMs = 2_000
/** Commands that are at the leader, each on a connection of its own. */
const passedOnMax = 512
/** A write was done, whether it is shown here yet or not. */
const shownWithinMs = 10_000

type Waiting = { readonly ends: Ends; readonly then: () => void; readonly cancel: Cancel }

export class FollowerFront {
  readonly #options: FollowerFrontOptions
  /** As it was told last, and when. Nothing is known before that. */
  #standing: Pick<Standing, 'behindMs'> = { behindMs: Number.POSITIVE_INFINITY }
  #toldAt: number
  #ends: Ends | undefined
  readonly #waiting = new Set<Waiting>()
  #passedOn = 0

  constructor(options: FollowerFrontOptions) {
    this.#options = options
    this.#toldAt = options.clock.monotonicMs()
    options.notices.set('following', starting)
  }

  /** What a write is answered that is not passed on. */
  get refusal(): Refusal {
    const { leading } = this.#options.leader
    const where = leading === undefined ? 'a board that it cannot reach now' : `the board at ${leading}`
    return this.#naming(
      refusal('forbidden', `this is a follower of ${where}, which takes what this path writes: send it there`),
    )
  }

  /** For how many milliseconds the leader has had more than this follower, or has been out of reach. */
  get behindMs(): number {
    const { behindMs } = this.#standing
    const since = this.#options.clock.monotonicMs() - this.#toldAt
    // It is told every second: where that ends, nothing is known any more.
    return behindMs === 0 && since < privateWithinMs / 2 ? 0 : behindMs + since
  }

  /** What a read of private things is answered now; undefined: it may be answered. */
  readonly behind = (): Refusal | undefined => {
    if (this.behindMs <= privateWithinMs) return undefined
    const message = `this follower is more than ${privateWithinMs / 1_000} s behind its leader, and shows nothing private until it has caught up: ask there, or try again`
    return this.#naming(refusal('overloaded', message, undefined, 2))
  }

  /** With the address of the leader, where it is known. */
  #naming(found: Refusal): Refusal {
    const { leading } = this.#options.leader
    return leading === undefined ? found : { ...found, details: { leader: leading } }
  }

  standing(standing: Standing): void {
    this.#standing = standing
    this.#toldAt = this.#options.clock.monotonicMs()
    const { notices, leader } = this.#options
    if (standing.leader !== undefined) leader.turnTo(standing.leader)
    if (standing.problem !== undefined) notices.set('following', `${standing.problem}. Nothing new is taken any more.`)
    else if (standing.behindMs < noticedMs) notices.end('following')
    else if (!Number.isFinite(standing.behindMs)) notices.set('following', starting)
    else notices.set('following', `${Math.ceil(standing.behindMs / 1_000)} s behind the leader.`)
  }

  /** Frames were applied, so far. What the main thread keeps of the registry is asked again where they may have changed it. */
  followed(ends: Ends, acts: ReadonlySet<string>): void {
    this.#ends = ends
    const { delegates, grants } = this.#options.news
    if ([...acts].some((op) => op.startsWith('delegation.'))) delegates.renew()
    if ([...acts].some((op) => op.startsWith('limits.'))) grants.refresh()
    for (const waiting of this.#waiting) {
      if (!isReached(waiting.ends, ends)) continue
      this.#waiting.delete(waiting)
      waiting.cancel()
      waiting.then()
    }
  }

  /** Has the leader carry out a command; its client is answered when this follower shows what it did. */
  readonly passOn = (command: SignedCommand, { via, address }: CommandSource, respond: Respond): void => {
    const { leader } = this.#options
    if (this.#passedOn >= passedOnMax) return respond(refused(tooBusy))
    this.#passedOn++
    leader.command({ command: JSON.stringify(command), via, address }).then(
      (found) => {
        this.#passedOn--
        if (found === undefined) return respond(undefined)
        if (found.ends === undefined || found.reply.status !== 200) return respond(found.reply)
        this.#whenShown(found.ends, () => respond(found.reply))
      },
      (error: unknown) => {
        this.#passedOn--
        const isUnsent = error instanceof OutOfReach && error.unsentTo !== undefined
        const message = 'this is a follower, and its leader, which takes writes, is out of reach: try again'
        respond(isUnsent ? refused(this.#naming(refusal('overloaded', message, undefined, 5))) : undefined)
      },
    )
  }

  /** Every answer says how far behind it is. */
  mark(exchange: Exchange): Exchange {
    const reply = exchange.reply.bind(exchange)
    const stream = exchange.stream.bind(exchange)
    const marked = (headers: readonly Header[]): readonly Header[] =>
      headers.some(([name]) => name === behindHeader)
        ? headers
        : [...headers, [behindHeader, this.behindSeconds?.toFixed(3) ?? 'unknown']]
    exchange.reply = (status, headers, ...more) => reply(status, marked(headers), ...more)
    exchange.stream = (status, headers, length) => stream(status, marked(headers), length)
    return exchange
  }

  /** Undefined: it has not heard of its leader since its start. */
  get behindSeconds(): number | undefined {
    const { behindMs } = this
    return Number.isFinite(behindMs) ? behindMs / 1_000 : undefined
  }

  #whenShown(ends: Ends, then: () => void): void {
    if (this.#ends !== undefined && isReached(ends, this.#ends)) return then()
    const cancel = this.#options.clock.later(() => {
      this.#waiting.delete(waiting)
      then()
    }, shownWithinMs)
    const waiting = { ends, then, cancel }
    this.#waiting.add(waiting)
  }
}

const starting = 'It has not heard of its leader yet.'
const behindHeader = 'broadside-behind'

function isReached(wanted: Ends, { log, shards }: Ends): boolean {
  return wanted.log <= log && wanted.shards.every((end, shard) => end <= (shards[shard] ?? 0))
}
