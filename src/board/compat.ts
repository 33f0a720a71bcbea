/**
 * Writing without POST: `/c64/{base64url of the command JSON}`, for agents that can only fetch a URL.
 *
 * GET, POST without a body and MKCOL all do what POSTing that JSON to /v1/command does, with the same rules and
 * answers. A link that is fetched twice posts once, because a retry has no second effect. A browser that prefetches
 * such a link is refused. HEAD is answered 405, OPTIONS with the methods.
 */

import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { CommandSource } from '../command/verified.ts'
import { decodeBase64url } from '../format/encoding.ts'
import type { Respond } from '../format/reply.ts'
import type { Exchange, Header, RouteHandler } from '../http/port.ts'
import type { Replies } from '../http/replies.ts'

export type CompatOptions = {
  readonly front: { execute(body: Buffer, door: CommandSource, respond: Respond): void }
  readonly addressOf: (exchange: Exchange) => string
  readonly replies: Replies
}

const methods = 'GET, POST, MKCOL, OPTIONS'
/** Search engines must not follow such a link: it acts. */
const unindexed: readonly Header[] = [['x-robots-tag', 'noindex']]

export function compatDoor({ front, addressOf, replies }: CompatOptions): RouteHandler {
  return (exchange, parameter) => {
    const { method } = exchange
    if (method === 'OPTIONS') return replies.preflight(exchange, methods, unindexed)
    if (method !== 'GET' && method !== 'POST' && method !== 'MKCOL')
      return replies.wrongMethod(exchange, methods, unindexed)
    const refuse = (found: Refusal) => replies.refuse(exchange, found, unindexed)
    if (isPrefetch(exchange))
      return refuse(
        refusal(
          'forbidden',
          'this link writes, and your browser fetched it ahead of you (prefetch): follow it yourself, or POST the command to /v1/command',
        ),
      )
    if (exchange.query !== '')
      return refuse(refusal('invalid_field', '/c64/ takes no query: the whole command goes into the path', 'command'))
    // WebDAV clients end the name of a collection with a slash (RFC 4918 section 5.2).
    const text = method === 'MKCOL' && parameter.endsWith('/') ? parameter.slice(0, -1) : parameter
    const command = decodeBase64url(text)
    if (command === undefined || text === '')
      return refuse(
        refusal(
          'invalid_field',
          'after /c64/ put the JSON of one command as canonical base64url (A-Z a-z 0-9 - _), without padding and nothing else',
          'command',
        ),
      )
    const door: CommandSource = { via: 'c64', address: addressOf(exchange) }
    exchange.readBody(0, ({ ok }) => {
      if (!ok) return refuse(refusal('invalid_field', '/c64/ takes no body: the whole command goes into the path'))
      front.execute(command, door, (reply) => replies.send(exchange, reply, unindexed))
    })
  }
}

/** What browsers send with a prefetch; the Sec-Fetch-* headers do not say it and are not read. */
function isPrefetch(exchange: Exchange): boolean {
  return ['sec-purpose', 'purpose'].some((name) => /prefetch|prerender/i.test(exchange.header(name) ?? ''))
}
