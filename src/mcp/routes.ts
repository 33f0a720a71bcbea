/**
 * The routes of the MCP endpoint: /mcp, and what the MCP Registry reads at /.well-known/mcp/server.json.
 *
 * A browser request from another site is refused (own-site.ts). The protocol library is loaded by the first request.
 */

import { ordinaryBodyBytes, sizes } from '../../actors/kernel/limits.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import { carriesFile } from '../command/check.ts'
import { parseMessage } from '../format/foreign-json.ts'
import { OwnSite } from '../http/own-site.ts'
import type { BodyResult, Exchange, Header, RouteHandler } from '../http/port.ts'
import { isEngineHeader } from '../http/wire.ts'
import { type Places, streamWaitSeconds } from '../rates/places.ts'
import type { Throttle } from '../rates/throttle.ts'
import { withCause } from '../runtime/slow-turns.ts'
import { type Authenticate, bearerToken, type Caller } from '../sign-in/caller.ts'
import type { Passed, Refused } from './gate.ts'
import type { Mcp } from './mcp.ts'

type McpRouteOptions = {
  /** Public address of the board, without a trailing slash. */
  readonly address: string
  readonly release: string
  /** Origins besides the board's own. */
  readonly origins: readonly string[]
  readonly load: () => Promise<Mcp>
  readonly authenticate: Authenticate
  readonly throttle: Throttle
  /** Counts all open streams. */
  readonly streams: Places
  readonly addressOf: (exchange: Exchange) => string
  /** Logs a fault of the service. */
  readonly fault: (error: unknown) => void
}

const methods = 'GET, POST, OPTIONS'
const words = `This is an MCP endpoint. Give its address to an MCP client (Streamable HTTP); reading needs no sign-in, writing
needs one with your key, which the client starts. It lists the everyday tools; add ?tools=all for every tool, or name sets:
read, post, work, rooms, tools, webhooks, attachments, moderation. See /agents and /for-agents.
`

export function mcpRoute(options: McpRouteOptions): RouteHandler {
  const site = new OwnSite(options)
  const goodTokens = new BoundedMap<string, true>(goodTokensMax)
  return (exchange) => {
    const origin = exchange.header('origin')
    const foreign = site.faultOf(exchange)
    if (foreign !== undefined) return answer(exchange, 403, [], rpcError(-32000, foreign))
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
    const token = bearerToken(exchange.header('authorization'))
    const wait =
      token === undefined
        ? options.throttle.reads(address)
        : goodTokens.has(token)
          ? 0
          : (options.throttle.signaturesObjection(address)?.retryAfter ?? 0)
    if (wait > 0) return tooMany(exchange, 'requests from this address', wait, cors)
    const objection = goodTokens.has(token ?? '') ? undefined : options.throttle.largeBodyObjection(address)
    const take = withCause((result: BodyResult) => {
      if (!result.ok && objection !== undefined) {
        options.throttle.placeRefused('unsigned_commands_per_address_per_minute')
        return tooMany(exchange, 'invalid messages from this address', objection.retryAfter!, cors)
      }
      if (!result.ok) return answer(exchange, 413, cors, rpcError(-32000, `at most ${sizes.body_bytes} bytes`))
      serve(options, exchange, { body: result.body, address, cors, token, goodTokens }).catch((error: unknown) => {
        options.fault(error)
        if (!exchange.ended) answer(exchange, 500, cors, rpcError(-32603, 'an internal error of this board'))
      })
    })
    exchange.readBody(objection === undefined ? sizes.body_bytes : ordinaryBodyBytes, take)
  }
}

/**
 * Tokens that were recently valid. Many honest clients share the address of their host, so they keep working even if one of them sends many
 * invalid tokens.
 */
type GoodTokens = BoundedMap<string, true>

const goodTokensMax = 10_000

type Posted = {
  readonly body: Buffer
  readonly address: string
  readonly cors: readonly Header[]
  readonly token: string | undefined
  readonly goodTokens: GoodTokens
}

