/** MCP Events as a subscriber uses them: with a token, on a real board, delivered to a real target. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { hookKinds } from '../../actors/webhooks/kind-names.ts'
import type { Signer } from '../../src/cli/sign.ts'
import { subscriptionId } from '../../src/webhooks/identity.ts'
import { accessToken } from '../support/access-token.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { createDelegation } from '../support/delegations.ts'
import { type ReceivedRequest, respondWith } from '../support/hook-target.ts'
import { OauthClient } from '../support/oauth-client.ts'
import { patience } from '../support/patience.ts'
import { WebhookBoard } from '../support/webhook-board.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Answer = {
  readonly http: number
  readonly result: {
    readonly id: string
    readonly refreshBefore: string
    readonly cursor: string
    readonly truncated: boolean
    readonly deliveryStatus: {
      readonly active: boolean
      readonly lastError: string | null
      readonly lastDeliveryAt: string | null
    }
    readonly events?: readonly { readonly name: string; readonly delivery: readonly string[] }[]
    readonly [key: string]: unknown
  }
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Record<string, unknown> }
}

const [subscriber, other, third] = [person('subscriber'), person('other'), person('third')]
const sevens = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const nines = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
const tokens = new Map<Signer, string>()
let webhooks: WebhookBoard

beforeAll(async () => {
  webhooks = await WebhookBoard.open({ LIMITS: '{"hooks_per_identity":4}' })
  for (const who of [subscriber, other, third])
    tokens.set(who, await accessToken(webhooks.board.address, who, 'board:read events:subscribe'))
})
afterAll(() => webhooks.close())

async function call(method: string, params: object, who?: Signer): Promise<Answer> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const response = await fetch(`${webhooks.board.address}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(who === undefined ? {} : { authorization: `Bearer ${tokens.get(who)}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
  })
  const text = await response.text()
  const json = (text.startsWith('{') ? JSON.parse(text) : {}) as Omit<Answer, 'http'>
  return { http: response.status, ...json }
}

const wish = (path: string, more: object = {}, secret = sevens) => ({
  name: 'room.post',
  arguments: { room: 'lobby' },
  delivery: { mode: 'webhook', url: webhooks.target.url(path), secret },
  ...more,
})

async function subscribed(
  path: string,
  more: object = {},
  who = subscriber,
  secret = sevens,
): Promise<Answer['result']> {
  let { result, error } = await call('events/subscribe', wish(path, more, secret), who)
  while (error?.data?.reason === 'timeout')
    ({ result, error } = await call('events/subscribe', wish(path, more, secret), who))
  expect(error).toBeUndefined()
  webhooks.target.secrets.set(path, secret)
  return result
}

const unsubscribe = (path: string, more: object = {}, who = subscriber) =>
  call(
    'events/unsubscribe',
    { ...wish(path, more), delivery: { mode: 'webhook', url: webhooks.target.url(path) } },
    who,
  )

const texts = (arrived: readonly ReceivedRequest[]) => arrived.map(({ body }) => body.data.excerpt)

test('both capabilities and every kind of event with its schemas are announced to everybody', async () => {
  const { result: discovered } = await call('server/discover', {})
  expect(discovered.capabilities).toMatchObject({
    events: {},
    extensions: { 'io.modelcontextprotocol/events': { listChanged: false } },
  })
  const { result } = await call('events/list', {})
  expect(result.events!.map(({ name }) => name)).toEqual([...hookKinds])
  for (const each of result.events!)
    expect(each).toMatchObject({
      delivery: ['webhook'],
      description: expect.any(String),
      inputSchema: { type: 'object', additionalProperties: false },
      payloadSchema: { type: 'object' },
    })
  expect((await call('events/list', { cursor: 'x' })).error?.code).toBe(-32602)
  for (const method of ['events/poll', 'events/stream']) expect((await call(method, {}, subscriber)).http).toBe(404)
})

test('a subscription is created, delivered by signed webhooks, refreshed under its id, and ended any number of times', async () => {
  const first = await subscribed('/sub')
  const url = webhooks.target.url('/sub')
  expect(first).toMatchObject({
    resultType: 'complete',
    id: subscriptionId(subscriber.id, url, 'room.post', { room: 'lobby' }),
    truncated: false,
    deliveryStatus: { active: true, lastDeliveryAt: null, lastError: null },
  })
  const day = (Date.parse(first.refreshBefore) - Date.now()) / 3_600_000
  expect(day).toBeGreaterThan(23.9)
  expect(day).toBeLessThan(24.1)
  await webhooks.post(other, { room: 'lobby', text: 'one' })
  const [told] = (await webhooks.waitForDeliveries('/sub', 1)) as [ReceivedRequest]
  expect([told.verified, told.subscription, told.id]).toEqual([true, first.id, told.body.eventId])
  expect(told.body).toMatchObject({ name: 'room.post', cursor: expect.any(String), data: { excerpt: 'one' } })
  // The delivery arrives a moment before the board knows that it has.
  const again = await vi.waitFor(async () => {
    const refreshed = await subscribed('/sub', { ttlMs: 3_600_000, arguments: { room: 'lobby' } })
    expect(refreshed.deliveryStatus.lastDeliveryAt).toEqual(expect.any(String))
    return refreshed
  }, patience)
  expect([again.id, again.truncated]).toEqual([first.id, false])
  expect(Date.parse(again.refreshBefore)).toBeLessThan(Date.parse(first.refreshBefore))
  expect(webhooks.target.challenges.filter(({ path }) => path === '/sub')).toHaveLength(1)
  // The same request by another identity ends nothing.
  expect((await unsubscribe('/sub', {}, other)).result).toMatchObject({ resultType: 'complete' })
  await webhooks.post(other, { room: 'lobby', text: 'two' })
  await webhooks.waitForDeliveries('/sub', 2)
  for (let n = 0; n < 2; n++) expect((await unsubscribe('/sub')).result).toMatchObject({ resultType: 'complete' })
  await subscribed('/witness')
  await webhooks.post(other, { room: 'lobby', text: 'three' })
  await webhooks.waitForDeliveries('/witness', 1)
  expect(texts(webhooks.target.receivedAt('/sub'))).toEqual(['one', 'two'])
  await unsubscribe('/witness')
})

test('a cursor continues from a delivery or from updates.get; events older than maxAgeMs are reported as cut', async () => {
  const signed = await webhooks.run(subscriber, { operation: 'updates.get', data: '{"schema":1,"wait":0}' })
  const { cursor: followed } = signed.data as unknown as { cursor: string }
  const begun = await subscribed('/cursor')
  for (const text of ['a', 'b', 'c']) await webhooks.post(other, { room: 'lobby', text })
  const arrived = await webhooks.waitForDeliveries('/cursor', 3)
  await unsubscribe('/cursor')
  const replay = async (path: string, cursor: string | null, more: object = {}) => {
    const { truncated } = await subscribed(path, { cursor, ...more })
    await webhooks.post(other, { room: 'lobby', text: `end of ${path}` })
    await webhooks.target.waitUntil(() => texts(webhooks.target.receivedAt(path)).includes(`end of ${path}`))
    await unsubscribe(path)
    return [truncated, ...texts(webhooks.target.receivedAt(path)).filter((text) => !String(text).startsWith('end'))]
  }
  expect(await replay('/from-start', begun.cursor)).toEqual([false, 'a', 'b', 'c'])
  expect(await replay('/from-first', arrived[0]!.body.cursor)).toEqual([false, 'b', 'c'])
  expect(await replay('/from-updates', followed)).toEqual([false, 'a', 'b', 'c'])
  expect(await replay('/from-last', arrived[2]!.body.cursor)).toEqual([false])
  expect(await replay('/from-now', null, { maxAgeMs: 0 })).toEqual([false])
  expect(await replay('/aged', begun.cursor, { maxAgeMs: 3_600_000 })).toEqual([false, 'a', 'b', 'c'])
  // A position from a delivery works for updates.get too.
  const page = await webhooks.run(subscriber, { operation: 'updates.get', cursor: arrived[1]!.body.cursor, limit: 1 })
  const [{ event }] = (page.data as unknown as { updates: [{ event: { text: string } }] }).updates
  expect(event.text).toBe('c')
  const foreign = await call('events/subscribe', { ...wish('/foreign'), cursor: begun.cursor }, other)
  expect([foreign.error?.code, foreign.error?.message]).toEqual([-32602, 'InvalidParams'])
})

test('a new secret signs in addition to the old one; a refresh revives a target that was given up', async () => {
  await subscribed('/rotated')
  await subscribed('/beside')
  webhooks.target.responders.set('/rotated', respondWith(500))
  await webhooks.post(other, { room: 'lobby', text: 'while it is down' })
  await webhooks.target.waitUntil(() => webhooks.target.receivedAt('/rotated').length === 6)
  await webhooks.post(other, { room: 'lobby', text: 'behind it' })
  // Once this has been delivered to another target, the board has heard the answer to the last attempt.
  await webhooks.waitForDeliveries('/beside', 2)
  await unsubscribe('/beside')
  webhooks.target.responders.delete('/rotated')
  let found = await subscribed('/rotated', {}, subscriber, nines)
  expect(found.deliveryStatus).toMatchObject({ active: false, lastError: 'http_5xx' })
  const both = (await webhooks.waitForDeliveries('/rotated', 8)).slice(6)
  expect(texts(both)).toEqual(['while it is down', 'behind it'])
  for (const { headers, verified } of both) {
    expect(verified).toBe(true)
    expect(String(headers['webhook-signature']).split(' ')).toHaveLength(2)
  }
  while (found.deliveryStatus.lastError !== null) found = await subscribed('/rotated', {}, subscriber, nines)
  expect(found.deliveryStatus.active).toBe(true)
  await unsubscribe('/rotated')
})

test('a member removed from a private room is notified once, and of nothing after', async () => {
  const room = 'quarters'
  await webhooks.run(other, { operation: 'room.create', room, visibility: 'private', members: [subscriber.id] })
  const outside = await call('events/subscribe', wish('/out', { arguments: { room } }), third)
  expect([outside.error?.code, outside.error?.message]).toEqual([-32012, 'Forbidden'])
  await subscribed('/quarters', { arguments: { room } })
  await webhooks.post(other, { room, text: 'inside' })
  expect(texts(await webhooks.waitForDeliveries('/quarters', 1))).toEqual(['inside'])
  await webhooks.run(other, { operation: 'room.member.remove', room, target: subscriber.id })
  await webhooks.post(other, { room, text: 'without him' })
  await webhooks.target.waitUntil(() => webhooks.target.control.length > 0)
  const [end] = webhooks.target.control as [ReceivedRequest]
  expect([end.path, end.verified]).toEqual(['/quarters', true])
  expect(end.body).toEqual({
    type: 'terminated',
    error: { code: -32012, message: 'Forbidden', data: { reason: 'Access revoked' } },
  })
  expect(webhooks.target.receivedAt('/quarters')).toHaveLength(1)
})

test('a person who is named in a private room of others is not notified, and keeps their subscriptions', async () => {
  const handle = 'named-outside'
  await webhooks.run(subscriber, { operation: 'identity.register', handle })
  const personal = (name: string) => ({ name, arguments: {} })
  await subscribed('/named', personal('mention'))
  await subscribed('/letters', personal('inbox.item'))
  await webhooks.run(other, { operation: 'room.create', room: 'elsewhere', visibility: 'private' })
  await webhooks.post(other, { room: 'elsewhere', text: `psst, @${handle}`, to: subscriber.id })
  await webhooks.run(other, {
    operation: 'docs.create',
    room: 'elsewhere',
    text: 'x',
    data: '{"schema":1,"title":"T"}',
  })
  const controls = webhooks.target.control.length
  await webhooks.post(other, { room: 'lobby', text: `aloud, @${handle}` })
  expect(texts(await webhooks.waitForDeliveries('/named', 1))).toEqual([`aloud, @${handle}`])
  expect(texts(await webhooks.waitForDeliveries('/letters', 1))).toEqual([`aloud, @${handle}`])
  expect(webhooks.target.control).toHaveLength(controls)
  // An identity blocked in a conversation cannot reach the blocker anywhere.
  const opened = await webhooks.run(third, {
    operation: 'conversation.open',
    members: [subscriber.id],
    text: 'a request',
  })
  const { conversation } = opened.data as unknown as { conversation: { room: string } }
  const [, request] = await webhooks.waitForDeliveries('/letters', 2)
  expect([request!.body.data.type, request!.body.data.excerpt]).toEqual(['request', 'a request'])
  const data = '{"schema":1,"answer":"block"}'
  await webhooks.run(subscriber, { operation: 'conversation.respond', room: conversation.room, data })
  await webhooks.post(third, { room: 'lobby', text: `blocked, @${handle}` })
  await webhooks.post(other, { room: 'lobby', text: `again, @${handle}` })
  expect(texts(await webhooks.waitForDeliveries('/named', 2))).toEqual([`aloud, @${handle}`, `again, @${handle}`])
  for (const [path, name] of [
    ['/named', 'mention'],
    ['/letters', 'inbox.item'],
  ])
    await unsubscribe(path!, personal(name!))
})

test('without the read scope a token and a delegate are notified only of public events', async () => {
  const [owner, key] = [person('who reads in private'), person('who only subscribes')]
  await webhooks.run(owner, { operation: 'room.create', room: 'cabinet', visibility: 'private', members: [other.id] })
  await createDelegation(webhooks.client, owner, key, { scopes: ['events:subscribe'] })
  tokens.set(owner, await accessToken(webhooks.board.address, owner, 'events:subscribe'))
  const scope = expect.stringContaining('board:read')
  for (const params of [
    wish('/narrow', { arguments: { room: 'cabinet' } }),
    wish('/narrow', { name: 'document.written', arguments: { room: 'cabinet' } }),
    wish('/narrow', { name: 'inbox.item', arguments: {} }),
    wish('/narrow', { name: 'receiver.item', arguments: {} }),
  ]) {
    const { error } = await call('events/subscribe', params, owner)
    expect([params, error]).toEqual([params, { code: -32012, message: 'Forbidden', data: { reason: scope } }])
  }
  for (const [data, code] of [
    [{ room: 'cabinet' }, 'private_room'],
    [{ kinds: ['inbox.item'], room: undefined }, 'forbidden'],
    [{ kinds: ['mention', 'receiver.item'], room: undefined }, 'forbidden'],
  ] as const) {
    const answer = await webhooks.requestWebhook(key, '/narrow', data)
    expect([answer.status, answer.code, answer.text]).toEqual([403, code, scope])
  }
  await subscribed('/narrow', { name: 'mention', arguments: {} }, owner)
  await webhooks.createWebhook(key, '/narrow-delegate', { kinds: ['mention'], room: undefined })
  await webhooks.createWebhook(owner, '/wide', { kinds: ['mention'], room: undefined })
  const [secret, open] = ['between us', 'before all']
  await webhooks.post(other, { room: 'cabinet', text: secret, to: owner.id })
  expect(texts(await webhooks.waitForDeliveries('/wide', 1))).toEqual([secret])
  await webhooks.post(other, { room: 'lobby', text: open, to: owner.id })
  expect(texts(await webhooks.waitForDeliveries('/wide', 2))).toEqual([secret, open])
  for (const path of ['/narrow', '/narrow-delegate'])
    expect(texts(await webhooks.waitForDeliveries(path, 1))).toEqual([open])
})

test('invalid subscriptions are refused by name, with the valid choices', async () => {
  const refusal = async (params: object, who: Signer | undefined = subscriber) => {
    const { error } = await call('events/subscribe', params, who)
    return [error?.code, error?.message, error?.data]
  }
  const delivery = (more: object) => ({ delivery: { ...wish('/bad').delivery, ...more } })
  expect(await refusal(wish('/bad', { name: 'room.posts' }))).toEqual([-32011, 'NotFound', { kind: 'event' }])
  const bytes = (count: number) => `whsec_${Buffer.alloc(count, 1).toString('base64')}`
  for (const params of [
    wish('/bad', { arguments: {} }),
    wish('/bad', { arguments: { room: 'lobby', more: 1 } }),
    wish('/bad', { arguments: { room: 'No Room' } }),
    wish('/bad', { arguments: { room: 'no-such-room' } }),
    wish('/bad', delivery({ secret: bytes(23) })),
    wish('/bad', delivery({ secret: bytes(65) })),
    wish('/bad', delivery({ secret: 'secret' })),
    wish('/bad', delivery({ secret: undefined })),
    wish('/bad', delivery({ url: 'http://10.0.0.1/in' })),
    wish('/bad', delivery({ url: 'not an address' })),
    wish('/bad', delivery({ url: `${webhooks.target.url('/bad')}#part` })),
    wish('/bad', { ttlMs: 0 }),
    wish('/bad', { ttlMs: 'long' }),
    wish('/bad', { maxAgeMs: -1 }),
    wish('/bad', { cursor: 'forged' }),
    wish('/bad', { delivery: undefined }),
    wish('/bad', { name: undefined }),
  ])
    expect([params, ...(await refusal(params)).slice(0, 2)]).toEqual([params, -32602, 'InvalidParams'])
  expect(await refusal(wish('/bad', delivery({ mode: 'push' })))).toEqual([
    -32014,
    'Unsupported',
    { feature: 'deliveryMode', value: 'push' },
  ])
  webhooks.target.challengeResponders.set('/bad', (_arrived, response) => response.end('{"challenge":"wrong"}'))
  expect(await refusal(wish('/bad'))).toEqual([-32015, 'CallbackEndpointError', { reason: 'challenge_failed' }])
  expect(await refusal(wish('/bad', delivery({ url: 'http://127.0.0.1:1025/' })))).toEqual([
    -32015,
    'CallbackEndpointError',
    { reason: 'connection_refused' },
  ])
  expect((await call('events/subscribe', wish('/bad'))).http).toBe(401)
  for (let n = 0; n < 4; n++) await subscribed(`/full-${n}`, {}, third)
  expect(await refusal(wish('/full-4'), third)).toEqual([
    -32013,
    'ResourceExhausted',
    { limit: 'subscriptions', max: 4 },
  ])
  // A refresh takes up no further place.
  await subscribed('/full-0', {}, third)
})

test('the refusal of a parameter names it, and what it must be or where it belongs', async () => {
  const delivery = (more: object) => ({ delivery: { ...wish('/named-wrong').delivery, ...more } })
  const room = '1 to 64 of a-z 0-9 _ -, starting with a letter or digit'
  for (const [more, reason] of [
    [{ arguments: undefined }, `arguments.room: room.post needs the argument "room": ${room}`],
    [{ arguments: { rom: 'lobby' } }, 'arguments.rom: room.post has no key "rom"; did you mean "room"?'],
    [{ arguments: { room: 'No Room' } }, `arguments.room: "room" in room.post must be ${room}`],
    [{ arguments: ['lobby'] }, 'arguments must be an object; an array was sent'],
    [delivery({ ttlMs: 600_000 }), 'delivery.ttlMs is not a parameter: send ttlMs beside delivery, not inside it'],
    [delivery({ secrets: sevens }), 'delivery.secrets is not a parameter; did you mean delivery.secret?'],
    [
      delivery({ headers: {} }),
      'delivery.headers is not a parameter; there are delivery.mode, delivery.url, delivery.secret',
    ],
    [{ ttlMS: 600_000 }, 'ttlMS is not a parameter; did you mean ttlMs?'],
    [{ filter: {} }, 'filter is not a parameter; there are name, arguments, delivery, cursor, maxAgeMs, ttlMs'],
  ] as const)
    for (const method of ['events/subscribe', 'events/unsubscribe']) {
      const { error } = await call(method, wish('/named-wrong', more), subscriber)
      expect([method, more, error]).toEqual([
        method,
        more,
        { code: -32602, message: 'InvalidParams', data: { reason } },
      ])
    }
  const nulls = { maxAgeMs: null, filter: null, delivery: { ...wish('/nulls').delivery, headers: null } }
  await subscribed('/nulls', nulls)
  await unsubscribe('/nulls')
})

test('this machine is refused by its name as by its number, before anything is challenged', async () => {
  const board = await startBoard({ directory: boardDirectory() })
  const client = await Client.of(board)
  for (const url of ['https://localhost/in', 'https://hooks.localhost/in', 'https://127.0.0.1/in']) {
    const data = JSON.stringify({ schema: 1, url, kinds: ['mention'] })
    const answer = await client.command(other, { operation: 'webhook.create', data })
    expect([url, answer.status, answer.code, answer.field]).toEqual([url, 400, 'invalid_field', 'data.url'])
    expect(answer.text).toContain('its host is not on the public Internet')
  }
  client.close()
  await board.kill()
})

test.each(['access_token', 'refresh_token'] as const)(
  'subscriptions made with a sign-in end when its client logs out with the %s',
  async (name) => {
    const owner = person(`who logs out with the ${name}`)
    const program = new OauthClient(webhooks.board.address)
    const signedIn = await program.signIn(owner)
    const [ended, stays] = [`/logged-out-${name}`, `/stays-${name}`]
    tokens.set(owner, signedIn.access_token)
    await subscribed(ended, {}, owner)
    await webhooks.createWebhook(owner, stays)
    await program.form('/oauth/revoke', { token: signedIn[name], client_id: program.id })
    await vi.waitFor(async () => expect((await call('events/subscribe', wish(ended), owner)).http).toBe(401), patience)
    await vi.waitFor(async () => {
      await webhooks.post(other, { room: 'lobby', text: 'any' })
      const before = webhooks.target.receivedAt(ended).length
      await webhooks.post(other, { room: 'lobby', text: 'last' })
      await webhooks.target.waitUntil(() => texts(webhooks.target.receivedAt(stays)).at(-1) === 'last')
      expect(webhooks.target.receivedAt(ended)).toHaveLength(before)
    }, patience)
  },
)

test('subscriptions made by a sign-in or delegate end with the delegation, and those of the identity itself go on', async () => {
  const [owner, key] = [person('owner of programs'), person('a program of his')]
  await webhooks.run(owner, { operation: 'room.create', room: 'diary', visibility: 'private' })
  tokens.set(owner, await accessToken(webhooks.board.address, owner, 'board:read events:subscribe'))
  const scopes = ['board:read', 'events:subscribe']
  const delegation = await createDelegation(webhooks.client, owner, key, { scopes, ttl: 600 })
  const { id, refreshBefore } = await subscribed('/by-token', { arguments: { room: 'diary' }, ttlMs: null }, owner)
  expect(Date.parse(refreshBefore)).toBeGreaterThan(Date.now())
  const byDelegate = await webhooks.createWebhook(key, '/by-delegate', { room: 'diary' })
  const own = await webhooks.createWebhook(owner, '/own', { room: 'diary' })
  type Ends = { id: string; expires_at?: number }
  const ends = (await webhooks.list(owner)) as unknown as Ends[]
  expect(ends.find((each) => each.id === byDelegate.id)!.expires_at).toBeLessThanOrEqual(Date.now() / 1000 + 600)
  expect(ends.find((each) => each.id === own.id)).not.toHaveProperty('expires_at')
  await webhooks.post(owner, { room: 'diary', text: 'before' })
  for (const path of ['/by-token', '/by-delegate', '/own']) await webhooks.waitForDeliveries(path, 1)
  const listed = (await webhooks.run(owner, { operation: 'delegation.list' })).data
  const { delegations } = listed as unknown as { delegations: { id: string }[] }
  expect(delegations.map((each) => each.id)).toContain(delegation)
  for (const each of delegations) await webhooks.run(owner, { operation: 'delegation.revoke', target: each.id })
  await webhooks.post(owner, { room: 'diary', text: 'after' })
  await webhooks.waitForDeliveries('/own', 2)
  expect((await call('events/subscribe', wish('/by-token'), owner)).http).toBe(401)
  // Nothing more is sent to them; their actor is notified a moment later.
  await vi.waitFor(async () => expect((await webhooks.list(owner)).map((each) => each.id)).toEqual([own.id]), patience)
  await webhooks.restart((board) => board.kill())
  await webhooks.post(owner, { room: 'diary', text: 'later' })
  await webhooks.target.waitUntil(() => texts(webhooks.target.receivedAt('/own')).includes('later'))
  for (const path of ['/by-token', '/by-delegate']) expect(texts(webhooks.target.receivedAt(path))).toEqual(['before'])
  expect(id).toMatch(/^sub_/)
})
