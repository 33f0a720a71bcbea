/** Lists of threads on a real board: what a row contains, which threads are where, and the same lists after any restart. */
import { rmSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { feedSnapshotsDirectory } from '../../src/board-directory.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'

type Row = {
  readonly thread: string
  readonly title: string
  readonly excerpt?: string
  readonly room: string
  readonly replies: number
  readonly participants: number
  readonly last: { readonly event_id: string; readonly author: { readonly id: string } }
  readonly votes: { readonly up: number; readonly down: number; readonly score: number }
}
type Rows = { readonly threads: readonly Row[]; readonly next_cursor?: string; readonly has_more: boolean }

const [ann, ben, cat, operator] = ['ann', 'ben', 'cat', 'operator'].map((name) => person(`threads ${name}`)) as [
  Signer,
  Signer,
  Signer,
  Signer,
]
type Signer = ReturnType<typeof person>

const directory = boardDirectory()
const env = { OPERATORS: operator.id }
let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory, env })
  client = await Client.of(board)
})
afterAll(async () => {
  client?.close()
  await board?.stop()
})

async function say(who: Signer, fields: Record<string, string>): Promise<string> {
  const { status, text, data } = await client.post(who, fields)
  expect([status, status === 200 ? '' : text]).toEqual([200, ''])
  return data.event!.event_id
}

async function done(who: Signer, fields: Record<string, string> & { operation: string }): Promise<void> {
  const { status, text } = await client.command(who, fields)
  expect([status, status === 200 ? '' : text]).toEqual([200, ''])
}

async function rows(query: string): Promise<Rows> {
  const { status, text, data } = await client.get(`/api/threads?${query}`)
  expect([query, status, status === 200 ? '' : text]).toEqual([query, 200, ''])
  return data as unknown as Rows
}

const titles = ({ threads }: Rows) => threads.map(({ title }) => title)
const markdown = '{"schema":1,"format":"markdown"}'

test('a row has a title and an excerpt without Markdown, and counts only visible posts', async () => {
  const text = '\n# **Ship** the [plan](https://a.example/x)\n\n- first *point*\n\n```js\nconst a = 1\n```'
  const root = await say(ann, { room: 'rows', text, data: markdown })
  const reply = await say(ben, { room: 'rows', text: 'Yes.', reply_to: root })
  const last = await say(ann, { room: 'rows', text: 'Thanks.', reply_to: reply })
  await done(cat, { operation: 'vote', event_id: root, data: '{"value":1}' })
  await done(cat, { operation: 'vote', event_id: reply, data: '{"value":-1}' })
  const [row] = (await rows('room=rows')).threads
  expect(row).toMatchObject({
    thread: root,
    title: 'Ship the plan',
    excerpt: 'first point const a = 1',
    replies: 2,
    participants: 2,
    last: { event_id: last, author: { id: ann.id } },
    votes: { up: 1, down: 1, score: 0 },
  })
  expect((await client.get(`/api/thread/${reply}`)).data).toMatchObject({
    title: 'Ship the plan',
    replies: 2,
    participants: 2,
  })
  await done(ann, { operation: 'event.redact', event_id: last, reason: 'a slip' })
  expect((await rows('room=rows')).threads[0]).toMatchObject({ replies: 1, last: { event_id: reply } })
  await say(ann, { room: 'rows', text: 'Plain words', data: `{"schema":1,"supersedes":"${root}"}` })
  expect(titles(await rows('room=rows'))).toEqual(['Plain words'])
})

test('a long line is cut at the end of a word, and a long word is cut anywhere', async () => {
  await say(ann, { room: 'long', text: 'word '.repeat(60) })
  await say(ann, { room: 'long', text: '\u{1f600}'.repeat(300) })
  const [emoji, words] = (await rows('room=long')).threads
  expect(words!.title).toBe(`${'word '.repeat(24).trim()}…`)
  expect(words!.excerpt!.length).toBeLessThanOrEqual(200)
  expect([...emoji!.title]).toHaveLength(120)
  expect(emoji!.title.isWellFormed()).toBe(true)
})

test('hidden and redacted posts are [removed], and a thread with none left is in no list', async () => {
  const root = await say(ann, { room: 'gone', text: 'A secret title' })
  const reply = await say(ben, { room: 'gone', text: 'I saw it', reply_to: root })
  await done(operator, { operation: 'room.hide', event_id: root, reason: 'spam' })
  const { text } = await client.get('/api/threads?room=gone')
  expect(text).not.toContain('secret')
  const [row] = (await rows('room=gone')).threads
  expect(row).toMatchObject({ title: '[removed]', replies: 1, participants: 1 })
  expect(row!.excerpt).toBeUndefined()
  await done(ben, { operation: 'event.redact', event_id: reply, reason: 'mine' })
  expect((await rows('room=gone')).threads).toEqual([])
  await done(operator, { operation: 'room.restore', event_id: root, reason: 'no spam' })
  expect(titles(await rows('room=gone'))).toEqual(['A secret title'])
})

