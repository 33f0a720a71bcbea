/** Receive URLs: what other services deliver, who reads it, and what a delivery must be like. */
import { createHmac, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, type Fields, freshNonce, now, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const ada = person('ada')
const bob = person('bob')

type Made = { readonly id: string; readonly url: string; readonly secret_shown?: boolean }
type Item = {
  readonly receiver: string
  readonly item: number
  readonly received_at: number
  readonly content_type: string
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: number
  readonly body: string
  readonly body_encoding: string
  readonly verified: boolean
  readonly untrusted: boolean
}
type Delivered = {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly text: string
  readonly code: string | undefined
  readonly data: { readonly item?: number; readonly bytes?: number; readonly duplicate?: boolean }
}

let board: Board
let client: Client

function deliver(
  path: string,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
  method = 'POST',
): Promise<Delivered> {
  return new Promise((resolve, reject) => {
    const length = method === 'GET' || method === 'HEAD' ? {} : { 'content-length': Buffer.byteLength(body) }
    const sent = request(
      { host: '127.0.0.1', port: board.port, path, method, headers: { ...length, ...headers } },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          const json = (text.startsWith('{') ? JSON.parse(text) : {}) as {
            data?: Delivered['data']
            error?: { code: string }
          }
          const { statusCode, headers } = response
          resolve({ status: statusCode!, headers, text, code: json.error?.code, data: json.data ?? {} })
        })
      },
    )
    sent.on('error', reject)
    sent.end(method === 'GET' || method === 'HEAD' ? undefined : body)
  })
}

const create = (who: typeof ada, data: object = {}, more: object = {}): Promise<Answer> =>
  client.command(who, { operation: 'receiver.create', data: JSON.stringify({ schema: 1, ...data }), ...more } as Fields)

async function made(who: typeof ada, data: object = {}, more: object = {}): Promise<Made> {
  const answer = await create(who, data, more)
  expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('"url"')])
  return (answer.data as { receiver?: Made }).receiver!
}

async function itemsOf(who: typeof ada, fields: object = {}): Promise<Item[]> {
  const answer = await client.command(who, { operation: 'receiver.items', ...fields } as Fields)
  expect([answer.status, answer.text.slice(0, 200)]).toEqual([200, expect.any(String)])
  return (answer.data as { items?: Item[] }).items!
}

const remove = (who: typeof ada, target: string) => client.command(who, { operation: 'receiver.delete', target })

