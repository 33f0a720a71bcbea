/** What a search on a board finds and refuses: by GET, by command, on the page, in public and in a private room. */
import { request } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openDatabase } from '../../src/sqlite.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { filesUnder } from '../support/files-under.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const [ada, bob] = [person('search ada'), person('search bob')]
const proxy = 'x-client'
const directory = boardDirectory()
// No request is refused for its frequency, only for what a search costs others.
const env = {
  BROADSIDE_LIMITS: 'on',
  TRUST_PROXY: proxy,
  LIMITS: JSON.stringify({ reads_per_address_per_minute: null, writes_per_identity_per_minute: null }),
}
let board: Board
let client: Client

const texts = [
  'Two foxes crossed the road',
  'Grüße aus Köln',
  'The university library',
  'Case studies of caching',
  'Crème brûlée and straße',
] as const

beforeAll(async () => {
  board = await startBoard({ directory, env })
  client = await Client.of(board)
  for (const text of texts) {
    const posted = await client.post(ada, { room: 'zoo', handle: 'ada-of-search', text })
    expect(posted.code).toBe(undefined)
  }
  await client.post(bob, { room: 'pack', kind: 'request', text: 'A fox, please' })
  await client.post(bob, { room: 'den', text: 'My fox sleeps' })
  await client.command(ada, { operation: 'room.create', room: 'search-burrow', visibility: 'private' })
  for (const text of texts) await client.post(ada, { room: 'search-burrow', text })
})
afterAll(() => client.close())

async function found(query: string, more = ''): Promise<string[]> {
  const answer = await client.get(`/api/events?query=${encodeURIComponent(query)}${more}`)
  expect(answer.text).not.toContain('"error"')
  return answer.data.events!.map(({ text }) => text!)
}

async function foundInPrivate(query: string): Promise<string[]> {
  const answer = await client.command(ada, { operation: 'events.list', room: 'search-burrow', query })
  expect(answer.text).not.toContain('"error"')
  return answer.data.events!.map(({ text }) => text!)
}

const [foxes, greetings, university, studies, sweet] = texts

test.each([
  ['foxes', [foxes]],
  ['crossing', [foxes]],
  ['"foxes"', [foxes]],
  ['"fox"', []],
  ['fox road', [foxes]],
  ['grüsse', [greetings]],
  ['GRÜSSE', [greetings]],
  ['Grüße', [greetings]],
  ['grusse koln', [greetings]],
  ['strasse', [sweet]],
  ['"creme brulee"', [sweet]],
  ['"brulee creme"', []],
  ['universi*', [university]],
  ['un*', [university]],
  ['uni* lib*', [university]],
  ['study', [studies]],
  ['cache', [studies]],
  ['cache -studies', []],
  ['road -"the road"', []],
  ['road -"a road"', [foxes]],
] as const)('in public and in a private room %s finds %j', async (query, expected) => {
  expect(await foundInPrivate(query)).toEqual(expected)
  expect(await found(query, '&room=zoo')).toEqual(expected)
})

test('from, room and kind in the query work as the fields beside it do', async () => {
  const [all, ofBob, ofAda] = [['My fox sleeps', 'A fox, please', foxes], ['My fox sleeps', 'A fox, please'], [foxes]]
  expect(await found('fox')).toEqual(all)
  expect(await found('fox from:ada-of-search')).toEqual(ofAda)
  expect(await found('from:@Ada-of-Search fox')).toEqual(ofAda)
  expect(await found(`fox from:${bob.id}`)).toEqual(ofBob)
  expect(await found('fox room:zoo')).toEqual([foxes])
  expect(await found('fox kind:request')).toEqual(['A fox, please'])
  expect(await found(`fox room:pack from:${bob.id}`)).toEqual(['A fox, please'])
  expect(await found('fox room:zoo', '&room=zoo')).toEqual([foxes])
  expect(await foundInPrivate('fox from:ada-of-search')).toEqual([foxes])
  expect(await foundInPrivate(`fox from:${bob.id}`)).toEqual([])
  const first = await client.get(`/api/events?limit=1&query=fox+from:${bob.id}`)
  const second = await client.get(`/api/events?limit=1&query=fox+from:${bob.id}&cursor=${first.data.next_cursor}`)
  expect([first, second].flatMap(({ data }) => data.events!.map(({ text }) => text))).toEqual(ofBob)
  const page = await client.get('/search?q=fox+from:ada-of-search')
  expect(page.text).toContain(foxes)
  expect(page.text).not.toContain('My fox sleeps')
})

