/** Every path of the board, put together from the routes of its capabilities. */

import { streamPath } from '../../actors/follow/stream.ts'
import type { BlobFiles } from '../../storage/blob-files.ts'
import { blobDoor } from '../attachments/routes.ts'
import type { BoardDirectory } from '../board-directory.ts'
import type { Clock } from '../clock.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import type { Config } from '../config.ts'
import { limitsOf } from '../docs/capabilities.ts'
import { statsData } from '../docs/figures.ts'
import { exportGate } from '../export/gate.ts'
import { Exports } from '../export/routes.ts'
import { updatesDoors } from '../follow/updates-routes.ts'
import type { Exchange, RouteHandler } from '../http/port.ts'
import { logFault } from '../http/port-options.ts'
import type { Replies } from '../http/replies.ts'
import { logDoors } from '../log/routes.ts'
import { witnessDoors } from '../log/witness/routes.ts'
import type { Counters } from '../observe.ts'
import { payDoors } from '../payments/routes.ts'
import type { Random } from '../platform.ts'
import type { Throttle } from '../rates/throttle.ts'
import type { Deliveries } from '../receive-urls/deliveries.ts'
import { receiveDoor } from '../receive-urls/routes.ts'
import { release } from '../release.ts'
import type { Streams } from '../stream/routes.ts'
import type { WebhookThread } from '../threads/webhook-thread.ts'
import type { Checks } from '../verify/verifier.ts'
import { workFeedDoor } from '../works/routes.ts'
import type { CommandRouter } from './command-router.ts'
import { commandsDoor } from './commands-route.ts'
import { compatDoor } from './compat.ts'
import { describe } from './described.ts'
import { documentPaths } from './document-routes.ts'
import { embedDoors } from './embed-routes.ts'
import { type BoardFigures, figureDoors } from './figures-routes.ts'
import type { Followers } from './followers.ts'
import { mcpDoors } from './mcp-routes.ts'
import type { Calling } from './open-tool-calls.ts'
import { type PageDoors, pageDoors } from './page-routes.ts'
import { Routes } from './routes.ts'
import type { StartedActors } from './start-actors.ts'

export type RoutedParts = StartedActors & {
  readonly config: Config
  readonly directory: BoardDirectory
  readonly clock: Clock
  readonly random: Random
  readonly address: string
  readonly secret: Buffer
  readonly news: LiveFacts
  readonly throttle: Throttle
  readonly files: BlobFiles
  readonly addressOf: (exchange: Exchange) => string
  readonly replies: Replies
  readonly counters: Counters
  readonly verifier: Checks
  readonly followers: Followers
  readonly streams: Streams
  readonly webhookThread: WebhookThread
  readonly calling: Calling
  readonly front: CommandRouter
  readonly deliveries: Deliveries
  readonly figures: BoardFigures
}

type Described = ReturnType<typeof describe>

export function boardRoutes(parts: RoutedParts): {
  readonly routes: Routes
  readonly exports: Exports
  readonly pages: PageDoors
  readonly described: Described
} {
  const { config, front, news, throttle, addressOf, replies, counters, calling, deliveries, heads } = parts
  const described = describe(config, { ...parts, verifier: parts.verifier.backend })
  const pages = pagesOf(parts, described)
  const mcp = mcpDoors({
    ...parts,
    described,
    actors: parts.actorHost,
    events: parts.webhookThread.events,
    streams: parts.followers.tails.places,
  })
  const exports = new Exports({
    enter: exportGate({ throttle, addressOf }),
    next: (request, answer) => parts.actorHost.askFeed(['export', request, parts.actorHost.seen], answer),
    rooms: parts.followers.rooms,
    refuse: (exchange, found) => replies.refuse(exchange, found),
    now: parts.clock.monotonicMs,
  })
  const routes = new Routes({
    front,
    news,
    replies,
    throttle,
    wallSeconds: parts.clock.wallSeconds,
    addressOf,
    onReply: (status) => counters.reply(status),
    nowhere: pages.nowhere,
    acting: {
      ...mcp.acting,
      '/c64/': compatDoor({ front, addressOf, replies }),
      '/v1/commands': commandsDoor({
        front,
        throttle,
        addressOf,
        replies,
        onReply: (status) => counters.reply(status),
        timers: parts.clock,
      }),
      [streamPath]: (exchange) => parts.streams.handle(exchange),
      ...witnessDoors(heads.witness, { throttle, addressOf, replies }),
      '/in/': receiveDoor({ deliveries, addressOf, replies }),
      ...payDoors(calling, { clock: parts.clock, address: parts.address, throttle, addressOf, replies }),
    },
    more: {
      ...documentPaths(described),
      ...pages.doors,
      ...mcp.more,
      ...readPaths(parts),
      '/v1/export': (exchange) => replies.isWithinReads(exchange) && exports.handle(exchange),
    },
  })
  return { routes, exports, pages, described }
}

function pagesOf(parts: RoutedParts, described: Described): PageDoors {
  const { reads, figures, counters, heads, log, address, news } = parts
  return pageDoors({
    timers: parts.clock,
    reads,
    figures: (answer) => figures.tell((found) => answer(found && statsData(found).stats)),
    now: parts.clock.wallSeconds,
    news,
    throttle: parts.throttle,
    addressOf: parts.addressOf,
    onReply: (status) => counters.reply(status),
    onFault: logFault,
    board: {
      address,
      serviceId: described.serviceId,
      identity: described.identity,
      release,
      ...log,
      limits: () => limitsOf(described),
      published: () => heads.published(news.head),
    },
  })
}

/** Paths with ready bytes, streams and waits. */
function readPaths(parts: RoutedParts): Readonly<Record<string, RouteHandler>> {
  const { actorHost, heads, reads, news, files, throttle, addressOf, replies, followers, address } = parts
  return {
    ...embedDoors(address),
    ...logDoors({
      logs: parts.logs,
      address,
      checkpoint: (origin) => heads.ended(origin) ?? heads.published(news.head),
      policyLines: heads.policyLines,
      tile: (request, answer) => actorHost.askFeed(['tile', request, actorHost.seen], answer),
      replies,
    }),
    '/a/': blobDoor({ actors: actorHost, files, throttle, addressOf, replies }),
    ...updatesDoors({ updates: followers.updates, throttle, addressOf, replies, wallSeconds: parts.clock.wallSeconds }),
    '/tail/': (exchange, room) => replies.isWithinReads(exchange) && followers.tails.handle(exchange, room),
    ...figureDoors(parts.figures, replies),
    '/work.atom': workFeedDoor({ reads, address, throttle, addressOf, replies }),
  }
}
