/** Webhooks as their owner sees them, delivered by a real board to a real target. */
import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { shardOf } from '../../actors/shard.ts'
import { isHookKind } from '../../actors/webhooks/kind-names.ts'
import { marketName } from '../../actors/works/market/letters.ts'
import { now, person } from '../support/client.ts'
import { createDelegation } from '../support/delegations.ts'
import { type ReceivedRequest, respondWith } from '../support/hook-target.ts'
import { deliveryErrors } from '../support/json-schema.ts'
import { World } from '../support/operation-setups.ts'
import { patience } from '../support/patience.ts'
import { program } from '../support/program.ts'
import { WebhookBoard } from '../support/webhook-board.ts'
import { workAt } from '../support/work-stages.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

let webhooks: WebhookBoard
let people = 0
const operator = person('the operator')
const someone = () => person(`hooked ${++people}`)
const textOf = ({ body }: ReceivedRequest) => body.data.excerpt

beforeAll(async () => {
  webhooks = await WebhookBoard.open({ OPERATORS: operator.id })
})
afterAll(() => webhooks.close())

/** Every delivery is signed, and has the stated id and shape. */
function expectSound(each: ReceivedRequest): void {
  const { name, eventId, timestamp, cursor } = each.body
  expect([each.verified, each.id, each.headers['content-type']]).toEqual([true, eventId, 'application/json'])
  expect(eventId).toMatch(/^evt_[0-9a-f]{32}$/)
  expect(new Date(timestamp).toISOString()).toBe(timestamp)
  expect(cursor).toMatch(/^[A-Za-z0-9_-]{20,512}$/)
  expect(isHookKind(name)).toBe(true)
  expect(deliveryErrors(name, each.body)).toEqual([])
}

test('a post is delivered to a webhook that answered its challenge, signed, with a cursor to go on from', async () => {
  const [owner, other] = [someone(), someone()]
  const { id } = await webhooks.createWebhook(owner, '/first')
  const challenges = webhooks.target.challenges.filter(({ path }) => path === '/first')
  expect(challenges.map(({ subscription }) => subscription)).toEqual([id])
  expect(deliveryErrors('verification', challenges[0]!.body)).toEqual([])
  const long = `${'é'.repeat(600)}`
  const event = await webhooks.post(other, { room: 'lobby', text: long })
  const [told] = (await webhooks.waitForDeliveries('/first', 1)) as [ReceivedRequest]
  expectSound(told)
  expect(told.subscription).toBe(id)
  const { address } = webhooks.board
  expect(told.body).toMatchObject({
    name: 'room.post',
    data: {
      event_id: event,
      room: 'lobby',
      page: 'main',
      author: { id: other.id },
      excerpt: 'é'.repeat(500),
      excerpt_is_untrusted: true,
      links: {
        web: `${address}/e/${event}`,
        api: `${address}/api/events/${event}`,
        proof: `${address}/e/${event}/proof`,
      },
    },
  })
  const found = await webhooks.client.get(new URL(`${address}/api/events/${event}`).pathname)
  expect(found.status).toBe(200)
})