test.each([
  ['f*', 'a prefix in query needs at least 2 letters or digits before its *, and f* has fewer'],
  ['aa* bb* cc* dd* ee*', 'query may have at most 4 prefixes (word*)'],
  ['-fox', 'query must contain at least one word'],
  ['from:ada-of-search', 'query must contain at least one word'],
  ['fox from:', 'from: in query must be followed directly by its value'],
  ['fox from:!', 'from: in query must be followed by a handle or by an identity id'],
  ['fox -from:bob', '-from: is not known in query'],
  ['fox room:No!', 'room: in query must be followed by 1 to 64 of a-z'],
  ['fox after:3', 'after: in query must be followed by a day in UTC such as 2026-01-31'],
])('%s is refused with a sentence that says why', async (query, sentence) => {
  const answer = await client.get(`/api/events?query=${encodeURIComponent(query)}`)
  expect(answer).toMatchObject({ status: 400, code: 'invalid_field', field: 'query' })
  expect(answer.text).toContain(sentence)
  const command = await client.command(ada, { operation: 'events.list', query, room: 'search-burrow' })
  expect(command).toMatchObject({ status: 400, code: 'invalid_field', field: 'query' })
  const page = await client.get(`/search?q=${encodeURIComponent(query)}`)
  expect(page.status).toBe(200)
  expect(page.text).toContain(sentence.replace(/ of a-z.*/, ''))
})

test('a query with an unknown name, or two names where one is allowed, is refused', async () => {
  expect(await client.get('/api/events?query=fox+from:nobody-there')).toMatchObject({
    code: 'not_found',
    field: 'query',
  })
  expect(await client.get(`/api/events?query=fox+from:${bob.id}&author=${ada.id}`)).toMatchObject({
    code: 'invalid_field',
    field: 'query',
  })
  expect(await client.get('/api/events?query=fox+room:zoo&room=den')).toMatchObject({ code: 'invalid_field' })
  expect(await client.get('/api/events?query=fox+room:nowhere')).toMatchObject({ code: 'not_found', field: 'room' })
})

/** Status and headers of a search from this address; undefined if it timed out. */
function searchFrom(
  address: string,
  query: string,
  giveUpMs?: number,
): Promise<{ status: number; retry?: string } | undefined> {
  return new Promise((resolve, reject) => {
    const path = `${client.address}/api/events?limit=200&query=${encodeURIComponent(query)}`
    const sent = request(path, { headers: { [proxy]: address }, agent: false }, (answer) => {
      const retry = answer.headers['retry-after']
      answer.resume()
      answer.on('end', () => resolve({ status: answer.statusCode!, ...(retry === undefined ? {} : { retry }) }))
    })
    sent.on('error', (error) => (giveUpMs === undefined ? reject(error) : resolve(undefined)))
    if (giveUpMs !== undefined) setTimeout(() => sent.destroy(), giveUpMs)
    sent.end()
  })
}

test('while one address floods it, the search answers every other', async () => {
  const flood = Array.from({ length: 400 }, (_, n) => {
    const query = `th* un* st* ro* "of the road" "two foxes crossed" -x${n}`
    return searchFrom('192.0.2.66', query, n % 3 === 0 ? 5 : undefined)
  })
  for (let n = 0; n < 40; n++) {
    expect(await searchFrom(`198.51.100.${n}`, `fox -y${n}`)).toEqual({ status: 200 })
    expect(await searchFrom(`2001:db8:${n}::1`, `road -z${n}`)).toEqual({ status: 200 })
  }
  for (const answer of await Promise.all(flood)) {
    if (answer?.status === 429) expect(Number(answer.retry)).toBeGreaterThan(0)
    else if (answer !== undefined) expect(answer).toEqual({ status: 200 })
  }
  expect(await searchFrom('192.0.2.66', 'fox')).toEqual({ status: 200 })
})

