/** Every path of the board, assembled from the routes of its capabilities. */

import { streamPath } from '../../actors/follow/stream.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { BlobFiles } from '../../storage/blob-files.ts'
import { blobRoute } from '../attachments/routes.ts'
import type { BoardDirectory } from '../board-directory.ts'
import { clientFiles } from '../client/served.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import type { CommandSource } from '../command/verified.ts'
import type { Config } from '../config.ts'
import { capabilities, type Described, limitsOf } from '../docs/capabilities.ts'
import { statsData } from '../docs/figures.ts'
import { exampleLibraries } from '../docs/operation-examples.ts'
import { agentCard, openSearch, securityText } from '../docs/site-files.ts'
import { exportGate } from '../export/gate.ts'
import { Exports } from '../export/routes.ts'
import { updatesRoutes } from '../follow/updates-routes.ts'
import { boardSchema, boardSchemaPath } from '../format/board-schema.ts'
import { spellUnseen } from '../format/printable.ts'
import type { Respond } from '../format/reply.ts'
import { decodeBase64url } from '../format/signing.ts'
import { fixedAnswer } from '../http/answers.ts'
import { logFault } from '../http/engine.ts'
import type { Exchange, Header, RouteHandler } from '../http/port.ts'
import { dataHeaders, openHeaders, type Replies } from '../http/replies.ts'
import { logRoutes, witnessRoutes } from '../log/routes.ts'
import type { LogIdentity } from '../log/signed-log.ts'
import type { Counters } from '../observe.ts'
import { embed } from '../pages/assets.ts'
import { payRoutes } from '../payments/routes.ts'
import type { Platform } from '../platform.ts'
import type { Throttle } from '../rates/throttle.ts'
import type { Deliveries } from '../receive-urls/deliveries.ts'
import { receiveRoute } from '../receive-urls/routes.ts'
import { release } from '../release.ts'
import type { FollowerFront } from '../replication/follower-front.ts'
import type { Streams } from '../stream/routes.ts'
import type { Checks } from '../verify/verifier.ts'
import type { WebhookThread } from '../workers/webhook-thread.ts'
import type { CommandRouter } from './command-router.ts'
import { commandRoute, commandsRoute } from './commands-route.ts'
import { type BoardFigures, figureRoutes } from './figures-routes.ts'
import type { Followers } from './followers.ts'
import { forAgents, llmsText, robotsText } from './for-agents.ts'
import { mcpRoutes } from './mcp-routes.ts'
import type { Calling } from './open-tool-calls.ts'
import { openapi } from './openapi.ts'
import { type PageRoutes, pageRoutes } from './page-routes.ts'
import { Routes } from './routes.ts'
import type { StartedActors } from './start-actors.ts'

type RoutedParts = StartedActors &
  Pick<Platform, 'clock' | 'random' | 'disk' | 'startPool' | 'onBytesReleased'> & {
    readonly config: Config
    readonly directory: BoardDirectory
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
    readonly follower: { readonly front: Pick<FollowerFront, 'refusal'> } | undefined
    /** Endpoints for followers of this board; empty if it accepts none. */
    readonly replicaRoutes: Readonly<Record<string, RouteHandler>>
  }