test('replies, mentions, documents, items and heads reach whom they are for, each as requested', async () => {
  const [owner, other] = [someone(), someone()]
  await webhooks.run(owner, { operation: 'identity.register', handle: `owner-${people}` })
  const handle = `owner-${people}`
  const mine = await webhooks.post(owner, { room: 'lobby', text: 'mine' })
  await webhooks.createWebhook(owner, '/kinds', {
    kinds: ['reply', 'mention', 'document.written', 'receiver.item'],
    room: 'lobby',
  })
  await webhooks.createWebhook(owner, '/inbox', { kinds: ['inbox.item'], room: undefined })
  await webhooks.createWebhook(owner, '/heads', { kinds: ['log.checkpoint'], room: undefined })
  const reply = await webhooks.post(other, { reply_to: mine, text: 'a reply' })
  const named = await webhooks.post(other, { room: 'lobby', text: `hello @${handle}` })
  const both = await webhooks.post(other, { reply_to: mine, text: `reply to @${handle}` })
  const addressed = await webhooks.post(other, { room: 'lobby', text: 'to you', to: owner.id })
  await webhooks.post(other, { room: 'lobby', text: 'to nobody' })
  const doc = { operation: 'docs.create', room: 'lobby', text: '# Plan\n', data: '{"schema":1,"title":"Plan"}' }
  await webhooks.run(other, doc)
  const { receiver } = (await webhooks.run(owner, { operation: 'receiver.create', data: '{"schema":1}' }))
    .data as unknown as { receiver: { id: string; url: string } }
  await fetch(`${webhooks.board.address}${receiver.url}`, { method: 'POST', body: 'an item' })
  const told = await webhooks.waitForDeliveries('/kinds', 7)
  for (const each of told) expectSound(each)
  const shown = told.map(({ body: { name, data } }) => `${name} ${data.event_id ?? data.title ?? data.receiver_id}`)
  expect(shown.sort()).toEqual(
    [
      `reply ${reply}`,
      `mention ${named}`,
      `reply ${both}`,
      `mention ${both}`,
      `mention ${addressed}`,
      'document.written Plan',
      `receiver.item ${receiver.id}`,
    ].sort(),
  )
  const inbox = await webhooks.waitForDeliveries('/inbox', 4)
  for (const each of inbox) expectSound(each)
  expect(inbox.map(({ body: { data } }) => [data.event_id, data.type])).toEqual([
    [reply, 'reply'],
    [named, 'mention'],
    [both, 'reply'],
    [addressed, 'addressed'],
  ])
  const [head] = (await webhooks.waitForDeliveries('/heads', 1)) as [ReceivedRequest]
  expectSound(head)
  expect(head.body.data.checkpoint).toContain(`\n${head.body.data.tree_size}\n`)
})

test('each version of a document is delivered as what was written, though newer ones exist, also after a restart', async () => {
  const [owner, ada, ben] = [someone(), someone(), someone()]
  await webhooks.run(owner, { operation: 'room.create', room: 'versions' })
  await webhooks.run(owner, { operation: 'room.create', room: 'versions-private', visibility: 'private' })
  for (const target of [ada.id, ben.id])
    for (const room of ['versions', 'versions-private'])
      await webhooks.run(owner, { operation: 'room.member.add', room, target })
  const rooms = ['versions', 'versions-private']
  for (const room of rooms) {
    const { id } = await webhooks.createWebhook(owner, `/${room}`, { kinds: ['document.written'], room })
    webhooks.target.responders.set(`/${room}`, respondWith(500))
    const fields = { operation: 'docs.create', room, text: 'one', data: '{"schema":1,"title":"First"}' }
    const { doc } = (await webhooks.run(ada, fields)).data as unknown as { doc: { id: string } }
    const write = (who: typeof ada, text: string, base_version: number, title: string) =>
      webhooks.run(who, {
        operation: 'docs.write',
        target: doc.id,
        text,
        data: JSON.stringify({ schema: 1, base_version, title }),
      })
    await write(ben, 'two', 1, 'Second')
    await write(ada, 'three', 2, 'Third')
    await webhooks.waitUntilListed(owner, (each) => each.id !== id || !each.delivery.active)
  }
  await webhooks.restart((board) => board.stop())
  for (const { id, url } of (await webhooks.list(owner)) as unknown as { id: string; url: string }[]) {
    const path = new URL(url).pathname
    webhooks.target.responders.delete(path)
    await webhooks.run(owner, { operation: 'webhook.redeliver', target: id })
  }
  for (const room of rooms) {
    const last = ({ body }: ReceivedRequest) => body.data.version === 3
    await webhooks.target.waitUntil(() => webhooks.target.receivedAt(`/${room}`).some(last))
    const told = webhooks.target.receivedAt(`/${room}`)
    for (const each of told) expectSound(each)
    const byEvent = new Map(told.map((each) => [each.id, each.body.data]))
    expect(
      [...byEvent.values()].map(({ version, title, excerpt, author }) => [version, title, excerpt, author]),
    ).toEqual([
      [1, 'First', 'one', { id: ada.id }],
      [2, 'Second', 'two', { id: ben.id }],
      [3, 'Third', 'three', { id: ada.id }],
    ])
  }
})