test('a search counts its matches, highlights the words, and sorts by relevance on request', async () => {
  const about = 'Zebrafish: keeping zebrafish'
  const posts = [
    about,
    `${'other words '.repeat(80)}zebrafish`,
    ...Array.from({ length: 5 }, (_, n) => `zebrafish ${n}`),
  ]
  for (const text of posts) await client.post(ada, { room: 'aquarium', text })
  const search = async (more: string) =>
    (await client.get(`/api/events?query=zebrafish&limit=3${more}`)).data as unknown as {
      events: { text: string; highlights: [number, number][] }[]
      total?: number
      next_cursor?: string
    }
  const first = await search('')
  expect([first.total, first.events[0]!.text, first.events[0]!.highlights]).toEqual([7, 'zebrafish 4', [[0, 9]]])
  expect((await search(`&cursor=${first.next_cursor}`)).total).toBeUndefined()
  expect(await search('&order=new')).toMatchObject({ events: first.events, total: 7 })
  const best: string[] = []
  let cursor = ''
  for (let page = 0; page < 3; page++) {
    const { events, total, next_cursor } = await search(`&order=relevance${cursor}`)
    expect(total).toBe(7)
    best.push(...events.map(({ text }) => text))
    cursor = `&cursor=${next_cursor}`
  }
  expect(best[0]).toBe(about)
  expect(best.at(-1)).toBe(posts[1])
  expect([...best].sort()).toEqual([...posts].sort())
  expect(await client.get('/api/events?order=relevance')).toMatchObject({ code: 'missing_field', field: 'query' })
  expect(await client.get(`/api/events?query=zebrafish${cursor.replace('undefined', 'x')}`)).toMatchObject({
    status: 400,
  })
})

test('dates in a query exclude what is older or newer, in public and in private', async () => {
  const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10)
  expect(await found(`foxes room:zoo after:${day(-1)} before:${day(2)}`)).toEqual([foxes])
  expect(await found(`foxes room:zoo after:${day(2)}`)).toEqual([])
  expect(await found(`foxes room:zoo before:${day(-1)}`)).toEqual([])
  expect(await found(`foxes room:zoo after:${day(-1)}`, '&order=asc')).toEqual([foxes])
  expect(await found(`foxes room:zoo before:${day(-1)}`, '&order=asc')).toEqual([])
  expect(await foundInPrivate(`foxes after:${day(-1)} before:${day(2)}`)).toEqual([foxes])
  expect(await foundInPrivate(`foxes after:${day(2)}`)).toEqual([])
  const inPrivate = {
    operation: 'events.list',
    room: 'search-burrow',
    query: 'foxes',
    data: '{"schema":1,"order":"relevance"}',
  }
  const { data } = await client.command(ada, inPrivate)
  expect((data.events as unknown as { highlights: unknown }[])[0]!.highlights).toEqual([[4, 9]])
})

test('an index of the previous format is rebuilt automatically, and nothing of it remains', async () => {
  client.close()
  await board.stop()
  const searched = join(directory, 'search')
  const before = openDatabase(join(searched, 'index.db'))
  before.exec(`
    UPDATE meta SET value = '1' WHERE name = 'format';
    CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = "unicode61 remove_diacritics 2");
    INSERT INTO texts (rowid, text) VALUES (1, 'takenbackword');
  `)
  before.close()
  board = await startBoard({ directory, env })
  client = await Client.of(board)
  await vi.waitFor(async () => expect(await found('grüsse room:zoo')).toEqual([greetings]), patience)
  for (const [name, bytes] of filesUnder(searched))
    expect([name, bytes.includes('takenbackword')]).toEqual([name, false])
})

test('a page of a search in a private room examines a text that grows when it is folded for what it becomes', async () => {
  const room = 'search-den'
  await client.command(ada, { operation: 'room.create', room, visibility: 'private' })
  // Each of these characters is compared as 18.
  const long = '\ufdfa'.repeat(10_000)
  await client.post(ada, { room, text: `needle ${long}` })
  for (let n = 0; n < 8; n++) await client.post(ada, { room, text: `${n} ${long}` })
  const search = async (cursor?: string) =>
    (await client.command(ada, { operation: 'events.list', room, query: 'needle', ...(cursor && { cursor }) })).data
  let page = await search()
  expect(page).toMatchObject({ events: [], has_more: true })
  while (page.events?.length === 0 && page.next_cursor !== undefined) page = await search(page.next_cursor)
  expect(page.events).toHaveLength(1)
})

test('so does a page of public ones, whose matches have to be marked', async () => {
  const room = 'search-long'
  const ids: string[] = []
  for (let n = 0; n < 3; n++) {
    const posted = await client.post(ada, { room, text: `needle ${n} ${'\ufdfa'.repeat(10_000)}` })
    ids.unshift(posted.data.event_id!)
  }
  for (const order of ['desc', 'relevance']) {
    const seen: string[] = []
    for (let cursor = '', more = true; more; ) {
      const query = `query=needle&room=${room}&order=${order}${cursor === '' ? '' : `&cursor=${cursor}`}`
      const { events = [], has_more = false, next_cursor = '' } = (await client.get(`/api/events?${query}`)).data
      expect(events.length).toBeLessThanOrEqual(1)
      seen.push(...events.map(({ event_id }) => event_id))
      more = has_more
      cursor = next_cursor
    }
    expect(seen.toSorted()).toEqual(ids.toSorted())
  }
})
