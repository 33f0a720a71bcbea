import { beforeAll, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const [owner, ada, bob] = ['owner', 'ada', 'bob'].map(person) as [Person, Person, Person]
type Person = ReturnType<typeof person>
const directory = boardDirectory()
let board: Board
let client: Client
const room = 'flagged'
const threads: string[] = []

const data = (value: object) => JSON.stringify({ schema: 1, ...value })
const pin = (who: Person, id: string, pinned: boolean) =>
  client.command(who, { operation: 'thread.pin', event_id: id, data: data({ pinned }) })
const lock = (who: Person, id: string, locked: boolean) =>
  client.command(who, { operation: 'thread.lock', event_id: id, data: data({ locked }) })
const listed = async (query = '') =>
  (await client.get(`/api/threads?room=${room}${query}`)).data as unknown as {
    threads: { thread: string; pinned?: true; locked?: true }[]
    pinned?: { thread: string }[]
  }

beforeAll(async () => {
  board = await startBoard({ directory })
  client = await Client.of(board)
  expect((await client.command(owner, { operation: 'room.create', room })).status).toBe(200)
  for (let n = 0; n < 7; n++) threads.push((await client.post(ada, { room, text: `thread ${n}` })).data.event_id!)
})

test('a moderator pins at most five threads, which top the list and the page, newest pin first', async () => {
  const reply = (await client.post(bob, { room, text: 'a reply', reply_to: threads[0]! })).data.event_id!
  expect((await pin(bob, threads[0]!, true)).code).toBe('forbidden')
  expect((await pin(ada, threads[0]!, true)).code).toBe('forbidden')
  // Any event identifies its thread.
  expect((await pin(owner, reply, true)).data).toMatchObject({ thread: threads[0], pinned: true })
  expect((await pin(owner, threads[0]!, true)).code).toBe('wrong_state')
  for (const id of threads.slice(1, 5)) expect((await pin(owner, id, true)).status).toBe(200)
  expect(await pin(owner, threads[5]!, true)).toMatchObject({ code: 'wrong_state' })
  const { pinned, threads: all } = await listed()
  expect(pinned!.map(({ thread }) => thread)).toEqual(threads.slice(0, 5).toReversed())
  expect(all.filter((each) => each.pinned === true)).toHaveLength(5)
  expect((await listed('&order=new')).pinned).toBeUndefined()
  expect((await pin(owner, threads[4]!, false)).data).toMatchObject({ pinned: false })
  const { text } = await client.get(`/room/${room}`)
  const rows = [...text.matchAll(/data-thread="([0-9a-f]{32})"/g)].map(([, id]) => id)
  expect(rows.slice(0, 4)).toEqual(threads.slice(0, 4).toReversed())
  expect(new Set(rows).size).toBe(7)
})

test('a locked thread accepts replies only from moderators, until it is unlocked', async () => {
  const [, , , , , , id] = threads
  expect((await lock(ada, id!, true)).code).toBe('forbidden')
  expect((await lock(owner, id!, true)).data).toMatchObject({ thread: id, locked: true })
  expect(await client.post(ada, { room, text: 'too late', reply_to: id! })).toMatchObject({ code: 'wrong_state' })
  expect((await client.post(owner, { room, text: 'closing words', reply_to: id! })).status).toBe(200)
  expect((await client.post(ada, { room, text: 'another thread' })).status).toBe(200)
  expect((await client.get(`/e/${id}`)).text).toContain('This thread is locked')
  expect((await client.get(`/api/thread/${id}`)).data).toMatchObject({ locked: true })
})

test('pins and locks survive a kill, and are in the moderation log', async () => {
  await board.kill()
  client.close()
  board = await startBoard({ directory })
  client = await Client.of(board)
  const { pinned, threads: all } = await listed()
  expect(pinned!.map(({ thread }) => thread)).toEqual(threads.slice(0, 4).toReversed())
  expect(all.find(({ thread }) => thread === threads[6])).toMatchObject({ locked: true })
  expect((await client.post(ada, { room, text: 'still too late', reply_to: threads[6]! })).code).toBe('wrong_state')
  expect((await lock(owner, threads[6]!, false)).status).toBe(200)
  expect((await client.post(ada, { room, text: 'open again', reply_to: threads[6]! })).status).toBe(200)
  const { text } = await client.get(`/api/modlog?room=${room}`)
  expect(text.match(/"thread\.(pin|lock)"/g)!.length).toBe(8)
  client.close()
  await board.stop()
})
