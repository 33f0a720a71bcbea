/**
 * The routes of sign-in: the metadata that clients read first (RFC 9728, RFC 8414), and everything under /oauth/. The handlers are loaded
 * by the first request; until then they take no memory.
 */

import { signInScopes as scopes } from '../../actors/kernel/operation.ts'
import type { Exchange, Header, RouteHandler } from '../http/port.ts'
import { ownFileHeaders } from '../http/replies.ts'
import { isEngineHeader } from '../http/wire.ts'
import { pageHeaders } from '../pages/headers.ts'
import { layout } from '../pages/layout.ts'
import { signInRefusal } from '../pages/refused.ts'
import type { Throttle } from '../rates/throttle.ts'
import type { Oauth, OauthResponse } from './oauth.ts'

type OauthRoutesOptions = {
  /** Public address of the board, without a trailing slash. */
  readonly address: string
  /** The board's name on pages. */
  readonly name: string
  readonly load: () => Promise<Oauth>
  /** A sentence that says why nobody can sign in here, because another machine decides; undefined if they can. */
  readonly elsewhere: () => string | undefined
  /** The script of the sign-in page. */
  readonly script: () => Promise<Buffer>
  readonly throttle: Throttle
  readonly addressOf: (exchange: Exchange) => string
  /** Logs a fault of the service. */
  readonly fault: (error: unknown) => void
}

const bodyBytesMax = 64 * 1024

/** Paths of the authorization server metadata; clients try one, then the other. */
const described = ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration']

/** The library accepts several spellings of each path, but for limits each must have exactly one. */
const spelled = /^\/oauth\/(?:(authorize|token|register|revoke|jwks)|(authorize|interaction)\/[\w-]{1,64})$/
const registerPath = '/oauth/register'
const authorizePath = '/oauth/authorize'

/** The methods accepted at a path; undefined if there is nothing. */
function methodsOf(path: string): readonly string[] | undefined {
  if (described.includes(path)) return ['GET', 'HEAD', 'OPTIONS']
  const [, name, parent] = spelled.exec(path) ?? []
  if (name === 'jwks') return ['GET', 'HEAD', 'OPTIONS']
  if (name === 'authorize' || parent === 'authorize') return ['GET', 'HEAD']
  if (parent === 'interaction') return ['GET', 'POST']
  return name === undefined ? undefined : ['POST', 'OPTIONS']
}

export function oauthRoutes(options: OauthRoutesOptions): Readonly<Record<string, RouteHandler>> {
  const { address, throttle, addressOf } = options
  const resource = JSON.stringify({
    resource: `${address}/mcp`,
    authorization_servers: [address],
    scopes_supported: scopes,
    bearer_methods_supported: ['header'],
    resource_name: 'Broadside',
    resource_documentation: `${address}/for-agents`,
  })
  const metadata: RouteHandler = (exchange) => {
    const allow = ['GET', 'HEAD', 'OPTIONS']
    if (exchange.method === 'OPTIONS') return exchange.reply(204, [...open, ...preflightFor(allow)], '')
    if (!allow.includes(exchange.method)) return refuse(options, exchange, 405, 'use GET here', { allow })
    exchange.reply(
      200,
      [['content-type', 'application/json'], ['cache-control', 'public, max-age=300'], ...open],
      resource,
    )
  }
  const served: RouteHandler = (exchange) => {
    const client = addressOf(exchange)
    if (exchange.path === '/oauth/sign-in-page.js') return script(options, exchange)
    const allow = methodsOf(exchange.path)
    if (allow === undefined)
      return refuse(options, exchange, 404, `there is nothing at ${exchange.path}: see ${described[0]}`)
    if (!allow.includes(exchange.method)) return refuse(options, exchange, 405, `${allow[0]} this`, { allow })
    const elsewhere = described.includes(exchange.path) ? undefined : options.elsewhere()
    if (elsewhere !== undefined) return refuse(options, exchange, 403, elsewhere)
    // The library answers OPTIONS everywhere but here.
    const isRegister = exchange.path === registerPath
    if (isRegister && exchange.method === 'OPTIONS') return exchange.reply(204, [...open, ...preflightFor(allow)], '')
    const wait = throttle.reads(client)
    if (wait > 0) return refuse(options, exchange, 429, `too many requests from this address: wait ${wait} s`, { wait })
    const kept = isRegister ? 'client_registrations' : exchange.path === authorizePath ? 'sign_ins' : undefined
    const full = kept === undefined ? undefined : throttle.count(kept, { address: client })
    if (full !== undefined) return refuse(options, exchange, 429, full.message, { wait: full.retryAfter! })
    exchange.readBody(bodyBytesMax, (result) => {
      if (!result.ok) return refuse(options, exchange, 413, `at most ${bodyBytesMax} bytes`)
      serve(options, exchange, result.body, client).catch((error: unknown) => {
        options.fault(error)
        if (!exchange.ended) refuse(options, exchange, 500, 'an internal error of this board')
      })
    })
  }
  return {
    '/.well-known/oauth-protected-resource': metadata,
    '/.well-known/oauth-protected-resource/mcp': metadata,
    ...Object.fromEntries(described.map((path) => [path, served])),
    '/oauth/': served,
  }
}

