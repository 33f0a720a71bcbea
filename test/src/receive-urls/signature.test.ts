/** Signatures of deliveries, against published examples and against what an attacker would try. */
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Delivery, verifyWebhook, webhookKey } from '../../../src/receive-urls/signature.ts'

const webhookFault = (secret: string, delivery: Delivery) => verifyWebhook(secret, delivery).fault
const headers = (fields: Readonly<Record<string, string>>) => (name: string) => fields[name]

test('the example of GitHub’s documentation', () => {
  const sent = { 'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17' }
  const delivery = { header: headers(sent), body: Buffer.from('Hello, World!'), now: 0 }
  expect(webhookFault("It's a Secret to Everybody", delivery)).toBeUndefined()
  expect(webhookFault("It's a Secret to Everyone", delivery)).toMatch(/does not match/)
})

test('the example of the Standard Webhooks specification', () => {
  const sent = {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  }
  const delivery = { header: headers(sent), body: Buffer.from('{"test": 2432232314}'), now: 1_614_265_330 }
  expect(webhookFault('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', delivery)).toBeUndefined()
})

describe('Standard Webhooks', () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const signed = (body: string, id = 'msg_1', at = 1_000) => {
    const mac = createHmac('sha256', webhookKey(secret)!).update(`${id}.${at}.${body}`).digest('base64')
    return { 'webhook-id': id, 'webhook-timestamp': String(at), 'webhook-signature': `v1,${mac}` }
  }
  const fault = (fields: Record<string, string>, body: string, now = 1_000) =>
    webhookFault(secret, { header: headers(fields), body: Buffer.from(body), now })

  test('whatever the body, it is valid as signed and invalid with any change', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (body, other) => {
        expect(fault(signed(body), body)).toBeUndefined()
        if (other !== body) expect(fault(signed(body), other)).toBeTypeOf('string')
      }),
    )
  })

  test.each([699, 1_301])('signed at 1000 it is refused at %d, and accepted one second nearer', (now) => {
    expect(fault(signed('x'), 'x', now)).toMatch(/webhook-timestamp must be/)
    expect(fault(signed('x'), 'x', now < 1_000 ? now + 1 : now - 1)).toBeUndefined()
  })

  test('the form of GitHub is not accepted: one form’s signature could be sent as the other', () => {
    const body = 'msg_1.1000.x'
    const mac = createHmac('sha256', webhookKey(secret)!).update(body).digest('hex')
    expect(fault({ 'x-hub-signature-256': `sha256=${mac}` }, body)).toMatch(/only Standard Webhooks/)
  })
})

describe('the same with the headers of Svix', () => {
  // The example in its documentation on verifying without a library.
  const secret = 'whsec_plJ3nmyCDGBKInavdOK15jsl'
  const body = Buffer.from('{"event_type":"ping","data":{"success":true}}')
  const sent = {
    'svix-id': 'msg_loFOjxBNrRLzqYUf',
    'svix-timestamp': '1731705121',
    'svix-signature': 'v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=',
  }
  const verify = (fields: Readonly<Record<string, string>>, now = 1_731_705_121) =>
    verifyWebhook(secret, { header: headers(fields), body, now })

  test('the example of its documentation', () => {
    expect(verify(sent)).toEqual({ id: 'msg_loFOjxBNrRLzqYUf' })
    expect(verify(sent, 1_731_705_422).fault).toMatch(/^svix-timestamp must be/)
    expect(verify({ ...sent, 'svix-id': 'msg_other' }).fault).toMatch(/in svix-signature matches/)
  })

  test('of two sets of headers the complete, signed one counts, and identifies the delivery', () => {
    const [half, bad] = [
      { 'webhook-id': 'x' },
      { 'webhook-id': 'x', 'webhook-timestamp': '1731705121', 'webhook-signature': 'v1,x' },
    ]
    for (const more of [half, bad]) expect(verify({ ...more, ...sent })).toEqual({ id: 'msg_loFOjxBNrRLzqYUf' })
    expect(verify(bad).fault).toMatch(/webhook-signature matches/)
    const { 'svix-signature': _, ...unsigned } = sent
    expect(verify({ ...half, ...unsigned }).fault).toMatch(/are needed, or svix-id/)
  })
})

test.each(['whsec_', 'whsec_AAAA', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS*', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa_-'])(
  '%s is no secret',
  (secret) => {
    expect(webhookKey(secret)).toBeUndefined()
  },
)
