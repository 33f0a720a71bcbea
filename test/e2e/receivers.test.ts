/** Receive URLs as their owners see them: created, listed, given a new secret, deleted; and the items that arrived. */
import { createHmac, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { newNonce, now, person } from '../support/client.ts'
import { type CreatedReceiver, type ReceivedItem, ReceiverBoard } from '../support/receiver-board.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const ada = person('ada')
const bob = person('bob')

let receivers: ReceiverBoard

beforeAll(async () => {
  receivers = await ReceiverBoard.open()
})
afterAll(() => receivers.client.close())

describe('creation', () => {
  test('shows the address once, and never stores the secret', async () => {
    const command = receivers.client.sign(ada, { operation: 'receiver.create', data: '{"schema":1,"label":"once"}' })
    const first = await receivers.client.send(command.body)
    const { receiver } = first.data as { receiver?: CreatedReceiver }
    expect(receiver).toMatchObject({ id: command.eventId, label: 'once', items: 0, post: false, signed: false })
    expect(receiver!.url).toMatch(new RegExp(`^/in/${command.eventId}/[A-Za-z0-9_-]{43}$`))
    const again = (await receivers.client.send(command.body)).data as {
      receiver?: CreatedReceiver
      receipt?: { duplicate?: boolean }
    }
    expect(again.receipt?.duplicate).toBe(true)
    expect(again.receiver).toMatchObject({ id: command.eventId, label: 'once', secret_shown: true })
    expect(again.receiver).not.toHaveProperty('url')
    const list = await receivers.client.command(ada, { operation: 'receiver.list' })
    expect(list.data).toMatchObject({ receivers: [{ id: command.eventId, label: 'once' }], has_more: false })
    expect(list.text).not.toContain(receiver!.url.slice(-43))
    await receivers.remove(ada, receiver!.id)
  })

  test('only its owner sees a receive URL, and nobody does unsigned', async () => {
    const { id } = await receivers.createReceiver(ada, { label: 'mine' })
    expect((await receivers.client.command(bob, { operation: 'receiver.list' })).data).toMatchObject({ receivers: [] })
    for (const operation of ['receiver.items', 'receiver.rotate', 'receiver.delete'])
      expect(await receivers.client.command(bob, { operation, target: id })).toMatchObject({
        status: 400,
        code: 'not_found',
      })
    expect(await receivers.client.send(`{"operation":"receiver.items","target":"${id}"}`)).toMatchObject({
      status: 403,
      code: 'unsigned',
    })
    expect(await receivers.client.send('{"operation":"receiver.list"}')).toMatchObject({
      status: 403,
      code: 'unsigned',
    })
    expect(await receivers.client.get(`/api/events/${id}`)).toMatchObject({ status: 400, code: 'not_found' })
    await receivers.remove(ada, id)
  })

  test('an identity has at most 8, which the limits of the board say, and deleting one makes room', async () => {
    expect((await receivers.client.get('/capabilities')).data).toMatchObject({ limits: { receivers_per_identity: 8 } })
    const cleo = person('cleo')
    const eight = []
    for (let i = 0; i < 8; i++) eight.push(await receivers.createReceiver(cleo))
    expect(await receivers.requestReceiver(cleo)).toMatchObject({ status: 400, code: 'wrong_state' })
    expect((await receivers.remove(cleo, eight[3]!.id)).status).toBe(200)
    expect(await receivers.remove(cleo, eight[3]!.id)).toMatchObject({ status: 400, code: 'not_found' })
    await receivers.createReceiver(cleo)
    expect(await receivers.requestReceiver(cleo)).toMatchObject({ status: 400, code: 'wrong_state' })
    const page = (await receivers.client.command(cleo, { operation: 'receiver.list', limit: 5 })).data as {
      receivers?: CreatedReceiver[]
      next_cursor?: string
    }
    expect(page.receivers).toHaveLength(5)
    const rest = await receivers.client.command(cleo, {
      operation: 'receiver.list',
      limit: 5,
      cursor: page.next_cursor!,
    })
    expect(rest.data).toMatchObject({ has_more: false, receivers: [{}, {}, {}] })
  })

  test.each([
    [{ label: 'x'.repeat(65) }, {}],
    [{ label: 'two\nlines' }, {}],
    [{ dedupe_header: 'no spaces' }, {}],
    [{ hmac_secret: 'short' }, {}],
    [{ hmac_secret: 'a secret with a\ttab' }, {}],
    [{ hmac_secret: 'whsec_!!!not base64!!!!!' }, {}],
    [{ allow_from: ['10.0.0.0/33'] }, {}],
    [{ allow_from: ['example.org'] }, {}],
    [{ allow_from: Array(9).fill('192.0.2.1') }, {}],
    [{ unknown: 1 }, {}],
  ])('%j is refused', async (data, more) => {
    const answer = await receivers.requestReceiver(ada, data, more)
    expect([answer.status, answer.code]).toEqual([400, expect.stringMatching(/^(invalid_field|unknown_field)$/)])
  })

  test('with post it needs a room where its owner may begin threads', async () => {
    const owner = person('owner')
    await receivers.client.command(owner, { operation: 'room.create', room: 'quiet' })
    await receivers.client.command(owner, { operation: 'room.policy.set', room: 'quiet', data: '{"write":"owner"}' })
    await receivers.client.command(owner, { operation: 'room.create', room: 'secret-in', visibility: 'private' })
    expect(await receivers.requestReceiver(ada, { post: true })).toMatchObject({
      status: 400,
      code: 'missing_field',
      field: 'room',
    })
    expect(await receivers.requestReceiver(ada, {}, { room: 'lobby' })).toMatchObject({
      code: 'invalid_field',
      field: 'room',
    })
    expect(await receivers.requestReceiver(ada, { post: true }, { room: 'no-such-room' })).toMatchObject({
      status: 400,
      code: 'not_found',
    })
    expect(await receivers.requestReceiver(ada, { post: true }, { room: 'secret-in' })).toMatchObject({
      status: 403,
      code: 'private_room',
    })
    expect(await receivers.requestReceiver(ada, { post: true }, { room: 'quiet' })).toMatchObject({
      status: 403,
      code: 'room_write_restricted',
    })
    for (const room of ['quiet', 'secret-in', 'lobby']) {
      const { id } = await receivers.createReceiver(owner, { post: true }, { room })
      await receivers.remove(owner, id)
    }
  })
})

describe('items', () => {
  test('are read oldest first, of one receive URL or of all, in pages', async () => {
    const dora = person('dora')
    const [a, b] = [
      await receivers.createReceiver(dora, { label: 'a' }),
      await receivers.createReceiver(dora, { label: 'b' }),
    ]
    for (let n = 1; n <= 5; n++) for (const { url } of [a, b]) await receivers.deliver(url, `${n}`)
    expect(
      (await receivers.itemsOf(dora, { target: b.id, data: '{"schema":1,"after":3}' })).map(({ item }) => item),
    ).toEqual([4, 5])
    const seen: string[] = []
    let cursor = ''
    do {
      const answer = await receivers.client.command(dora, {
        operation: 'receiver.items',
        limit: 3,
        ...(cursor === '' ? {} : { cursor }),
      })
      const { items, next_cursor } = answer.data as { items?: ReceivedItem[]; next_cursor?: string }
      seen.push(...items!.map(({ receiver, item }) => `${receiver === a.id ? 'a' : 'b'}${item}`))
      cursor = next_cursor ?? ''
    } while (cursor !== '')
    expect(seen).toEqual(['a1', 'b1', 'a2', 'b2', 'a3', 'b3', 'a4', 'b4', 'a5', 'b5'])
    expect(
      await receivers.client.command(dora, { operation: 'receiver.items', data: '{"schema":1,"after":3}' }),
    ).toMatchObject({
      status: 400,
      code: 'invalid_field',
    })
    expect(await receivers.client.command(dora, { operation: 'receiver.items', cursor: 'AAAA' })).toMatchObject({
      status: 400,
      field: 'cursor',
    })
    expect(await receivers.itemsOf(bob)).toEqual([])
  })

  test('hold at most 512 KiB of bodies per answer, and the cursor continues', async () => {
    const { id, url } = await receivers.createReceiver(ada)
    for (let n = 0; n < 5; n++) await receivers.deliver(url, String(n).repeat(200_000))
    const first = (await receivers.client.command(ada, { operation: 'receiver.items', target: id })).data as {
      items?: ReceivedItem[]
      next_cursor?: string
      has_more?: boolean
    }
    expect([first.items!.length, first.has_more]).toEqual([2, true])
    const rest = await receivers.itemsOf(ada, { target: id, cursor: first.next_cursor })
    expect(rest.map(({ item }) => item)).toEqual([3, 4])
    await receivers.remove(ada, id)
  })

  test('are limited to the newest 1,000', async () => {
    const { id, url } = await receivers.createReceiver(ada)
    for (let n = 0; n < 1_010; n += 101)
      await Promise.all(Array.from({ length: 101 }, (_, i) => receivers.deliver(url, String(n + i))))
    const oldest = await receivers.itemsOf(ada, { target: id, limit: 2 })
    expect(oldest.map(({ item }) => item)).toEqual([11, 12])
    expect(
      (await receivers.itemsOf(ada, { target: id, data: '{"schema":1,"after":1008}' })).map(({ item }) => item),
    ).toEqual([1009, 1010])
    await receivers.remove(ada, id)
  })
})

test.each(['uws', 'node'])(
  'an item has what its body is read with: query, encoding and dedupe value, on %s',
  async (engine) => {
    const own = await ReceiverBoard.open({ HTTP_ENGINE: engine })
    const { url } = await own.createReceiver(ada, { dedupe_header: 'X-Id' })
    const packed = gzipSync('{"build":7}')
    const sent = { 'content-encoding': 'gzip', 'x-id': 'build-7', 'x-other': 'canary' }
    const address = `${url}?project=main&tag=a%20b&access_token=canary`
    expect(await own.deliver(address, packed, sent)).toMatchObject({ status: 200, data: { item: 1 } })
    expect(await own.deliver(address, packed, sent)).toMatchObject({ data: { item: 1, duplicate: true } })
    expect(await own.deliver(url, 'plain')).toMatchObject({ status: 200, data: { item: 2 } })
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`ce-name${n}`, `${n}`]))
    expect(await own.deliver(url, 'many headers', { ...many, 'x-id': 'last' })).toMatchObject({ data: { item: 3 } })
    expect(await own.deliver(`${url}?q=${'x'.repeat(9_000)}`, 'x')).toMatchObject({
      status: 400,
      code: 'too_large',
      text: expect.stringContaining('the query of a delivery has 9002 bytes, 8192 are allowed'),
    })
    const secretly = await own.createReceiver(ada, { dedupe_header: 'X-Auth-Id' })
    await own.deliver(secretly.url, 'x', { 'x-auth-id': 'canary' })
    const items = await own.itemsOf(ada)
    expect(items).toMatchObject([
      { query: 'project=main&tag=a%20b', headers: { 'content-encoding': 'gzip', 'x-id': 'build-7' } },
      { headers: {}, body: 'plain' },
      { headers: { 'x-id': 'last' } },
      { headers: {} },
    ])
    expect(items[1]).not.toHaveProperty('query')
    expect(gunzipSync(Buffer.from(items[0]!.body, 'base64url')).toString()).toBe('{"build":7}')
    expect(JSON.stringify(items)).not.toContain('canary')
    await own.restart((board) => board.kill())
    expect(await own.itemsOf(ada)).toEqual(items)
    own.client.close()
  },
)

