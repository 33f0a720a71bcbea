/** What an agent reads over /mcp: whole lists by their cursors, whole texts in parts, and never a part in place of the whole. */
import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { opensslSigner } from '../../src/cli/sign.ts'
import { tokensAtMost } from '../../src/mcp/tokens.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { type Json, OauthClient, rpc, callTool as send } from '../support/oauth-client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

let started: Board
let board: string
let client: Client
let token: string
const owner = opensslSigner(randomBytes(32))

beforeAll(async () => {
  const env = { BROADSIDE_LOOPBACK: '1', BROADSIDE_LIMITS: 'off', SHARDS: '2' }
  started = await startBoard({ directory: boardDirectory(), env })
  board = started.address
  client = await Client.of(started)
  token = (await new OauthClient(board).signIn(owner)).access_token
})
afterAll(() => started.kill())

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
/** Incompressible words, in lines. */
const written = (bytes: number) => {
  let text = ''
  for (let n = 1; text.length < bytes; n++) text += `${n} ${randomBytes(6).toString('hex')} and some words of a line\n`
  return text.slice(0, bytes)
}

/** Calls a tool and checks its answer: the text equals the structured content and stays within the size that /capabilities promises. */
async function call(name: string, args: Json): Promise<Json> {
  const { result } = await send(board, name, args, token)
  const [{ text } = { text: '' }] = result.content as { text: string }[]
  expect(JSON.parse(text)).toEqual(result.structuredContent)
  expect(tokensAtMost(text)).toBeLessThanOrEqual(10_000)
  return result.structuredContent as Json
}

type Listed = Json & { readonly event_id: string; readonly text: string }
const eventsOf = (answer: Json) => answer.events as Listed[]

/** Every item of a list, however many answers it takes. */
async function walked(tool: string, args: Json, list: string): Promise<{ items: Json[]; answers: number }> {
  const items: Json[] = []
  let cursor: unknown
  for (let answers = 1; ; answers++) {
    const answer = await call(tool, { ...args, ...(cursor === undefined ? {} : { cursor }) })
    items.push(...(answer[list] as Json[]))
    if (answer.has_more !== true) return { items, answers }
    cursor = answer.next_cursor
  }
}

/** Reads a long text in parts: the whole text, and the last answer, which has the hash. */
async function read(tool: string, args: Json, of: string, name = 'text'): Promise<{ text: string; last: Json }> {
  let text = ''
  for (let text_offset = 0; ; ) {
    const shown = (await call(tool, { ...args, text_offset }))[of] as Json
    text += shown[name]
    if (shown[`${name}_next_offset`] === undefined) return { text, last: shown }
    text_offset = shown[`${name}_next_offset`] as number
  }
}

test('a list ends after a whole item, and its cursors reach every item', async () => {
  const texts = Array.from({ length: 120 }, (_, n) => `post ${n}: ${written(400)}`)
  for (const text of texts) await client.post(person(`of-${texts.indexOf(text) % 7}`), { room: 'long-list', text })
  const { items, answers } = await walked('events_list', { room: 'long-list', limit: 200 }, 'events')
  expect(items.map(({ text }) => text)).toEqual([...texts].reverse())
  expect(answers).toBeGreaterThan(3)
  const thread = await walked('events_list', { room: 'long-list', limit: 200, proof: true }, 'events')
  expect(thread.items.map(({ text }) => text)).toEqual([...texts].reverse())
})

test('45 one-line posts fit into one answer', async () => {
  for (let n = 0; n < 45; n++)
    await send(board, 'post', { room: 'lines', text: `This is line ${n} of the room.` }, token)
  const { events, has_more } = await call('events_list', { room: 'lines' })
  expect([(events as Json[]).map(({ text }) => text), has_more]).toEqual([
    Array.from({ length: 45 }, (_, n) => `This is line ${44 - n} of the room.`),
    false,
  ])
})

test('proofs of an event are given on request, and equal those of the HTTP API', async () => {
  const { event_id, event, receipt } = await call('post', { text: 'by whose word?' })
  for (const name of ['signature', 'delegation', 'signed_payload']) expect(event).not.toHaveProperty(name)
  expect(receipt).not.toHaveProperty('checkpoint')
  expect(await call('event_get', { event_id })).not.toHaveProperty('event.signed_payload')
  const { data } = await client.get(`/api/events/${event_id}`)
  expect(await call('event_get', { event_id, proof: true })).toEqual(data)
  expect((await call('event_get', { event_id, proof: 'yes' })).error).toMatchObject({
    code: 'invalid_field',
    field: 'proof',
  })
})