async function serve(options: OauthRoutesOptions, exchange: Exchange, body: Buffer, address: string): Promise<void> {
  const { path, query } = exchange
  const headers = headersOf(exchange)
  const oauth = await options.load()
  // For HEAD, the library returns no body, and anything derived from it, first its length, would be wrong.
  const method = exchange.method === 'HEAD' ? 'GET' : exchange.method
  const told = await oauth.handle({ method, url: query === '' ? path : `${path}?${query}`, headers, body, address })
  if (exchange.ended) return
  // Invalid requests count like invalid commands, and further ones are refused once there are too many.
  const tooMany = isFault(exchange, told) ? options.throttle.count('unsigned_commands', { address }) : undefined
  if (tooMany !== undefined) return refuse(options, exchange, 429, tooMany.message, { wait: tooMany.retryAfter! })
  // A page of another origin may register a client: nothing here depends on who does.
  const answer = path === registerPath ? { ...told, headers: [anyOrigin, ...told.headers] } : told
  const { status } = answer
  if (status < 400 || !isPerson(exchange) || !isOf(answer, 'application/json'))
    return exchange.reply(status, sendable(options, answer), answer.body)
  const said = JSON.parse(answer.body.toString('utf8')) as Record<string, string>
  const { error, error_description: description, location } = said
  const rest = answer.headers.filter(([name]) => name !== 'content-type')
  exchange.reply(
    status,
    sendable(options, { ...answer, headers: [pageType, ...rest] }),
    layout(
      signInRefusal(status, {
        error: error!,
        description: description ?? 'this request cannot be processed',
        location,
      }),
      { board: options },
    ),
  )
}

/** Whether the client sent an invalid request. Not if a sign-in is missing, which may have ended, nor if the client is told to wait. */
function isFault({ method }: Exchange, { status }: OauthResponse): boolean {
  return method === 'POST' && status >= 400 && status < 500 && status !== 404 && status !== 429
}

const pageType: Header = ['content-type', 'text/html; charset=utf-8']

function isOf({ headers }: Pick<OauthResponse, 'headers'>, type: string): boolean {
  return headers.some(([name, value]) => name === 'content-type' && value.startsWith(type))
}

/** Whether a browser is navigating, as opposed to a script in it. */
function isPerson(exchange: Exchange): boolean {
  const accept = exchange.header('accept') ?? ''
  return accept.includes('text/html') && !accept.includes('application/json')
}

function sendable({ address }: OauthRoutesOptions, { headers }: OauthResponse): readonly Header[] {
  const isPage = isOf({ headers }, 'text/html')
  const own: readonly Header[] = isPage ? [...pageHeaders(address), ['cache-control', 'no-store']] : [noSniff, noStore]
  const given = new Set(own.map(([name]) => name))
  return [...own, ...headers.filter(([name]) => !isEngineHeader(name) && !given.has(name))]
}

function headersOf({ headers }: Exchange): Record<string, string> {
  const found: Record<string, string> = {}
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!
    const before = found[name]
    const value = headers[i + 1]!
    // Only this board sets forwarding headers, not the client.
    if (!name.startsWith('x-forwarded-'))
      found[name] = before === undefined ? value : `${before}${name === 'cookie' ? '; ' : ', '}${value}`
  }
  return found
}

function script({ script: load, fault }: OauthRoutesOptions, exchange: Exchange): void {
  load().then(
    (body) => {
      const headers: readonly Header[] = [
        ...ownFileHeaders('text/javascript; charset=utf-8'),
        ['cache-control', 'no-cache'],
      ]
      if (!exchange.ended) exchange.reply(200, headers, body)
    },
    (error: unknown) => {
      fault(error)
      exchange.drop()
    },
  )
}

const noSniff: Header = ['x-content-type-options', 'nosniff']
const noStore: Header = ['cache-control', 'no-store']
const anyOrigin: Header = ['access-control-allow-origin', '*']
const open: readonly Header[] = [anyOrigin, noSniff]
const preflightFor = (methods: readonly string[]): readonly Header[] => [
  ['access-control-allow-methods', methods.join(', ')],
  ['access-control-allow-headers', 'authorization, content-type, mcp-protocol-version'],
  ['access-control-max-age', '600'],
]

function refuse(
  { address, name }: Pick<OauthRoutesOptions, 'address' | 'name'>,
  exchange: Exchange,
  status: number,
  description: string,
  { wait, allow }: { readonly wait?: number; readonly allow?: readonly string[] } = {},
): void {
  const more: readonly Header[] = [
    ...(wait === undefined ? [] : ([['retry-after', String(wait)]] as const)),
    ...(allow === undefined ? [] : ([['allow', allow.join(', ')]] as const)),
  ]
  const error = status === 500 ? 'server_error' : status === 429 ? 'temporarily_unavailable' : 'invalid_request'
  if (isPerson(exchange)) {
    const page = layout(signInRefusal(status, { error, description, retryAfter: wait }), { board: { address, name } })
    return exchange.reply(status, [...pageHeaders(address), noStore, ...more], page)
  }
  const body = JSON.stringify({ error, error_description: description })
  exchange.reply(status, [['content-type', 'application/json'], noStore, ...open, ...more], body)
}