test('every work is delivered when it opens, and whenever its state changes, and the page of webhooks says so', async () => {
  expect((await webhooks.client.get('/account/webhooks')).text).toContain('Changes of every work')
  // No party to any of the works.
  const owner = someone()
  await webhooks.createWebhook(owner, '/works', { kinds: ['work.open', 'work.update'], room: undefined })
  const world = new World(webhooks.client, operator)
  const { work: open, requester } = await workAt(world, 'open')
  const opened = ({ body }: ReceivedRequest) => body.name === 'work.open' && body.data.work_id === open
  await webhooks.target.waitUntil(() => webhooks.target.receivedAt('/works').some(opened))
  expect(webhooks.target.receivedAt('/works').find(opened)!.body.data).toMatchObject({
    state: 'open',
    author: { id: requester.id },
    title: 'Three reports',
    reward: 100,
    excerpt: 'Find three reports.',
  })
  const { work } = await workAt(world, 'submitted')
  const states = () =>
    webhooks.target
      .receivedAt('/works')
      .filter(({ body: { name, data } }) => name === 'work.update' && data.work_id === work)
      .map(({ body }) => body.data.state)
  await webhooks.target.waitUntil(() => states().length === 3)
  expect(states()).toEqual(['open', 'claimed', 'submitted'])
  for (const each of webhooks.target.receivedAt('/works')) expectSound(each)
})

test('nothing is delivered for a suspended identity, until the suspension ends', async () => {
  const [owner, other] = [someone(), someone()]
  // A separate room: notices of the works above may still be in flight to the lobby.
  await webhooks.run(other, { operation: 'room.create', room: 'calm' })
  for (const [who, path] of [
    [owner, '/suspended'],
    [other, '/beside'],
  ] as const)
    await webhooks.createWebhook(who, path, { kinds: ['room.post'], room: 'calm' })
  await webhooks.run(operator, { operation: 'identity.suspend', target: owner.id, reason: 'x' })
  await webhooks.post(other, { room: 'calm', text: 'meanwhile' })
  await webhooks.waitForDeliveries('/beside', 1)
  expect(webhooks.target.receivedAt('/suspended')).toEqual([])
  await webhooks.run(operator, { operation: 'identity.unsuspend', target: owner.id, reason: 'x' })
  expect((await webhooks.waitForDeliveries('/suspended', 1)).map(textOf)).toEqual(['meanwhile'])
})

test('posts of a private room are delivered to a member as long as they are one, and to nobody else', async () => {
  const [owner, member, stranger] = [someone(), someone(), someone()]
  const room = `inner-${people}`
  await webhooks.run(owner, { operation: 'room.create', room, visibility: 'private', members: [member.id] })
  const refused = await webhooks.requestWebhook(stranger, '/stranger', { room })
  expect([refused.status, refused.code]).toEqual([403, 'private_room'])
  await webhooks.createWebhook(member, '/member', { kinds: ['room.post'], room })
  await webhooks.createWebhook(member, '/spoken', { kinds: ['mention', 'inbox.item'], room: undefined })
  await webhooks.createWebhook(stranger, '/outside', { kinds: ['mention', 'inbox.item'], room: undefined })
  await webhooks.post(owner, { room, text: 'between us', to: member.id })
  const [told] = (await webhooks.waitForDeliveries('/member', 1)) as [ReceivedRequest]
  expectSound(told)
  expect(told.body.data).toMatchObject({
    room,
    excerpt: 'between us',
    links: { api: `${webhooks.board.address}/v1/command` },
  })
  expect((await webhooks.waitForDeliveries('/spoken', 2)).map(({ body }) => body.name)).toEqual([
    'mention',
    'inbox.item',
  ])
  // Deliveries still pending when the member is removed are not sent.
  webhooks.target.responders.set('/member', respondWith(500))
  await webhooks.post(owner, { room, text: 'waits' })
  await webhooks.waitUntilListed(member, ({ kinds, delivery }) => !kinds.includes('room.post') || !delivery.active)
  await webhooks.run(owner, { operation: 'room.member.remove', room, target: member.id })
  webhooks.target.responders.delete('/member')
  const before = webhooks.target.receivedAt('/member').length
  await webhooks.post(owner, { room, text: 'not for him', to: member.id })
  await webhooks.run(member, { operation: 'webhook.redeliver', target: (await webhooks.list(member))[0]!.id })
  const isRevoked = (each: { last_error?: string }) => each.last_error === 'access_revoked'
  await webhooks.waitUntilListed(member, ({ kinds, delivery }) => !kinds.includes('room.post') || isRevoked(delivery))
  const [webhook] = await webhooks.list(member)
  expect(webhook!.delivery).toMatchObject({ active: false, last_error: 'access_revoked' })
  await webhooks.post(owner, { room: 'lobby', text: 'public', to: member.id })
  await webhooks.target.waitUntil(() => webhooks.target.receivedAt('/spoken').some((each) => textOf(each) === 'public'))
  expect(webhooks.target.receivedAt('/member')).toHaveLength(before)
  expect(webhooks.target.received.filter((each) => textOf(each) === 'not for him')).toEqual([])
  expect(webhooks.target.receivedAt('/outside')).toEqual([])
})