describe('a post too long for an answer', () => {
  let event_id: string
  const text = written(30_000)

  beforeAll(async () => {
    await call('post', { room: 'long', text: 'short before' })
    event_id = (await call('post', { room: 'long', text })).event_id as string
    await call('post', { room: 'long', text: 'short behind' })
  })

  test('is read in parts, and every list says how', async () => {
    const whole = await read('event_get', { event_id }, 'event')
    expect([whole.text, whole.last.text_sha256]).toEqual([text, sha256(text)])
    const { items } = await walked('events_list', { room: 'long' }, 'events')
    expect(items.map((item) => item.text_truncated ?? item.text)).toEqual(['short behind', true, 'short before'])
    const alone = await call('events_list', { room: 'long', kind: 'note', limit: 2 })
    const { next_cursor: cursor } = alone
    const cut = await call('events_list', { room: 'long', kind: 'note', limit: 2, cursor })
    const [item] = eventsOf(cut) as [Listed]
    expect(cut.hint).toBe(
      `to continue reading: event_get with event_id ${event_id} and text_offset ${item.text_next_offset}`,
    )
    const on = (await call('event_get', { event_id, text_offset: item.text_next_offset as number })).event as Json
    expect(text.startsWith(`${item.text}${on.text}`)).toBe(true)
    expect((await call('event_get', { event_id, text_offset: 30_000 })).error).toMatchObject({
      code: 'invalid_field',
      field: 'text_offset',
    })
  })

  test('can be replaced only by a client that has read it to the end', async () => {
    const edit = (more: Json) =>
      call('post', { room: 'long', text: 'only the beginning', ...more, data: { supersedes: event_id } })
    expect((await edit({})).error).toMatchObject({ code: 'missing_field', field: 'replaces_sha256' })
    expect((await edit({ replaces_sha256: sha256('another') })).error).toMatchObject({ code: 'conflict' })
    expect((await read('event_get', { event_id }, 'event')).text).toBe(text)
    expect(await edit({ replaces_sha256: sha256(text) })).toMatchObject({ event: { text: 'only the beginning' } })
    // A post that was read whole can be replaced directly.
    expect(await edit({})).not.toHaveProperty('error')
  })
})

describe('a document too long for an answer', () => {
  const text = written(60_000)
  let target: string

  beforeAll(async () => {
    const made = (await call('docs_create', { text, data: { title: 'Long' } })) as { doc: { id: string } }
    target = made.doc.id
  })

  test('is read in parts of one version', async () => {
    const first = await call('docs_read', { target })
    expect(first.doc).toMatchObject({ text_truncated: true, text_bytes: 60_000, size: 60_000, version: 1 })
    expect(first.doc).not.toHaveProperty('sha256')
    expect(first.hint).toMatch(/^to continue reading: docs_read with target \w+, version 1 and text_offset \d+$/)
    const whole = await read('docs_read', { target, data: { version: 1 } }, 'doc')
    expect([whole.text, whole.last.text_sha256, whole.last.sha256]).toEqual([text, sha256(text), sha256(text)])
    const uri = `board://doc/${target}?text_offset=${(first.doc as Json).text_next_offset}`
    const { result } = await rpc(board, 'resources/read', { uri }, { token })
    const [{ text: further }] = result.contents as [{ text: string }]
    expect(text.startsWith(`${(first.doc as Json).text}${JSON.parse(further).doc.text}`)).toBe(true)
  })

  test('keeps what its writer was not shown', async () => {
    const { doc } = (await call('docs_read', { target })) as { doc: Json }
    const write = (more: Json) =>
      call('docs_write', { target, text: `${doc.text} and more`, data: { base_version: 1 }, ...more })
    const refused = await write({})
    expect(refused.error).toMatchObject({
      code: 'missing_field',
      field: 'replaces_sha256',
      message: expect.stringContaining('60000 bytes'),
    })
    expect((await write({ replaces_sha256: sha256(String(doc.text)) })).error).toMatchObject({ code: 'conflict' })
    expect((await read('docs_read', { target }, 'doc')).text).toBe(text)
    const { last } = await read('docs_read', { target }, 'doc')
    const replaces_sha256 = last.text_sha256 as string
    expect(await write({ text: `${text}and more\n`, replaces_sha256 })).toMatchObject({ doc: { version: 2 } })
  })

  test('two texts that do not fit together are both shown in part, with the way to the rest', async () => {
    const replaces_sha256 = sha256(text)
    const conflict = await call('docs_write', {
      target,
      text: `${text.replace(/\n$/, '')}other words\n`,
      data: { base_version: 1 },
      replaces_sha256,
    })
    expect(conflict).toMatchObject({
      ok: false,
      error: { code: 'conflict', details: { version: 2, text_truncated: true, base_truncated: true } },
      hint: expect.stringMatching(new RegExp(`^to continue reading: docs_read with target ${target}, version 2 and`)),
    })
  })
})

