/** Votes, hides and redactions: who may do them, what stays visible, and that nothing else does. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parseEntry } from '../../actors/records/entry.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, type EventJson, type Fields, person } from '../support/client.ts'
import { logKeyOf, proveEvent } from '../support/log-checks.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Marked = EventJson & {
  readonly hidden_by?: string
  readonly votes: object
  readonly attachments?: readonly object[]
}

const [owner, moderator, author, reader, operator] = ['owner', 'moderator', 'author', 'reader', 'operator'].map(
  person,
) as [
  ReturnType<typeof person>,
  ReturnType<typeof person>,
  ReturnType<typeof person>,
  ReturnType<typeof person>,
  ReturnType<typeof person>,
]
const room = 'kept'
let board: Board
let client: Client

const start = async (directory: string) => {
  board = await startBoard({ directory, env: { OPERATORS: operator.id } })
  client?.close()
  client = await Client.of(board)
}

beforeAll(async () => {
  await start(boardDirectory())
  await client.command(owner, { operation: 'room.create', room })
  await client.command(owner, { operation: 'room.moderator.add', room, target: moderator.id })
})
afterAll(() => client.close())

async function posted(signer = author, fields: Record<string, string | number> = {}): Promise<string> {
  const { data, text } = await client.post(signer, { room, text: 'the secret', ...fields })
  expect(data, text).toHaveProperty('event_id')
  return data.event_id!
}

const act = (signer: typeof owner, operation: string, id: string, reason = 'as the rules say') =>
  client.command(signer, { operation, event_id: id, reason })
const vote = (signer: typeof owner, id: string, value: unknown) =>
  client.command(signer, { operation: 'vote', event_id: id, data: JSON.stringify({ value }) })
const eventOf = async (id: string) => (await client.get(`/api/events/${id}`)).data.event as Marked

const tombstone = (by: string, reason = 'as the rules say') => ({
  type: 'tombstone',
  hidden: true,
  hidden_by: by,
  reason,
})
const refused = (status: number, code: string) => ({ status, code })
const forbidden = refused(403, 'forbidden')
const wrongState = refused(400, 'wrong_state')

/** Everything public that could show a text of this room and the names in it. */
async function everything(ids: readonly string[]): Promise<string> {
  const paths = [
    '/api/events?limit=200',
    `/api/events?room=${room}&limit=200`,
    `/api/events?author=${author.id}`,
    '/v1/export',
    `/v1/export?room=${room}&limit=200`,
    ...ids.flatMap((id) => [
      `/api/events/${id}`,
      `/api/thread/${id}`,
      `/api/history/${id}`,
      `/api/log/proof?message=${id}`,
      `/e/${id}/proof`,
    ]),
    '/api/changes?after=0',
    '/api/events?query=plugh',
    `/api/events?room=${room}&query=words`,
    '/api/rooms',
  ]
  const texts = await Promise.all(paths.map(async (path) => (await client.get(path)).text))
  const tails = await Promise.all(['', '&format=line'].map((more) => tailOf(`/tail/${room}?last=200${more}`)))
  return [...texts, ...tails].join('\n')
}

/** What a tail shows up to the newest post of the room. */
async function tailOf(path: string): Promise<string> {
  const mark = await client.post(reader, { room, text: 'mark of the end' })
  const response = await fetch(`${board.address}${path}`)
  let text = ''
  for await (const chunk of response.body!) {
    text += Buffer.from(chunk).toString('utf8')
    if (text.includes(mark.data.event_id!)) break
  }
  return text
}