test('a value of the dedupe header that is longer than the limits say does not identify a delivery', async () => {
  const { limits } = (await receivers.client.get('/capabilities')).data as unknown as {
    limits: { receiver_dedupe_bytes: number }
  }
  const longest = limits.receiver_dedupe_bytes
  const { id, url } = await receivers.createReceiver(ada, { dedupe_header: 'X-Id' })
  const deliver = (length: number) => receivers.deliver(url, 'x', { 'x-id': 'i'.repeat(length) })
  expect((await deliver(longest)).data).toMatchObject({ item: 1 })
  expect((await deliver(longest)).data).toMatchObject({ item: 1, duplicate: true })
  expect((await deliver(longest + 1)).data).toMatchObject({ item: 2 })
  expect((await deliver(longest + 1)).data).toMatchObject({ item: 3 })
  await receivers.remove(ada, id)
})

test('a new secret closes the old address immediately', async () => {
  const { id, url } = await receivers.createReceiver(ada)
  await receivers.deliver(url, 'old')
  const command = receivers.client.sign(ada, { operation: 'receiver.rotate', target: id })
  const rotated = (await receivers.client.send(command.body)).data as { receiver?: CreatedReceiver }
  expect(rotated.receiver!.url).toMatch(new RegExp(`^/in/${id}/[A-Za-z0-9_-]{43}$`))
  expect(rotated.receiver!.url).not.toBe(url)
  expect(((await receivers.client.send(command.body)).data as { receiver?: CreatedReceiver }).receiver).toEqual({
    id,
    secret_shown: true,
  })
  expect(await receivers.deliver(url, 'late')).toMatchObject({ status: 400, code: 'not_found' })
  expect(await receivers.deliver(rotated.receiver!.url, 'new')).toMatchObject({ status: 200, data: { item: 2 } })
  await receivers.remove(ada, id)
})

