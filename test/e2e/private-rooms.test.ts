import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, person } from '../support/client.ts'
import { filesUnder } from '../support/files-under.ts'
import { schemaErrors } from '../support/json-schema.ts'
import { welcomeAuthor } from '../support/welcome-author.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const [owner, member, outsider] = [person('owner'), person('member'), person('outsider')]
const room = 'canary-room'
const text = 'canary-text'
let board: Board
let client: Client
/** Everything public as it was before the private room was created, and what reveals it. */
let before: Record<string, string>
const inside: { root: string; reply: string } = { root: '', reply: '' }

const publicReads = [
  '/api/rooms',
  '/api/identities',
  '/api/events',
  '/v1/export',
  '/api/log/checkpoint',
  '/api/rooms?query=canary',
  '/api/identities?query=canary',
]

async function readPublic(): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const path of publicReads) found[path] = (await client.get(path)).text
  const { streams_open, uptime_seconds, ...stats } = (await client.get('/api/stats')).data.stats!
  found['/api/stats'] = JSON.stringify(stats)
  const counted = /^broadside_(rooms|identities|events|log_size|change) .*$/gm
  found['/metrics'] = ((await client.get('/metrics')).text.match(counted) ?? []).join('\n')
  return found
}

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
  await welcomeAuthor(client, outsider, 'open')
  before = await readPublic()
  const made = await client.command(owner, {
    operation: 'room.create',
    room,
    visibility: 'private',
    members: [member.id],
    text: 'canary-about',
  })
  expect(made.data.room).toMatchObject({ name: room, visibility: 'private', owner: owner.id })
  const root = await client.post(owner, { room, page: 'canary-page', kind: 'canary-kind', text })
  const reply = await client.post(member, { text: `${text} reply`, reply_to: root.data.event_id! })
  inside.root = root.data.event_id!
  inside.reply = reply.data.event_id!
  expect(root.data.event?.log).toEqual({ state: 'none' })
  expect(root.data.receipt).not.toHaveProperty('log_index')
  expect(root.data.receipt).not.toHaveProperty('checkpoint')
  expect(reply.data.event).toMatchObject({ room, thread: inside.root })
})
afterAll(() => client.close())

test('nothing public changes through events in a private room: no list, count, export, log or metric', async () => {
  expect(await readPublic()).toEqual(before)
})

test('the owner and the members read it by signed commands', async () => {
  for (const reader of [owner, member]) {
    const ask = async (fields: Fields) => (await client.command(reader, fields)).data
    expect((await ask({ operation: 'room.get', room })).room).toMatchObject({ name: room, count: 2 })
    const { pages } = await ask({ operation: 'room.pages', room })
    expect(pages?.map(({ name }) => name)).toEqual(['canary-page'])
    expect((await ask({ operation: 'events.list', room })).events?.map(({ event_id }) => event_id)).toEqual([
      inside.reply,
      inside.root,
    ])
    expect((await ask({ operation: 'thread.get', event_id: inside.reply })).events).toHaveLength(2)
    expect((await ask({ operation: 'event.get', event_id: inside.root })).event).toMatchObject({ text, room })
  }
})

test('everybody else gets 403 private_room from its reads and writes, signed or not', async () => {
  const reads: Fields[] = [
    { operation: 'room.get', room },
    { operation: 'room.pages', room },
    { operation: 'events.list', room },
    { operation: 'thread.get', event_id: inside.root },
    { operation: 'event.get', event_id: inside.reply },
    { operation: 'updates.get', data: JSON.stringify({ schema: 1, wait: 55, rooms: ['open', room] }) },
  ]
  for (const fields of reads) {
    expect([fields, await client.command(outsider, fields)]).toMatchObject([
      fields,
      { status: 403, code: 'private_room' },
    ])
    expect([fields, await client.send(JSON.stringify(fields))]).toMatchObject([
      fields,
      { status: 403, code: 'private_room' },
    ])
  }
  for (const path of [
    `/api/pages?room=${room}`,
    `/api/events?room=${room}`,
    `/api/thread/${inside.root}`,
    `/api/events/${inside.reply}`,
    `/api/updates?wait=55&room=open,${room}`,
    `/tail/${room}`,
    `/v1/export?room=${room}`,
  ]) {
    expect([path, await client.get(path)]).toMatchObject([path, { status: 403, code: 'private_room' }])
  }
  expect(await client.post(outsider, { room, text: 'x' })).toMatchObject({ status: 403, code: 'private_room' })
})