describe('votes', () => {
  test('one per identity, the newest counts, 0 withdraws it', async () => {
    const id = await posted()
    const sums = async (answer: Promise<Answer>) => (await answer).data
    expect(await sums(vote(reader, id, 1))).toMatchObject({ event_id: id, votes: { up: 1, down: 0, score: 1 } })
    expect(await sums(vote(reader, id, 1))).toMatchObject({ votes: { up: 1, down: 0, score: 1 } })
    expect(await sums(vote(owner, id, -1))).toMatchObject({ votes: { up: 1, down: 1, score: 0 } })
    expect(await sums(vote(reader, id, -1))).toMatchObject({ votes: { up: 0, down: 2, score: -2 } })
    expect(await eventOf(id)).toMatchObject({ votes: { up: 0, down: 2, score: -2 } })
    expect(await sums(vote(reader, id, 0))).toMatchObject({ votes: { up: 0, down: 1, score: -1 } })
    const list = await client.get(`/api/events?room=${room}&limit=1`)
    expect(list.data.events).toMatchObject([{ event_id: id, votes: { up: 0, down: 1, score: -1 } }])
  })

  test('a repeated vote has no second effect and gets the first answer', async () => {
    const id = await posted()
    const signed = client.sign(reader, { operation: 'vote', event_id: id, data: '{"schema":1,"value":1}' })
    const first = await client.send(signed.body)
    await vote(owner, id, 1)
    const again = await client.send(signed.body)
    expect(again.data).toEqual({ ...first.data, receipt: { ...first.data.receipt, duplicate: true } })
    expect(again.data.receipt).not.toHaveProperty('log_index')
    expect(await eventOf(id)).toMatchObject({ votes: { up: 2 } })
  })

  test('not on one’s own or removed posts, not on nothing, and with no other value', async () => {
    const id = await posted()
    expect(await vote(author, id, 1)).toMatchObject(forbidden)
    expect(await vote(reader, 'd'.repeat(32), 1)).toMatchObject({ code: 'not_found', field: 'event_id' })
    for (const value of [2, '1', null])
      expect(await vote(reader, id, value)).toMatchObject({ code: 'invalid_field', field: 'data.value' })
    expect(await client.command(reader, { operation: 'vote', event_id: id })).toMatchObject({ code: 'missing_field' })
    await act(owner, 'room.hide', id)
    expect(await vote(reader, id, 1)).toMatchObject(wrongState)
  })
})

describe('hides', () => {
  test('a hidden event is a tombstone with its reason, in no list and no count; unhidden it is as before', async () => {
    const page = { page: 'hiding' }
    const id = await posted(author, page)
    const reply = await posted(reader, { ...page, reply_to: id, text: 'a reply' })
    const before = await eventOf(id)
    const hidden = await act(moderator, 'room.hide', id)
    expect(hidden.data).toMatchObject({ event_id: id, event: tombstone('room') })
    for (const gone of ['text', 'format', 'signature', 'signed_payload', 'attachments'])
      expect(hidden.data.event).not.toHaveProperty(gone)
    expect(hidden.data.receipt).toHaveProperty('log_index')
    const { events } = (await client.get(`/api/thread/${reply}`)).data
    expect(events).toMatchObject([
      { event_id: id, ...tombstone('room') },
      { event_id: reply, text: 'a reply' },
    ])
    const list = `/api/events?room=${room}&page=hiding`
    expect((await client.get(list)).data.events?.map(({ event_id }) => event_id)).toEqual([reply])
    const pageOf = async () =>
      (await client.get(`/api/pages?room=${room}`)).data.pages?.find(({ name }) => name === 'hiding')
    expect(await pageOf()).toMatchObject({ count: 1, threads: 0, last_event_id: reply })
    await act(moderator, 'room.hide', reply)
    expect(await pageOf()).toBeUndefined()

    expect((await act(owner, 'room.restore', id)).data.event).toMatchObject({ type: 'event', text: 'the secret' })
    expect(await eventOf(id)).toEqual(before)
    expect(await pageOf()).toMatchObject({ count: 1, threads: 1, last_event_id: id })
  })

  test('by the owner, moderators and the operator; a moderator cannot hide the owner’s posts', async () => {
    const [one, two, three, ofOwner] = [await posted(), await posted(), await posted(), await posted(owner)]
    expect(await act(reader, 'room.hide', one)).toMatchObject(forbidden)
    expect(await act(author, 'room.hide', one)).toMatchObject(forbidden)
    expect(await act(moderator, 'room.hide', ofOwner)).toMatchObject(forbidden)
    expect((await act(owner, 'room.hide', one)).data.event).toMatchObject(tombstone('room'))
    expect((await act(moderator, 'room.hide', two)).data.event).toMatchObject(tombstone('room'))
    expect((await act(operator, 'room.hide', three)).data.event).toMatchObject(tombstone('operator'))
    expect((await act(operator, 'room.hide', ofOwner)).data.event).toMatchObject(tombstone('operator'))
    expect(await act(owner, 'room.restore', ofOwner)).toMatchObject(forbidden)
    expect(await act(moderator, 'room.restore', three)).toMatchObject(forbidden)
    expect(await act(reader, 'room.restore', one)).toMatchObject(forbidden)
    for (const id of [one, three, ofOwner])
      expect((await act(operator, 'room.restore', id)).data.event).toMatchObject({ type: 'event' })
  })

  test('twice, of nothing, without a reason or with too long a one is refused', async () => {
    const id = await posted()
    expect(await act(owner, 'room.restore', id)).toMatchObject(wrongState)
    await act(owner, 'room.hide', id, 'x'.repeat(2048))
    expect(await act(owner, 'room.hide', id)).toMatchObject(wrongState)
    expect(await act(owner, 'room.hide', 'd'.repeat(32))).toMatchObject({ code: 'not_found', field: 'event_id' })
    expect(await act(owner, 'room.restore', id, '')).toMatchObject({ code: 'missing_field', field: 'reason' })
    expect(await act(owner, 'room.restore', id, 'x'.repeat(2049))).toMatchObject({ code: 'too_large', field: 'reason' })
    const signed = client.sign(owner, { operation: 'room.restore', event_id: id, reason: 'r' })
    const first = await client.send(signed.body)
    expect((await client.send(signed.body)).data).toMatchObject({
      event: first.data.event,
      receipt: { duplicate: true, event_id: signed.eventId },
    })
  })
})

