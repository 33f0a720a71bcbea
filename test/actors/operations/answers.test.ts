/** A real board answers as the declarations say: every operation and every GET path, on both engines. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Operation } from '../../../actors/kernel/operation.ts'
import { operationByName, operations } from '../../../actors/operations.ts'
import { titleOf } from '../../../src/docs/command-shapes.ts'
import { signingBytes } from '../../../src/format/signing.ts'
import { type Board, boardDirectory, startBoard } from '../../support/board-process.ts'
import { type Answer, Client, newNonce, now, person } from '../../support/client.ts'
import { schemaErrors } from '../../support/json-schema.ts'
import { setups, World } from '../../support/operation-setups.ts'

const ada = person('ada')
const ben = person('ben')

/** A value that finds something, for each field and data key that a GET parameter stands for. */
const samples: Readonly<Record<string, string | number>> = {
  room: 'lobby',
  page: 'main',
  kind: 'note',
  target: ada.id,
  before: 100,
  limit: 2,
  query: 'a',
  'data.after': 0,
  'data.order': 'asc',
}

/** Queries of an operation's GET: with only what it needs, and with each further parameter. */
function queriesOf({ get, required }: Operation, values: typeof samples): URLSearchParams[] {
  const isNeeded = (field: string) => required.some((each) => each === field)
  const known = get!.query.filter(({ field }) => values[field] !== undefined)
  const least = known.filter(({ field }) => isNeeded(field))
  const more = known.filter(({ field }) => !isNeeded(field))
  return [[], ...more.map((each) => [each])].map((some) => {
    const query = new URLSearchParams(
      [...least, ...some].map(({ name, field }): [string, string] => [name, String(values[field])]),
    )
    // Both count inside a room.
    const takesRoom = get!.query.some(({ name }) => name === 'room')
    if (takesRoom && ['before', 'after', 'page'].some((name) => query.has(name))) query.set('room', 'lobby')
    return query
  })
}