test.each([
  ['in the shard of the market', true],
  ['in another shard', false],
])('a work of a private room %s is delivered to members of the room, and to nobody else', async (where, isThere) => {
  const [member, stranger] = [someone(), someone()]
  const world = new World(webhooks.client, operator)
  const requester = await world.personWithCredits()
  const names = Array.from({ length: 20 }, (_, n) => `works-inside-${n}`)
  const room = names.find((name) => (shardOf(name, 2) === shardOf(marketName, 2)) === isThere)!
  const [inside, outside] = ['member', 'stranger'].map((who) => `/works-${who}-${where[3]}`)
  await webhooks.run(requester, { operation: 'room.create', room, visibility: 'private', members: [member.id] })
  const kinds = ['work.open', 'work.update']
  await webhooks.createWebhook(member, inside!, { kinds, room: undefined })
  await webhooks.createWebhook(stranger, outside!, { kinds, room: undefined })
  const data = JSON.stringify({ schema: 1, title: 'A secret report' })
  const asked = { operation: 'work.create', room, text: 'Find a secret.', amount: 10, data }
  const { id } = (await world.run(requester, asked)).work as { id: string }
  const own = ({ body }: ReceivedRequest) => body.data.room === room
  await webhooks.target.waitUntil(() => webhooks.target.receivedAt(inside!).filter(own).length === 2)
  const told = webhooks.target.receivedAt(inside!).filter(own)
  for (const each of told) expectSound(each)
  expect(told.map(({ body }) => [body.name, body.data.work_id, body.data.title, body.data.excerpt])).toEqual([
    ['work.open', id, 'A secret report', 'Find a secret.'],
    ['work.update', id, 'A secret report', 'Find a secret.'],
  ])
  // The next work comes after everything that would have come before it.
  const { work: next } = await workAt(world, 'open')
  const isNext = ({ body }: ReceivedRequest) => body.data.work_id === next
  await webhooks.target.waitUntil(() => webhooks.target.receivedAt(outside!).some(isNext))
  expect(webhooks.target.receivedAt(outside!).filter(own)).toEqual([])
})

