/**
 * The public log under its own prefix, as any transparency-log client reads it (C2SP tlog-tiles, tlog-policy):
 * `checkpoint`, `tile/…`, and beside them `/log/vkey` and `/log/policy`, what a client pins.
 */
import { gzip } from 'node:zlib'
import { parseTilePath, type TilePath } from '../../storage/tile-path.ts'
import { refused } from '../command/reply.ts'
import { type Refusal, refusal } from '../refusals.ts'
import type { Exchange, Header } from './port.ts'
import type { RouteHandler, Routes } from './routes.ts'

type Refused = { readonly ok: false; readonly refusal: Refusal }

export type LogDoorOptions = {
  /** `host/log/2026a`: the log's name, and behind the host its prefix. */
  readonly origin: string
  readonly vkey: string
  /** Public address of the board, without a slash at its end. */
  readonly address: string
  /** Lines of the policy about witnesses and quorum. */
  readonly policyLines: string
  /** The newest published head, as a note. */
  readonly checkpoint: () => string
  /** Null: the published log does not reach so far. Undefined: no answer. */
  readonly tile: (path: TilePath, answer: (found: Uint8Array | Refused | null | undefined) => void) => void
  readonly routes: () => Routes
}

const shared: readonly Header[] = [
  ['access-control-allow-origin', '*'],
  ['x-content-type-options', 'nosniff'],
]
const text: readonly Header[] = [['content-type', 'text/plain; charset=utf-8'], ...shared]
const forEver: Header = ['cache-control', 'public, max-age=31536000, immutable']

export function logDoors(options: LogDoorOptions): Readonly<Record<string, RouteHandler>> {
  const prefix = options.origin.slice(options.origin.indexOf('/') + 1)
  const name = `${prefix.slice('log/'.length)}/`
  const policy = `# What a reader of this log pins (C2SP tlog-policy).\nlog ${options.vkey} ${options.address}/${prefix}\n${options.policyLines}`
  return {
    '/log/vkey': (exchange) =>
      exchange.reply(200, [...text, ['cache-control', 'public, max-age=3600']], `${options.vkey}\n`),
    '/log/policy': (exchange) => exchange.reply(200, [...text, ['cache-control', 'public, max-age=60']], policy),
    '/log/': (exchange, rest) => {
      const path = rest.startsWith(name) && exchange.query === '' ? rest.slice(name.length) : ''
      if (path === 'checkpoint')
        return exchange.reply(200, [...text, ['cache-control', 'public, max-age=1']], options.checkpoint())
      const tile = parseTilePath(path)
      if (tile === undefined) return absent(options, exchange)
      options.tile(tile, (bytes) => {
        if (exchange.ended) return
        if (bytes === undefined) return exchange.drop()
        if (bytes === null) return absent(options, exchange)
        if ('refusal' in bytes) return options.routes().send(exchange, refused(bytes.refusal))
        sendTile(exchange, tile, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
      })
    },
  }
}

function sendTile(exchange: Exchange, tile: TilePath, bytes: Buffer): void {
  const headers: Header[] = [['content-type', 'application/octet-stream'], ...shared, forEver]
  if (tile.kind === 'hashes') return exchange.reply(200, headers, bytes)
  headers.push(['vary', 'accept-encoding'])
  if (!/\bgzip\b/.test(exchange.header('accept-encoding') ?? '')) return exchange.reply(200, headers, bytes)
  gzip(bytes, (error, packed) => {
    if (exchange.ended) return
    if (error === null) exchange.reply(200, [...headers, ['content-encoding', 'gzip']], packed)
    else exchange.reply(200, headers, bytes)
  })
}

function absent(options: LogDoorOptions, exchange: Exchange): void {
  const message = `this log has no such checkpoint, tile or entry bundle: paths are those of C2SP tlog-tiles under /${options.origin.slice(options.origin.indexOf('/') + 1)}/, up to the size of its checkpoint`
  options.routes().send(exchange, refused(refusal('no_such_path', message)))
}
