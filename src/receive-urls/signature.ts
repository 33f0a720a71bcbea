/**
 * Signatures of other services on their deliveries: HMAC-SHA256 with a shared secret.
 *
 * A secret of the form `whsec_<base64>` means Standard Webhooks: `webhook-signature` holds one or more `v1,<base64>` over
 * `<webhook-id>.<webhook-timestamp>.<body>`; services that send through Svix name the same three headers `svix-…`. Any other secret means
 * `X-Hub-Signature-256: sha256=<hex>` over the body, as GitHub sends it. One secret is valid for only one form: otherwise what one form
 * signs could be sent as the other.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

/** Maximum difference between a delivery's own time and ours, in seconds. */
const toleranceSeconds = 300

const standardPrefix = 'whsec_'

/** The key of a secret; undefined if the prefix promises base64 and something else follows. */
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

export type Verified = {
  /** A sentence that says why the signature is not valid; absent if it is. */
  readonly fault?: string
  /** The sender's id for the delivery, if it is signed. */
  readonly id?: string
}

export function verifyWebhook(secret: string, delivery: Delivery): Verified {
  if (secret.startsWith(standardPrefix)) return verifyStandard(secret, delivery)
  const fault = hubFault(secret, delivery)
  return fault === undefined ? {} : { fault }
}

/** Prefixes of the three headers of Standard Webhooks. */
const standardNames = ['webhook', 'svix'] as const

function verifyStandard(secret: string, delivery: Delivery): Verified {
  const found = standardNames.flatMap((name) => {
    const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((each) =>
      delivery.header(`${name}-${each}`),
    )
    return id === undefined || timestamp === undefined || signatures === undefined
      ? []
      : [{ id, fault: standardFault(secret, delivery, { name, id, timestamp, signatures }) }]
  })
  const good = found.find(({ fault }) => fault === undefined)
  if (good !== undefined) return { id: good.id }
  const none =
    'this receive URL accepts only Standard Webhooks: webhook-id, webhook-timestamp and webhook-signature are needed, or svix-id, svix-timestamp and svix-signature'
  return { fault: found[0]?.fault ?? none }
}

type Signed = {
  readonly name: (typeof standardNames)[number]
  readonly id: string
  readonly timestamp: string
  readonly signatures: string
}

function standardFault(secret: string, { body, now }: Delivery, signed: Signed): string | undefined {
  const { name, id, timestamp, signatures } = signed
  const at = /^[0-9]{1,12}$/.test(timestamp) ? Number(timestamp) : Number.NaN
  if (!(Math.abs(now - at) <= toleranceSeconds))
    return `${name}-timestamp must be Unix seconds within ${toleranceSeconds} s of this board's clock, which is ${now}`
  const mac = createHmac('sha256', webhookKey(secret)!).update(`${id}.${timestamp}.`).update(body).digest()
  let isGood = false
  for (const each of signatures.split(' ')) {
    if (each.startsWith('v1,') && isSame(Buffer.from(each.slice(3), 'base64'), mac)) isGood = true
  }
  return isGood ? undefined : `no v1 signature in ${name}-signature matches this body, ${name}-id and ${name}-timestamp`
}

function hubFault(secret: string, { header, body }: Delivery): string | undefined {
  const sent = header('x-hub-signature-256')
  if (sent === undefined)
    return 'this receive URL accepts only signed deliveries: X-Hub-Signature-256: sha256=<hex> is needed'
  const mac = createHmac('sha256', webhookKey(secret)!).update(body).digest()
  const isGood = /^sha256=[0-9a-fA-F]{64}$/.test(sent) && isSame(Buffer.from(sent.slice(7), 'hex'), mac)
  return isGood ? undefined : 'the signature in X-Hub-Signature-256 does not match this body'
}

function isSame(sent: Buffer, mac: Buffer): boolean {
  return sent.length === mac.length && timingSafeEqual(sent, mac)
}
