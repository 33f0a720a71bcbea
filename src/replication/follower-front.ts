/**
 * A follower's interface to its clients: how far it is behind, what it refuses to answer while behind, and the writes it passes
 * on to the leader.
 */

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
import { type Leader, OutOfReach, RefusedFollower } from './leader.ts'

type FollowerFrontOptions = {
  readonly clock: Clock
  readonly leader: Pick<Leader, 'leading' | 'command' | 'select'>
  readonly notices: Notices
  readonly news: Pick<LiveFacts, 'delegates' | 'grants'>
}

/** The members of a private room may have changed since. */
const privateWithinMs = 5_000
/** A shorter delay is normal and gives no notice. */
const noticedMs = 2_000
/** Commands being carried out by the leader, each on its own connection. */
const forwardingMax = 512
/** After this long a write is answered even if it is not shown here yet: it was done. */
const shownWithinMs = 10_000

type Waiting = { readonly ends: Ends; readonly then: () => void; readonly cancel: Cancel }

export class FollowerFront {
  readonly #options: FollowerFrontOptions
  /** The last reported state, and when it was reported. Nothing is known before the first report. */
  #standing: Pick<Standing, 'behindMs'> = { behindMs: Number.POSITIVE_INFINITY }
  #reportedAt: number
  #ends: Ends | undefined
  readonly #waiting = new Set<Waiting>()
  #forwarding = 0

  constructor(options: FollowerFrontOptions) {
    this.#options = options
    this.#reportedAt = options.clock.monotonicMs()
    options.notices.set('following', starting)
  }

  /** The refusal for a write that is not passed on. */
  get refusal(): Refusal {
    const { leading } = this.#options.leader
    const where = leading === undefined ? 'a board that it cannot reach now' : `the board at ${leading}`
    return this.#naming(
      refusal(
        'forbidden',
        `this is a follower of ${where}, and only that board accepts this kind of write: send it there`,
      ),
    )
  }

  /** For how many milliseconds the leader has had more than this follower, or has been out of reach. */
  get behindMs(): number {
    const { behindMs } = this.#standing
    const since = this.#options.clock.monotonicMs() - this.#reportedAt
    // Reports come every second: without them, nothing is known any more.
    return behindMs === 0 && since < privateWithinMs / 2 ? 0 : behindMs + since
  }

  /** The refusal for a read of private content while behind; undefined if it may be answered. */
  readonly behind = (): Refusal | undefined => {
    if (this.behindMs <= privateWithinMs) return undefined
    const message = `this follower is more than ${privateWithinMs / 1_000} s behind its leader, and shows no private content until it has caught up: send the request to the leader, or try again`
    return this.#naming(refusal('overloaded', message, undefined, 2))
  }

  /** Adds the address of the leader, if it is known. */
  #naming(found: Refusal): Refusal {
    const { leading } = this.#options.leader
    return leading === undefined ? found : { ...found, details: { leader: leading } }
  }

  standing(standing: Standing): void {
    this.#standing = standing
    this.#reportedAt = this.#options.clock.monotonicMs()
    const { notices, leader } = this.#options
    if (standing.leader !== undefined) leader.select(standing.leader)
    if (standing.problem !== undefined)
      notices.set('following', `${standing.problem}. This follower applies no new writes.`)
    else if (standing.behindMs < noticedMs) notices.end('following')
    else {
      const { behindMs, obstacle } = standing
      const where = Number.isFinite(behindMs) ? `${Math.ceil(behindMs / 1_000)} s behind the leader.` : starting
      notices.set('following', obstacle === undefined ? where : `${where} ${obstacle.replace(/\.$/, '')}.`)
    }
  }

  /**
   * Frames were applied, up to these ends. Registry data cached in the main thread is fetched again if these acts may have
   * changed it.
   */
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

  /** Has the leader carry out a command. Its client is answered once this follower shows the result. */
  readonly forward = (command: SignedCommand, { via, address }: CommandSource, respond: Respond): void => {
    const { leader } = this.#options
    if (this.#forwarding >= forwardingMax) return respond(refused(tooBusy))
    this.#forwarding++
    leader.command({ command: JSON.stringify(command), via, address }).then(
      (found) => {
        this.#forwarding--
        if (found === undefined) return respond(undefined)
        if (found.ends === undefined || found.reply.status !== 200) return respond(found.reply)
        this.#whenShown(found.ends, () => respond(found.reply))
      },
      (error: unknown) => {
        this.#forwarding--
        const isUndone = error instanceof OutOfReach && error.undoneBy !== undefined
        const message =
          error instanceof RefusedFollower
            ? 'this is a follower, and the board that accepts the writes refuses this follower, so nothing was done: send it to that board, or try again after the host of this follower has done what /healthz says'
            : 'this is a follower, and its leader, which accepts the writes, is out of reach: try again'
        respond(isUndone ? refused(this.#naming(refusal('overloaded', message, undefined, 5))) : undefined)
      },
    )
  }

  /** Adds to every answer how far behind it is. */
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

  /** Undefined if it has not heard from its leader since its start. */
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

const starting = 'This follower has not heard from its leader yet.'
const behindHeader = 'broadside-behind'

function isReached(wanted: Ends, { log, shards }: Ends): boolean {
  return wanted.log <= log && wanted.shards.every((end, shard) => end <= (shards[shard] ?? 0))
}
