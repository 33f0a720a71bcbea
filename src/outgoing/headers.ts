/** Headers of requests that the board sends, and of the answers it hands on. */

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

export function outgoingHeaders(
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array | undefined,
  userAgent: string,
): Record<string, string> {
  const sent: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase()
    if (hopByHop.has(lower) || ours.has(lower)) throw new TypeError(`the header ${lower} is not for callers to set`)
    sent[lower] = value
  }
  sent['user-agent'] = userAgent
  sent['accept-encoding'] = 'identity'
  if (body !== undefined) sent['content-length'] = String(Buffer.byteLength(body))
  return sent
}

export function receivedHeaders(
  headers: Readonly<Record<string, readonly string[] | undefined>>,
): Record<string, readonly string[]> {
  const kept: Record<string, readonly string[]> = Object.create(null)
  for (const [name, values] of Object.entries(headers)) {
    if (values === undefined || hopByHop.has(name) || name === 'set-cookie' || name === 'set-cookie2') continue
    kept[name] = values
  }
  return kept
}