test('nonces belong to one owner: repeating a request_id returns the same receive URL', async () => {
  const fields = { operation: 'receiver.create', request_id: 'mine', data: '{"schema":1,"label":"named"}' }
  const eve = person('eve')
  const first = await receivers.client.command(eve, fields, { nonce: newNonce() })
  const second = await receivers.client.command(eve, fields, { nonce: newNonce() })
  const ids = [first, second].map(({ data }) => (data as { receiver?: CreatedReceiver }).receiver!.id)
  expect(ids[1]).toBe(ids[0])
  expect(second.data).toMatchObject({ receiver: { secret_shown: true }, receipt: { duplicate: true } })
})

test('a service that signs as Svix does can deliver, and a repeated delivery is one item, whatever is added to it', async () => {
  const key = randomBytes(24)
  const eve = person('eve')
  const { url } = await receivers.createReceiver(eve, {
    hmac_secret: `whsec_${key.toString('base64')}`,
    dedupe_header: 'webhook-id',
  })
  const body = '{"type":"user.created"}'
  const at = now()
  const mac = createHmac('sha256', key).update(`msg_1.${at}.${body}`).digest('base64')
  const sent = { 'svix-id': 'msg_1', 'svix-timestamp': String(at), 'svix-signature': `v1,${mac}` }
  expect(await receivers.deliver(url, body, sent)).toMatchObject({ status: 200, data: { item: 1 } })
  for (const beside of [{}, { 'webhook-id': 'another' }])
    expect(await receivers.deliver(url, body, { ...sent, ...beside })).toMatchObject({
      data: { item: 1, duplicate: true },
    })
  expect(await receivers.itemsOf(eve)).toMatchObject([{ verified: true, headers: { 'svix-id': 'msg_1' } }])
  expect(await receivers.deliver(url, `${body} `, sent)).toMatchObject({ status: 403, code: 'bad_delivery_signature' })
  const { 'svix-id': _, ...unnamed } = sent
  expect(await receivers.deliver(url, body, { ...unnamed, 'webhook-id': 'msg_1' })).toMatchObject({ status: 403 })
})

