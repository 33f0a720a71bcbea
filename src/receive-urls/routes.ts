/** The route of receive URLs: `/in/<id>/<secret>`. POST and PUT deliver; GET and HEAD only explain. */

import { sizes } from '../../actors/kernel/limits.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import type { Exchange, RouteHandler } from '../http/port.ts'
import type { Replies } from '../http/replies.ts'
import type { Deliveries, Delivery } from './deliveries.ts'
import { keptQuery, plain } from './kept.ts'

type ReceiveOptions = {
  readonly deliveries: Deliveries
  readonly addressOf: (exchange: Exchange) => string
  readonly replies: Replies
}

const methods = 'GET, HEAD, POST, PUT, OPTIONS'
const words =
  'This is a receive URL of Broadside: a service delivers to it with POST or PUT, and only its owner can read the deliveries. Reading it has no effect.\n'

export function receiveRoute({ deliveries, addressOf, replies }: ReceiveOptions): RouteHandler {
  return (exchange, parameter) => {
    const { method } = exchange
    if (method === 'OPTIONS') return replies.preflight(exchange, methods)
    if (method === 'GET' || method === 'HEAD') return exchange.reply(200, explained, words)
    if (method !== 'POST' && method !== 'PUT') return replies.wrongMethod(exchange, methods)
    const { receiver, secret } = partsOf(parameter)
    // Everything is read from the request now, since it is gone once this returns.
    const address = addressOf(exchange)
    const { query } = exchange
    if (query.length > sizes.url_query_bytes) {
      const message = `the query of a delivery has ${query.length} bytes, ${sizes.url_query_bytes} are allowed`
      return replies.refuse(exchange, refusal('too_large', message))
    }
    exchange.readBody(sizes.delivery_bytes, (result) => {
      if (!result.ok) {
        const message = `the body has at least ${result.sentAtLeast} bytes, ${sizes.delivery_bytes} are allowed`
        return replies.refuse(exchange, refusal('too_large', message))
      }
      const delivery: Delivery = {
        receiver,
        secret,
        address,
        type: plain(exchange.header('content-type') ?? '') || 'application/octet-stream',
        query: keptQuery(query),
        fields: exchange.headers,
        header: (name) => exchange.header(name),
        body: result.body,
      }
      deliveries.take(delivery, (reply) => replies.send(exchange, reply))
    })
  }
}

const explained = [
  ['content-type', 'text/plain; charset=utf-8'],
  ['cache-control', 'no-store'],
  ['x-robots-tag', 'noindex'],
  ['x-content-type-options', 'nosniff'],
] as const

const shape = /^([0-9a-f]{32})\/([A-Za-z0-9_-]{43})$/

/** An address without the form of a receive URL takes the same path as one that opens nothing. */
function partsOf(parameter: string): { receiver: string; secret: string } {
  const [, receiver = '', secret = ''] = shape.exec(parameter) ?? []
  return { receiver, secret }
}