describe('redactions', () => {
  test('every version, reply and retry: the text is nowhere, while place, reason and proof remain', async () => {
    const secret = 'xyzzy-plugh'
    const signed = client.sign(author, { operation: 'post', room, text: `${secret} one`, request_id: 'redacted-1' })
    const before = (await client.send(signed.body)).data.event!
    const id = signed.eventId
    const edit = client.sign(author, {
      operation: 'post',
      text: `${secret} two`,
      data: JSON.stringify({ schema: 1, supersedes: id }),
    })
    await client.send(edit.body)
    const reply = await posted(reader, { reply_to: id, text: 'a reply' })
    expect(await everything([id, edit.eventId])).toContain(secret)

    const redacted = await act(author, 'event.redact', edit.eventId, 'it held a password')
    expect(redacted.data.event).toMatchObject({ event_id: edit.eventId, ...tombstone('author', 'it held a password') })
    expect(redacted.data.receipt).toHaveProperty('log_index')

    expect(await eventOf(id)).toMatchObject({
      ...tombstone('author', 'it held a password'),
      event_id: id,
      seq: before.seq,
      room,
      author: { id: author.id },
      created_at: before.created_at,
      log: before.log,
      versions: 2,
    })
    expect((await client.get(`/api/thread/${reply}`)).data.events).toMatchObject([
      { type: 'tombstone' },
      { text: 'a reply' },
    ])
    expect(await everything([id, edit.eventId])).not.toContain(secret)
    for (const body of [signed.body, edit.body]) {
      const again = await client.send(body)
      expect(again.data).toMatchObject({ event: { type: 'tombstone' }, receipt: { duplicate: true } })
      expect(again.text).not.toContain(secret)
    }
    const repeated = await client.post(author, { room, text: `${secret} one`, request_id: 'redacted-1' })
    expect(repeated).toMatchObject({ status: 200, data: { event_id: id, event: { type: 'tombstone' } } })
    expect(repeated.text).not.toContain(secret)
    const other = await client.post(author, { room, text: 'guess', request_id: 'redacted-1' })
    expect(other).toMatchObject({ code: 'request_id_reused' })
    expect(other.text).not.toContain(secret)
  })

  test('it is a leaf of the public log that names the redacted event, whose proof remains valid', async () => {
    const id = await posted()
    const { seq } = await eventOf(id)
    const { data } = await act(moderator, 'event.redact', id)
    const key = await logKeyOf(client)
    const proof = await proveEvent(client, key, data.receipt!.event_id)
    expect(proof.leaf_index).toBe(data.receipt!.log_index)
    expect(Object.fromEntries(parseEntry(Buffer.from(proof.entry, 'base64'))!)).toMatchObject({
      kind: 'redact',
      event: data.receipt!.event_id,
      room,
      seq: String(seq),
      target: id,
    })
    const own = await client.get(`/api/log/proof?message=${id}`)
    expect(own.status).toBe(200)
    expect(own.data).not.toHaveProperty('signed_payload')
  })

  test('by the author, the room or the operator; a moderator cannot redact the owner’s; once and permanently', async () => {
    const ofOwner = await posted(owner)
    expect(await act(reader, 'event.redact', ofOwner)).toMatchObject(forbidden)
    expect(await act(moderator, 'event.redact', ofOwner)).toMatchObject(forbidden)
    expect((await act(operator, 'event.redact', ofOwner)).data.event).toMatchObject(tombstone('operator'))
    const id = await posted()
    await act(owner, 'room.hide', id)
    expect((await act(owner, 'event.redact', id, 'for good')).data.event).toMatchObject(tombstone('room', 'for good'))
    for (const operation of ['event.redact', 'room.hide', 'room.restore'])
      expect(await act(owner, operation, id)).toMatchObject(wrongState)
    expect(await act(owner, 'event.redact', 'd'.repeat(32))).toMatchObject({ code: 'not_found', field: 'event_id' })
    expect(await act(author, 'event.redact', id, '')).toMatchObject({ code: 'missing_field', field: 'reason' })
  })
})

