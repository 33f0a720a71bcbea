/** The routes of MCP and of its sign-in. Nothing heavy is loaded before the first request for them. */

import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import { networkOf } from '../../actors/kernel/networks.ts'
import { type BoardDirectory, signInKeysFile } from '../board-directory.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import type { Actors } from '../command/ports.ts'
import type { Config } from '../config.ts'
import type { Described } from '../docs/capabilities.ts'
import { logFault } from '../http/engine.ts'
import type { Exchange, RouteHandler } from '../http/port.ts'
import type { EventsHandlers, Mcp } from '../mcp/mcp.ts'
import { mcpRoute, serverJson } from '../mcp/routes.ts'
import { log } from '../observe.ts'
import type { Platform } from '../platform.ts'
import { Limiter } from '../rates/meters.ts'
import type { Places } from '../rates/places.ts'
import type { Throttle } from '../rates/throttle.ts'
import type { FollowerFront } from '../replication/follower-front.ts'
import type { Authenticate } from '../sign-in/caller.ts'
import type { Oauth, OauthOptions } from '../sign-in/oauth.ts'
import { oauthRoutes } from '../sign-in/routes.ts'
import { SignInKeys } from '../sign-in/sign-in-keys.ts'
import type { CommandRouter } from './command-router.ts'
import { forAgents } from './for-agents.ts'
import type { ReadRouter } from './read-router.ts'

type McpRoutesOptions = Pick<Platform, 'clock' | 'random' | 'disk'> & {
  readonly config: Pick<Config, 'limitsOn' | 'loopback' | 'mcpOrigins'>
  readonly directory: Pick<BoardDirectory, 'path' | 'identity' | 'facts'>
  readonly described: Described
  readonly front: Pick<CommandRouter, 'execute'>
  readonly reads: Pick<ReadRouter, 'read'>
  readonly actors: Pick<Actors, 'write'>
  readonly news: LiveFacts
  readonly throttle: Throttle
  /** Shared by all open streams. */
  readonly streams: Places
  /** A secret of this board. */
  readonly secret: Buffer
  readonly addressOf: (exchange: Exchange) => string
  readonly events: EventsHandlers & Pick<OauthOptions, 'signedOut'>
  /** Set if another machine decides. */
  readonly follower: { readonly front: Pick<FollowerFront, 'refusal'> } | undefined
}

type McpRoutes = {
  readonly acting: Readonly<Record<string, RouteHandler>>
  readonly more: Readonly<Record<string, RouteHandler>>
}

/** What one rotation of a refresh token adds to the journal: two records, of a client with a long address. */
const rotationBytes = 2_048

/** How soon the key of an expired sign-in is erased. */
const eraseEveryMs = 30_000

/** Client metadata documents that this board fetches per minute: in total, and for one network. */
const fetchesPerMinute = 60
const fetchesOfOnePerMinute = 10

/** Log lines about requests that are not valid MCP. */
const complaintsPerMinute = 6

export function mcpRoutes(options: McpRoutesOptions): McpRoutes {
  const { config, directory, described, reads, news, secret, clock } = options
  const { address, name, release, serviceId } = described
  const keys = new SignInKeys(options.disk, signInKeysFile(directory.path))
  const erase = (): void => keys.retain((delegation) => news.delegates.isActive(delegation))
  erase()
  news.delegates.onEnd(erase)
  clock.every(erase, eraseEveryMs)
  const perMinute = (count: number) => new Limiter({ perSecond: count / 60, burst: count }, clock.monotonicMs)
  const [fetches, fetchesOfOne] = [perMinute(fetchesPerMinute), perMinute(fetchesOfOnePerMinute)]
  const complaints = perMinute(complaintsPerMinute)
  const common = { ...options, address, name, release, serviceId, wallSeconds: clock.wallSeconds, fault: logFault }
  const oauth = once(async (): Promise<Oauth> => {
    const [{ Oauth }, { createOutgoing }] = await Promise.all([
      import('../sign-in/oauth.ts'),
      import('../outgoing/request.ts'),
    ])
    return new Oauth({
      ...common,
      read: (request, answer) => reads.read(request, answer),
      boardIdentity: directory.identity.id,
      tokenKeyFile: join(directory.path, 'keys', 'oauth.key'),
      keys,
      signedOut: (identity, delegation) => options.events.signedOut(identity, delegation),
      cookieSecret: createHmac('sha256', secret).update('broadside-oauth-cookies-v1').digest('base64url'),
      outgoing: createOutgoing({
        timers: clock,
        loopback: config.loopback,
        userAgent: `Broadside/${release} (+${address})`,
      }),
      chargeRotation: (identity, address) => {
        const { throttle } = options
        const charge = throttle.write({ identity, address, isApart: true, isHosted: true }, rotationBytes, false)
        return charge.full === undefined ? undefined : throttle.refusalOf(charge)
      },
      now: clock.monotonicMs,
      fetchWait: (client) => {
        if (!config.limitsOn) return 0
        return (client === undefined ? 0 : fetchesOfOne.take(networkOf(client))) || fetches.take('')
      },
    })
  })
  const mcp = once(async (): Promise<Mcp> => {
    const { createMcp } = await import('../mcp/mcp.ts')
    return createMcp({
      ...common,
      forAgents: () => forAgents(described),
      timers: clock,
      onRoomChange: (listener) => news.onChange(listener),
      // Invalid requests are the fault of strangers and must not flood the log of the board.
      report: (problem) => {
        if (complaints.take('') === 0) log('warn', 'mcp', { problem })
      },
    })
  })
  const registry = serverJson(address, release)
  const authenticate: Authenticate = async (token) => (await oauth()).authenticate(token)
  return {
    acting: {
      '/mcp': mcpRoute({ ...common, origins: config.mcpOrigins, load: mcp, authenticate }),
      ...oauthRoutes({
        ...common,
        load: oauth,
        elsewhere: () => options.follower?.front.refusal.message,
        script: async () => (await import('../sign-in/sign-in-page.ts')).signInScript,
      }),
    },
    more: {
      '/.well-known/mcp/server.json': (exchange) => exchange.reply(200, registryHeaders, registry),
    },
  }
}

/** Loads on the first call. After a failure, the next call tries again. */
function once<Value>(load: () => Promise<Value>): () => Promise<Value> {
  let loaded: Promise<Value> | undefined
  return () => {
    loaded ??= load().catch((error: unknown) => {
      loaded = undefined
      throw error
    })
    return loaded
  }
}

const registryHeaders = [
  ['content-type', 'application/json'],
  ['access-control-allow-origin', '*'],
  ['cache-control', 'public, max-age=300'],
  ['x-content-type-options', 'nosniff'],
] as const