test('a text redacted while its target was away is not sent any more; the order of the rest stays', async () => {
  const [owner, other] = [someone(), someone()]
  const { id } = await webhooks.createWebhook(owner, '/away', { kinds: ['room.post'], room: 'lobby' })
  webhooks.target.responders.set('/away', respondWith(503))
  const first = await webhooks.post(other, { room: 'lobby', text: 'taken back' })
  for (const text of ['second', 'third']) await webhooks.post(other, { room: 'lobby', text })
  await webhooks.waitUntilListed(owner, ({ delivery }) => !delivery.active)
  const [waiting] = await webhooks.deliveries(owner, id)
  expect(waiting).toMatchObject({ state: 'waiting', attempts: 6, status: 503, error: 'http_5xx' })
  const tried = webhooks.target.receivedAt('/away')
  expect(new Set(tried.map((each) => each.id)).size).toBe(1)
  await webhooks.run(other, { operation: 'event.redact', event_id: first, reason: 'a mistake' })
  webhooks.target.responders.delete('/away')
  await webhooks.run(owner, { operation: 'webhook.redeliver', target: id })
  await webhooks.target.waitUntil(() => webhooks.target.receivedAt('/away').some((each) => textOf(each) === 'third'))
  expect(webhooks.target.receivedAt('/away').slice(tried.length).map(textOf)).toEqual(['second', 'third'])
  await webhooks.waitUntilListed(owner, ({ delivery }) => delivery.active && delivery.waiting === 0)
  const states = async () => (await webhooks.deliveries(owner, id)).map(({ state }) => state)
  expect(await states()).toEqual(['delivered', 'delivered', 'skipped'])
  await webhooks.restart((board) => board.kill())
  expect(await states()).toEqual(['delivered', 'delivered', 'skipped'])
})

test('a target that fails is retried under the same id, with a new time and signature', async () => {
  const [owner, other] = [someone(), someone()]
  const { id } = await webhooks.createWebhook(owner, '/twice')
  let failures = 3
  webhooks.target.responders.set('/twice', (_arrived, response) => response.writeHead(--failures < 0 ? 204 : 500).end())
  const event = await webhooks.post(other, { room: 'lobby', text: 'again' })
  await webhooks.post(other, { room: 'lobby', text: 'behind it' })
  const told = await webhooks.waitForDeliveries('/twice', 5)
  for (const each of told) expectSound(each)
  expect(told.map(textOf)).toEqual(['again', 'again', 'again', 'again', 'behind it'])
  expect(new Set(told.slice(0, 4).map((each) => each.id)).size).toBe(1)
  await webhooks.waitUntilListed(owner, ({ delivery }) => delivery.waiting === 0)
  const deliveries = await webhooks.deliveries(owner, id)
  expect(deliveries.map(({ state, attempts }) => [state, attempts])).toEqual([
    ['delivered', 1],
    ['delivered', 4],
  ])
  // Once more, because its owner requests it: the same id, whatever happened since.
  const data = JSON.stringify({ schema: 1, event: deliveries[1]!.event })
  const asked = await webhooks.run(owner, { operation: 'webhook.redeliver', target: id, data })
  expect(asked.data).toMatchObject({ webhook: { id, redelivers: deliveries[1]!.event } })
  const [, , , , , again] = await webhooks.waitForDeliveries('/twice', 6)
  expect([again!.id, again!.body.data.event_id]).toEqual([deliveries[1]!.event, event])
  const unknown = JSON.stringify({ schema: 1, event: `evt_${'0'.repeat(32)}` })
  const refused = await webhooks.client.command(owner, { operation: 'webhook.redeliver', target: id, data: unknown })
  expect([refused.code, refused.field]).toEqual(['not_found', 'data.event'])
})

test('410 suspends a webhook until it is resumed, 413 gives one event up, a redirect is a failure', async () => {
  const [owner, other] = [someone(), someone()]
  const { id } = await webhooks.createWebhook(owner, '/gone')
  webhooks.target.responders.set('/gone', respondWith(410))
  await webhooks.post(other, { room: 'lobby', text: 'gone' })
  await webhooks.waitUntilListed(owner, ({ delivery }) => !delivery.active)
  webhooks.target.responders.set('/gone', respondWith(413))
  await webhooks.post(other, { room: 'lobby', text: 'too large' })
  await webhooks.run(owner, { operation: 'webhook.redeliver', target: id })
  await webhooks.waitForDeliveries('/gone', 2)
  webhooks.target.responders.set('/gone', respondWith(302, { location: webhooks.target.url('/elsewhere') }))
  await webhooks.post(other, { room: 'lobby', text: 'redirected' })
  await webhooks.waitUntilListed(owner, ({ delivery }) => !delivery.active)
  expect(webhooks.target.receivedAt('/gone').map(textOf).slice(0, 2)).toEqual(['gone', 'too large'])
  expect(webhooks.target.receivedAt('/elsewhere')).toEqual([])
  const deliveries = await webhooks.deliveries(owner, id)
  expect(deliveries.map(({ state, status: code }) => [state, code])).toEqual([
    ['waiting', 302],
    ['given_up', 413],
    ['given_up', 410],
  ])
})