test('in a private room its members vote and its owner hides; outsiders see nothing', async () => {
  const den = 'den'
  await client.command(owner, { operation: 'room.create', room: den, visibility: 'private', members: [author.id] })
  const { event_id: id = '' } = (await client.post(author, { room: den, text: 'inside' })).data
  const outside: Fields[] = [
    { operation: 'vote', event_id: id, data: '{"value":1}' },
    { operation: 'room.hide', event_id: id, reason: 'r' },
    { operation: 'room.restore', event_id: id, reason: 'r' },
    { operation: 'event.redact', event_id: id, reason: 'r' },
  ]
  for (const signer of [reader, operator])
    for (const fields of outside) {
      const told = await client.command(signer, fields)
      expect(told).toMatchObject({ status: 400, code: 'not_found', field: 'event_id' })
      const none = await client.command(signer, { ...fields, event_id: 'd'.repeat(32) })
      expect(none.text).toBe(told.text.replaceAll(id, 'd'.repeat(32)))
    }
  expect((await vote(owner, id, 1)).data).toMatchObject({ votes: { up: 1 } })
  expect((await act(owner, 'room.hide', id)).data.event).toMatchObject(tombstone('room'))
  expect((await act(owner, 'room.restore', id)).data.event).toMatchObject({ text: 'inside', votes: { up: 1 } })
  const redacted = await act(author, 'event.redact', id)
  expect(redacted.data).toMatchObject({ event: { ...tombstone('author'), log: { state: 'none' } } })
  expect(redacted.data.receipt).not.toHaveProperty('log_index')
  const list = await client.command(author, { operation: 'events.list', room: den })
  expect(list.data.events).toEqual([])
})

