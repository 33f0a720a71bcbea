/** Whose request is this? The socket's peer, or, behind a proxy, what the one header says that the operator named. */
import type { Exchange } from './port.ts'

/** `trustProxy`: lower-case header name, or '' for none. The right-most entry is the one that the operator's own proxy wrote. */
export function clientAddress(exchange: Exchange, trustProxy: string): string {
  if (trustProxy === '') return exchange.remoteAddress
  const named = exchange.header(trustProxy)?.split(',').at(-1)?.trim()
  return named === undefined || named === '' ? exchange.remoteAddress : named
}