test('a resumed webhook continues, though the board is killed at that moment', async () => {
  const [owner, other] = [someone(), someone()]
  const { id } = await webhooks.createWebhook(owner, '/woken')
  webhooks.target.responders.set('/woken', respondWith(410))
  await webhooks.post(other, { room: 'lobby', text: 'given up' })
  await webhooks.waitUntilListed(owner, ({ delivery }) => !delivery.active)
  await webhooks.post(other, { room: 'lobby', text: 'waiting' })
  await webhooks.restart((board) => board.stop())
  webhooks.target.responders.delete('/woken')
  await webhooks.run(owner, { operation: 'webhook.redeliver', target: id })
  await webhooks.restart((board) => board.kill())
  expect((await webhooks.waitForDeliveries('/woken', 2)).map(textOf).slice(0, 2)).toEqual(['given up', 'waiting'])
  expect(await webhooks.list(owner)).toMatchObject([{ delivery: { active: true } }])
})

test('nothing is delivered to an address that does not answer its challenge correctly', async () => {
  const owner = someone()
  webhooks.target.challengeResponders.set('/wrong', (_arrived, response) =>
    response.end('{"challenge":"something else"}'),
  )
  webhooks.target.challengeResponders.set('/empty', (_arrived, response) => response.end())
  webhooks.target.challengeResponders.set('/moved', respondWith(307, { location: webhooks.target.url('/first') }))
  webhooks.target.challengeResponders.set('/down', respondWith(500))
  webhooks.target.challengeResponders.set('/broken', (_arrived, response) => response.destroy())
  for (const [path, why] of [
    ['/wrong', 'challenge_failed'],
    ['/empty', 'challenge_failed'],
    ['/moved', 'http_3xx'],
    ['/down', 'http_5xx'],
    ['/broken', 'connection_lost'],
  ]) {
    const answer = await webhooks.requestWebhook(owner, path!)
    expect([answer.status, answer.code]).toEqual([400, 'wrong_state'])
    expect(answer.text).toContain(why)
  }
  for (const url of [
    'http://192.168.1.1/',
    'http://10.0.0.1:8080/in',
    'https://user:secret@hooks.example.org/',
    'https://hooks.example.org/#part',
    'ftp://127.0.0.1/',
    'https://hooks.example.org:22/',
    'nothing at all',
  ]) {
    const answer = await webhooks.requestWebhook(owner, '', { url })
    expect([url, answer.status, answer.code, answer.field]).toEqual([url, 400, 'invalid_field', 'data.url'])
  }
  for (const data of [
    { kinds: ['room.post'], room: undefined },
    { kinds: ['mention'], room: 'lobby' },
    { kinds: ['room.post', 'room.post'] },
    { kinds: [] },
    { kinds: ['room.posts'] },
  ]) {
    const answer = await webhooks.requestWebhook(owner, '/first', data)
    expect([data, answer.status, answer.code]).toEqual([data, 400, 'invalid_field'])
  }
  expect(await webhooks.list(owner)).toEqual([])
  for (const path of ['/wrong', '/empty', '/moved', '/down']) expect(webhooks.target.receivedAt(path)).toEqual([])
})

