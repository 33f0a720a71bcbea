/** Validates a WebSocket handshake. */
import { streamPath } from '../../actors/follow/stream.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { Exchange } from './port.ts'

const keyText = /^[A-Za-z0-9+/]{22}==$/

/** Why this is not a request for a WebSocket (RFC 6455, 4.2.1); undefined if it is one. */
export function handshakeFault(exchange: Pick<Exchange, 'header' | 'query'>): Refusal | undefined {
  const has = (name: string, token: string) =>
    (exchange.header(name) ?? '').split(',').some((each) => each.trim().toLowerCase() === token)
  if (!has('upgrade', 'websocket') || !has('connection', 'upgrade'))
    return refusal('invalid_field', `${streamPath} is a WebSocket: connect with one`, 'Upgrade')
  if (exchange.header('sec-websocket-version') !== '13')
    return refusal('invalid_field', 'Sec-WebSocket-Version must be 13', 'Sec-WebSocket-Version')
  if (!keyText.test(exchange.header('sec-websocket-key') ?? ''))
    return refusal('invalid_field', 'Sec-WebSocket-Key must be base64 of 16 bytes', 'Sec-WebSocket-Key')
  return exchange.query === ''
    ? undefined
    : refusal('invalid_field', `${streamPath} takes no query: everything goes into messages`)
}
