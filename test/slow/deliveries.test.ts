/** Deliveries to receive URLs: what is stored of one, which are accepted, and which count as repeated. */
import { createHmac, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { now, person } from '../support/client.ts'
import { type CreatedReceiver, ReceiverBoard } from '../support/receiver-board.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('ada')

let receivers: ReceiverBoard

beforeAll(async () => {
  receivers = await ReceiverBoard.open()
})
afterAll(() => receivers.client.close())

describe('a delivery', () => {
  test('is durable before it is answered, and is returned as it was sent', async () => {
    const { id, url } = await receivers.createReceiver(ada, { label: 'whole' })
    const body = '{"text":"Grüße 🌍\\u0000"}'
    const headers = {
      'Content-Type': 'application/json; charset=utf-8',
      'User-Agent': 'hookbot/1.0',
      'X-GitHub-Event': 'push',
      'X-Acme-Event-Id': 'evt_1',
      'ce-type': 'build.done',
      Authorization: 'Bearer canary',
      Cookie: 'canary=1',
      'X-Hub-Signature-256': 'sha256=canary',
      'X-Secret-Request-Id': 'canary',
      'X-Other': 'canary',
    }
    const first = await receivers.deliver(url, body, headers)
    expect(first).toMatchObject({ status: 200, data: { item: 1, bytes: Buffer.byteLength(body) } })
    expect(JSON.parse(first.text)).toEqual({ ok: true, data: { item: 1, bytes: Buffer.byteLength(body) } })
    const binary = randomBytes(300)
    binary[0] = 0xff
    expect(await receivers.deliver(url, binary, {}, 'PUT')).toMatchObject({
      status: 200,
      data: { item: 2, bytes: 300 },
    })
    expect(await receivers.deliver(url, '')).toMatchObject({ status: 200, data: { item: 3, bytes: 0 } })
    const before = await receivers.itemsOf(ada, { target: id })
    expect(before[0]).toEqual({
      receiver: id,
      item: 1,
      received_at: expect.any(Number),
      content_type: 'application/json; charset=utf-8',
      headers: {
        'user-agent': 'hookbot/1.0',
        'x-github-event': 'push',
        'x-acme-event-id': 'evt_1',
        'ce-type': 'build.done',
      },
      bytes: Buffer.byteLength(body),
      body,
      body_encoding: 'text',
      verified: false,
      untrusted: true,
    })
    expect(before[1]).toMatchObject({ body: binary.toString('base64url'), body_encoding: 'base64url' })
    expect(before[2]).toMatchObject({ item: 3, bytes: 0, body: '', body_encoding: 'text' })
    expect(JSON.stringify(before)).not.toContain('canary')
    // From the journal alone, and from a snapshot.
    await receivers.restart((board) => board.kill())
    expect(await receivers.itemsOf(ada, { target: id })).toEqual(before)
    await receivers.restart((board) => board.stop())
    expect(await receivers.itemsOf(ada, { target: id })).toEqual(before)
    expect(await receivers.deliver(url, 'after it all')).toMatchObject({ status: 200, data: { item: 4 } })
    await receivers.remove(ada, id)
  })

  test('of 256 KiB is accepted, one more byte is not', async () => {
    const { id, url } = await receivers.createReceiver(ada)
    const most = 'x'.repeat(256 * 1024)
    expect(await receivers.deliver(url, most)).toMatchObject({ status: 200, data: { bytes: 262_144 } })
    expect(await receivers.deliver(url, `${most}x`)).toMatchObject({ status: 400, code: 'too_large' })
    const chunked = await new Promise<number>((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port: receivers.board.port, path: url, method: 'POST' }, (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode!))
      })
      sent.on('error', reject)
      sent.write(most)
      sent.end('x')
    })
    expect(chunked).toBe(400)
    expect(await receivers.itemsOf(ada, { target: id })).toHaveLength(1)
    await receivers.remove(ada, id)
  })

  test('is refused in the same way whether the URL is unknown, wrong or deleted', async () => {
    const { id, url } = await receivers.createReceiver(ada)
    const gone = await receivers.createReceiver(ada)
    await receivers.deliver(gone.url, 'kept')
    await receivers.remove(ada, gone.id)
    const other = randomBytes(32).toString('base64url')
    const closed = [
      `/in/${id}/${other}`,
      `/in/${randomBytes(16).toString('hex')}/${other}`,
      gone.url,
      `/in/${id}`,
      `/in/${id}/`,
      `/in/${id}/short`,
      `/in/nothing/${other}`,
      `${url}/more`,
      `${url}x`,
    ]
    const answers = await Promise.all(closed.map((path) => receivers.deliver(path, '{}')))
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers[0]).toMatchObject({ status: 400, code: 'not_found' })
    expect(await receivers.itemsOf(ada, { target: id })).toEqual([])
    expect((await receivers.itemsOf(ada, { target: gone.id })).map(({ body }) => body)).toEqual(['kept'])
    const listed = (await receivers.client.command(ada, { operation: 'receiver.list' })).data as {
      receivers?: CreatedReceiver[]
    }
    expect(listed.receivers).toContainEqual(expect.objectContaining({ id: gone.id, deleted_at: expect.any(Number) }))
    await receivers.remove(ada, id)
  })

  test('by GET or HEAD has no effect and describes the endpoint, whether or not it exists', async () => {
    const { id, url } = await receivers.createReceiver(ada)
    const texts = []
    for (const path of [url, `/in/${id}/wrong`]) {
      const got = await receivers.deliver(path, '', {}, 'GET')
      expect(got).toMatchObject({ status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' } })
      texts.push(got.text)
      expect(await receivers.deliver(path, '', {}, 'HEAD')).toMatchObject({ status: 200, text: '' })
    }
    expect(texts[0]).toMatch(/POST or PUT/)
    expect(texts[1]).toBe(texts[0])
    expect(await receivers.deliver(url, '', {}, 'OPTIONS')).toMatchObject({
      status: 200,
      headers: { allow: 'GET, HEAD, POST, PUT, OPTIONS' },
    })
    expect(await receivers.deliver(url, '', {}, 'DELETE')).toMatchObject({ status: 405 })
    expect(await receivers.itemsOf(ada, { target: id })).toEqual([])
    await receivers.remove(ada, id)
  })

  test('of the same dedupe value is the same item', async () => {
    const { id, url } = await receivers.createReceiver(ada, { dedupe_header: 'X-Delivery-Name' })
    const named = (value: string) =>
      receivers.deliver(url, `body of ${value.slice(0, 8)}`, { 'x-delivery-name': value })
    expect((await named('one')).data).toEqual({ item: 1, bytes: 11 })
    const both = await Promise.all([named('two'), named('two'), named('two')])
    expect(both.map(({ data }) => data.item)).toEqual([2, 2, 2])
    expect(both.filter(({ data }) => data.duplicate !== true)).toHaveLength(1)
    expect((await named('one')).data).toEqual({ item: 1, bytes: 11, duplicate: true })
    const other = await receivers.deliver(url, 'another, longer body', { 'x-delivery-name': 'one' })
    expect(other.data).toEqual({ item: 1, bytes: 11, duplicate: true })
    await receivers.restart((board) => board.kill())
    expect((await named('two')).data).toMatchObject({ item: 2, duplicate: true })
    // Too long for a name, and no name at all: stored each time.
    for (const item of [3, 4]) expect((await named('n'.repeat(201))).data).toEqual({ item, bytes: 16 })
    for (const item of [5, 6]) expect((await receivers.deliver(url, 'nameless')).data).toEqual({ item, bytes: 8 })
    expect((await named('n'.repeat(200))).data).toMatchObject({ item: 7 })
    expect((await named('n'.repeat(200))).data).toMatchObject({ item: 7, duplicate: true })
    expect(await receivers.itemsOf(ada, { target: id })).toHaveLength(7)
    await receivers.remove(ada, id)
  })

  test('may come from the networks its owner named, and from nowhere else', async () => {
    const closed = await receivers.createReceiver(ada, { allow_from: ['192.0.2.0/24', '2001:db8::/32'] })
    expect(await receivers.deliver(closed.url, '{}')).toMatchObject({ status: 403, code: 'forbidden' })
    const open = await receivers.createReceiver(ada, { allow_from: ['192.0.2.1', '127.0.0.0/8'] })
    expect(await receivers.deliver(open.url, '{}')).toMatchObject({ status: 200 })
    expect(await receivers.itemsOf(ada, { target: closed.id })).toEqual([])
    for (const { id } of [closed, open]) await receivers.remove(ada, id)
  })
})

