/**
 * Standard Webhooks, the sending side: secrets of the form `whsec_<base64 of 24 to 64 bytes>`, and the three headers.
 *
 *   webhook-signature = "v1," base64(HMAC-SHA256(key, webhook-id "." webhook-timestamp "." body)), one for each secret
 */
import { createHmac, randomBytes } from 'node:crypto'

const prefix = 'whsec_'
export const secretRule = 'whsec_ and the base64 of 24 to 64 random bytes'

/** The key behind a secret; undefined: it is none. Node's decoder takes anything, so what it read is written again. */
export function secretKey(secret: string): Buffer | undefined {
  const text = secret.slice(prefix.length)
  if (!secret.startsWith(prefix) || !/^[A-Za-z0-9+/]{32,88}={0,2}$/.test(text)) return undefined
  const key = Buffer.from(text, 'base64')
  const isCanonical = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '')
  return isCanonical && key.length >= 24 && key.length <= 64 ? key : undefined
}

export function freshSecret(): string {
  return prefix + randomBytes(32).toString('base64')
}

export type Signable = {
  readonly id: string
  /** Unix seconds. */
  readonly timestamp: number
  readonly body: Buffer
}

/** `secrets`: the one that is good now first, then the one before while it is still taken. */
export function signedHeaders(secrets: readonly string[], { id, timestamp, body }: Signable): Record<string, string> {
  const signatures = secrets.map((secret) => {
    const mac = createHmac('sha256', secretKey(secret)!).update(`${id}.${timestamp}.`).update(body)
    return `v1,${mac.digest('base64')}`
  })
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signatures.join(' ') }
}