test('a private id or room is answered like an unknown one where 403 would reveal it', async () => {
  const unknown = 'd'.repeat(32)
  const alike = async (path: (id: string, name: string) => string) => {
    const [known, none] = [await client.get(path(inside.root, room)), await client.get(path(unknown, 'no-such-room'))]
    expect(known.status).toBe(400)
    expect(known.text.replaceAll(inside.root, unknown).replaceAll(room, 'no-such-room')).toBe(none.text)
  }
  await alike((id) => `/api/log/proof?message=${id}`)
  await alike((id) => `/tail/open?since=${id}`)
  for (const fields of [{ reply_to: inside.root }, { room: 'open', reply_to: inside.root }]) {
    expect(await client.post(outsider, { text: 'x', ...fields })).toMatchObject({
      status: 400,
      code: 'not_found',
      field: 'reply_to',
    })
  }
})

test('following, tailing or exporting an unknown room is 400 not_found', async () => {
  for (const path of ['/api/updates?wait=55&room=open,nosuch', '/tail/nosuch', '/v1/export?room=nosuch'])
    expect([path, await client.get(path)]).toMatchObject([path, { status: 400, code: 'not_found', field: 'room' }])
  const data = JSON.stringify({ schema: 1, wait: 55, rooms: [room, 'nosuch'] })
  expect(await client.command(member, { operation: 'updates.get', data })).toMatchObject({
    status: 400,
    code: 'not_found',
    field: 'data.rooms',
  })
  const inner = JSON.stringify({ schema: 1, rooms: [room, 'open'] })
  expect((await client.command(member, { operation: 'updates.get', data: inner })).status).toBe(200)
})

test('a member cannot move a private event to a public room, and claims no handle in a private one', async () => {
  expect(await client.post(member, { room: 'open', text: 'x', reply_to: inside.root })).toMatchObject({
    status: 400,
    code: 'not_found',
  })
  const claimed = await client.post(owner, { room, text: `${text} handle`, handle: 'canary-handle' })
  expect(claimed.data.handle_not_applied).toBe('private_room')
  expect(await readPublic()).toEqual(before)
})

test('nothing of it is in an answer, a metric, the server’s own log, or the log’s files, also after a restart', async () => {
  await board.stop()
  const words = board.lines.join('\n')
  board = await startBoard({ directory: board.directory })
  client.close()
  client = await Client.of(board)
  expect(await readPublic()).toEqual(before)
  const logDirectory = join(board.directory, 'log')
  const seen = [words, ...board.lines, (await client.get('/metrics')).text, ...Object.values(await readPublic())]
  for (const [, bytes] of filesUnder(logDirectory)) seen.push(bytes.toString('latin1'))
  for (const secret of ['canary', inside.root, inside.reply, Buffer.from(inside.root, 'hex').toString('latin1')]) {
    for (const each of seen) expect(each.replaceAll('no-such-room', '').includes(secret), secret).toBe(false)
  }
  expect((await client.command(member, { operation: 'event.get', event_id: inside.root })).data.event?.text).toBe(text)
})

