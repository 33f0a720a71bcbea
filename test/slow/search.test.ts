import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, person, walkPages } from '../support/client.ts'
import { filesUnder } from '../support/files-under.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const [ada, ben, eve, operator] = ['ada', 'ben', 'eve', 'operator'].map((name) => person(`search ${name}`)) as [
  Signer,
  Signer,
  Signer,
  Signer,
]
type Signer = ReturnType<typeof person>

const directory = boardDirectory()
const env = { SHARDS: '2', OPERATORS: operator.id }
let board: Board
let client: Client

async function found(query: string, more = ''): Promise<string[]> {
  const answer = await client.get(`/api/events?query=${encodeURIComponent(query)}${more}`)
  expect(answer.code).toBe(undefined)
  return answer.data.events!.map(({ text }) => text!)
}

async function post(
  signer: Signer,
  fields: { readonly text: string } & Record<string, string | number>,
): Promise<string> {
  const answer = await client.post(signer, fields)
  expect(answer.code).toBe(undefined)
  return answer.data.event_id!
}

beforeAll(async () => {
  board = await startBoard({ directory, env })
  client = await Client.of(board)
})
afterAll(() => client.close())

test('the index does not exist before somebody searches', async () => {
  await post(ada, { text: 'the quick brown fox' })
  expect(existsSync(join(directory, 'search'))).toBe(false)
})

test('a post is found by its words as soon as it is answered', async () => {
  expect(await found('brown quick')).toEqual(['the quick brown fox'])
  for (let n = 0; n < 20; n++) {
    await post(n % 2 === 0 ? ada : ben, { text: `numbered${n} seriesword` })
    expect(await found(`numbered${n}`)).toEqual([`numbered${n} seriesword`])
  }
  const query = (await client.command(eve, { operation: 'events.list', query: 'numbered3' })).data.events
  expect(query?.map(({ text }) => text)).toEqual(['numbered3 seriesword'])
})

test('words, phrases, excluded words and prefixes match, regardless of case and marks', async () => {
  await post(ada, { text: 'Crème brûlée, with SUGAR' })
  expect(await found('creme BRULEE')).toEqual(['Crème brûlée, with SUGAR'])
  expect(await found('"quick brown"')).toEqual(['the quick brown fox'])
  expect(await found('"brown quick"')).toEqual([])
  expect(await found('quick -fox')).toEqual([])
  expect(await found('suga*')).toEqual(['Crème brûlée, with SUGAR'])
  expect(await found('"unclosed quote')).toEqual([])
  for (const query of ["' OR 1=1 --", 'NEAR(a b)', 'text:quick AND', '(((', '^quick* +fox']) await found(`x${query}`)
})

test('results are newest first, in pages that add up to the whole', async () => {
  const path = '/api/events?query=seriesword&limit=7'
  const pages = await walkPages(client, path)
  const whole = pages.flatMap(({ data }) => data.events!.map(({ text }) => text))
  expect(whole).toEqual(Array.from({ length: 20 }, (_, n) => `numbered${19 - n} seriesword`))
  const up = (await walkPages(client, `${path}&order=asc`)).flatMap(({ data }) => data.events!.map(({ text }) => text))
  expect(up).toEqual(whole.toReversed())
  const { next_cursor } = pages[0]!.data
  for (const other of ['query=numbered1', 'query=seriesword&order=asc', 'room=lobby'])
    expect(await client.get(`/api/events?${other}&cursor=${next_cursor}`)).toMatchObject({
      status: 400,
      field: 'cursor',
    })
})

test('a search can be combined with room, page, author, kind and numbers', async () => {
  await post(ada, { room: 'kitchen', page: 'soups', kind: 'request', text: 'needle one' })
  await post(ben, { room: 'kitchen', text: 'needle two' })
  await post(ben, { text: 'needle three' })
  expect(await found('needle')).toEqual(['needle three', 'needle two', 'needle one'])
  expect(await found('needle', '&room=kitchen')).toEqual(['needle two', 'needle one'])
  expect(await found('needle', '&room=kitchen&page=soups')).toEqual(['needle one'])
  expect(await found('needle', '&kind=request')).toEqual(['needle one'])
  expect(await found('needle', `&author=${ben.id}`)).toEqual(['needle three', 'needle two'])
  expect(await found('needle', '&room=kitchen&before=2')).toEqual(['needle one'])
  expect(await found('needle', '&room=kitchen&after=1')).toEqual(['needle two'])
})

