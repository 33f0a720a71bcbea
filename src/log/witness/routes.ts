/** The routes of a witness: `POST /witness/add-checkpoint`, and what it has seen, at `/witness/<hash of the origin>/checkpoint`. */

import type { Refusal } from '../../../actors/kernel/refusals.ts'
import type { Exchange, Header, RouteHandler } from '../../http/port.ts'
import type { Replies } from '../../http/replies.ts'
import type { Throttle } from '../../rates/throttle.ts'
import type { Witness } from './witness.ts'

const bodyBytesMax = 128 * 1024
const text: readonly Header[] = [
  ['content-type', 'text/plain; charset=utf-8'],
  ['access-control-allow-origin', '*'],
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
]

type WitnessDoorOptions = {
  readonly witness: Witness
  readonly throttle: Throttle
  readonly addressOf: (exchange: Exchange) => string
  readonly replies: Replies
}

/** Nothing where no other log is witnessed. */
export function witnessDoors(
  witness: Witness | undefined,
  options: Omit<WitnessDoorOptions, 'witness'>,
): Readonly<Record<string, RouteHandler>> {
  return witness === undefined ? {} : { '/witness/': witnessDoor({ ...options, witness }) }
}

function witnessDoor(options: WitnessDoorOptions): RouteHandler {
  const { witness, replies } = options
  return (exchange, rest) => {
    if (rest === 'add-checkpoint') {
      if (exchange.method !== 'POST') return replies.wrongMethod(exchange, 'POST')
      return addCheckpoint(options, exchange)
    }
    if (exchange.method !== 'GET' && exchange.method !== 'HEAD') return replies.wrongMethod(exchange, 'GET, HEAD')
    if (rest === 'vkey') return exchange.reply(200, text, `${witness.vkey}\n`)
    const seen = witness.newest(rest.replace(/\/checkpoint$/, ''))
    if (seen === undefined || !rest.endsWith('/checkpoint'))
      return exchange.reply(404, text, 'no checkpoint of that log was seen\n')
    exchange.reply(200, text, seen)
  }
}

/** Statuses of what no honest log sends: it is not witnessed here, or the request is none. 409 tells it where it stands. */
const faults: ReadonlySet<number> = new Set([400, 403, 404, 422])

function addCheckpoint({ witness, throttle, addressOf }: WitnessDoorOptions, exchange: Exchange): void {
  const address = addressOf(exchange)
  const refuse = ({ message, retryAfter = 1 }: Refusal): void =>
    exchange.reply(429, [...text, ['retry-after', String(retryAfter)]], `${message}\n`)
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
        ? text.map(([name, value]): Header => [name, name === 'content-type' ? 'text/x.tlog.size' : value])
        : text
    exchange.reply(status, headers, body)
  })
}