test('rooms excluded from the front page are listed only by name, and private ones only for members', async () => {
  const policy = (front_page: boolean) => ({
    operation: 'room.policy.set',
    room: 'backroom',
    data: JSON.stringify({ front_page }),
  })
  await done(ann, { operation: 'room.create', room: 'backroom' })
  await say(ann, { room: 'backroom', text: 'Noise of machines' })
  await done(ann, policy(false))
  expect(titles(await rows('limit=200'))).not.toContain('Noise of machines')
  expect(titles(await rows('room=backroom'))).toEqual(['Noise of machines'])
  await done(ann, policy(true))
  expect(titles(await rows('limit=200'))).toContain('Noise of machines')

  await done(ann, { operation: 'room.create', room: 'den', visibility: 'private' })
  await done(ann, { operation: 'room.member.add', room: 'den', target: ben.id })
  await say(ann, { room: 'den', text: 'Between us' })
  const asked = { operation: 'threads.list', room: 'den' }
  const inside = await client.command(ben, asked)
  expect(titles(inside.data as unknown as Rows)).toEqual(['Between us'])
  expect((await client.get('/api/threads?room=den')).code).toBe('private_room')
  for (const order of ['active', 'new', 'top&window=all'])
    for (const whose of ['', `&author=${ann.id}`])
      expect(titles(await rows(`limit=200&order=${order}${whose}`))).not.toContain('Between us')
  await done(ann, { operation: 'room.member.remove', room: 'den', target: ben.id })
  expect((await client.command(ben, asked)).code).toBe('private_room')
})

test('a cursor of another list or an invalid one is refused; a page needs its room', async () => {
  const { next_cursor: cursor } = await rows('limit=1&order=new')
  for (const query of ['order=active', 'order=top', 'order=new&room=rows', `order=new&author=${ann.id}`])
    expect((await client.get(`/api/threads?${query}&cursor=${cursor}`)).code).toBe('invalid_field')
  expect((await client.get('/api/threads?cursor=AAAA')).code).toBe('invalid_field')
  expect((await client.get('/api/threads?page=main')).code).toBe('missing_field')
  expect((await client.get('/api/threads?order=best')).code).toBe('invalid_field')
  expect(await rows('room=rows&page=none')).toEqual({ threads: [], has_more: false })
})

test('a long thread is read from its end, and around a post, without a gap', async () => {
  const root = await say(ann, { room: 'around', text: 'post 0' })
  const ids = [root]
  for (let n = 1; n < 60; n++) ids.push(await say(ben, { room: 'around', text: `post ${n}`, reply_to: root }))
  type Page = { events: { text: string }[]; next_cursor?: string; has_earlier?: boolean; earlier_cursor?: string }
  const page = async (query: string, id = root) =>
    (await client.get(`/api/thread/${id}?limit=8&${query}`)).data as unknown as Page
  const numbers = ({ events }: Page) => events.map(({ text }) => Number(text.slice(5)))
  const range = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n)
  const down: number[] = []
  for (let cursor = ''; ; ) {
    const found = await page(`order=desc${cursor}`)
    down.push(...numbers(found))
    if (found.next_cursor === undefined) break
    cursor = `&cursor=${found.next_cursor}`
  }
  expect(down).toEqual(range(0, 60).reverse())
  const near = await page('start=event', ids[30])
  expect([numbers(near), near.has_earlier]).toEqual([range(28, 36), true])
  expect(numbers(await page(`cursor=${near.next_cursor}`, ids[30]))).toEqual(range(36, 44))
  const before = await page(`cursor=${near.earlier_cursor}`, ids[30])
  expect(numbers(before)).toEqual(range(20, 28))
  expect(numbers(await page('start=event', ids[1]))).toEqual(range(0, 8))
  const second = await page('start=event', ids[5])
  expect([numbers(second), second.has_earlier, second.earlier_cursor]).toEqual([range(3, 11), true, undefined])
  expect((await page('')).has_earlier).toBe(false)
  expect((await client.get(`/api/thread/${root}?order=desc&cursor=${near.next_cursor}`)).code).toBe('invalid_field')
})

test('a thread bumped while a list is read shows on reload, and nothing is listed twice', async () => {
  const ids: string[] = []
  for (let n = 0; n < 5; n++) ids.push(await say(ann, { room: 'moving', text: `thread ${n}` }))
  const first = await rows('room=moving&limit=2')
  expect(titles(first)).toEqual(['thread 4', 'thread 3'])
  await say(ben, { room: 'moving', text: 'up', reply_to: ids[1]! })
  const second = await rows(`room=moving&limit=5&cursor=${first.next_cursor}`)
  expect(titles(second)).toEqual(['thread 2', 'thread 0'])
  expect(titles(await rows('room=moving'))).toEqual(['thread 1', 'thread 4', 'thread 3', 'thread 2', 'thread 0'])
})

test('the lists are the same after a start from snapshots, and after one from the journals alone', async () => {
  const asked = ['', 'room=moving', 'order=new', 'order=top&window=day', 'order=top&window=all', `author=${ann.id}`]
  const all = async () => Promise.all(asked.map(async (query) => (await rows(`limit=200&${query}`)).threads))
  const before = await all()
  for (const isReplayed of [false, true]) {
    client.close()
    await board.stop()
    if (isReplayed) rmSync(feedSnapshotsDirectory(directory), { recursive: true })
    board = await startBoard({ directory, env })
    client = await Client.of(board)
    expect(await all()).toEqual(before)
  }
})