describe('a signed delivery', () => {
  const key = randomBytes(32)
  const standard = (body: string, { id = 'msg_1', at = now(), by = key } = {}) => ({
    'webhook-id': id,
    'webhook-timestamp': String(at),
    'webhook-signature': `v1,${createHmac('sha256', by).update(`${id}.${at}.${body}`).digest('base64')}`,
  })

  test('by Standard Webhooks', async () => {
    const { id, url } = await receivers.createReceiver(ada, { hmac_secret: `whsec_${key.toString('base64')}` })
    const body = '{"type":"invoice.paid"}'
    const good = standard(body)
    expect(await receivers.deliver(url, body, good)).toMatchObject({ status: 200, data: { item: 1 } })
    // During a key rotation: several signatures, of which one matches.
    const others = `v1,${Buffer.alloc(32).toString('base64')} v1a,xyz ${good['webhook-signature']}`
    expect(await receivers.deliver(url, body, { ...good, 'webhook-signature': others })).toMatchObject({ status: 200 })
    const bad: [string, Record<string, string>][] = [
      [body, {}],
      [`${body} `, good],
      [body, { ...good, 'webhook-id': 'msg_2' }],
      [body, { ...good, 'webhook-timestamp': String(Number(good['webhook-timestamp']) - 1) }],
      [body, standard(body, { by: randomBytes(32) })],
      [body, standard(body, { at: now() - 400 })],
      [body, standard(body, { at: now() + 400 })],
      [body, { ...good, 'webhook-signature': good['webhook-signature'].replace('v1,', 'v2,') }],
      [body, { ...good, 'webhook-signature': good['webhook-signature'].slice(3) }],
      [body, { 'x-hub-signature-256': `sha256=${createHmac('sha256', key).update(body).digest('hex')}` }],
    ]
    for (const [sent, headers] of bad)
      expect(await receivers.deliver(url, sent, headers)).toMatchObject({ status: 403, code: 'bad_delivery_signature' })
    const items = await receivers.itemsOf(ada, { target: id })
    expect(items.map(({ verified }) => verified)).toEqual([true, true])
    expect(items[0]!.headers).not.toHaveProperty('webhook-signature')
    await receivers.remove(ada, id)
  })

  test('as GitHub signs', async () => {
    // The example of GitHub’s own documentation.
    const secret = "It's a Secret to Everybody"
    const { id, url } = await receivers.createReceiver(ada, { hmac_secret: secret })
    const body = 'Hello, World!'
    const hub = (by: string) => ({
      'X-Hub-Signature-256': `sha256=${createHmac('sha256', by).update(body).digest('hex')}`,
    })
    expect(await receivers.deliver(url, body, hub(secret))).toMatchObject({ status: 200 })
    for (const headers of [{}, hub('another'), { 'X-Hub-Signature-256': 'sha256=' }, { 'X-Hub-Signature': 'sha1=00' }])
      expect(await receivers.deliver(url, body, headers as Record<string, string>)).toMatchObject({
        status: 403,
        code: 'bad_delivery_signature',
      })
    expect((await receivers.itemsOf(ada, { target: id })).map(({ verified }) => verified)).toEqual([true])
    expect((await receivers.client.command(ada, { operation: 'receiver.list' })).text).not.toContain('Secret to')
    await receivers.remove(ada, id)
  })
})

