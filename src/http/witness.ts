/** The doors of a witness: `POST /witness/add-checkpoint`, and what it has seen, at `/witness/<hash of the origin>/checkpoint`. */
import type { Witness } from '../witness/witness.ts'
import type { Exchange, Header } from './port.ts'
import type { Doors, RouteHandler } from './routes.ts'

const bodyBytesMax = 128 * 1024
const text: readonly Header[] = [
  ['content-type', 'text/plain; charset=utf-8'],
  ['access-control-allow-origin', '*'],
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
]

export function witnessDoor(witness: Witness, doors: () => Doors): RouteHandler {
  return (exchange, rest) => {
    if (rest === 'add-checkpoint') {
      if (exchange.method !== 'POST') return doors().wrongMethod(exchange, 'POST')
      return addCheckpoint(witness, exchange)
    }
    if (exchange.method !== 'GET' && exchange.method !== 'HEAD') return doors().wrongMethod(exchange, 'GET, HEAD')
    if (rest === 'vkey') return exchange.reply(200, text, `${witness.vkey}\n`)
    const seen = witness.newest(rest.replace(/\/checkpoint$/, ''))
    if (seen === undefined || !rest.endsWith('/checkpoint'))
      return exchange.reply(404, text, 'nothing was seen of it\n')
    exchange.reply(200, text, seen)
  }
}

function addCheckpoint(witness: Witness, exchange: Exchange): void {
  exchange.readBody(bodyBytesMax, (result) => {
    if (!result.ok) return exchange.reply(400, text, `a request has at most ${bodyBytesMax} bytes\n`)
    const { status, body } = witness.addCheckpoint(result.body.toString('utf8'))
    const headers =
      status === 409
        ? text.map(([name, value]): Header => [name, name === 'content-type' ? 'text/x.tlog.size' : value])
        : text
    exchange.reply(status, headers, body)
  })
}