async function serve(options: McpRouteOptions, exchange: Exchange, posted: Posted): Promise<void> {
  const { body, address, cors, token, goodTokens } = posted
  const { authenticate, throttle, streams } = options
  const aborter = new AbortController()
  exchange.onAbort(() => aborter.abort())
  // A signed-in caller is counted by identity, not by the address of its host.
  const caller = token === undefined ? undefined : await authenticate(token)
  if (token !== undefined) {
    if (caller === undefined) {
      goodTokens.delete(token)
      throttle.badSignature(address)
    } else goodTokens.set(token, true)
  }
  const wait = caller === undefined ? 0 : throttle.reads(address, caller.identity)
  if (wait > 0) return tooMany(exchange, 'requests of this identity', wait, cors)
  // The message that is checked here must be the one that is executed, so the body is parsed only here.
  const message = messageIn(body)
  if (message instanceof NoMessage) {
    // A signed-in caller has paid with a read. For others the network pays, and is refused once it has sent too many.
    const refusal = caller === undefined ? throttle.count('unsigned_commands', { address }) : undefined
    if (refusal !== undefined) return tooMany(exchange, 'invalid messages from this address', refusal.retryAfter!, cors)
    return answer(exchange, message.status, cors, rpcError(message.code, message.why))
  }
  const source = { address, ...(caller === undefined ? {} : { signedIn: caller.identity }) }
  const leave = isListening(message) ? streams.take(source) : () => {}
  if (typeof leave === 'string') return tooMany(exchange, 'open streams', streamWaitSeconds, cors)
  await serveMessage(options, exchange, posted, { message, caller, aborter }).finally(leave)
}

/** Its answer is a stream that stays open as long as the client likes. */
function isListening(message: unknown): boolean {
  return (message as { method?: unknown } | null)?.method === 'subscriptions/listen'
}

async function serveMessage(
  { address: own, load }: McpRouteOptions,
  exchange: Exchange,
  { body, address, cors }: Posted,
  { message, caller, aborter }: { message: unknown; caller: Caller | undefined; aborter: AbortController },
): Promise<void> {
  // The gate knows every tool, and the tools are built from the declarations when it is loaded.
  const { pass } = await import('./gate.ts')
  const found: Passed | Refused = await pass(message, exchange.header('authorization'), {
    authenticate: async () => caller,
    metadataUrl: `${own}/.well-known/oauth-protected-resource/mcp`,
    guideUrl: `${own}/for-agents`,
  })
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
  const response = await mcp.fetch(request, message, { caller: found.caller, address, query: exchange.query })
  await sendResponse(exchange, response, [...plain, ...cors], () => aborter.abort())
}

class NoMessage {
  readonly status: number
  readonly code: number
  readonly why: string

  constructor(status: number, code: number, why: string) {
    this.status = status
    this.code = code
    this.why = why
  }
}

/** Where a message that calls the tool `command` names the command's operation. */
const operationPath = ['params', 'arguments', 'command', 'operation'] as const

function messageIn(body: Buffer): unknown {
  if (body.length > sizes.command_bytes && !carriesFile(body, operationPath))
    return new NoMessage(413, -32000, `at most ${sizes.command_bytes} bytes, except for a command that uploads a file`)
  const found = parseMessage(body)
  if (!found.ok) return new NoMessage(400, -32700, `the body ${found.fault}`)
  return Array.isArray(found.value) ? new NoMessage(400, -32600, 'send one message, not a batch') : found.value
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

function tooMany(exchange: Exchange, what: string, wait: number, cors: readonly Header[]): void {
  const body = rpcError(-32000, `too many ${what}: wait ${wait} s`)
  answer(exchange, 429, [['retry-after', String(wait)], ...cors], body)
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

/** Headers of a library's response that are not passed on: the engine writes them, or they are for a proxy. */
const isDropped = (name: string): boolean => isEngineHeader(name) || name === 'x-accel-buffering'

/**
 * Sends a library's web-standard Response through the exchange. `onOver`: called when a stream is over, whichever side ended it. The older
 * protocol begins a stream before its call has an answer, so this is how the call learns that the client has left.
 */
export async function sendResponse(
  exchange: Exchange,
  response: Response,
  more: readonly Header[],
  onOver: () => void,
): Promise<void> {
  const given = new Set(more.map(([name]) => name))
  const headers: Header[] = [...more]
  for (const [name, value] of response.headers) if (!isDropped(name) && !given.has(name)) headers.push([name, value])
  if (response.headers.get('content-type')?.includes('text/event-stream') !== true || response.body === null) {
    const body = Buffer.from(await response.arrayBuffer())
    if (!exchange.ended) exchange.reply(response.status, headers, body)
    return
  }
  if (exchange.ended) return response.body.cancel()
  const stream = exchange.stream(response.status, [...headers, ['x-accel-buffering', 'no']])
  const reader = response.body.getReader()
  let go: () => void = () => {}
  let isOver = false
  stream.onClose(() => {
    isOver = true
    onOver()
    reader.cancel().catch(() => {})
    go()
  })
  stream.onDrain(() => go())
  for (;;) {
    const { done, value } = await reader.read()
    if (isOver) return
    if (done) return stream.end()
    if (stream.write(value)) continue
    await new Promise<void>((resolve) => {
      go = resolve
    })
  }
}
