/** Opens /v1/stream with the parts of the board that it needs. Wiring only. */
import { internalLimits } from '../../actors/kernel/limits.ts'
import type { Clock } from '../clock.ts'
import { followRefusal } from '../command/dispatch.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import type { Config } from '../config.ts'
import { closedCounter } from '../docs/figures.ts'
import type { Exchange } from '../http/port.ts'
import type { Replies } from '../http/replies.ts'
import { type Counters, log } from '../observe.ts'
import type { Throttle } from '../rates/throttle.ts'
import { Streams } from '../stream/routes.ts'
import type { CommandRouter } from './command-router.ts'
import type { Followers } from './followers.ts'

type OpenStreamsOptions = {
  readonly config: Pick<Config, 'mcpOrigins'>
  readonly address: string
  readonly clock: Clock
  readonly news: LiveFacts
  readonly throttle: Throttle
  readonly replies: Replies
  readonly counters: Counters
  readonly addressOf: (exchange: Exchange) => string
}

export function openStreams(
  { config, address, clock, news, throttle, replies, counters, addressOf }: OpenStreamsOptions,
  { followers, front }: { readonly followers: Followers; readonly front: CommandRouter },
): Streams {
  return new Streams({
    address,
    origins: config.mcpOrigins,
    places: followers.tails.places,
    commands: front,
    updates: followers.updates,
    members: followers.members,
    standing: (reader, key) => followRefusal(news, { reader, key }),
    throttle,
    addressOf,
    replies,
    now: clock.monotonicMs,
    timers: clock,
    stallMs: internalLimits.streamStallMs,
    onReply: (status) => counters.reply(status),
    onClosed: (code) => {
      counters.add(`${closedCounter}${code}`)
      log('debug', 'stream.closed', { code })
    },
  })
}