test('webhooks belong to their owner: listed in pages, deleted permanently, and nothing is sent after that', async () => {
  const [owner, other] = [someone(), someone()]
  const made = []
  for (let n = 0; n < 3; n++) made.push(await webhooks.createWebhook(owner, `/own-${n}`))
  const challenged = webhooks.target.challenges.filter(({ path }) => path === '/own-0').length
  await webhooks.createWebhook(owner, '/own-0', { kinds: ['mention'], room: undefined })
  // An address that has answered gets no other challenge for a day.
  expect(webhooks.target.challenges.filter(({ path }) => path === '/own-0')).toHaveLength(challenged)
  const first = await webhooks.run(owner, { operation: 'webhook.list', limit: 2 })
  const page = first.data as unknown as { webhooks: { id: string; secret?: string }[]; next_cursor: string }
  expect(page.webhooks.map(({ id }) => id)).toEqual([made[0]!.id, made[1]!.id])
  expect(first.text).not.toContain('whsec_')
  const second = await webhooks.run(owner, { operation: 'webhook.list', limit: 2, cursor: page.next_cursor })
  expect((second.data as unknown as typeof page).webhooks).toHaveLength(2)
  const foreign = await webhooks.client.command(other, { operation: 'webhook.list', cursor: page.next_cursor })
  expect([foreign.code, foreign.field]).toEqual(['invalid_field', 'cursor'])
  expect(await webhooks.list(other)).toEqual([])
  for (const operation of ['webhook.deliveries', 'webhook.delete', 'webhook.redeliver']) {
    const refused = await webhooks.client.command(other, { operation, target: made[0]!.id })
    expect([operation, refused.code]).toEqual([operation, 'not_found'])
  }
  await webhooks.run(owner, { operation: 'webhook.delete', target: made[0]!.id })
  await webhooks.post(other, { room: 'lobby', text: 'after' })
  await webhooks.waitForDeliveries('/own-1', 1)
  expect(webhooks.target.receivedAt('/own-0')).toEqual([])
})

test('a retry of webhook.create returns the same webhook, and its secret is shown once', async () => {
  const owner = someone()
  const data = JSON.stringify({ schema: 1, url: webhooks.target.url('/retried'), kinds: ['mention'] })
  const { body } = webhooks.client.sign(owner, { operation: 'webhook.create', data })
  const first = await webhooks.client.send(body)
  webhooks.target.challengeResponders.set('/retried', respondWith(500))
  const again = await webhooks.client.send(body)
  const shown = (answer: typeof first) => (answer.data as unknown as { webhook: Record<string, unknown> }).webhook
  expect([first.status, again.status]).toEqual([200, 200])
  expect(shown(first).secret).toMatch(/^whsec_/)
  expect(shown(again)).toEqual({ ...shown(first), secret: undefined, secret_shown: true })
  expect(await webhooks.list(owner)).toHaveLength(1)
})

test('a rotated webhook signs with both secrets for a day, resumes, and shows the new one once', async () => {
  const [owner, other] = [someone(), someone()]
  const made = await webhooks.createWebhook(owner, '/rotated')
  await webhooks.post(other, { room: 'lobby', text: 'before' })
  await webhooks.waitForDeliveries('/rotated', 1)
  const command = webhooks.client.sign(owner, { operation: 'webhook.rotate', target: made.id })
  const [first, again] = [await webhooks.client.send(command.body), await webhooks.client.send(command.body)]
  const shown = (answer: typeof first) => (answer.data as unknown as { webhook: Record<string, unknown> }).webhook
  const { secret, previous_until: until } = shown(first) as { secret: string; previous_until: number }
  expect(secret).toMatch(/^whsec_/)
  expect(secret).not.toBe(made.secret)
  expect(until).toBeGreaterThanOrEqual(now() + 86_400 - 300)
  expect(shown(again)).toEqual({ id: made.id, secret_shown: true, previous_until: until })
  // What has only one of the secrets accepts each delivery.
  for (const [known, text] of [
    [made.secret, 'with the previous one'],
    [secret, 'with the new one'],
  ] as const) {
    webhooks.target.secrets.set('/rotated', known)
    await webhooks.post(other, { room: 'lobby', text })
    await webhooks.target.waitUntil(() => textOf(webhooks.target.receivedAt('/rotated').at(-1)!) === text)
    const { verified, headers } = webhooks.target.receivedAt('/rotated').at(-1)!
    expect([verified, String(headers['webhook-signature']).split(' ')]).toEqual([
      true,
      [expect.any(String), expect.any(String)],
    ])
  }
  // It holds after a restart, and no file has either secret.
  await webhooks.restart((board) => board.kill())
  await webhooks.post(other, { room: 'lobby', text: 'after a restart' })
  await webhooks.target.waitUntil(() => textOf(webhooks.target.receivedAt('/rotated').at(-1)!) === 'after a restart')
  expect(webhooks.target.receivedAt('/rotated').at(-1)).toMatchObject({ verified: true })
  expect((await webhooks.list(owner))[0]).toMatchObject({ id: made.id, delivery: { active: true } })
})

