/** Headers of requests that the board sends, and of the answers it hands on. */
import { validateHeaderValue } from 'node:http'
import type { Fields } from './connection.ts'

/** RFC 9110 7.6.1: of one connection only. */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
/** Made here alone. */
const ours = new Set(['host', 'content-length', 'user-agent', 'accept-encoding', 'cookie', 'expect'])

/** Names and values in turn. Throws where one is not for callers to set, or would break a line. */
export function outgoingHeaders(headers: Readonly<Record<string, string>>, userAgent: string): string[] {
  const sent: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase()
    if (hopByHop.has(lower) || ours.has(lower)) throw new TypeError(`callers cannot set the header ${lower}`)
    validateHeaderValue(lower, value)
    sent.push(lower, value)
  }
  sent.push('user-agent', userAgent, 'accept-encoding', 'identity')
  return sent
}

export function receivedHeaders(fields: Fields): Record<string, readonly string[]> {
  const kept: Record<string, readonly string[]> = Object.create(null)
  for (const [name, values] of Object.entries(fields)) {
    if (values === undefined || hopByHop.has(name) || name === 'set-cookie' || name === 'set-cookie2') continue
    kept[name] = [values].flat()
  }
  return kept
}
