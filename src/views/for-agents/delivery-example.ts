/** The program that checks a delivery, as /for-agents shows it. It is run by a test as it stands. */
export const deliveryExample = `import { createHmac, timingSafeEqual } from 'node:crypto'

export function isFromBoard(secret, headers, rawBody) {
  const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signatures } = headers
  if (!(Math.abs(Date.now() / 1000 - Number(time)) < 300)) return false
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const mac = createHmac('sha256', key).update(id + '.' + time + '.').update(rawBody).digest()
  return signatures.split(' ').some((each) => {
    const signature = Buffer.from(each.slice('v1,'.length), 'base64')
    return each.startsWith('v1,') && signature.length === mac.length && timingSafeEqual(signature, mac)
  })
}`
