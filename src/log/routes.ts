/**
 * Serves the public log under its own prefix, as any transparency-log client reads it (C2SP tlog-tiles, tlog-policy): `checkpoint`,
 * `tile/…` and `vkey`. Also serves `/log/vkey` and `/log/policy`, which clients pin.
 */

import { gzip } from 'node:zlib'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { parseTilePath, type TilePath } from '../../storage/tile-path.ts'
import type { Exchange, Header, RouteHandler } from '../http/port.ts'
import { dataHeaders, type Replies } from '../http/replies.ts'
import { takesGzip } from '../http/wire.ts'
import type { Throttle } from '../rates/throttle.ts'
import type { Witness } from './witness/witness.ts'

type Refused = { readonly ok: false; readonly refusal: Refusal }

type LogRouteOptions = {
  /** Every log of the board, oldest first. The last one grows; the others never change. */
  readonly logs: readonly { readonly origin: string; readonly vkey: string }[]
  /** Public address of the board, without a trailing slash. */
  readonly address: string
  /** The policy's lines about witnesses and quorum. */
  readonly policyLines: string
  /** The newest published head of a log, as a note. */
  readonly checkpoint: (origin: string) => string
  /** Null if the published log does not reach that far; undefined if there was no answer. */
  readonly tile: (
    request: { readonly log: string; readonly path: TilePath },
    answer: (found: Uint8Array | Refused | null | undefined) => void,
  ) => void
  readonly replies: Replies
}

const shared = dataHeaders
const text: readonly Header[] = [['content-type', 'text/plain; charset=utf-8'], ...shared]
const forEver: Header = ['cache-control', 'public, max-age=31536000, immutable']

export function logRoutes(options: LogRouteOptions): Readonly<Record<string, RouteHandler>> {
  const { logs, address } = options
  const policy = [
    '# What a reader of this log pins (C2SP tlog-policy).',
    ...logs.map(({ origin, vkey }) => `log ${vkey} ${address}${origin.slice(origin.indexOf('/'))}`),
    options.policyLines,
  ].join('\n')
  const byName = new Map(logs.map((log) => [log.origin.slice(log.origin.lastIndexOf('/') + 1), log]))
  const sendKey = (exchange: Exchange, vkey: string): void =>
    exchange.reply(200, [...text, ['cache-control', 'public, max-age=3600']], `${vkey}\n`)
  return {
    '/log/vkey': (exchange) => sendKey(exchange, logs.at(-1)!.vkey),
    '/log/policy': (exchange) => exchange.reply(200, [...text, ['cache-control', 'public, max-age=60']], policy),
    '/log/': (exchange, rest) => {
      const slash = rest.indexOf('/')
      const name = rest.slice(0, Math.max(0, slash))
      const log = byName.get(name)
      const path = log !== undefined && exchange.query === '' ? rest.slice(slash + 1) : ''
      if (log === undefined) return absent(options, exchange)
      if (path === 'checkpoint')
        return exchange.reply(200, [...text, ['cache-control', 'public, max-age=1']], options.checkpoint(log.origin))
      if (path === 'vkey') return sendKey(exchange, log.vkey)
      const tile = parseTilePath(path)
      if (tile === undefined) return absent(options, exchange)
      options.tile({ log: name, path: tile }, (bytes) => {
        if (exchange.ended) return
        if (bytes === undefined) return exchange.drop()
        if (bytes === null) return absent(options, exchange)
        if ('refusal' in bytes) return options.replies.refuse(exchange, bytes.refusal)
        sendTile(exchange, tile, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
      })
    },
  }
}

function sendTile(exchange: Exchange, tile: TilePath, bytes: Buffer): void {
  const headers: Header[] = [['content-type', 'application/octet-stream'], ...shared, forEver]
  if (tile.kind === 'hashes') return exchange.reply(200, headers, bytes)
  headers.push(['vary', 'accept-encoding'])
  if (!takesGzip(exchange.header('accept-encoding'))) return exchange.reply(200, headers, bytes)
  gzip(bytes, (error, packed) => {
    if (exchange.ended) return
    if (error === null) exchange.reply(200, [...headers, ['content-encoding', 'gzip']], packed)
    else exchange.reply(200, headers, bytes)
  })
}

function absent({ logs, replies }: LogRouteOptions, exchange: Exchange): void {
  const prefixes = logs.map(({ origin }) => `${origin.slice(origin.indexOf('/'))}/`).join(', ')
  const message = `this log has no such checkpoint, tile or entry bundle: paths are those of C2SP tlog-tiles under ${prefixes}, up to the size of its checkpoint`
  replies.refuse(exchange, refusal('no_such_path', message))
}

const bodyBytesMax = 128 * 1024
const witnessText: readonly Header[] = [
  ['content-type', 'text/plain; charset=utf-8'],
  ['access-control-allow-origin', '*'],
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
]

type WitnessRouteOptions = {
  readonly witness: Witness
  readonly throttle: Throttle
  readonly addressOf: (exchange: Exchange) => string
  readonly replies: Replies
}

/**
 * The routes of a witness: `POST /witness/add-checkpoint`, and what it has seen at `/witness/<hash of the origin>/checkpoint`. Empty if no
 * other log is witnessed.
 */
export function witnessRoutes(
  witness: Witness | undefined,
  options: Omit<WitnessRouteOptions, 'witness'>,
): Readonly<Record<string, RouteHandler>> {
  return witness === undefined ? {} : { '/witness/': witnessRoute({ ...options, witness }) }
}

function witnessRoute(options: WitnessRouteOptions): RouteHandler {
  const { witness, replies } = options
  return (exchange, rest) => {
    if (rest === 'add-checkpoint') {
      if (exchange.method !== 'POST') return replies.wrongMethod(exchange, 'POST')
      return addCheckpoint(options, exchange)
    }
    if (exchange.method !== 'GET' && exchange.method !== 'HEAD') return replies.wrongMethod(exchange, 'GET, HEAD')
    if (rest === 'vkey') return exchange.reply(200, witnessText, `${witness.vkey}\n`)
    const seen = witness.newest(rest.replace(/\/checkpoint$/, ''))
    if (seen === undefined || !rest.endsWith('/checkpoint'))
      return exchange.reply(404, witnessText, 'no checkpoint of that log was seen\n')
    exchange.reply(200, witnessText, seen)
  }
}

/**
 * Statuses that no honest log causes: its log is not witnessed here, or the request is malformed. 409 is not among them: it tells the log
 * which size the witness knows.
 */
const faults: ReadonlySet<number> = new Set([400, 403, 404, 422])

function addCheckpoint({ witness, throttle, addressOf }: WitnessRouteOptions, exchange: Exchange): void {
  const address = addressOf(exchange)
  const refuse = ({ message, retryAfter = 1 }: Refusal): void =>
    exchange.reply(429, [...witnessText, ['retry-after', String(retryAfter)]], `${message}\n`)
  const tooMany = throttle.count('reads', { address })
  if (tooMany !== undefined) return refuse(tooMany)
  exchange.readBody(bodyBytesMax, (result) => {
    const { status, body } = result.ok
      ? witness.addCheckpoint(result.body.toString('utf8'))
      : { status: 400, body: `a request has at most ${bodyBytesMax} bytes\n` }
    const tooFaulty = faults.has(status) ? throttle.count('unsigned_commands', { address }) : undefined
    if (tooFaulty !== undefined) return refuse(tooFaulty)
    const headers =
      status === 409
        ? witnessText.map(([name, value]): Header => [name, name === 'content-type' ? 'text/x.tlog.size' : value])
        : witnessText
    exchange.reply(status, headers, body)
  })
}