export function boardRoutes(parts: RoutedParts): {
  readonly routes: Routes
  readonly exports: Exports
  readonly pages: PageRoutes
  readonly described: Described
} {
  const { config, front, news, throttle, addressOf, replies, counters, calling, deliveries, heads } = parts
  const described = describe(config, { ...parts, verifier: parts.verifier.backend })
  const pages = pagesOf(parts, described)
  const mcp = mcpRoutes({
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
  const commands = { front, throttle, addressOf, replies }
  const routes = new Routes({
    front,
    news,
    replies,
    wallSeconds: parts.clock.wallSeconds,
    addressOf,
    onReply: (status) => counters.reply(status),
    nowhere: pages.nowhere,
    acting: {
      ...mcp.acting,
      '/preview': pages.preview,
      '/c64/': compatRoute({ front, addressOf, replies }),
      '/v1/command': commandRoute(commands),
      '/v1/commands': commandsRoute({
        ...commands,
        onReply: (status) => counters.reply(status),
        timers: parts.clock,
      }),
      [streamPath]: (exchange) => parts.streams.handle(exchange),
      ...witnessRoutes(heads.witness, { throttle, addressOf, replies }),
      '/in/': receiveRoute({ deliveries, addressOf, replies }),
      ...parts.replicaRoutes,
      ...payRoutes(calling, { clock: parts.clock, address: parts.address, throttle, addressOf, replies }),
    },
    more: {
      ...documentPaths(described, parts.clock),
      ...pages.routes,
      ...mcp.more,
      ...readPaths(parts),
      '/v1/export': (exchange) => replies.isWithinReads(exchange) && exports.handle(exchange),
    },
  })
  return { routes, exports, pages, described }
}

function pagesOf(parts: RoutedParts, described: Described): PageRoutes {
  const { reads, figures, counters, heads, log, address, news } = parts
  return pageRoutes({
    timers: parts.clock,
    startPool: parts.startPool,
    onBytesReleased: parts.onBytesReleased,
    reads,
    figures: (answer) => figures.stats((found) => answer(statsData(found).stats)),
    now: parts.clock.wallSeconds,
    news,
    throttle: parts.throttle,
    addressOf: parts.addressOf,
    onReply: (status) => counters.reply(status),
    onFault: logFault,
    replies: parts.replies,
    board: {
      address,
      name: described.name,
      about: described.about,
      contact: described.contact,
      serviceId: described.serviceId,
      identity: described.identity,
      release,
      ...log,
      limits: () => limitsOf(described),
      published: () => heads.published(news.head),
    },
  })
}

/** Paths that serve prepared bytes, stream, or wait. */
function readPaths(parts: RoutedParts): Readonly<Record<string, RouteHandler>> {
  const { actorHost, heads, news, files, throttle, addressOf, replies, followers, address } = parts
  return {
    ...embedRoutes(address),
    ...clientRoutes(),
    ...logRoutes({
      logs: parts.logs,
      address,
      checkpoint: (origin) => heads.ended(origin) ?? heads.published(news.head),
      policyLines: heads.policyLines,
      tile: (request, answer) => actorHost.askFeed(['tile', request, actorHost.seen], answer),
      replies,
    }),
    '/a/': blobRoute({ actors: actorHost, files, throttle, takenDown: news.takenDown, addressOf, replies }),
    ...updatesRoutes({
      updates: followers.updates,
      throttle,
      addressOf,
      replies,
      wallSeconds: parts.clock.wallSeconds,
    }),
    '/tail/': (exchange, room) => replies.isWithinReads(exchange) && followers.tails.handle(exchange, room),
    ...figureRoutes({
      figures: parts.figures,
      replies,
      hasMetrics: parts.config.metricsPort === undefined,
      proxyHeader: parts.config.trustedProxy.header,
    }),
  }
}

type CompatOptions = {
  readonly front: { execute(body: Buffer, source: CommandSource, respond: Respond): void }
  readonly addressOf: (exchange: Exchange) => string
  readonly replies: Replies
}

const methods = 'GET, POST, MKCOL, OPTIONS'
/** Search engines must not follow such a link, because it performs a write. */
const unindexed: readonly Header[] = [['x-robots-tag', 'noindex']]

/**
 * Writing without POST: `/c64/{base64url of the command JSON}`, for agents that can only fetch a URL.
 *
 * GET, POST without a body, and MKCOL all do what POSTing that JSON to /v1/command does, with the same rules and answers. Fetching a link
 * twice posts once, because a retry has no second effect. Prefetches by browsers are refused. HEAD is answered with 405, OPTIONS with the
 * allowed methods.
 */
function compatRoute({ front, addressOf, replies }: CompatOptions): RouteHandler {
  return (exchange, parameter) => {
    const { method } = exchange
    if (method === 'OPTIONS') return replies.preflight(exchange, methods, unindexed)
    if (method !== 'GET' && method !== 'POST' && method !== 'MKCOL')
      return replies.wrongMethod(exchange, methods, unindexed)
    const refuse = (found: Refusal) => replies.refuse(exchange, found, unindexed)
    if (isPrefetch(exchange))
      return refuse(
        refusal(
          'forbidden',
          'this link writes, and your browser fetched it ahead of you (prefetch): follow it yourself, or POST the command to /v1/command',
        ),
      )
    if (exchange.query !== '')
      return refuse(refusal('invalid_field', '/c64/ takes no query: the whole command goes into the path', 'command'))
    // WebDAV clients append a slash to the name of a collection (RFC 4918 section 5.2).
    const text = method === 'MKCOL' && parameter.endsWith('/') ? parameter.slice(0, -1) : parameter
    const command = decodeBase64url(text)
    if (command === undefined || text === '')
      return refuse(
        refusal(
          'invalid_field',
          'after /c64/ put the JSON of one command as canonical base64url (A-Z a-z 0-9 - _), without padding and nothing else',
          'command',
        ),
      )
    const onGone = (callback: () => void) => exchange.onAbort(callback)
    const source: CommandSource = { via: 'c64', address: addressOf(exchange), onGone }
    exchange.readBody(0, ({ ok }) => {
      if (!ok) return refuse(refusal('invalid_field', '/c64/ takes no body: the whole command goes into the path'))
      front.execute(command, source, (reply) => replies.send(exchange, reply, unindexed))
    })
  }
}

/** Headers that browsers send with a prefetch. The Sec-Fetch-* headers do not indicate one and are not read. */
function isPrefetch(exchange: Exchange): boolean {
  return ['sec-purpose', 'purpose'].some((name) => /prefetch|prerender/i.test(exchange.header(name) ?? ''))
}

/** Facts about this board for the documents that describe it: /capabilities, /openapi.json, /for-agents. */
function describe(
  config: Config,
  facts: { directory: BoardDirectory; address: string; log: LogIdentity; verifier: string },
): Described {
  const { directory, address, log: growing, verifier } = facts
  return {
    name: config.boardName,
    about: config.boardAbout || undefined,
    contact: config.boardContact || undefined,
    serviceId: directory.facts.service_id,
    identity: directory.identity,
    generation: directory.facts.generation,
    release,
    address,
    ...growing,
    verifier,
    limitsOn: config.limitsOn,
    blobBytesPerIdentity: config.blobBytesPerIdentity,
    proofBits: config.proofBits,
    createdAt: directory.facts.created_at,
    witnesses: config.witnessLogs !== '',
    ...(config.sale === undefined ? {} : { sold: config.sale }),
  }
}

const json = 'application/json; charset=utf-8'
const text = 'text/plain; charset=utf-8'

/** Documents about the board itself. Each is generated at its first request, so it does not delay the start. */
function documentPaths(
  board: Described,
  { wallSeconds }: Pick<Platform['clock'], 'wallSeconds'>,
): Readonly<Record<string, RouteHandler>> {
  const plain: readonly Header[] = [['content-type', text], ['cache-control', 'public, max-age=3600'], ...dataHeaders]
  return {
    '/capabilities': serve(json, () => jsonOf({ ok: true, data: capabilities(board) })),
    '/openapi.json': serve(json, () => jsonOf(openapi(board))),
    [boardSchemaPath]: serve('application/schema+json; charset=utf-8', () => jsonOf(boardSchema(board.address))),
    '/for-agents': serve(text, () => forAgents(board)),
    '/llms.txt': serve(text, () => llmsText(board)),
    '/robots.txt': serve(text, () => robotsText(board.address)),
    '/.well-known/security.txt': (exchange) => exchange.reply(200, plain, securityText(board, wallSeconds())),
    '/opensearch.xml': serve('application/opensearchdescription+xml; charset=utf-8', () => openSearch(board)),
    '/.well-known/agent-card.json': serve(json, () => JSON.stringify(agentCard(board))),
    ...Object.fromEntries(
      Object.entries(exampleLibraries(board)).map(([name, code]) => [`/docs/${name}`, serve(text, () => code)]),
    ),
  }
}

function serve(type: string, render: () => string): RouteHandler {
  return fixedAnswer([['content-type', type], ['cache-control', 'public, max-age=60'], ...dataHeaders], render)
}

/** Patterns contain characters that are invisible or change the text direction; they are escaped, because people open these files. */
function jsonOf(value: unknown): string {
  return spellUnseen(JSON.stringify(value))
}

/** The script that embeds a room in other sites, and its hash, so that a page can pin it (W3C Subresource Integrity). */
function embedRoutes(address: string): Readonly<Record<string, RouteHandler>> {
  const { path, type, body, integrity } = embed
  const facts = { url: address + path, integrity, bytes: body.length }
  return {
    [path]: fixed(type, body),
    '/embed/v1.json': fixed('application/json; charset=utf-8', Buffer.from(JSON.stringify({ ok: true, data: facts }))),
  }
}

function fixed(type: string, body: Buffer): RouteHandler {
  const headers: readonly Header[] = [
    ['content-type', type],
    ['cache-control', 'public, max-age=300, stale-while-revalidate=86400'],
    ...openHeaders,
    ['cross-origin-resource-policy', 'cross-origin'],
    ['x-content-type-options', 'nosniff'],
  ]
  return fixedAnswer(headers, () => body)
}

/** Programs import these from any site. */
function clientRoutes(): Readonly<Record<string, RouteHandler>> {
  return Object.fromEntries(clientFiles().map(({ path, type, body }) => [path, fixed(type, body)]))
}