test('all news that arrives during a wait is delivered, however long', async () => {
  await client.post(person('reporter'), { room: 'news', text: 'a room to wait in' })
  const { cursor: from } = await call('updates_get', {})
  let first: Json | undefined
  const waiting = call('updates_get', { data: { wait: 50, rooms: ['news'] } }).then((answer) => {
    first = answer
    return answer
  })
  const posted: string[] = []
  const post = async () => {
    const { data } = await client.post(person('reporter'), { room: 'news', text: written(12_000) })
    posted.push(data.event_id!)
  }
  while (first === undefined) await post()
  for (let n = 0; n < 6; n++) await post()
  const told = async (begun: Json): Promise<string[]> => {
    const heard: string[] = []
    for (let answer = begun; ; ) {
      for (const { event } of answer.updates as { event?: Listed }[])
        if (event !== undefined) heard.push(event.event_id)
      if (heard.at(-1) === posted.at(-1)) return heard
      answer = await call('updates_get', { cursor: answer.cursor as string, data: { wait: 50, rooms: ['news'] } })
    }
  }
  // A wait without a cursor gets everything that arrives from then on.
  const heard = await told(await waiting)
  expect(heard).toEqual(posted.slice(-heard.length))
  expect(await told(await call('updates_get', { cursor: from as string, data: { rooms: ['news'] } }))).toEqual(posted)
})

test('a long delivery to a receive URL is read in parts', async () => {
  const { receiver } = (await call('receiver_create', { data: { label: 'long' } })) as {
    receiver: { id: string; url: string }
  }
  const bodies = ['short', written(150_000), 'short too']
  for (const body of bodies) await fetch(`${board}${receiver.url}`, { method: 'POST', body })
  const { items } = await walked('receiver_items', { target: receiver.id }, 'items')
  expect(items.map(({ item, body_truncated }) => [item, body_truncated])).toEqual([
    [1, undefined],
    [2, true],
    [3, undefined],
  ])
  let body = ''
  for (let text_offset: unknown = 0; text_offset !== undefined; ) {
    const args = { target: receiver.id, data: { after: 1 }, text_offset }
    const [item] = (await call('receiver_items', args)).items as [Json]
    body += item.body
    text_offset = item.body_next_offset
  }
  expect(body).toBe(bodies[1])
})

test('a long answer of a tool is read in parts, and the tool is called once', async () => {
  const value = { list: Array.from({ length: 1_500 }, (_, n) => ({ n, text: randomBytes(8).toString('hex') })) }
  const args = { target: 'broadside:canonical-json', data: { body: { json: JSON.stringify(value) } } }
  const first = await call('tools_call', args)
  const [, request_id] =
    /^to continue reading: call it again with the same arguments, request_id ([\w-]{16}) and/.exec(
      String(first.hint),
    ) ?? []
  let canonical = ''
  for (let shown = first; ; ) {
    const output = shown.output as Json
    canonical += output.canonical
    const { canonical_next_offset: text_offset } = output
    if (text_offset === undefined) break
    shown = await call('tools_call', { ...args, request_id, text_offset })
    expect(shown).toMatchObject({ receipt: { event_id: (first.receipt as Json).event_id, duplicate: true } })
  }
  expect(JSON.parse(canonical)).toEqual(value)
})

test('a list that needs the reader’s own signature is shown in part, with what to sign for the rest', async () => {
  const key = person('own-key')
  const signed = (fields: Record<string, string | number>) =>
    JSON.parse(client.sign(key, { operation: 'events.list', room: 'long-list', ...fields }).body) as Json
  const shown = await call('command', { command: signed({ limit: 100 }) })
  const [, limit] = /^these are (\d+) of 100: sign it again with "limit":\1 for a cursor/.exec(String(shown.hint)) ?? []
  expect([eventsOf(shown).length, shown.next_cursor]).toEqual([Number(limit), undefined])
  const again = await call('command', { command: signed({ limit: Number(limit) }) })
  expect(eventsOf(again).map(({ text }) => text)).toEqual(eventsOf(shown).map(({ text }) => text))
  expect([again.has_more, typeof again.next_cursor]).toEqual([true, 'string'])
})

test('resources continue where their answer ended', async () => {
  const get = async (uri: string): Promise<string> => {
    const { result } = await rpc(board, 'resources/read', { uri }, { token })
    const [{ text }] = result.contents as [{ text: string }]
    expect(tokensAtMost(text)).toBeLessThanOrEqual(10_000)
    return text
  }
  const texts: string[] = []
  for (let place = ''; ; ) {
    const { events, next_cursor } = JSON.parse(await get(`board://room/long-list${place}`)) as {
      events: Listed[]
      next_cursor?: string
    }
    texts.push(...events.map(({ text }) => text))
    if (next_cursor === undefined) break
    place = `?cursor=${next_cursor}`
  }
  expect(texts).toHaveLength(120)
  const guide = await (await fetch(`${board}/for-agents`)).text()
  let read = ''
  for (let next: string | undefined = 'board://for-agents'; next !== undefined; ) {
    const text: string = await get(next)
    const [more, uri] = /\n\[continue at (\S+)\]\n$/.exec(text) ?? []
    read += text.slice(0, text.length - (more?.length ?? 0))
    next = uri
  }
  expect(read).toBe(guide)
  for (const uri of ['board://for-agents?text_offset=999999', 'board://for-agents?page=2', 'board://rooms?cursor=x'])
    expect((await rpc(board, 'resources/read', { uri })).error.code).toBe(-32602)
})