/** Waits until it is so; fails by the time of the test. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20))
}

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory(), env: { SHARDS: '2' } })
  client = await Client.of(board)
})
afterAll(() => client.close())

describe('making one', () => {
  test('shows its address once, and never keeps the secret', async () => {
    const command = client.sign(ada, { operation: 'receiver.create', data: '{"schema":1,"label":"once"}' })
    const first = await client.send(command.body)
    const { receiver } = first.data as { receiver?: Made }
    expect(receiver).toMatchObject({ id: command.eventId, label: 'once', items: 0, post: false, signed: false })
    expect(receiver!.url).toMatch(new RegExp(`^/in/${command.eventId}/[A-Za-z0-9_-]{43}$`))
    const again = (await client.send(command.body)).data as { receiver?: Made; receipt?: { duplicate?: boolean } }
    expect(again.receipt?.duplicate).toBe(true)
    expect(again.receiver).toMatchObject({ id: command.eventId, label: 'once', secret_shown: true })
    expect(again.receiver).not.toHaveProperty('url')
    const list = await client.command(ada, { operation: 'receiver.list' })
    expect(list.data).toMatchObject({ receivers: [{ id: command.eventId, label: 'once' }], has_more: false })
    expect(list.text).not.toContain(receiver!.url.slice(-43))
    await remove(ada, receiver!.id)
  })

  test('only its maker sees it, and unsigned nobody does', async () => {
    const { id } = await made(ada, { label: 'mine' })
    expect((await client.command(bob, { operation: 'receiver.list' })).data).toMatchObject({ receivers: [] })
    for (const operation of ['receiver.items', 'receiver.rotate', 'receiver.delete'])
      expect(await client.command(bob, { operation, target: id })).toMatchObject({ status: 400, code: 'not_found' })
    expect(await client.send(`{"operation":"receiver.items","target":"${id}"}`)).toMatchObject({
      status: 403,
      code: 'unsigned',
    })
    expect(await client.send('{"operation":"receiver.list"}')).toMatchObject({ status: 403, code: 'unsigned' })
    expect(await client.get(`/api/events/${id}`)).toMatchObject({ status: 400, code: 'not_found' })
    await remove(ada, id)
  })

  test('an identity has 8 at a time, and a deleted one makes room', async () => {
    const cleo = person('cleo')
    const eight = []
    for (let i = 0; i < 8; i++) eight.push(await made(cleo))
    expect(await create(cleo)).toMatchObject({ status: 400, code: 'wrong_state' })
    expect((await remove(cleo, eight[3]!.id)).status).toBe(200)
    expect(await remove(cleo, eight[3]!.id)).toMatchObject({ status: 400, code: 'not_found' })
    await made(cleo)
    expect(await create(cleo)).toMatchObject({ status: 400, code: 'wrong_state' })
    const page = (await client.command(cleo, { operation: 'receiver.list', limit: 5 })).data as {
      receivers?: Made[]
      next_cursor?: string
    }
    expect(page.receivers).toHaveLength(5)
    const rest = await client.command(cleo, { operation: 'receiver.list', limit: 5, cursor: page.next_cursor! })
    expect(rest.data).toMatchObject({ has_more: false, receivers: [{}, {}, {}] })
  })

  test.each([
    [{ label: 'x'.repeat(65) }, {}],
    [{ label: 'two\nlines' }, {}],
    [{ dedupe_header: 'no spaces' }, {}],
    [{ hmac_secret: 'short' }, {}],
    [{ hmac_secret: 'a secret with spaces' }, {}],
    [{ hmac_secret: 'whsec_!!!not base64!!!!!' }, {}],
    [{ allow_from: ['10.0.0.0/33'] }, {}],
    [{ allow_from: ['example.org'] }, {}],
    [{ allow_from: Array(9).fill('192.0.2.1') }, {}],
    [{ unknown: 1 }, {}],
  ])('%j is refused', async (data, more) => {
    const answer = await create(ada, data, more)
    expect([answer.status, answer.code]).toEqual([400, expect.stringMatching(/^(invalid_field|unknown_field)$/)])
  })

  test('with post it needs a room, and one where its maker may begin a thread', async () => {
    const owner = person('owner')
    await client.command(owner, { operation: 'room.create', room: 'quiet' })
    await client.command(owner, { operation: 'room.policy.set', room: 'quiet', data: '{"write":"owner"}' })
    await client.command(owner, { operation: 'room.create', room: 'secret-in', visibility: 'private' })
    expect(await create(ada, { post: true })).toMatchObject({ status: 400, code: 'missing_field', field: 'room' })
    expect(await create(ada, { post: true }, { room: 'no-such-room' })).toMatchObject({
      status: 400,
      code: 'not_found',
    })
    expect(await create(ada, { post: true }, { room: 'secret-in' })).toMatchObject({
      status: 403,
      code: 'private_room',
    })
    expect(await create(ada, { post: true }, { room: 'quiet' })).toMatchObject({
      status: 403,
      code: 'room_write_restricted',
    })
    for (const room of ['quiet', 'secret-in', 'lobby']) {
      const { id } = await made(owner, { post: true }, { room })
      await remove(owner, id)
    }
  })
})

describe('a delivery', () => {
  test('is durable before it is answered, and comes back as it was sent', async () => {
    const { id, url } = await made(ada, { label: 'whole' })
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
    const first = await deliver(url, body, headers)
    expect(first).toMatchObject({ status: 200, data: { item: 1, bytes: Buffer.byteLength(body) } })
    expect(JSON.parse(first.text)).toEqual({ ok: true, data: { item: 1, bytes: Buffer.byteLength(body) } })
    const binary = randomBytes(300)
    binary[0] = 0xff
    expect(await deliver(url, binary, {}, 'PUT')).toMatchObject({ status: 200, data: { item: 2, bytes: 300 } })
    expect(await deliver(url, '')).toMatchObject({ status: 200, data: { item: 3, bytes: 0 } })
    const before = await itemsOf(ada, { target: id })
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
    await board.kill()
    board = await startBoard({ directory: board.directory, env: { SHARDS: '2' } })
    client.close()
    client = await Client.of(board)
    expect(await itemsOf(ada, { target: id })).toEqual(before)
    await board.stop()
    board = await startBoard({ directory: board.directory, env: { SHARDS: '2' } })
    client.close()
    client = await Client.of(board)
    expect(await itemsOf(ada, { target: id })).toEqual(before)
    expect(await deliver(url, 'after it all')).toMatchObject({ status: 200, data: { item: 4 } })
    await remove(ada, id)
  })

  test('of 256 KiB is taken, one byte more is not', async () => {
    const { id, url } = await made(ada)
    const most = 'x'.repeat(256 * 1024)
    expect(await deliver(url, most)).toMatchObject({ status: 200, data: { bytes: 262_144 } })
    expect(await deliver(url, `${most}x`)).toMatchObject({ status: 400, code: 'too_large' })
    const chunked = await new Promise<number>((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port: board.port, path: url, method: 'POST' }, (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode!))
      })
      sent.on('error', reject)
      sent.write(most)
      sent.end('x')
    })
    expect(chunked).toBe(400)
    expect(await itemsOf(ada, { target: id })).toHaveLength(1)
    await remove(ada, id)
  })

  test('finds the door closed alike whether the URL is unknown, wrong or deleted', async () => {
    const { id, url } = await made(ada)
    const gone = await made(ada)
    await deliver(gone.url, 'kept')
    await remove(ada, gone.id)
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
    const answers = await Promise.all(closed.map((path) => deliver(path, '{}')))
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers[0]).toMatchObject({ status: 400, code: 'not_found' })
    expect(await itemsOf(ada, { target: id })).toEqual([])
    expect((await itemsOf(ada, { target: gone.id })).map(({ body }) => body)).toEqual(['kept'])
    const listed = (await client.command(ada, { operation: 'receiver.list' })).data as { receivers?: Made[] }
    expect(listed.receivers).toContainEqual(expect.objectContaining({ id: gone.id, deleted_at: expect.any(Number) }))
    await remove(ada, id)
  })

  test('by GET or HEAD has no effect and says what this is, whether or not it is one', async () => {
    const { id, url } = await made(ada)
    const texts = []
    for (const path of [url, `/in/${id}/wrong`]) {
      const got = await deliver(path, '', {}, 'GET')
      expect(got).toMatchObject({ status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' } })
      texts.push(got.text)
      expect(await deliver(path, '', {}, 'HEAD')).toMatchObject({ status: 200, text: '' })
    }
    expect(texts[0]).toMatch(/POST or PUT/)
    expect(texts[1]).toBe(texts[0])
    expect(await deliver(url, '', {}, 'OPTIONS')).toMatchObject({
      status: 200,
      headers: { allow: 'GET, HEAD, POST, PUT, OPTIONS' },
    })
    expect(await deliver(url, '', {}, 'DELETE')).toMatchObject({ status: 405 })
    expect(await itemsOf(ada, { target: id })).toEqual([])
    await remove(ada, id)
  })

  test('of the same dedupe value is the same item', async () => {
    const { id, url } = await made(ada, { dedupe_header: 'X-Delivery-Name' })
    const named = (value: string) => deliver(url, `body of ${value.slice(0, 8)}`, { 'x-delivery-name': value })
    expect((await named('one')).data).toEqual({ item: 1, bytes: 11 })
    const both = await Promise.all([named('two'), named('two'), named('two')])
    expect(both.map(({ data }) => data.item)).toEqual([2, 2, 2])
    expect(both.filter(({ data }) => data.duplicate !== true)).toHaveLength(1)
    expect((await named('one')).data).toEqual({ item: 1, bytes: 11, duplicate: true })
    await board.kill()
    board = await startBoard({ directory: board.directory, env: { SHARDS: '2' } })
    client.close()
    client = await Client.of(board)
    expect((await named('two')).data).toMatchObject({ item: 2, duplicate: true })
    // Too long to name anything, and no name at all: kept each time.
    for (const item of [3, 4]) expect((await named('n'.repeat(201))).data).toEqual({ item, bytes: 16 })
    for (const item of [5, 6]) expect((await deliver(url, 'nameless')).data).toEqual({ item, bytes: 8 })
    expect((await named('n'.repeat(200))).data).toMatchObject({ item: 7 })
    expect((await named('n'.repeat(200))).data).toMatchObject({ item: 7, duplicate: true })
    expect(await itemsOf(ada, { target: id })).toHaveLength(7)
    await remove(ada, id)
  })

  test('may come from the networks its maker named, and from nowhere else', async () => {
    const closed = await made(ada, { allow_from: ['192.0.2.0/24', '2001:db8::/32'] })
    expect(await deliver(closed.url, '{}')).toMatchObject({ status: 403, code: 'forbidden' })
    const open = await made(ada, { allow_from: ['192.0.2.1', '127.0.0.0/8'] })
    expect(await deliver(open.url, '{}')).toMatchObject({ status: 200 })
    expect(await itemsOf(ada, { target: closed.id })).toEqual([])
    for (const { id } of [closed, open]) await remove(ada, id)
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
    const { id, url } = await made(ada, { hmac_secret: `whsec_${key.toString('base64')}` })
    const body = '{"type":"invoice.paid"}'
    const good = standard(body)
    expect(await deliver(url, body, good)).toMatchObject({ status: 200, data: { item: 1 } })
    // Keys that are being changed: several signatures, of which one fits.
    const others = `v1,${Buffer.alloc(32).toString('base64')} v1a,xyz ${good['webhook-signature']}`
    expect(await deliver(url, body, { ...good, 'webhook-signature': others })).toMatchObject({ status: 200 })
    const bad: [string, Record<string, string>][] = [
      [body, {}],
      [`${body} `, good],
      [body, { ...good, 'webhook-id': 'msg_2' }],
      [body, { ...good, 'webhook-timestamp': String(now() - 1) }],
      [body, standard(body, { by: randomBytes(32) })],
      [body, standard(body, { at: now() - 400 })],
      [body, standard(body, { at: now() + 400 })],
      [body, { ...good, 'webhook-signature': good['webhook-signature'].replace('v1,', 'v2,') }],
      [body, { ...good, 'webhook-signature': good['webhook-signature'].slice(3) }],
      [body, { 'x-hub-signature-256': `sha256=${createHmac('sha256', key).update(body).digest('hex')}` }],
    ]
    for (const [sent, headers] of bad)
      expect(await deliver(url, sent, headers)).toMatchObject({ status: 403, code: 'bad_delivery_signature' })
    const items = await itemsOf(ada, { target: id })
    expect(items.map(({ verified }) => verified)).toEqual([true, true])
    expect(items[0]!.headers).not.toHaveProperty('webhook-signature')
    await remove(ada, id)
  })

  test('as GitHub signs', async () => {
    // The example of GitHub’s own documentation.
    const secret = "It's-a-Secret-to-Everybody"
    const { id, url } = await made(ada, { hmac_secret: secret })
    const body = 'Hello, World!'
    const hub = (by: string) => ({
      'X-Hub-Signature-256': `sha256=${createHmac('sha256', by).update(body).digest('hex')}`,
    })
    expect(await deliver(url, body, hub(secret))).toMatchObject({ status: 200 })
    for (const headers of [{}, hub('another'), { 'X-Hub-Signature-256': 'sha256=' }, { 'X-Hub-Signature': 'sha1=00' }])
      expect(await deliver(url, body, headers as Record<string, string>)).toMatchObject({
        status: 403,
        code: 'bad_delivery_signature',
      })
    expect((await itemsOf(ada, { target: id })).map(({ verified }) => verified)).toEqual([true])
    expect((await client.command(ada, { operation: 'receiver.list' })).text).not.toContain('Secret-to')
    await remove(ada, id)
  })
})

describe('items', () => {
  test('are read oldest first, of one receive URL or of all, in pages', async () => {
    const dora = person('dora')
    const [a, b] = [await made(dora, { label: 'a' }), await made(dora, { label: 'b' })]
    for (let n = 1; n <= 5; n++) for (const { url } of [a, b]) await deliver(url, `${n}`)
    expect((await itemsOf(dora, { target: b.id, data: '{"schema":1,"after":3}' })).map(({ item }) => item)).toEqual([
      4, 5,
    ])
    const seen: string[] = []
    let cursor = ''
    do {
      const answer = await client.command(dora, {
        operation: 'receiver.items',
        limit: 3,
        ...(cursor === '' ? {} : { cursor }),
      })
      const { items, next_cursor } = answer.data as { items?: Item[]; next_cursor?: string }
      seen.push(...items!.map(({ receiver, item }) => `${receiver === a.id ? 'a' : 'b'}${item}`))
      cursor = next_cursor ?? ''
    } while (cursor !== '')
    expect(seen).toEqual(['a1', 'b1', 'a2', 'b2', 'a3', 'b3', 'a4', 'b4', 'a5', 'b5'])
    expect(await client.command(dora, { operation: 'receiver.items', data: '{"schema":1,"after":3}' })).toMatchObject({
      status: 400,
      code: 'invalid_field',
    })
    expect(await client.command(dora, { operation: 'receiver.items', cursor: 'AAAA' })).toMatchObject({
      status: 400,
      field: 'cursor',
    })
    expect(await itemsOf(bob)).toEqual([])
  })

  test('of one answer hold 512 KiB of bodies, and the cursor goes on', async () => {
    const { id, url } = await made(ada)
    for (let n = 0; n < 5; n++) await deliver(url, String(n).repeat(200_000))
    const first = (await client.command(ada, { operation: 'receiver.items', target: id })).data as {
      items?: Item[]
      next_cursor?: string
      has_more?: boolean
    }
    expect([first.items!.length, first.has_more]).toEqual([2, true])
    const rest = await itemsOf(ada, { target: id, cursor: first.next_cursor })
    expect(rest.map(({ item }) => item)).toEqual([3, 4])
    await remove(ada, id)
  })

  test('are kept to the newest 1,000', async () => {
    const { id, url } = await made(ada)
    for (let n = 0; n < 1_010; n += 101)
      await Promise.all(Array.from({ length: 101 }, (_, i) => deliver(url, String(n + i))))
    const oldest = await itemsOf(ada, { target: id, limit: 2 })
    expect(oldest.map(({ item }) => item)).toEqual([11, 12])
    expect((await itemsOf(ada, { target: id, data: '{"schema":1,"after":1008}' })).map(({ item }) => item)).toEqual([
      1009, 1010,
    ])
    await remove(ada, id)
  })
})

test('a new secret closes the old address at once', async () => {
  const { id, url } = await made(ada)
  await deliver(url, 'old')
  const command = client.sign(ada, { operation: 'receiver.rotate', target: id })
  const rotated = (await client.send(command.body)).data as { receiver?: Made }
  expect(rotated.receiver!.url).toMatch(new RegExp(`^/in/${id}/[A-Za-z0-9_-]{43}$`))
  expect(rotated.receiver!.url).not.toBe(url)
  expect(((await client.send(command.body)).data as { receiver?: Made }).receiver).toEqual({ id, secret_shown: true })
  expect(await deliver(url, 'late')).toMatchObject({ status: 400, code: 'not_found' })
  expect(await deliver(rotated.receiver!.url, 'new')).toMatchObject({ status: 200, data: { item: 2 } })
  await remove(ada, id)
})

describe('with post', () => {
  type Listed = {
    readonly events?: readonly { text?: string; author: { id: string; handle?: string }; via?: string }[]
  }
  const posts = async (room: string, who = ada) =>
    ((await client.command(who, { operation: 'events.list', room, data: '{"schema":1,"order":"asc"}' })).data as Listed)
      .events!

  test('each item stands in the room, once, in order, signed by the board', async () => {
    const { id, url } = await made(ada, { post: true, label: 'builds' }, { room: 'lobby' })
    for (let n = 1; n <= 5; n++) await deliver(url, `build ${n} is done`, { 'content-type': 'text/plain' })
    await deliver(url, Buffer.from([0xff, 0xfe, 0]), { 'content-type': 'image/x-icon' })
    await until(async () => (await posts('lobby')).length >= 6)
    const texts = (await posts('lobby')).map(({ text }) => text!)
    expect(texts.slice(0, 5).map((text) => text.split('\n\n')[1])).toEqual(
      [1, 2, 3, 4, 5].map((n) => `build ${n} is done`),
    )
    expect(texts[0]).toMatch(
      /^Received at builds: item 1, text\/plain, 15 bytes, not signed\. What follows was written by a stranger\./,
    )
    expect(texts[5]).toContain('It is no text')
    const { service_identity } = (await client.get('/capabilities')).data as { service_identity?: { id: string } }
    for (const { author, via } of await posts('lobby'))
      expect([author.id, author.handle, via]).toEqual([service_identity!.id, 'broadside', 'board'])
    await board.kill()
    board = await startBoard({ directory: board.directory, env: { SHARDS: '2' } })
    client.close()
    client = await Client.of(board)
    await deliver(url, 'after the kill')
    await until(async () => (await posts('lobby')).length >= 7)
    expect(await posts('lobby')).toHaveLength(7)
    await remove(ada, id)
  })

  test('in a private room it stays there, and ends when its maker is put out', async () => {
    const owner = person('owner')
    await client.command(owner, {
      operation: 'room.create',
      room: 'in-private',
      visibility: 'private',
      members: [ada.id],
    })
    const { id, url } = await made(ada, { post: true }, { room: 'in-private' })
    await deliver(url, 'canary-inside')
    await until(async () => (await posts('in-private')).length === 1)
    expect((await posts('in-private'))[0]!.text).toContain('canary-inside')
    for (const path of ['/api/events?limit=200', '/v1/export', '/api/rooms', '/api/changes?after=0'])
      expect((await client.get(path)).text).not.toContain('canary-inside')
    expect(await client.command(bob, { operation: 'events.list', room: 'in-private' })).toMatchObject({
      code: 'private_room',
    })
    await client.command(owner, { operation: 'room.member.remove', room: 'in-private', target: ada.id })
    const last = await deliver(url, 'canary-outside')
    expect(last).toMatchObject({ status: 200 })
    expect((await itemsOf(ada, { target: id })).at(-1)).toMatchObject({ body: 'canary-outside' })
    // Another item behind it in a room of his own: when that one stands, this one has been passed over.
    const marker = await made(ada, { post: true }, { room: 'lobby' })
    const before = (await posts('lobby')).length
    await deliver(marker.url, 'marker')
    await until(async () => (await posts('lobby')).length > before)
    expect((await posts('in-private', owner)).map(({ text }) => text).join()).not.toContain('canary-outside')
  })

  test('a body that does not fit into a post is cut at a whole character', async () => {
    const { id, url } = await made(ada, { post: true }, { room: 'long-items' }).catch(async () => {
      await client.post(ada, { room: 'long-items', text: 'made' })
      return made(ada, { post: true }, { room: 'long-items' })
    })
    await deliver(url, '€'.repeat(20_000))
    await until(async () => (await posts('long-items')).length === 2)
    const { text = '' } = (await posts('long-items')).at(-1)!
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(32_768)
    expect(text).toMatch(/€\n\[cut here\]$/)
    expect(text).not.toContain('\u{fffd}')
    await remove(ada, id)
  })
})

test('rates: by address, by receive URL a minute; each says how long to wait', async () => {
  const strict = await startBoard({ directory: boardDirectory(), env: { BROADSIDE_LIMITS: 'on' } })
  const limited = await Client.of(strict)
  const [before, clientBefore] = [board, client]
  board = strict
  client = limited
  try {
    const [first, second] = [await made(ada), await made(ada)]
    const answers = []
    for (let n = 0; n < 61; n++) answers.push(await deliver(first.url, String(n)))
    const refused = answers.filter(({ status }) => status !== 200)
    expect(refused.length).toBeGreaterThanOrEqual(0)
    // The sixty-first within a minute waits, unless a second went by for each that came back.
    for (const each of refused) expect(each).toMatchObject({ status: 429, code: 'rate_limited' })
    const more = []
    for (let n = 0; n < 80; n++) more.push(await deliver(second.url, String(n)))
    const last = more.at(-1)!
    expect(last).toMatchObject({ status: 429, code: 'rate_limited' })
    expect(Number(last.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect(await itemsOf(ada, { target: second.id, limit: 200 })).toHaveLength(
      more.filter(({ status }) => status === 200).length,
    )
  } finally {
    limited.close()
    board = before
    client = clientBefore
  }
})

test('nonces of a maker are his own: the same request_id twice is one receive URL', async () => {
  const fields = { operation: 'receiver.create', request_id: 'mine', data: '{"schema":1,"label":"named"}' }
  const eve = person('eve')
  const first = await client.command(eve, fields, { nonce: freshNonce() })
  const second = await client.command(eve, fields, { nonce: freshNonce() })
  const ids = [first, second].map(({ data }) => (data as { receiver?: Made }).receiver!.id)
  expect(ids[1]).toBe(ids[0])
  expect(second.data).toMatchObject({ receiver: { secret_shown: true }, receipt: { duplicate: true } })
})