describe.each(['uws', 'node'])('on %s', (engine) => {
  let board: Board
  let client: Client
  const answered = new Set<string>()

  beforeAll(async () => {
    // One identity writes most of it, as fast as the board answers, and each example brings its own identities.
    const limits = JSON.stringify({
      writes_per_identity_per_minute: 60_000,
      writes_per_identity_burst: 10_000,
      new_identities_per_network_burst: 1_000,
    })
    const env = {
      HTTP_ENGINE: engine,
      LIMITS: limits,
      BROADSIDE_LIMITS: 'on',
      OPERATORS: ada.id,
      BROADSIDE_LOOPBACK: '1',
    }
    board = await startBoard({ directory: boardDirectory(), env })
    client = await Client.of(board)
  }, 300_000)

  afterAll(async () => {
    client.close()
    await board.stop()
  })

  /** The `data` of a successful answer that has exactly the shape that the operation declares. */
  function dataOf(name: string, { status, text }: Answer) {
    const { ok, data, error } = JSON.parse(text) as Record<string, unknown>
    expect({ status, ok, error }).toEqual({ status: 200, ok: true, error: undefined })
    expect(schemaErrors(`${titleOf(operationByName.get(name)!.name)}Result`, data)).toEqual([])
    answered.add(operationByName.get(name)!.name)
    return data as Record<string, never>
  }

  /** Sends a refused command or read; returns its status and code if the refusal has the described shape. */
  function refusalOf({ status, text, headers }: Answer): string {
    const body = JSON.parse(text) as { error: { code: string; retry_after?: number } }
    expect(schemaErrors('Refusal', body)).toEqual([])
    expect(headers['retry-after']).toBe(body.error.retry_after?.toString())
    return `${status} ${body.error.code}`
  }

  const write = async (signer: typeof ada, fields: Parameters<Client['command']>[1]) =>
    dataOf(fields.operation, await client.command(signer, fields))
  const eventOf = async (signer: typeof ada, fields: Record<string, string>) =>
    String((await write(signer, { operation: 'post', ...fields })).event_id)
  const read = async (fields: Record<string, string | number>) =>
    dataOf(String(fields.operation), await client.send(JSON.stringify(fields)))

  test('writes answer what they created, first and when repeated', async () => {
    await write(ada, { operation: 'identity.register', handle: 'ada' })
    await write(ada, { operation: 'room.create', room: 'workshop', text: 'Tools.' })
    await write(ada, { operation: 'room.create', room: 'den', visibility: 'private', members: [ben.id] })
    const signed = client.sign(ada, { operation: 'post', text: 'first', data: '{"schema":1,"format":"markdown"}' })
    dataOf('post', await client.send(signed.body))
    expect(dataOf('post', await client.send(signed.body)).receipt).toMatchObject({ duplicate: true })
    await write(ben, { operation: 'post', text: 'second', reply_to: signed.eventId, to: ada.id, kind: 'request' })
    await write(ben, { operation: 'event.post', text: 'third', room: 'new-room', page: 'plans', handle: 'ada' })
    await write(ben, { operation: 'message.post', text: 'inside', room: 'den', ttl: 3600, request_id: 'r-1' })
  })

  test('reads answer the same shapes by command and by GET, for everybody and for members', async () => {
    const { events } = await read({ operation: 'events.list' })
    const [{ event_id: id }] = events as unknown as [{ event_id: string }]
    const head = await read({ operation: 'log.checkpoint' })
    const values: typeof samples = { ...samples, event_id: id, 'data.tree_size': Number(head.tree_size) }
    const practice = '{"schema":1,"title":"Practice","simulated":true}'
    const asked = { operation: 'work.create', room: 'lobby', text: 'practice', amount: 5, data: practice }
    const { id: work } = (await write(ada, asked)).work as unknown as { id: string }
    // A token is for private rooms only, and credits belong to an identity.
    for (const operation of operations
      .filter(({ kind, name }) => kind === 'read' && !['room.read_token', 'credit.history'].includes(name))
      .filter(({ required }) => !required.some((field) => field === 'target' || field === 'data'))) {
      const { name, required, get } = operation
      const about = name.startsWith('work.') ? work : id
      const fields = Object.fromEntries(required.map((field) => [field, field === 'event_id' ? about : values[field]!]))
      const target: Record<string, string> = /^identity\.(get|events)$/.test(name) ? { target: 'ada' } : {}
      if (operation.who.startsWith('anyone')) await read({ operation: name, ...fields, ...target })
      await write(ada, { operation: name, ...fields })
      if (get === undefined) continue
      const path = get.path.replace('{event_id}', about).replace('{target}', ada.id)
      const own: Record<string, typeof samples> = {
        'work.list': { kind: 'open' },
        'thread.get': { 'data.order': 'desc', 'data.start': 'event' },
        'threads.list': { 'data.order': 'top', 'data.window': 'day' },
      }
      const told = { ...values, ...own[name] }
      for (const query of queriesOf(operation, told)) dataOf(name, await client.get(`${path}?${query}`))
    }
    for (const room of ['den', 'lobby']) {
      await write(ben, { operation: 'room.get', room })
      await write(ben, { operation: 'room.pages', room })
      await write(ben, { operation: 'threads.list', room })
      const list = await write(ben, { operation: 'events.list', room, limit: 1, data: '{"schema":1,"order":"asc"}' })
      const [{ event_id }] = list.events as unknown as [{ event_id: string }]
      await write(ben, { operation: 'event.get', event_id })
      await write(ben, { operation: 'thread.get', event_id })
    }
  })

  test('rooms and moderation answer with their result, and with what a retry may show of it', async () => {
    const room = 'workshop'
    await write(ben, { operation: 'room.join', room })
    await write(ben, { operation: 'room.leave', room })
    for (const operation of ['room.member.add', 'room.moderator.add', 'room.moderator.remove', 'room.member.remove'])
      await write(ada, { operation, room, target: ben.id })
    const signed = client.sign(ada, { operation: 'room.invite.create', room, ttl: 60, target: ben.id })
    const { invite } = dataOf('room.invite.create', await client.send(signed.body))
    expect(dataOf('room.invite.create', await client.send(signed.body)).invite).toMatchObject({ secret_shown: true })
    const { code } = invite as unknown as { code: string }
    await write(ben, { operation: 'room.invite.accept', data: JSON.stringify({ schema: 1, code }) })
    await write(ada, { operation: 'room.policy.set', room, data: '{"write":"members","rules":"Be kind."}' })
    const { event_id } = await write(ben, { operation: 'post', room, text: 'to be reported' })
    const { report } = await write(ada, { operation: 'report', event_id: String(event_id), reason: 'a test' })
    const target = (report as unknown as { id: string }).id
    await write(ada, { operation: 'reports.list' })
    await write(ada, { operation: 'report.resolve', target, data: '{"schema":1,"action":"dismissed","note":"fine"}' })
    await write(ada, { operation: 'reports.list', kind: 'resolved' })
    await write(ada, { operation: 'room.hide', event_id: String(event_id), reason: 'a test' })
    for (const operation of ['room.get', 'room.members', 'room.policy.get', 'room.modlog'])
      await write(ben, { operation, room })
    for (const path of ['room', 'members', 'modlog']) {
      const name = path === 'room' ? 'room.get' : `room.${path}`
      dataOf(name, await client.get(`/api/${path}?room=${room}`))
    }
    await write(ada, { operation: 'room.owner.transfer', room, target: ben.id })
  })

  test('people and conversations answer with their new state', async () => {
    const profile = { schema: 1, description: 'Reads.', capabilities: ['reading'], links: ['https://example.com'] }
    await write(ben, { operation: 'identity.profile.set', data: JSON.stringify(profile) })
    await write(ada, { operation: 'identity.suspend', target: ben.id, reason: 'a test' })
    await read({ operation: 'identity.get', target: ben.id })
    await write(ada, { operation: 'identity.unsuspend', target: ben.id })
    const [dora, next] = [person('dora'), person('dora, later')]
    const command = { operation: 'identity.rotate', target: next.publicKey, timestamp: now(), nonce: newNonce() }
    const bytes = signingBytes(client.serviceId, { ...command, public_key: dora.publicKey })
    const [signature, proof] = [dora, next].map((key) => key.sign(bytes).toString('base64url'))
    const body = JSON.stringify({ ...command, public_key: dora.publicKey, signature, proof })
    for (let times = 0; times < 2; times++) dataOf('identity.rotate', await client.send(body))
    const signed = client.sign(next, { operation: 'conversation.open', members: [ben.id], text: 'May I?' })
    const opened = dataOf('conversation.open', await client.send(signed.body))
    expect(dataOf('conversation.open', await client.send(signed.body)).receipt).toMatchObject({ duplicate: true })
    const { room } = opened.conversation as unknown as { room: string }
    for (const operation of ['conversations.list', 'inbox.get', 'quota.get']) await write(ben, { operation })
    await write(ben, { operation: 'room.follow', room })
    await write(ben, { operation: 'room.follow', room: 'lobby' })
    await write(ben, { operation: 'thread.follow', event_id: await eventOf(ada, { room: 'lobby', text: 'followed' }) })
    await write(ben, { operation: 'identity.mute', target: person('somebody else').id })
    await write(ben, { operation: 'inbox.seen', data: '{"schema":1,"rooms":[{"room":"lobby","seen":1}],"inbox":1}' })
    await write(ada, { operation: 'post', room: 'lobby', text: 'new to ben' })
    for (const operation of ['inbox.get', 'follows.list', 'mutes.list']) await write(ben, { operation })
    await write(ben, { operation: 'room.unfollow', room })
    const { follows } = await write(ben, { operation: 'follows.list' })
    const [followed] = (follows as unknown as { thread?: string }[]).filter((each) => each.thread !== undefined)
    await write(ben, { operation: 'thread.unfollow', event_id: followed!.thread! })
    await write(ben, { operation: 'identity.unmute', target: person('somebody else').id })
    await write(ben, { operation: 'conversation.respond', room, data: '{"schema":1,"answer":"accept"}' })
    await write(ben, { operation: 'events.list', room, query: 'may' })
  })

  test('what followers read has its shape, for everybody and for members', async () => {
    const { cursor } = await read({ operation: 'updates.get' })
    const mine = await write(ben, { operation: 'updates.get' })
    const first = await write(ada, { operation: 'post', room: 'den', text: 'to follow' })
    await write(ada, { operation: 'post', text: 'to follow', reply_to: String(first.event_id), room: 'den' })
    await write(ada, { operation: 'post', room: 'lobby', text: 'to follow', to: ben.id })
    const heard = await write(ben, {
      operation: 'updates.get',
      cursor: String(mine.cursor),
      data: '{"schema":1,"wait":1}',
    })
    expect(heard.updates).toHaveLength(4)
    const seen = dataOf('updates.get', await client.get(`/api/updates?cursor=${cursor}&wait=1`))
    expect(seen.updates).toHaveLength(1)
    const edited = await write(ada, { operation: 'post', room: 'lobby', text: 'once' })
    const { after } = await read({ operation: 'changes.list', data: '{"schema":1,"after":-1}' })
    const data = JSON.stringify({ schema: 1, supersedes: edited.event_id })
    await write(ada, { operation: 'post', text: 'twice', data })
    const corrected = dataOf('changes.list', await client.get(`/api/changes?after=${after}`))
    expect(corrected.changes).toMatchObject([{ event_id: edited.event_id, events: [{}, {}] }])
    await write(ben, { operation: 'room.read_token', room: 'den', ttl: 60 })
  })

  test('an event has its shape in every state, with and without a text', async () => {
    const { event_id } = await write(ada, { operation: 'post', room: 'workshop', text: 'one', kind: 'request' })
    const id = String(event_id)
    await write(ada, { operation: 'post', text: 'two', data: JSON.stringify({ schema: 1, supersedes: id }) })
    await write(ben, { operation: 'vote', event_id: id, data: '{"value":1}' })
    await write(ben, { operation: 'event.history', event_id: id })
    dataOf('event.history', await client.get(`/api/history/${id}?limit=1`))
    await write(ada, { operation: 'room.hide', event_id: id, reason: 'a test' })
    await read({ operation: 'thread.get', event_id: id })
    await write(ada, { operation: 'room.restore', event_id: id, reason: 'a test' })
    const signed = client.sign(ada, { operation: 'event.redact', event_id: id, reason: 'a test' })
    dataOf('event.redact', await client.send(signed.body))
    expect(dataOf('event.redact', await client.send(signed.body)).receipt).toMatchObject({ duplicate: true })
    await read({ operation: 'event.history', event_id: id })
    await read({ operation: 'log.proof', event_id: signed.eventId })
  })

  test('a list continues after its cursor, and an expired text leaves a tombstone of the described shape', async () => {
    const first = await write(ada, { operation: 'post', room: 'brief', text: 'soon gone', ttl: 1 })
    await write(ada, { operation: 'post', room: 'brief', text: 'stays' })
    const again = async () => dataOf('event.get', await client.get(`/api/events/${first.event_id}`))
    let gone = await again()
    while ((gone.event as unknown as { type: string }).type === 'event') {
      await sleep(100)
      gone = await again()
    }
    expect(gone.event).toMatchObject({ type: 'tombstone', hidden: true, reason: 'expired' })
    const { event_id: last } = await write(ada, { operation: 'post', room: 'brief', text: 'stays too' })
    const page = await read({ operation: 'events.list', room: 'brief', limit: 1 })
    expect(page).toMatchObject({ has_more: true, events: [{ event_id: last }] })
    const next = await read({ operation: 'events.list', room: 'brief', limit: 1, cursor: String(page.next_cursor) })
    expect(next).toMatchObject({ has_more: false, events: [{ text: 'stays' }] })
    await read({ operation: 'log.proof', event_id: String(first.event_id) })
  })

  test('refusals have one shape, whatever refused', async () => {
    const post = { operation: 'post', text: 'x' } as const
    const send = async (fields: object | string) =>
      refusalOf(await client.send(typeof fields === 'string' ? fields : JSON.stringify(fields)))
    expect(await send('{')).toBe('400 invalid_json')
    expect(await send({})).toBe('400 missing_field')
    expect(await send({ operation: 'room.list' })).toBe('400 unknown_operation')
    expect(await send({ ...post, title: 'x' })).toBe('400 unknown_field')
    expect(await send({ ...post, visibility: 'public' })).toBe('400 unknown_field')
    expect(await send({ ...post, data: '{"schema":2}' })).toBe('400 invalid_field')
    expect(await send({ ...post, text: 'x'.repeat(32_769) })).toBe('400 too_large')
    expect(await send(post)).toBe('403 unsigned')
    const signed = JSON.parse(client.sign(ada, post).body) as Record<string, string>
    expect(await send({ ...signed, text: 'y' })).toBe('400 bad_signature')
    expect(await send({ ...signed, public_key: 'A'.repeat(43) })).toBe('400 bad_key')
    for (const name of ['public_key', 'signature', 'timestamp', 'nonce']) {
      expect(await send({ ...signed, [name]: undefined })).toBe('400 missing_field')
    }
    expect(refusalOf(await client.command(ada, post, { timestamp: 1 }))).toBe('400 stale_timestamp')
    expect(refusalOf(await client.command(person('cy'), { operation: 'room.get', room: 'den' }))).toBe(
      '403 private_room',
    )
    expect(refusalOf(await client.get('/api/pages?room=den'))).toBe('403 private_room')
    expect(refusalOf(await client.get('/api/pages?room=nowhere'))).toBe('400 not_found')
    expect(refusalOf(await client.get('/api/pages?room=lobby&limit=0'))).toBe('400 invalid_field')
    expect(refusalOf(await client.get('/api/events?sort=new'))).toBe('400 unknown_field')
    expect(refusalOf(await client.get(`/api/thread/${'0'.repeat(32)}`))).toBe('400 not_found')
  })

  test('the board’s own paths answer as described', async () => {
    const stats = JSON.parse((await client.get('/api/stats')).text) as { data: unknown }
    expect(schemaErrors('Stats', stats.data)).toEqual([])
    const { tools, checkpoint_at } = (stats.data as { stats: Readonly<Record<string, number>> }).stats
    expect(tools).toBe(0)
    expect(Math.abs(checkpoint_at! - Date.now() / 1000)).toBeLessThan(3_600)
    const description = await client.get('/openapi.json')
    expect(JSON.parse(description.text)).toMatchObject({ openapi: '3.1.0', servers: [{ url: board.address }] })
    expect((await client.get('/healthz')).text).toBe('ok\n')
    expect((await client.get('/metrics')).text).toMatch(/^broadside_events \d+$/m)
    const lines = (await client.get('/v1/export')).text.trimEnd().split('\n')
    const exported = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(exported.at(-1)).toMatchObject({ type: 'end', checkpoint: expect.any(String) })
    const events = exported.filter(({ type }) => type === 'event')
    expect(events.length).toBeGreaterThan(2)
    for (const { command_sha256, archive_eligible, log, ...event } of events) {
      const { origin, ...place } = log as Record<string, unknown>
      expect({ command_sha256, archive_eligible, origin }).toEqual({
        command_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        archive_eligible: true,
        origin: expect.any(String),
      })
      expect(schemaErrors('Event', { ...event, log: place })).toEqual([])
    }
  })

  test('a tail returns events of the described shape', async () => {
    const ending = new AbortController()
    const response = await fetch(`${board.address}/tail/lobby?last=1`, {
      headers: { accept: 'text/event-stream' },
      signal: ending.signal,
    })
    let text = ''
    for await (const chunk of response.body!) {
      text += Buffer.from(chunk).toString('utf8')
      if (/^data: .*\n\n/m.test(text)) break
    }
    ending.abort()
    expect(schemaErrors('Event', JSON.parse(/^data: (.*)$/m.exec(text)![1]!))).toEqual([])
  })

  test('every other operation answers its example', { timeout: 300_000 }, async () => {
    const world = new World(client, ada)
    for (const operation of operations.filter(({ name }) => !answered.has(name)))
      dataOf(operation.name, await world.send(operation, await setups[operation.name]!(world)))
  })

  test('a client over its limit is told how long to wait', async () => {
    const told = new Set<string>()
    for (let count = 0; count < 70; count++) {
      const answer = await client.send('{"operation":"log.checkpoint"}')
      if (answer.status !== 200) told.add(refusalOf(answer))
    }
    expect([...told]).toEqual(['429 rate_limited'])
  })

  test('no operation was left out', () => {
    expect([...answered].sort()).toEqual(operations.map(({ name }) => name).sort())
  })
})
