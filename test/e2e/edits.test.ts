/** Edits: a post with `data.supersedes` is a new version of an event, shown at that event's place. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { faultsBy100 } from '../fixtures/rules-1-0-0.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, type EventJson, person, walkPages } from '../support/client.ts'
import { CachingVerifier } from '../support/line-mutations.ts'
import { logKeyOf, proveEvent } from '../support/log-checks.ts'
import { patience } from '../support/patience.ts'
import { StreamReader, sseIds } from '../support/stream-reader.ts'
import { fetchUpdates } from '../support/updates.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Versioned = EventJson & {
  readonly version_id?: string
  readonly versions?: number
  readonly edited_at?: number
  readonly supersedes?: string
  readonly superseded_by?: string
  readonly format?: string
  readonly actual_kind?: string
}

const [ada, ben] = [person('ada'), person('ben')]
let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
})
afterAll(() => client.close())

const dataOf = (supersedes: string, more: object = {}) => JSON.stringify({ schema: 1, supersedes, ...more })
const edit = (supersedes: string, text: string, fields: Record<string, string | number> = {}, signer = ada) =>
  client.post(signer, { text, data: dataOf(supersedes), ...fields })

async function made(answer: Promise<Answer>): Promise<Versioned> {
  const { status, text, data } = await answer
  expect([status, text]).toEqual([200, expect.any(String)])
  return data.event as Versioned
}

async function eventOf(id: string): Promise<Versioned> {
  return (await client.get(`/api/events/${id}`)).data.event as Versioned
}

async function versionsOf(id: string): Promise<Versioned[]> {
  const answers = await walkPages(client, `/api/history/${id}?limit=2`)
  return answers.flatMap(({ data }) => data.events as Versioned[])
}

test('an edit has its own id, seq, leaf and proof, and its event is shown with the newest text', async () => {
  const sent = client.sign(ada, { operation: 'post', room: 'drafts', page: 'one', text: 'first' })
  const first = await made(client.send(sent.body))
  const other = await made(client.post(ben, { room: 'drafts', page: 'one', text: 'another' }))
  const second = await made(
    edit(first.event_id, '**second**', { data: dataOf(first.event_id, { format: 'markdown' }) }),
  )
  expect(second).toMatchObject({
    room: 'drafts',
    page: 'one',
    seq: 3,
    text: '**second**',
    supersedes: first.event_id,
    thread: first.event_id,
    format: 'markdown',
  })
  const third = await made(edit(second.event_id, 'third'))
  expect(third).toMatchObject({ seq: 4, supersedes: first.event_id })

  const shown = await eventOf(first.event_id)
  expect(shown).toMatchObject({
    event_id: first.event_id,
    seq: 1,
    created_at: first.created_at,
    text: 'third',
    version_id: third.event_id,
    versions: 3,
    edited_at: third.created_at,
    log: third.log,
  })
  const again = await client.send(sent.body)
  expect(again.data.receipt).toMatchObject({ duplicate: true, log_index: first.log.index })
  expect(shown).not.toHaveProperty('supersedes')
  expect(await eventOf(second.event_id)).toMatchObject({
    text: '**second**',
    supersedes: first.event_id,
    superseded_by: third.event_id,
  })
  const versions = await versionsOf(second.event_id)
  expect(versions.map(({ event_id, text, superseded_by }) => [event_id, text, superseded_by])).toEqual([
    [first.event_id, 'first', second.event_id],
    [second.event_id, '**second**', third.event_id],
    [third.event_id, 'third', undefined],
  ])
  const key = await logKeyOf(client)
  for (const { event_id } of versions) await proveEvent(client, key, event_id)
  const proof = async (id: string) => (await client.get(`/api/log/proof?message=${id}`)).data
  expect((await proof(first.event_id)).leaf_index).toBe(first.log.index)
  const { signed_payload: payload } = await eventOf(first.event_id)
  const entry = Buffer.from((await proof(third.event_id)).entry!, 'base64').toString()
  expect(entry).toContain(createHash('sha256').update(payload!).digest('hex'))

  const list = await client.get('/api/events?room=drafts&order=asc')
  expect(list.data.events).toMatchObject([
    { event_id: first.event_id, text: 'third', version_id: third.event_id },
    { event_id: other.event_id, text: 'another' },
  ])
  expect(list.data.events?.[1]).not.toHaveProperty('version_id')
})

test('an edit keeps the format of the previous version unless it names another', async () => {
  const data = JSON.stringify({ schema: 1, format: 'markdown' })
  const first = await made(client.post(ada, { room: 'formats', page: 'side', text: '**first**', data }))
  const second = await made(edit(first.event_id, '**second**'))
  const third = await made(edit(first.event_id, '**third**'))
  expect([second.format, third.format]).toEqual(['markdown', 'markdown'])
  expect((await eventOf(first.event_id)).format).toBe('markdown')
  expect((await client.get(`/e/${first.event_id}`)).text).toContain('<strong>third</strong>')
  const plain = await made(edit(first.event_id, '**plain**', { data: dataOf(first.event_id, { format: 'text' }) }))
  const last = await made(edit(first.event_id, '**last**'))
  expect([plain.format, last.format]).toEqual(['text', 'text'])
  expect((await versionsOf(first.event_id)).map(({ format }) => format)).toEqual([
    'markdown',
    'markdown',
    'markdown',
    'text',
    'text',
  ])
  const work = await client.post(ada, { room: 'formats', kind: 'request', text: '*do*', data })
  const { event_id } = work.data.event!
  const asked = { event_id, amount: 1, data: '{"schema":1,"title":"Do it","simulated":true}' }
  expect(await client.command(ada, { operation: 'work.create', ...asked })).toMatchObject({ status: 200 })
  expect(await client.command(ada, { operation: 'work.edit', event_id, text: '*do that*' })).toMatchObject({
    status: 200,
  })
  expect(await eventOf(event_id)).toMatchObject({ text: '*do that*', format: 'markdown' })
  const exported = (await client.get('/v1/export')).text.trimEnd().split('\n')
  const lines = exported.map((line) => JSON.parse(line) as Record<string, unknown>)
  const many = new CachingVerifier(await logKeyOf(client))
  expect(await many.verify(lines)).toMatchObject({ first: undefined, isSignedByLog: true })
  // Once as it was signed, so that a verifier that knows nothing of inherited formats accepts it, and once as it is shown.
  const at = lines.findIndex(({ event_id }) => event_id === second.event_id)
  expect(lines[at]).toMatchObject({ format: 'text', actual_format: 'markdown' })
  for (const changed of [{ format: 'markdown' }, { actual_format: 'text' }])
    expect((await many.verify(lines.with(at, { ...lines[at], ...changed }))).failures).toBe(1)
  const root = lines.findIndex(({ event_id }) => event_id === first.event_id)
  for (const changed of [{ actual_format: 'markdown' }, { actual_page: 'main' }])
    expect((await many.verify(lines.with(root, { ...lines[root], ...changed }))).failures).toBe(1)
})

test('an edit keeps the kind of its original, wherever it is shown', async () => {
  const first = await made(client.post(ada, { room: 'kinds', kind: 'request', text: 'first' }))
  const id = first.event_id
  const rooms = ['kinds']
  const { cursor } = await fetchUpdates(client, { rooms })
  const second = await made(edit(id, 'second'))
  const third = await made(edit(id, 'third', { kind: 'request' }))
  expect([second.kind, third.kind]).toEqual(['request', 'request'])
  const refused = await edit(id, 'x', { kind: 'note' })
  expect(refused).toMatchObject({ status: 400, code: 'invalid_field', field: 'kind' })

  for (const version of [second, third]) expect((await eventOf(version.event_id)).kind).toBe('request')
  expect((await eventOf(id)).kind).toBe('request')
  expect((await versionsOf(id)).map(({ kind }) => kind)).toEqual(['request', 'request', 'request'])
  expect((await fetchUpdates(client, { rooms, cursor })).updates).toMatchObject([
    { type: 'event.superseded', event: { event_id: second.event_id, kind: 'request' } },
    { type: 'event.superseded', event: { event_id: third.event_id, kind: 'request' } },
  ])
  const ofKind = (kind: string) => client.get(`/api/events?room=kinds&kind=${kind}`)
  expect((await ofKind('request')).data.events).toMatchObject([{ event_id: id, text: 'third' }])
  expect((await ofKind('note')).data.events).toEqual([])
  const reader = new StreamReader(board.address, '/tail/kinds?last=3', { accept: 'text/event-stream' })
  const tail = await reader.until((text) => sseIds(text).length === 3)
  reader.close()
  expect(tail.match(/"kind":"\w+"/g)).toEqual(['"kind":"request"', '"kind":"request"', '"kind":"request"'])

  const work = { event_id: id, amount: 1, data: '{"schema":1,"title":"Do it","simulated":true}' }
  expect(await client.command(ada, { operation: 'work.create', ...work })).toMatchObject({ status: 200 })
  expect(await client.command(ada, { operation: 'work.edit', event_id: id, text: 'last' })).toMatchObject({
    status: 200,
  })
  const { version_id: last } = await eventOf(id)
  expect((await eventOf(last!)).kind).toBe('request')

  // As it was signed, so that a verifier that knows nothing of inherited kinds accepts it, and next to that as it is shown.
  const lines = (await client.get('/v1/export')).text.trimEnd().split('\n')
  const parsed = lines.map((line) => JSON.parse(line) as Versioned)
  const many = new CachingVerifier(await logKeyOf(client))
  expect(await many.verify(parsed)).toMatchObject({ first: undefined, isSignedByLog: true })
  expect(faultsBy100(lines.join('\n'))).toEqual([])
  const lineOf = (event: string | undefined) => parsed.findIndex(({ event_id }) => event_id === event)
  const kinds = [id, second.event_id, third.event_id, last].map((each) => {
    const { kind, actual_kind } = parsed[lineOf(each)]!
    return [kind, actual_kind]
  })
  expect(kinds).toEqual([
    ['request', undefined],
    ['note', 'request'],
    ['request', undefined],
    ['note', 'request'],
  ])
  const changes = [
    [second.event_id, { kind: 'request' }],
    [second.event_id, { actual_kind: 'not a kind' }],
    [third.event_id, { actual_kind: 'request' }],
    [id, { actual_kind: 'request' }],
  ] as const
  for (const [event, change] of changes) {
    const at = lineOf(event)
    expect((await many.verify(parsed.with(at, { ...parsed[at]!, ...change }))).failures).toBe(1)
  }
})

test('an edit is in no count, list, thread or page of events; tail and export print it with what it supersedes', async () => {
  const root = await made(client.post(ada, { room: 'counted', text: 'root' }))
  const reply = await made(client.post(ben, { text: 'reply', reply_to: root.event_id }))
  const version = await made(edit(root.event_id, 'root again', { room: 'counted' }))
  const inReply = await made(edit(reply.event_id, 'reply again', { reply_to: root.event_id }, ben))
  expect(inReply).toMatchObject({ thread: root.event_id, reply_to: root.event_id })

  expect((await client.get('/api/pages?room=counted')).data.pages).toMatchObject([
    { name: 'main', count: 2, threads: 1 },
  ])
  const { rooms } = (await client.get('/api/rooms?query=counted')).data
  expect(rooms).toMatchObject([{ count: 2, threads: 1 }])
  for (const asked of [root, reply, version, inReply]) {
    const thread = await client.get(`/api/thread/${asked.event_id}`)
    expect(thread.data).toMatchObject({ root_id: root.event_id, requested_event_id: asked.event_id })
    expect(thread.data.events?.map(({ event_id, text }) => [event_id, text])).toEqual([
      [root.event_id, 'root again'],
      [reply.event_id, 'reply again'],
    ])
  }
  const byBen = await client.get(`/api/events?room=counted&author=${ben.id}`)
  expect(byBen.data.events).toMatchObject([{ event_id: reply.event_id, text: 'reply again' }])

  const lines = (await client.get('/v1/export?room=counted')).text.trimEnd().split('\n')
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { event_id: root.event_id, text: 'root' },
    { event_id: reply.event_id, text: 'reply' },
    { event_id: version.event_id, text: 'root again', supersedes: root.event_id },
    { event_id: inReply.event_id, text: 'reply again', supersedes: reply.event_id },
  ])
  const tail = await fetch(`${board.address}/tail/counted?last=4`)
  let text = ''
  for await (const chunk of tail.body!) {
    text += Buffer.from(chunk).toString('utf8')
    if (text.includes('reply again')) break
  }
  expect(text).toContain(`supersedes=${root.event_id}\nroot again`)
})

test('replies to and votes on a version apply to its event', async () => {
  const root = await made(client.post(ada, { room: 'attached', text: 'root' }))
  const version = await made(edit(root.event_id, 'root again'))
  const reply = await made(client.post(ben, { text: 'to the version', reply_to: version.event_id }))
  expect(reply).toMatchObject({ reply_to: root.event_id, thread: root.event_id })
  const voted = await client.command(ben, { operation: 'vote', event_id: version.event_id, data: '{"value":1}' })
  expect(voted.data).toMatchObject({ event_id: root.event_id, votes: { up: 1, down: 0, score: 1 } })
  for (const id of [root.event_id, version.event_id])
    expect(await eventOf(id)).toMatchObject({ votes: { up: 1, down: 0, score: 1 } })
})

describe('edits that are refused', () => {
  const refusals: [string, (id: string) => Promise<Answer>, object][] = [
    ['by another', (id) => edit(id, 'x', {}, ben), { status: 403, code: 'forbidden' }],
    ['of nothing', () => edit('d'.repeat(32), 'x'), { status: 400, code: 'not_found', field: 'data.supersedes' }],
    [
      'of an event of another room',
      (id) => edit(id, 'x', { room: 'lobby' }),
      { code: 'not_found', field: 'data.supersedes' },
    ],
    ['onto another page', (id) => edit(id, 'x', { page: 'two' }), { code: 'invalid_field', field: 'page' }],
    ['as a reply', (id) => edit(id, 'x', { reply_to: id }), { code: 'invalid_field', field: 'reply_to' }],
    ['with a life of its own', (id) => edit(id, 'x', { ttl: 60 }), { code: 'invalid_field', field: 'ttl' }],
    ['of another kind', (id) => edit(id, 'x', { kind: 'request' }), { code: 'invalid_field', field: 'kind' }],
    ['of no id', (id) => edit(id.slice(1), 'x'), { code: 'invalid_field', field: 'data.supersedes' }],
  ]
  test.each(refusals)('%s', async (_, send, refusal) => {
    const { event_id } = await made(client.post(ada, { room: 'strict', text: 'kept' }))
    expect(await send(event_id)).toMatchObject({ status: 400, ...refusal })
    expect(await eventOf(event_id)).toMatchObject({ text: 'kept' })
  })

  test('of a version that was replaced meanwhile', async () => {
    const first = await made(client.post(ada, { room: 'strict', text: 'kept' }))
    const second = await made(edit(first.event_id, 'second'))
    await made(edit(second.event_id, 'third'))
    expect(await edit(second.event_id, 'late')).toMatchObject({
      status: 400,
      code: 'conflict',
      field: 'data.supersedes',
    })
    expect(await made(edit(first.event_id, 'whatever came'))).toMatchObject({ supersedes: first.event_id })
  })

  test('of a hidden, redacted or expired event; and in a closed room', async () => {
    await client.command(ada, { operation: 'room.create', room: 'own' })
    const ids: string[] = []
    for (const text of ['hidden', 'redacted', 'open'])
      ids.push((await made(client.post(ada, { room: 'own', text }))).event_id)
    const [hidden = '', redacted = '', open = ''] = ids
    const short = await made(client.post(ada, { room: 'own', text: 'short', ttl: 1 }))
    await client.command(ada, { operation: 'room.hide', event_id: hidden, reason: 'r' })
    await client.command(ada, { operation: 'event.redact', event_id: redacted, reason: 'r' })
    await vi.waitUntil(async () => (await eventOf(short.event_id)).hidden, patience)
    for (const id of [hidden, redacted, short.event_id])
      expect(await edit(id, 'x')).toMatchObject({ status: 400, code: 'wrong_state' })
    await client.command(ada, { operation: 'room.policy.set', room: 'own', data: '{"closed":true}' })
    expect(await edit(open, 'x')).toMatchObject({ status: 400, code: 'wrong_state', field: 'room' })
  })

  test('beyond 32 versions', async () => {
    const { event_id } = await made(client.post(ada, { room: 'strict', text: '1' }))
    for (let version = 2; version <= 32; version++) await made(edit(event_id, String(version)))
    expect(await edit(event_id, '33')).toMatchObject({ status: 400, code: 'wrong_state' })
    expect(await eventOf(event_id)).toMatchObject({ text: '32', versions: 32 })
    expect(await versionsOf(event_id)).toHaveLength(32)
  })

  test('a write policy and a daily limit do not apply to edits', async () => {
    await client.command(ada, { operation: 'room.create', room: 'rationed' })
    const policy = '{"top_level_per_day":1,"write":"open"}'
    await client.command(ada, { operation: 'room.policy.set', room: 'rationed', data: policy })
    const { event_id } = await made(client.post(ben, { room: 'rationed', text: 'mine' }))
    expect(await client.post(ben, { room: 'rationed', text: 'more' })).toMatchObject({ code: 'quota_exhausted' })
    await made(edit(event_id, 'mine, better', {}, ben))
    await client.command(ada, { operation: 'room.policy.set', room: 'rationed', data: '{"write":"owner"}' })
    expect(await made(edit(event_id, 'mine, best', {}, ben))).toMatchObject({ supersedes: event_id })
  })
})

test('in a private room members edit, read and see the versions, and nobody else learns of them', async () => {
  const room = 'quiet'
  await client.command(ada, { operation: 'room.create', room, visibility: 'private', members: [ben.id] })
  const { event_id } = await made(client.post(ada, { room, text: 'inside' }))
  const version = await made(edit(event_id, 'inside again'))
  expect(version.log).toEqual({ state: 'none' })
  const read = (signer: typeof ada) =>
    client.command(signer, { operation: 'event.history', event_id: version.event_id })
  expect((await read(ben)).data.events?.map(({ text }) => text)).toEqual(['inside', 'inside again'])
  expect(await read(person('stranger'))).toMatchObject({ status: 403, code: 'private_room' })
  expect(await client.get(`/api/history/${event_id}`)).toMatchObject({ status: 403, code: 'private_room' })
  expect(await edit(event_id, 'x', {}, person('stranger'))).toMatchObject({
    code: 'not_found',
    field: 'data.supersedes',
  })
  expect((await client.command(ben, { operation: 'events.list', room })).data.events).toMatchObject([
    { event_id, text: 'inside again', versions: 2 },
  ])
})

test('the same edit sent twice is one version, and all is unchanged after a restart and after a replay', async () => {
  const { event_id } = await made(client.post(ada, { room: 'twice', text: 'a' }))
  const signed = client.sign(ada, { operation: 'post', text: 'b', data: dataOf(event_id) })
  await made(client.send(signed.body))
  expect((await client.send(signed.body)).data.receipt).toMatchObject({ duplicate: true, event_id: signed.eventId })
  const paths = [
    '/api/events?order=asc&limit=200',
    '/api/rooms',
    '/api/pages?room=counted',
    '/api/identities',
    `/api/history/${event_id}`,
    `/api/events/${signed.eventId}`,
    '/v1/export',
  ]
  const readAll = async () => Promise.all(paths.map(async (path) => (await client.get(path)).text))
  const before = await readAll()
  expect(JSON.parse(before[4]!).data.events).toHaveLength(2)
  await board.stop()
  board = await startBoard({ directory: board.directory })
  client.close()
  client = await Client.of(board)
  expect(await readAll()).toEqual(before)
  await board.kill()
  board = await startBoard({ directory: board.directory })
  client.close()
  client = await Client.of(board)
  expect(await readAll()).toEqual(before)
  expect((await client.send(signed.body)).data.receipt).toMatchObject({ duplicate: true })
})
