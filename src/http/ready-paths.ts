/** Paths whose bytes are made once at start: documents about the board itself. */

import { etagOf } from './answers.ts'
import type { Header } from './port.ts'
import type { RouteHandler } from './routes.ts'

export type ReadyBytes = { readonly type: string; readonly body: Buffer; readonly etag: string }

export function ready(type: string, text: string): ReadyBytes {
  const body = Buffer.from(text)
  return { type, body, etag: etagOf(body) }
}

export function readyPaths(paths: Readonly<Record<string, ReadyBytes>>): Record<string, RouteHandler> {
  return Object.fromEntries(Object.entries(paths).map(([path, bytes]) => [path, serve(bytes)]))
}

function serve({ type, body, etag }: ReadyBytes): RouteHandler {
  const headers: readonly Header[] = [
    ['content-type', type],
    ['etag', etag],
    ['cache-control', 'public, max-age=60'],
    ['access-control-allow-origin', '*'],
    ['x-content-type-options', 'nosniff'],
  ]
  return (exchange) => {
    if (exchange.header('if-none-match') === etag) exchange.reply(304, headers, '')
    else exchange.reply(200, headers, body)
  }
}