test('edited, hidden, redacted and expired posts are found in their current state', async () => {
  const edited = await post(ada, { text: 'oldword here' })
  await post(ada, { text: 'newword here', data: JSON.stringify({ schema: 1, supersedes: edited }) })
  expect(await found('oldword')).toEqual([])
  expect(await found('newword')).toEqual(['newword here'])

  const hidden = await post(ada, { text: 'hiddenword' })
  const hide = (operation: string) => client.command(operator, { operation, event_id: hidden, reason: 'test' })
  expect((await hide('room.hide')).code).toBe(undefined)
  expect(await found('hiddenword')).toEqual([])
  await hide('room.restore')
  expect(await found('hiddenword')).toEqual(['hiddenword'])

  const redacted = await post(ada, { text: 'redactedword' })
  expect(await found('redactedword')).toEqual(['redactedword'])
  await client.command(ada, { operation: 'event.redact', event_id: redacted, reason: 'test' })
  expect(await found('redactedword')).toEqual([])
  for (const [name, bytes] of filesUnder(join(directory, 'search')))
    expect([name, bytes.includes('redactedword')]).toEqual([name, false])

  await post(ada, { text: 'expiringword', ttl: 1 })
  await vi.waitFor(async () => expect(await found('expiringword')).toEqual([]), patience)
})

test('a private room is searched only by its members', async () => {
  const room = 'search-cellar'
  await client.command(ada, { operation: 'room.create', room, visibility: 'private', members: [ben.id] })
  for (let n = 0; n < 5; n++) await post(ada, { room, text: `cellarword${n} Ünder seriesword` })
  const list = async (signer: Signer, fields: Omit<Fields, 'operation'>) =>
    client.command(signer, { operation: 'events.list', room, ...fields } as Fields)
  const texts = (await list(ben, { query: 'seriesword under -cellarword3' })).data.events?.map(({ text }) => text)
  expect(texts).toEqual([4, 2, 1, 0].map((n) => `cellarword${n} Ünder seriesword`))
  const first = await list(ben, { query: 'cellarword*', limit: 3 })
  const next = await list(ben, { query: 'cellarword*', limit: 3, cursor: first.data.next_cursor! })
  expect([first, next].map(({ data }) => [data.events?.length, data.has_more])).toEqual([
    [3, true],
    [2, false],
  ])
  expect(await list(eve, { query: 'seriesword' })).toMatchObject({ status: 403, code: 'private_room' })
  expect(await found('cellarword0')).toEqual([])
  expect(await client.get(`/api/events?room=${room}&query=seriesword`)).toMatchObject({ code: 'private_room' })
  for (const [name, bytes] of filesUnder(join(directory, 'search')))
    expect([name, bytes.includes('cellarword')]).toEqual([name, false])
})

test('a search in a private room examines a bounded number of bytes per page, and the cursor continues', async () => {
  const room = 'search-attic'
  await client.command(ada, { operation: 'room.create', room, visibility: 'private' })
  const long = 'a '.repeat(16_000)
  for (let n = 0; n < 40; n++) await post(ada, { room, text: n === 0 ? `${long}b` : long })
  const query = `"${'a '.repeat(60)}b" -"${'b '.repeat(20)}"`
  const pages: (number | undefined)[] = []
  let cursor = ''
  do {
    const fields = { operation: 'events.list', room, query, ...(cursor === '' ? {} : { cursor }) }
    const { data } = await client.command(ada, fields)
    pages.push(data.events?.length)
    cursor = data.next_cursor ?? ''
  } while (cursor !== '')
  expect(pages).toEqual([0, 0, 1])
})

test('unsearchable queries are refused', async () => {
  for (const query of ['!!!', '-word', '""'])
    expect(await client.get(`/api/events?query=${encodeURIComponent(query)}`)).toMatchObject({
      status: 400,
      code: 'invalid_field',
      field: 'query',
    })
  expect(await client.get('/api/events?query=a&before=3')).toMatchObject({ code: 'missing_field', field: 'room' })
  expect(await client.get('/api/events?query=a&room=nowhere')).toMatchObject({ code: 'not_found', field: 'room' })
})

test('the index survives a stop and a kill, and is rebuilt when it is missing or damaged', async () => {
  const before = await found('seriesword')
  const again = async (how: 'stop' | 'kill', change: () => void) => {
    client.close()
    await board[how]()
    change()
    board = await startBoard({ directory, env })
    client = await Client.of(board)
    expect(await found('seriesword')).toEqual(before)
    expect(await found('redactedword')).toEqual([])
  }
  await again('stop', () => {})
  await again('kill', () => {})
  await again('stop', () => rmSync(join(directory, 'search'), { recursive: true }))
  expect(board.lines.join('\n')).not.toContain('ExperimentalWarning')
})
