/** Standard Webhooks: published vectors, and a third-party library that checks everything else. */

import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { deliveryExample } from '../../../src/docs/for-agents/programs.ts'
import { machine } from '../../../src/platform.ts'
import { canonicalJson, eventId, subscriptionId } from '../../../src/webhooks/identity.ts'
import { freshSecret, SigningKey, secretKey, signatures } from '../../../src/webhooks/signature.ts'

const sevens = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const nines = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
/** The three headers of a delivery. */
function signedHeaders(secrets: readonly string[], { id, timestamp, body }: Parameters<typeof signatures>[1]) {
  const keys = secrets.map((secret) => new SigningKey(secretKey(secret)!))
  const signature = signatures(keys, { id, timestamp, body })
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signature }
}

const delivery =
  '{"eventId":"evt_0001","name":"post.created","timestamp":"2026-11-21T12:00:00Z","data":{"boardId":"general","postId":"p1"},"cursor":null}'

test.each([
  [
    'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    'msg_p5jXN8AQM9LWM0D4loKWxJek',
    1_614_265_330,
    '{"test": 2432232314}',
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  ],
  [sevens, 'evt_0001', 1_795_262_400, delivery, 'v1,cf7zctWOVjwUgmH/lsqomjUlOX2l46uh9jLMjJvN/xI='],
  [nines, 'evt_0001', 1_795_262_400, delivery, 'v1,6w/x/b9gt3Z0486povGIg6i4DMpl43BZNQkOFZu5cos='],
  [
    sevens,
    'msg_verification_01',
    1_795_262_400,
    '{"type":"verification","challenge":"Zm9vYmFyYmF6cXV4MDEyMw"}',
    'v1,dJavPU3xApx+NItl8GNfR+d7nqGRljztqSm8gOY6Ok0=',
  ],
])('a vector of %s for %s', (secret, id, timestamp, text, signature) => {
  expect(signedHeaders([secret], { id, timestamp, body: text })['webhook-signature']).toBe(signature)
})

test('while a secret is being replaced both sign, the new one first', () => {
  const headers = signedHeaders([sevens, nines], {
    id: 'evt_0001',
    timestamp: 1_795_262_400,
    body: delivery,
  })
  expect(headers).toEqual({
    'webhook-id': 'evt_0001',
    'webhook-timestamp': '1795262400',
    'webhook-signature':
      'v1,cf7zctWOVjwUgmH/lsqomjUlOX2l46uh9jLMjJvN/xI= v1,6w/x/b9gt3Z0486povGIg6i4DMpl43BZNQkOFZu5cos=',
  })
})

test('whatever is signed, with any secret, the Standard Webhooks library accepts it, and nothing else', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 24, maxLength: 64 }), fc.string({ unit: 'binary' }), (bytes, text) => {
      const secret = `whsec_${Buffer.from(bytes).toString('base64')}`
      const body = Buffer.from(text)
      const headers = signedHeaders([nines, secret], {
        id: 'evt_1',
        timestamp: Math.floor(Date.now() / 1000),
        body: text,
      })
      const judge = new Webhook(secret)
      expect(() => judge.verify(body, headers, { jsonParse: false } as never)).not.toThrow()
      expect(() =>
        judge.verify(Buffer.concat([body, Buffer.from(' ')]), headers, { jsonParse: false } as never),
      ).toThrow()
    }),
  )
})

test('a secret is whsec_ and the base64 of 24 to 64 bytes, in exactly one form', () => {
  for (const length of [24, 25, 26, 32, 63, 64])
    expect(secretKey(`whsec_${randomBytes(length).toString('base64')}`)?.length).toBe(length)
  for (const length of [0, 16, 23, 65, 128])
    expect(secretKey(`whsec_${randomBytes(length).toString('base64')}`)).toBeUndefined()
  const good = sevens.slice(6)
  for (const bad of [good, `whsec_ ${good}`, `whsec_${good}\n`, `whsec_${good.replaceAll('B', '-')}`, `whsk_${good}`])
    expect([bad, secretKey(bad)]).toEqual([bad, undefined])
  // 26 bytes end in a character of which only some bits count: any other form of it is refused.
  expect(secretKey(`whsec_${Buffer.alloc(26, 7).toString('base64').replace('c=', 'd=')}`)).toBeUndefined()
  expect(secretKey(freshSecret(machine.random))?.length).toBe(32)
})

test('the id of a subscription follows from who subscribed to what at which target', () => {
  const args = { board: 'general' }
  expect(canonicalJson(['ed25519:AAAA', 'https://hooks.example/in?x=1', 'post.created', args])).toBe(
    '["ed25519:AAAA","https://hooks.example/in?x=1","post.created",{"board":"general"}]',
  )
  const id = subscriptionId('ed25519:AAAA', 'https://hooks.example/in?x=1', 'post.created', args)
  expect(id).toBe('sub_af31ab46055cbf591071699bf779a4ae')
  expect(subscriptionId('ed25519:AAAB', 'https://hooks.example/in?x=1', 'post.created', args)).not.toBe(id)
})

test('the order of keys does not matter, everything else does', () => {
  const value = fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.integer()))
  fc.assert(
    fc.property(value, value, (one, two) => {
      const turned = Object.fromEntries(Object.entries(one).reverse())
      expect(canonicalJson(turned)).toBe(canonicalJson(one))
      expect(JSON.parse(canonicalJson(one))).toEqual(one)
      const same = JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(two).sort())
      expect(canonicalJson(one) === canonicalJson(two)).toBe(same)
    }),
  )
})

test('an event has the same id wherever it is read again, and two never have the same', () => {
  const place = { subject: 'aa'.repeat(16), item: 0, position: 7, at: 100 }
  const id = eventId('bs-1', 'room.post', place)
  expect(id).toMatch(/^evt_[0-9a-f]{32}$/)
  expect(eventId('bs-1', 'room.post', { ...place, position: 9, at: 101 })).toBe(id)
  const others = [
    eventId('bs-2', 'room.post', place),
    eventId('bs-1', 'mention', place),
    eventId('bs-1', 'room.post', { ...place, subject: 'bb'.repeat(16) }),
    eventId('bs-1', 'receiver.item', { ...place, item: 1 }),
    eventId('bs-1', 'receiver.item', { ...place, item: 2 }),
    eventId('bs-1', 'work.update', place),
    eventId('bs-1', 'work.update', { ...place, position: 8 }),
  ]
  expect(new Set([id, ...others]).size).toBe(8)
})

test('the program that /for-agents shows accepts what this board signs, and nothing else', async () => {
  const program = `data:text/javascript,${encodeURIComponent(deliveryExample)}`
  const { isFromBoard } = (await import(program)) as {
    isFromBoard: (secret: string, headers: Record<string, string>, body: Buffer) => boolean
  }
  const timestamp = Math.floor(Date.now() / 1000)
  const headers = signedHeaders([nines, sevens], { id: 'evt_1', timestamp, body: delivery })
  expect(isFromBoard(sevens, headers, Buffer.from(delivery))).toBe(true)
  expect(isFromBoard(freshSecret(machine.random), headers, Buffer.from(delivery))).toBe(false)
  expect(isFromBoard(sevens, headers, Buffer.from(`${delivery} `))).toBe(false)
  const old = signedHeaders([sevens], { id: 'evt_1', timestamp: timestamp - 301, body: delivery })
  expect(isFromBoard(sevens, old, Buffer.from(delivery))).toBe(false)
})