test('rates are limited by receive URL and by address, per minute; each refusal says how long to wait', async () => {
  const usual = receivers
  receivers = await ReceiverBoard.open({ BROADSIDE_LIMITS: 'on' })
  try {
    const { id, url } = await receivers.createReceiver(ada)
    // More than a minute's worth, plus what is regained while they are sent: until the last of them is refused.
    const many = async (path: string, count: number) => {
      const answers = []
      for (let n = 0; n < count || (answers.at(-1)!.status !== 429 && n < 1_000); n++)
        answers.push(await receivers.deliver(path, String(n)))
      return answers
    }
    const first = await many(url, 90)
    const refused = first.filter(({ status }) => status !== 200)
    expect(refused.length).toBeGreaterThan(0)
    for (const each of refused) {
      expect(each).toMatchObject({ status: 429, code: 'rate_limited' })
      expect(Number(each.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    }
    expect(await receivers.itemsOf(ada, { target: id, limit: 200 })).toHaveLength(first.length - refused.length)
    // The address has used most of its own rate: a URL that does not exist is refused with it too.
    const closed = await many(`/in/${'0'.repeat(32)}/${'A'.repeat(43)}`, 90)
    expect(closed[0]).toMatchObject({ status: 400, code: 'not_found' })
    expect(closed.at(-1)).toMatchObject({ status: 429, code: 'rate_limited' })
  } finally {
    receivers.client.close()
    receivers = usual
  }
})
