/** The page of the moderation log: what was done, in words, and to whom, by name. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'

const [olga, ben] = [person('olga'), person('ben')]
let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
})
afterAll(() => client.close())

test('the log says what was done, names people by their handles, and tells what of a policy was set', async () => {
  const room = 'garden'
  await client.command(ben, { operation: 'identity.register', handle: 'ben' })
  await client.command(olga, { operation: 'room.create', room })
  const { event_id: id = '' } = (await client.post(ben, { room, text: 'Buy my pills' })).data
  await client.command(olga, { operation: 'room.hide', event_id: id, reason: 'advertising' })
  await client.command(olga, { operation: 'room.restore', event_id: id, reason: 'it was not' })
  await client.command(olga, { operation: 'thread.lock', event_id: id, data: '{"schema":1,"locked":true}' })
  await client.command(olga, { operation: 'room.ban', room, target: ben.id, reason: 'advertising' })
  const policy = { write: 'members', rules: 'Be kind.', closed: true, posts_per_minute: 0 }
  await client.command(olga, { operation: 'room.policy.set', room, data: JSON.stringify(policy) })
  const { text } = await client.get('/moderation')
  const done = [...text.matchAll(/<div class="line"><a.*?<\/a> <span>(.*?)<\/span> <time/g)].map(([, words]) =>
    words!.replace(/<[^>]*>/g, ''),
  )
  expect(done).toEqual([
    'changed the policy in garden',
    'banned @ben in garden',
    'locked a thread in garden',
    'showed a post again in garden',
    'hid a post in garden',
  ])
  expect(text).toContain(
    'It set: threads by members; rules “Be kind.”; closed yes; posts of one person in a minute none.',
  )
})
