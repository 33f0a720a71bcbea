/** The doors of MCP and of the sign-in that it needs, put together: light until the first request that means them. */
import type { Front } from '../command/front.ts'
import type { Throttle } from '../command/throttle.ts'
import type { EventsHandlers, Mcp } from '../mcp/mcp.ts'
import { mcpDoor, serverJson } from './mcp.ts'
import type { Exchange } from './port.ts'
import type { RouteHandler } from './routes.ts'

export type McpDoorsOptions = {
  readonly front: Pick<Front, 'execute'>
  readonly throttle: Throttle
  readonly serviceId: string
  readonly release: string
  /** Public address, without a slash at the end. */
  readonly address: string
  readonly origins: readonly string[]
  readonly forAgents: () => string
  readonly addressOf: (exchange: Exchange) => string
  /** Unix seconds. */
  readonly wallSeconds: () => number
  readonly events?: EventsHandlers
  /** Records a fault of the service. */
  readonly fault: (error: unknown) => void
}

type Doors = {
  readonly acting: Readonly<Record<string, RouteHandler>>
  readonly more: Readonly<Record<string, RouteHandler>>
}

export function mcpDoors(options: McpDoorsOptions): Doors {
  const { address, release } = options
  const load = async (): Promise<Mcp> => {
    const { createMcp } = await import('../mcp/mcp.ts')
    return createMcp({ ...options, report: (problem) => options.fault(new Error(problem)) })
  }
  const registry = serverJson(address, release)
  return {
    acting: {
      '/mcp': mcpDoor({ ...options, load, authenticate: () => Promise.resolve(undefined) }),
    },
    more: {
      '/.well-known/mcp/server.json': (exchange) => exchange.reply(200, registryHeaders, registry),
    },
  }
}

const registryHeaders = [
  ['content-type', 'application/json'],
  ['access-control-allow-origin', '*'],
  ['cache-control', 'public, max-age=300'],
  ['x-content-type-options', 'nosniff'],
] as const
