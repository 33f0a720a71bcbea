/** Streams (tails) and long polls, and how both get news from the actor threads. Wiring only. */

import { internalLimits, rates, sizes } from '../../actors/kernel/limits.ts'
import { shardOf } from '../../actors/shard.ts'
import type { BoardDirectory } from '../board-directory.ts'
import type { Clock } from '../clock.ts'
import { closeReason, followRefusal } from '../command/dispatch.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import { OpenRooms } from '../command/open-rooms.ts'
import { Outbox } from '../follow/outbox.ts'
import { openReadToken } from '../follow/read-token.ts'
import { type MemberWatch, Subscriptions } from '../follow/subscriptions.ts'
import { Tails } from '../follow/tail-routes.ts'
import type { FollowTell } from '../follow/topics.ts'
import { Updates } from '../follow/updates.ts'
import { CursorSealer } from '../format/cursor.ts'
import type { Exchange } from '../http/port.ts'
import type { Replies } from '../http/replies.ts'
import type { Throttle } from '../rates/throttle.ts'
import type { ActorHost, ActorListener } from '../workers/actor-host.ts'
import type { FeedNews } from '../workers/feed.ts'
import type { ShardNews } from '../workers/private-news.ts'
import type { ReadRouter } from './read-router.ts'

type FollowersOptions = {
  readonly actorHost: ActorHost
  readonly reads: Pick<ReadRouter, 'read'>
  readonly directory: BoardDirectory
  readonly clock: Clock
  readonly news: LiveFacts
  readonly throttle: Throttle
  readonly replies: Replies
  readonly addressOf: (exchange: Exchange) => string
}

export class Followers implements ActorListener {
  readonly tails: Tails
  readonly members: Subscriptions<MemberWatch>
  readonly updates: Updates
  readonly rooms: OpenRooms
  readonly #actorHost: ActorHost
  readonly #shards: number

  constructor({ actorHost, reads, directory, clock, news, throttle, replies, addressOf }: FollowersOptions) {
    const outbox = new Outbox(clock)
    const cursors = new CursorSealer(directory.cursorKey)
    const { shards, generation, layout = '' } = directory.facts
    this.#actorHost = actorHost
    this.#shards = shards
    this.rooms = new OpenRooms((request, answer) => reads.read(request, answer))
    this.tails = new Tails({
      backfill: (request, answer) =>
        request.reader === ''
          ? actorHost.askFeed(['tail', request, actorHost.seen], answer)
          : actorHost.askShard(shardOf(request.room, shards), ['tail', request], answer),
      tell: (tell) => this.#tell(tell),
      openToken: (text) => {
        const token = openReadToken(cursors, text)
        if (token === undefined) return 'this board issued no such token'
        if (token.expires <= clock.wallSeconds()) return 'this token is expired'
        if (news.isSuspended(token.reader)) return 'the identity that requested this token is suspended'
        return news.isOver(token.key) ? 'the key that requested this token is no longer accepted' : token
      },
      standing: (follower) => closeReason(news, follower),
      rooms: this.rooms,
      refuse: (exchange, found) => replies.refuse(exchange, found),
      addressOf,
      streamsPerAddress: rates.streams_per_address,
      keeper: throttle,
      now: clock.monotonicMs,
      timers: clock,
      outbox,
      queueBytesMax: internalLimits.streamQueueBytes,
      stallMs: internalLimits.streamStallMs,
      lastMax: sizes.tail_last_maximum,
    })
    this.members = new Subscriptions({
      tell: (tell) => this.#tell(tell),
      isRefused: () => false,
      end: (watch) => watch.left(),
    })
    this.updates = new Updates({
      shards,
      epoch: { generation, layout },
      cursors,
      rooms: this.rooms,
      read: (source, request, answer) =>
        source === 0
          ? actorHost.askFeed(['updates', request, actorHost.seen], answer)
          : actorHost.askShard(source - 1, ['updates', request], answer),
      tell: (tell, shard) => this.#tell(tell, shard),
      handleOf: (reader) => news.handles.get(reader) ?? '',
      standing: (waiter) => followRefusal(news, waiter),
      newest: () => Math.max(actorHost.seen, news.change),
      waitersMax: internalLimits.waitersMax,
      waitsPerAddress: rates.waits_per_address,
      keeper: throttle,
      now: clock.monotonicMs,
      timers: clock,
      outbox,
    })
    actorHost.listen(this)
    news.delegates.onEnd(() => this.endRefused())
    news.onSuspension(() => this.endRefused())
  }

  /** Some keys or readers are refused from now on: their streams and polls end immediately. */
  endRefused(): void {
    this.tails.subscriptions.endRefused()
    this.updates.waits.subscriptions.endRefused()
  }

  /**
   * Sends to the feed for a public topic, to one shard for a room that is or may be private, or to all shards for a reader's private rooms.
   */
  #tell(tell: FollowTell, shard?: number): void {
    const [, topic] = tell
    if (topic[0] === 'room' || (topic[0] === 'tail' && topic[3] === '')) return this.#actorHost.tellFeed(tell)
    const one = topic[0] === 'tail' || topic[0] === 'member' ? shardOf(topic[1], this.#shards) : shard
    const shards = one === undefined ? Array.from({ length: this.#shards }, (_, each) => each) : [one]
    for (const each of shards) this.#actorHost.tellShard(each, tell)
  }

  /** Handles news about public rooms from the feed. */
  feedNews(update: FeedNews): void {
    if (update[0] === 'live') this.tails.deliver(update[1], update[2], update[3], update[4])
    else this.updates.waits.changed(update[1], update[4])
  }

  /** Handles news about private rooms from a shard. */
  shardNews(shard: number, update: Extract<ShardNews, readonly ['rows' | 'live' | 'left', ...unknown[]]>): void {
    if (update[0] === 'live') this.tails.deliverPrivate(update[1], update[2], update[3], update[4])
    else if (update[0] === 'left') this.#left(update[1], update[2])
    else if (update[0] === 'rows') this.updates.waits.changedInShard(shard, update[1], update[2])
  }

  /** A shard has died. Its replacement knows no followers yet. */
  shardLost(shard: number): void {
    this.tails.losePrivate((room) => shardOf(room, this.#shards) === shard)
  }

  shardRestarted(shard: number): void {
    this.updates.waits.restarted(shard)
    for (const topic of this.members.topics())
      if (topic[0] === 'member' && shardOf(topic[1], this.#shards) === shard) this.#tell(['follow', topic])
  }

  #left(room: string, readers: readonly string[]): void {
    this.tails.subscriptions.membersLeft(room, readers)
    this.members.membersLeft(room, readers)
  }

  /** Ends every stream and answers all pending polls. */
  close(): void {
    this.tails.close()
    this.updates.close()
  }
}
