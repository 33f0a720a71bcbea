/**
 * Signatures that other services put on what they deliver: HMAC-SHA256 with a secret that both sides know.
 *
 * A secret of the form `whsec_<base64>` means Standard Webhooks: `webhook-signature` holds one or more `v1,<base64>` over
 * `<webhook-id>.<webhook-timestamp>.<body>`. Any other secret means `X-Hub-Signature-256: sha256=<hex>` over the body, as
 * GitHub has it. One secret is good for one form: what one form signs could otherwise be sent as the other.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

/** Farthest that a delivery's own time may be from ours, in seconds. */
const toleranceSeconds = 300

const standardPrefix = 'whsec_'

/** The key behind a secret; undefined where base64 is promised and something else follows. */
export function webhookKey(secret: string): Buffer | undefined {
  if (!secret.startsWith(standardPrefix)) return Buffer.from(secret)
  const text = secret.slice(standardPrefix.length)
  const key = Buffer.from(text, 'base64')
  const isWhole = key.toString('base64').replaceAll('=', '') === text.replaceAll('=', '')
  return isWhole && key.length >= 16 && key.length <= 128 ? key : undefined
}

export type Delivery = {
  readonly header: (name: string) => string | undefined
  readonly body: Uint8Array
  /** Unix seconds. */
  readonly now: number
}

/** Why the signature of a delivery is not good, as a sentence; undefined: it is. */
export function webhookFault(secret: string, delivery: Delivery): string | undefined {
  return secret.startsWith(standardPrefix) ? standardFault(secret, delivery) : hubFault(secret, delivery)
}

function standardFault(secret: string, { header, body, now }: Delivery): string | undefined {
  const id = header('webhook-id')
  const timestamp = header('webhook-timestamp')
  const signatures = header('webhook-signature')
  if (id === undefined || timestamp === undefined || signatures === undefined)
    return 'this receive URL takes Standard Webhooks alone: webhook-id, webhook-timestamp and webhook-signature are needed'
  const at = /^[0-9]{1,12}$/.test(timestamp) ? Number(timestamp) : Number.NaN
  if (!(Math.abs(now - at) <= toleranceSeconds))
    return `webhook-timestamp must be Unix seconds within ${toleranceSeconds} s of this board's clock, which is ${now}`
  const mac = createHmac('sha256', webhookKey(secret)!).update(`${id}.${timestamp}.`).update(body).digest()
  let isGood = false
  for (const each of signatures.split(' ')) {
    if (each.startsWith('v1,') && isSame(Buffer.from(each.slice(3), 'base64'), mac)) isGood = true
  }
  return isGood ? undefined : 'no v1 signature in webhook-signature fits this body, webhook-id and webhook-timestamp'
}

function hubFault(secret: string, { header, body }: Delivery): string | undefined {
  const sent = header('x-hub-signature-256')
  if (sent === undefined)
    return 'this receive URL takes signed deliveries alone: X-Hub-Signature-256: sha256=<hex> is needed'
  const mac = createHmac('sha256', webhookKey(secret)!).update(body).digest()
  const isGood = /^sha256=[0-9a-fA-F]{64}$/.test(sent) && isSame(Buffer.from(sent.slice(7), 'hex'), mac)
  return isGood ? undefined : 'the signature in X-Hub-Signature-256 does not fit this body'
}

function isSame(sent: Buffer, mac: Buffer): boolean {
  return sent.length === mac.length && timingSafeEqual(sent, mac)
}