test('a removed member who resends a post learns that it was accepted, and where, but is not shown it', async () => {
  const inner = 'retry-room'
  await client.command(owner, { operation: 'room.create', room: inner, visibility: 'private', members: [member.id] })
  const signed = client.sign(member, { operation: 'post', room: inner, text, page: 'side' })
  const first = (await client.send(signed.body)).data
  const edit = client.sign(member, {
    operation: 'post',
    room: inner,
    text: 'changed',
    data: JSON.stringify({ schema: 1, supersedes: signed.eventId }),
  })
  const second = (await client.send(edit.body)).data
  await client.command(owner, { operation: 'room.member.remove', room: inner, target: member.id })
  for (const [{ body }, { event, receipt }] of [
    [signed, first],
    [edit, second],
  ] as const) {
    const again = await client.send(body)
    expect(again).toMatchObject({ status: 200, data: { event_id: event!.event_id } })
    expect(again.data.receipt).toEqual({ ...receipt, duplicate: true })
    const { page, seq, thread, created_at } = event!
    expect(again.data.event).toMatchObject({ type: 'tombstone', hidden: true, page, seq, thread, created_at })
    expect(again.text).not.toContain(text)
  }
  expect(await client.post(member, { room: inner, text })).toMatchObject({ status: 403, code: 'private_room' })
  const own = await client.command(member, { operation: 'identity.events' })
  expect(own).toMatchObject({ status: 400, code: 'not_found' })
})

test('a former member who resends a command about the room gets the same receipt, and nothing newer', async () => {
  const inner = 'left-room'
  await client.command(owner, { operation: 'room.create', room: inner, visibility: 'private', members: [member.id] })
  const root = (await client.post(owner, { room: inner, text })).data.event_id!
  const own = (await client.post(member, { room: inner, text: 'please', kind: 'request' })).data.event_id!
  const titled = { data: JSON.stringify({ schema: 1, title: 'canary-doc' }) }
  const made = await client.command(member, { operation: 'docs.create', room: inner, text, ...titled })
  const doc = (made.data as { readonly doc: { readonly id: string } }).doc.id
  const data = (more: object) => JSON.stringify({ schema: 1, ...more })
  const about: Fields[] = [
    { operation: 'vote', event_id: root, data: data({ value: 1 }) },
    { operation: 'post', text: `${text} reply`, reply_to: root },
    { operation: 'docs.write', target: doc, text: 'canary-second', data: data({ base_version: 1 }) },
    { operation: 'work.create', event_id: own, amount: 1, data: data({ title: 'canary-work', simulated: true }) },
  ]
  const sent: { readonly body: string; readonly first: Awaited<ReturnType<Client['send']>> }[] = []
  for (const fields of about) {
    const { body } = client.sign(member, fields)
    const first = await client.send(body)
    expect(first.text).toContain('"receipt"')
    sent.push({ body, first })
  }
  await client.command(member, { operation: 'room.leave', room: inner })
  await client.post(owner, { room: inner, text: 'later', data: data({ supersedes: root }) })
  const later = { text: 'later', data: data({ base_version: 2, title: 'later' }) }
  expect((await client.command(owner, { operation: 'docs.write', target: doc, ...later })).status).toBe(200)
  for (const { body, first } of sent) {
    const again = await client.send(body)
    expect(again).toMatchObject({ status: 200, data: { receipt: { ...first.data.receipt, duplicate: true } } })
    expect(again.text).not.toContain('later')
    expect(again.text).not.toContain(text)
  }
  for (const fields of about)
    expect(await client.command(member, fields)).toMatchObject({ status: 400, code: 'not_found' })
})

test('a former owner who retries room.create gets the answer of its creation', async () => {
  const fields = { operation: 'room.create', room: 'canary-left', visibility: 'private', text: 'canary-about' }
  const made = client.sign(owner, { ...fields, members: [member.id, owner.id] })
  const first = await client.send(made.body)
  const { policy, role, ...asMade } = first.data.room as object as Record<string, unknown>
  expect(schemaErrors('RoomCreateResult', first.data)).toEqual([])
  const to = { room: 'canary-left', target: member.id }
  expect((await client.command(owner, { operation: 'room.owner.transfer', ...to })).status).toBe(200)
  expect((await client.command(owner, { operation: 'room.leave', room: 'canary-left' })).status).toBe(200)
  await client.post(member, { room: 'canary-left', text: 'later' })
  const again = await client.send(made.body)
  expect(schemaErrors('RoomCreateResult', again.data)).toEqual([])
  expect(again.data).toEqual({ room: asMade, receipt: { ...first.data.receipt, duplicate: true } })
})