test('an expired text is gone from lists, counts, threads, tails and cached answers at its second', async () => {
  const briefly = async (ttl: number) => {
    const page = `brief-${ttl}`
    const stays = await posted(author, { page, text: 'stays' })
    const id = await posted(author, { page, reply_to: stays, text: 'short-lived words', ttl })
    const paths = [
      `/api/events?room=${room}&page=${page}`,
      `/api/pages?room=${room}`,
      `/api/thread/${id}`,
      `/api/events/${id}`,
      '/api/rooms?query=kept',
      `/api/log/proof?message=${id}`,
      `/api/history/${id}`,
      '/api/changes?after=0',
    ]
    await client.post(author, { text: 'short-lived words', data: JSON.stringify({ schema: 1, supersedes: id }) })
    const read = async () => Promise.all(paths.map(async (path) => (await client.get(path)).data))
    const before = await read()
    return { page, stays, id, read, before, isLate: (await eventOf(id)).hidden }
  }
  // If it expired while it was still being checked, another one lives longer.
  let brief = await briefly(2)
  for (let ttl = 8; brief.isLate; ttl *= 4) brief = await briefly(ttl)
  const { page, stays, id, read, before } = brief
  expect(before[0]!.events).toHaveLength(2)
  await vi.waitUntil(async () => (await eventOf(id)).hidden, patience)
  // Nothing was written since, so this reads the cache.
  const after = await read()
  expect(JSON.stringify(after)).not.toContain('short-lived words')
  const [list, pages, thread, event, rooms] = after
  expect(list!.events?.map(({ event_id }) => event_id)).toEqual([stays])
  expect(pages!.pages?.find(({ name }) => name === page)).toMatchObject({ count: 1, last_event_id: stays })
  expect(thread!.events).toMatchObject([{ text: 'stays' }, { type: 'tombstone', hidden: true, reason: 'expired' }])
  expect(event!.event).not.toHaveProperty('hidden_by')
  expect(rooms!.rooms![0]!.count).toBe(before[4]!.rooms![0]!.count - 1)
  expect(await everything([id, stays])).not.toContain('short-lived words')
  expect(await act(owner, 'room.hide', id)).toMatchObject(wrongState)
})

test('lists continue after their cursor while events are hidden and edited, and before and after are seqs', async () => {
  const paged = 'paged'
  const ids: string[] = []
  await client.command(owner, { operation: 'room.create', room: paged })
  for (let n = 1; n <= 9; n++)
    ids.push((await client.post(n % 2 ? author : reader, { room: paged, text: `${n}` })).data.event_id!)
  const first = (await client.get(`/api/events?room=${paged}&order=asc&limit=3`)).data
  await act(owner, 'room.hide', ids[3]!)
  await act(owner, 'room.hide', ids[2]!)
  await client.post(author, { text: '5, edited', data: JSON.stringify({ schema: 1, supersedes: ids[4]! }) })
  const texts: (string | undefined)[] = []
  for (let cursor = first.next_cursor; cursor !== undefined; ) {
    const { data } = await client.get(`/api/events?room=${paged}&order=asc&limit=3&cursor=${cursor}`)
    texts.push(...data.events!.map(({ text }) => text))
    cursor = data.next_cursor
  }
  expect(texts).toEqual(['5, edited', '6', '7', '8', '9'])
  const seqs = async (query: string) =>
    (await client.get(`/api/events?room=${paged}&order=asc&${query}`)).data.events?.map(({ seq }) => seq)
  expect(await seqs('after=4&before=8')).toEqual([5, 6, 7])
  expect(await seqs('before=1')).toEqual([])
  expect(await seqs(`author=${author.id}&after=1`)).toEqual([5, 7, 9])
  expect(await seqs('page=main&before=3')).toEqual([1, 2])
  expect(await seqs('page=none')).toEqual([])
})

test('votes and marks are unchanged after a restart from snapshots, and from the journals alone', async () => {
  const { events } = (await client.get(`/api/events?room=${room}&limit=200`)).data
  const ids = events!.map(({ event_id }) => event_id).slice(0, 20)
  const paths = [
    '/api/events?limit=200',
    '/api/rooms',
    `/api/pages?room=${room}`,
    '/v1/export',
    ...ids.map((id) => `/api/thread/${id}`),
    ...ids.map((id) => `/api/events/${id}`),
  ]
  const readAll = async () => Promise.all(paths.map(async (path) => (await client.get(path)).text))
  const before = await readAll()
  expect(before[3]).toContain('"tombstone"')
  await board.stop()
  await start(board.directory)
  expect(await readAll()).toEqual(before)
  await board.stop()
  for (const derived of ['shard-00/snapshots', 'log/feed-snapshots'])
    rmSync(join(board.directory, derived), { recursive: true })
  await start(board.directory)
  expect(await readAll()).toEqual(before)
})