test('a webhook that a delegate has rotated ends with the delegation', async () => {
  const [owner, key] = [someone(), someone()]
  const { id } = await webhooks.createWebhook(owner, '/by-delegate')
  const delegation = await createDelegation(webhooks.client, owner, key, { scopes: ['events:subscribe', 'board:read'] })
  const rotated = await webhooks.run(key, { operation: 'webhook.rotate', target: id })
  const { secret } = (rotated.data as unknown as { webhook: { secret: string } }).webhook
  expect(secret).toMatch(/^whsec_/)
  expect((await webhooks.list(owner))[0]).toMatchObject({ id, expires_at: expect.any(Number) })
  await webhooks.run(owner, { operation: 'delegation.revoke', target: delegation })
  await vi.waitFor(async () => expect(await webhooks.list(owner)).toEqual([]), patience)
})

test('no other delegate gets a webhook out of the delegation that it ends with', async () => {
  const owner = someone()
  const [first, second] = [someone(), someone()]
  const { id } = await webhooks.createWebhook(owner, '/by-two-delegates')
  const scopes = ['events:subscribe', 'board:read']
  const delegation = await createDelegation(webhooks.client, owner, first, { scopes })
  await createDelegation(webhooks.client, owner, second, { scopes })
  await webhooks.run(first, { operation: 'webhook.rotate', target: id })
  const refused = await webhooks.client.command(second, { operation: 'webhook.rotate', target: id })
  expect(refused).toMatchObject({ status: 403, code: 'forbidden', field: 'target' })
  await webhooks.run(first, { operation: 'webhook.rotate', target: id })
  await webhooks.run(owner, { operation: 'webhook.rotate', target: id })
  await webhooks.run(owner, { operation: 'delegation.revoke', target: delegation })
  await vi.waitFor(async () => expect(await webhooks.list(owner)).toEqual([]), patience)
})

test('a delegate without board:read does not make a webhook of its owner deliver less', async () => {
  const [owner, key] = [someone(), someone()]
  const { id } = await webhooks.createWebhook(owner, '/by-public-delegate')
  await createDelegation(webhooks.client, owner, key, { scopes: ['events:subscribe'] })
  const refused = await webhooks.client.command(key, { operation: 'webhook.rotate', target: id })
  expect(refused).toMatchObject({ status: 403, code: 'forbidden', field: 'target' })
})

test('webhooks continue where they were after a stop and a kill, and a stopped board passes fsck', async () => {
  const [owner, other] = [someone(), someone()]
  const { id } = await webhooks.createWebhook(owner, '/lives')
  const said: string[] = []
  const say = async (count: number) => {
    for (let n = 0; n < count; n++) {
      said.push(`said ${said.length}`)
      await webhooks.post(other, { room: 'lobby', text: said.at(-1)! })
    }
  }
  const heard = () => [...new Map(webhooks.target.receivedAt('/lives').map((each) => [each.id, textOf(each)])).values()]
  await say(5)
  await webhooks.waitForDeliveries('/lives', 5)
  webhooks.target.responders.set('/lives', (_arrived, response) => response.destroy())
  await say(3)
  await webhooks.restart((board) => board.stop())
  webhooks.target.responders.delete('/lives')
  await webhooks.run(owner, { operation: 'webhook.redeliver', target: id })
  await say(3)
  await webhooks.restart((board) => board.kill())
  await say(3)
  await webhooks.target.waitUntil(() => heard().length === said.length)
  expect(heard()).toEqual(said)
  await webhooks.waitUntilListed(owner, ({ delivery }) => delivery.active && delivery.waiting === 0)
  await webhooks.restart(async (board) => {
    await board.stop()
    const checked = spawnSync(process.execPath, [program, 'fsck', '--data', board.directory], { encoding: 'utf8' })
    expect([checked.status, checked.stderr]).toEqual([0, ''])
  })
})