test('signing keys of deliveries are in no file, and still open the address after a kill', async () => {
  const plain = 'a "secret" of \\ two sides'
  const key = randomBytes(32)
  const body = '{"type":"invoice.paid"}'
  const hub = { 'x-hub-signature-256': `sha256=${createHmac('sha256', plain).update(body).digest('hex')}` }
  const standard = () => {
    const at = now()
    const mac = createHmac('sha256', key).update(`msg_1.${at}.${body}`).digest('base64')
    return { 'webhook-id': 'msg_1', 'webhook-timestamp': String(at), 'webhook-signature': `v1,${mac}` }
  }
  const fields = (secret: string) => ({
    operation: 'receiver.create',
    request_id: 'sealed',
    data: JSON.stringify({ schema: 1, hmac_secret: secret, label: 'behind\u2028it' }),
  })
  const fay = person('fay')
  const made = receivers.client.sign(fay, fields(plain))
  const { receiver } = (await receivers.client.send(made.body)).data as { receiver?: CreatedReceiver }
  expect(receiver).toMatchObject({ signed: true })
  const other = await receivers.createReceiver(fay, { hmac_secret: `whsec_${key.toString('base64')}` })
  const isVerified = async (item: number) => {
    expect(await receivers.deliver(other.url, body, standard())).toMatchObject({ status: 200, data: { item } })
    expect(await receivers.deliver(receiver!.url, body, hub)).toMatchObject({ status: 200, data: { item } })
    for (const { url } of [other, receiver!])
      expect(await receivers.deliver(url, body)).toMatchObject({ status: 403, code: 'bad_delivery_signature' })
    expect((await receivers.itemsOf(fay)).every(({ verified }) => verified)).toBe(true)
    expect(await receivers.client.send(made.body)).toMatchObject({
      status: 200,
      data: { receipt: { duplicate: true } },
    })
    expect((await receivers.client.command(fay, fields(plain))).data).toMatchObject({ receipt: { duplicate: true } })
    expect(await receivers.client.command(fay, fields(`${plain}!`))).toMatchObject({ code: 'request_id_reused' })
  }
  /** As they were given, as JSON, and as JSON inside JSON. */
  const wanted = [plain, JSON.stringify(plain), JSON.stringify(JSON.stringify(plain)), key.toString('base64')]
  const forms = [...wanted.map((text) => Buffer.from(text.replace(/^"+|"+$/g, ''))), key]
  const isNowhere = () => {
    const files = readdirSync(receivers.board.directory, { recursive: true, withFileTypes: true }).filter((each) =>
      each.isFile(),
    )
    expect(files.length).toBeGreaterThan(4)
    for (const { parentPath, name } of files) {
      const bytes = readFileSync(join(parentPath, name))
      for (const form of forms) expect([name, String(form), bytes.indexOf(form)]).toEqual([name, String(form), -1])
    }
  }
  await isVerified(1)
  isNowhere()
  await receivers.restart((board) => board.kill())
  isNowhere()
  await isVerified(2)
  await receivers.board.stop()
  isNowhere()
})
