/**
 * The door of the MCP endpoint: /mcp, and what the MCP Registry reads at /.well-known/mcp/server.json.
 *
 * A browser on another site must not reach a board through its visitor (DNS rebinding): Host has to be a name of this board
 * or of this machine, and an Origin, where one is sent, has to be this board's or one of MCP_ORIGINS. What speaks the
 * protocol is loaded by the first request.
 */
import type { Throttle } from '../command/throttle.ts'
import { plainJson } from '../format/plain-json.ts'
import { sizes } from '../limits.ts'
import type { Authenticate } from '../mcp/caller.ts'
import type { Passed, Refused } from '../mcp/gate.ts'
import type { Mcp } from '../mcp/mcp.ts'
import { withCause } from '../runtime/slow-turns.ts'
import type { BodyResult, Exchange, Header } from './port.ts'
import type { RouteHandler } from './routes.ts'
import { sendResponse } from './web.ts'

export type McpDoorOptions = {
  /** Public address of the board, without a slash at the end. */
  readonly address: string
  readonly release: string
  /** Origins beside the board's own. */
  readonly origins: readonly string[]
  readonly load: () => Promise<Mcp>
  readonly authenticate: Authenticate
  readonly throttle: Throttle
  readonly addressOf: (exchange: Exchange) => string
  /** Records a fault of the service. */
  readonly fault: (error: unknown) => void
}

const loopback: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]'])
const methods = 'GET, POST, OPTIONS'
const words = `This is an MCP endpoint. Give its address to an MCP client (Streamable HTTP); reading needs nothing, writing
a sign-in with your key, which the client starts by itself. /for-agents says more.
`

export function mcpDoor(options: McpDoorOptions): RouteHandler {
  const own = new URL(options.address)
  const origins = new Set([own.origin, ...options.origins])
  return (exchange) => {
    const origin = exchange.header('origin')
    const host = exchange.header('host') ?? ''
    if (!isHost(host, own))
      return answer(exchange, 403, [], rpcError(-32000, `Host ${JSON.stringify(host)} is not this board`))
    if (origin !== undefined && !origins.has(origin))
      return answer(
        exchange,
        403,
        [],
        rpcError(-32000, 'this Origin is not allowed here: MCP_ORIGINS names those that are'),
      )
    const cors = corsFor(origin)
    if (exchange.method === 'OPTIONS') return exchange.reply(204, [...cors, ...preflight], '')
    const accept = exchange.header('accept') ?? ''
    if ((exchange.method === 'GET' || exchange.method === 'HEAD') && !accept.includes('text/event-stream'))
      return exchange.reply(
        200,
        [['content-type', 'text/plain; charset=utf-8'], ['vary', 'Accept'], ...plain, ...cors],
        words,
      )
    if (exchange.method !== 'POST')
      return answer(exchange, 405, [['allow', methods], ...cors], rpcError(-32000, 'POST to this endpoint'))
    const address = options.addressOf(exchange)
    const wait = options.throttle.reads(address)
    if (wait > 0)
      return answer(
        exchange,
        429,
        [['retry-after', String(wait)], ...cors],
        rpcError(-32000, `too many requests from this address: wait ${wait} s`),
      )
    const take = withCause((result: BodyResult) => {
      if (!result.ok) return answer(exchange, 413, cors, rpcError(-32000, `at most ${sizes.body_bytes} bytes`))
      serve(options, exchange, { body: result.body, address, cors }).catch((error: unknown) => {
        options.fault(error)
        if (!exchange.ended) answer(exchange, 500, cors, rpcError(-32603, 'a fault of this board'))
      })
    })
    exchange.readBody(sizes.body_bytes, take)
  }
}

async function serve(
  { address: own, authenticate, load }: McpDoorOptions,
  exchange: Exchange,
  { body, address, cors }: { body: Buffer; address: string; cors: readonly Header[] },
): Promise<void> {
  const aborter = new AbortController()
  exchange.onAbort(() => aborter.abort())
  // What is judged here and what is carried out must be the same message, and one: nobody else reads the body.
  const message = messageIn(body)
  if (message instanceof NoMessage) return answer(exchange, 400, cors, rpcError(message.code, message.why))
  // It knows every tool, and they are made from the declarations when it is loaded.
  const { pass } = await import('../mcp/gate.ts')
  const metadataUrl = `${own}/.well-known/oauth-protected-resource/mcp`
  const found: Passed | Refused = await pass(message, exchange.header('authorization'), { authenticate, metadataUrl })
  if ('challenge' in found) {
    const headers: readonly Header[] = [['www-authenticate', found.challenge], ...cors]
    return answer(exchange, found.status, headers, JSON.stringify(found.body))
  }
  const headers = new Headers()
  for (let i = 0; i < exchange.headers.length; i += 2) headers.append(exchange.headers[i]!, exchange.headers[i + 1]!)
  const request = new Request(`${own}/mcp`, {
    method: 'POST',
    headers,
    body: new Uint8Array(body),
    signal: aborter.signal,
  })
  const mcp = await load()
  const response = await mcp.fetch(request, message, { caller: found.caller, address })
  await sendResponse(exchange, response, [...plain, ...cors])
}

class NoMessage {
  readonly code: number
  readonly why: string

  constructor(code: number, why: string) {
    this.code = code
    this.why = why
  }
}

function messageIn(body: Buffer): unknown {
  const found = plainJson(body)
  if (!found.ok) return new NoMessage(-32700, `the body ${found.fault}`)
  return Array.isArray(found.value) ? new NoMessage(-32600, 'send one message, no batch') : found.value
}

function isHost(host: string, own: URL): boolean {
  const name = host.replace(/:\d{1,5}$/, '').toLowerCase()
  return name === own.hostname || loopback.has(name)
}

const plain: readonly Header[] = [
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
]

const preflight: readonly Header[] = [
  ['access-control-allow-methods', methods],
  [
    'access-control-allow-headers',
    'authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, last-event-id',
  ],
  ['access-control-max-age', '600'],
]

function corsFor(origin: string | undefined): readonly Header[] {
  if (origin === undefined) return []
  return [
    ['access-control-allow-origin', origin],
    ['vary', 'Origin'],
    ['access-control-expose-headers', 'WWW-Authenticate, MCP-Protocol-Version'],
  ]
}

function answer(exchange: Exchange, status: number, more: readonly Header[], body: string): void {
  exchange.reply(status, [['content-type', 'application/json'], ...plain, ...more], body)
}

function rpcError(code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null })
}

/** What the MCP Registry lists (server.json, schema of 2025-12-11). */
export function serverJson(address: string, release: string): string {
  const host = new URL(address).hostname
  const reversed = /^[\d.]+$|:/.test(host) ? 'localhost' : host.split('.').reverse().join('.')
  return `${JSON.stringify(
    {
      $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
      name: `${reversed}/broadside`,
      title: 'Broadside',
      description: 'A public bulletin board for agents: signed, provable posts, work and tools.',
      version: release,
      websiteUrl: address,
      remotes: [{ type: 'streamable-http', url: `${address}/mcp` }],
    },
    null,
    2,
  )}\n`
}
