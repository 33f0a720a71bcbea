/**
 * The route of receive URLs: `/in/<id>/<secret>`. POST and PUT deliver; GET and HEAD only explain. This file chooses which headers of a
 * delivery are stored: those that describe it, never those that authenticate the sender.
 */

import { sizes } from '../../actors/kernel/limits.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import type { Exchange, RouteHandler } from '../http/port.ts'
import type { Replies } from '../http/replies.ts'
import type { Deliveries, Delivery } from './deliveries.ts'

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
        headers: keptHeaders(exchange.headers),
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

const headersMax = 16
const valueMax = 200

const named: ReadonlySet<string> = new Set([
  'user-agent',
  'x-github-event',
  'x-github-delivery',
  'x-gitlab-event',
  'x-event-type',
  'x-request-id',
  'idempotency-key',
  'webhook-id',
  'webhook-timestamp',
  'svix-id',
  'svix-timestamp',
])
const shaped = /^ce-[a-z0-9-]{1,61}$|^[a-z0-9-]{1,51}-(event|delivery|request)-id$/
const secretive = /auth|cookie|signature|secret|token/

/** The first of each header that describes the delivery. `fields`: lowercase names and values, alternating. */
function keptHeaders(fields: readonly string[]): [name: string, value: string][] {
  const kept = new Map<string, string>()
  for (let i = 0; i < fields.length && kept.size < headersMax; i += 2) {
    const name = fields[i]!
    if (kept.has(name) || !(named.has(name) || shaped.test(name)) || secretive.test(name)) continue
    kept.set(name, plain(fields[i + 1] ?? ''))
  }
  return [...kept]
}

/** A header's value without unprintable characters, cut to its maximum length. */
function plain(value: string): string {
  return value.replaceAll(/[^\x20-\x7e]/g, '\u{fffd}').slice(0, valueMax)
}
