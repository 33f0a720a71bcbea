/** Follows, positions and mutes on a real board: visible only to their owner, and the same on every device and after any restart. */
import { rmSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  feedSnapshotsDirectory,
  logDirectory,
  shardDirectory,
  shardSnapshotsDirectory,
} from '../../src/board-directory.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, person } from '../support/client.ts'
import { filesUnder } from '../support/files-under.ts'

type Signer = ReturnType<typeof person>
type Followed = {
  readonly room: string
  readonly thread?: string
  readonly title?: string
  readonly seen: number
  readonly new?: number
  readonly readable: boolean
}

const [ann, ben, cat, dan] = ['ann', 'ben', 'cat', 'dan'].map((name) => person(`follows ${name}`)) as [
  Signer,
  Signer,
  Signer,
  Signer,
]
const directory = boardDirectory()
const env = { SHARDS: '2' }
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

async function done(who: Signer, fields: Fields): Promise<Record<string, never>> {
  const { status, text, data } = await client.command(who, fields)
  expect([fields.operation, status, status === 200 ? '' : text]).toEqual([fields.operation, 200, ''])
  return data as unknown as Record<string, never>
}
const say = async (who: Signer, fields: Record<string, string>) =>
  String((await done(who, { operation: 'post', ...fields })).event_id)
const followsOf = async (who: Signer) =>
  (await done(who, { operation: 'follows.list' })).follows as unknown as readonly Followed[]
const inboxOf = (who: Signer) =>
  done(who, { operation: 'inbox.get' }) as unknown as Promise<{
    items: readonly { from: string }[]
    follows: readonly Followed[]
    seen: number
  }>
const seen = (data: object): Fields => ({ operation: 'inbox.seen', data: JSON.stringify({ schema: 1, ...data }) })

test('news in a followed room and thread is counted from the follow on, without one’s own posts', async () => {
  await done(ann, { operation: 'room.create', room: 'den', visibility: 'private' })
  await done(ann, { operation: 'room.member.add', room: 'den', target: ben.id })
  const root = await say(ann, { room: 'hall', text: 'A plan' })
  await say(ann, { room: 'den', text: 'before' })
  expect(await done(ben, { operation: 'room.follow', room: 'hall' })).toMatchObject({
    follow: { room: 'hall', seen: 1 },
  })
  await done(ben, { operation: 'room.follow', room: 'den' })
  await done(ben, { operation: 'thread.follow', event_id: root })
  expect((await followsOf(ben)).map((each) => each.new)).toEqual([0, 0, 0])
  await say(ann, { room: 'hall', text: 'one', reply_to: root })
  await say(ben, { room: 'hall', text: 'my own', reply_to: root })
  await say(cat, { room: 'hall', text: 'another thread' })
  await say(ann, { room: 'den', text: 'in private' })
  expect(await followsOf(ben)).toMatchObject([
    { room: 'hall', thread: root, title: 'A plan', seen: 1, new: 1, readable: true },
    { room: 'den', seen: 1, new: 1 },
    { room: 'hall', seen: 1, new: 2 },
  ])
  const { follows } = await inboxOf(ben)
  expect(follows).toHaveLength(3)
  // Nobody else's.
  expect(await followsOf(ann)).toEqual([])
})

test('positions only grow, are written once a minute, and count the same for each device', async () => {
  expect(await done(ben, seen({ rooms: [{ room: 'hall', seen: 4 }], threads: [], inbox: 5 }))).toMatchObject({
    moved: 2,
  })
  expect((await followsOf(ben)).map((each) => each.new)).toEqual([1, 1, 0])
  expect((await inboxOf(ben)).seen).toBe(5)
  // A position that is not new is accepted without a write, and an older one changes nothing.
  expect(await done(ben, seen({ rooms: [{ room: 'hall', seen: 2 }] }))).toMatchObject({ moved: 0 })
  expect(await done(ben, seen({ rooms: [{ room: 'not-followed', seen: 2 }] }))).toMatchObject({ moved: 0 })
  const again = await client.command(ben, seen({ rooms: [{ room: 'hall', seen: 9 }] }))
  expect([again.status, again.code]).toEqual([429, 'rate_limited'])
  expect(Number(again.headers['retry-after'])).toBeGreaterThan(0)
})

test('a muted identity is left out of one’s own reads, inbox and updates, and of nobody else’s', async () => {
  const loud = await say(cat, { room: 'hall', text: 'loud thread' })
  const calm = await say(ann, { room: 'hall', text: 'calm thread' })
  const cursor = String((await done(dan, { operation: 'updates.get' })).cursor)
  await done(dan, { operation: 'identity.mute', target: cat.id })
  await say(cat, { room: 'hall', text: 'a loud reply', reply_to: calm, to: dan.id })
  await say(ann, { room: 'hall', text: 'a calm reply', reply_to: calm, to: dan.id })
  const commands: Fields[] = [
    { operation: 'events.list', room: 'hall' },
    { operation: 'events.list', room: 'hall', query: 'loud OR thread' },
    { operation: 'events.list', query: 'thread' },
    { operation: 'threads.list', room: 'hall' },
    { operation: 'thread.get', event_id: calm },
    { operation: 'inbox.get' },
    { operation: 'updates.get', cursor },
  ]
  for (const command of commands) {
    const { text, status } = await client.command(dan, command)
    expect([command, status, text.includes('loud'), text.includes(loud)]).toEqual([command, 200, false, false])
  }
  expect((await client.command(dan, { operation: 'updates.get', cursor })).text).toContain('a calm reply')
  for (const path of ['/api/events?room=hall', '/api/threads?room=hall', `/api/thread/${calm}`])
    expect([path, (await client.get(path)).text.includes('loud')]).toEqual([path, true])
  expect((await client.command(ann, { operation: 'events.list', room: 'hall' })).text).toContain('loud')
  // The muted identity cannot tell.
  expect((await client.command(cat, { operation: 'identity.get', target: dan.id })).text).not.toContain('mute')
  await done(dan, { operation: 'identity.unmute', target: cat.id })
  expect((await client.command(dan, { operation: 'events.list', room: 'hall' })).text).toContain('loud')
  expect((await client.command(dan, { operation: 'identity.mute', target: dan.id })).code).toBe('invalid_field')
})

test('a follow that one can no longer read stays listed without news, and can be removed', async () => {
  await done(ann, { operation: 'room.member.remove', room: 'den', target: ben.id })
  await say(ann, { room: 'den', text: 'after ben', page: 'canary-page' })
  const den = (await followsOf(ben)).find(({ room }) => room === 'den')
  expect(den).toEqual({ room: 'den', followed_at: expect.any(Number), seen: 1, readable: false })
  expect((await inboxOf(ben)).follows.map(({ room }) => room)).not.toContain('den')
  expect((await client.command(cat, { operation: 'room.follow', room: 'den' })).code).toBe('private_room')
  await done(ben, { operation: 'room.unfollow', room: 'den' })
  expect((await client.command(ben, { operation: 'room.follow', room: 'den' })).code).toBe('private_room')
})

test('subscriptions are unchanged after a start from snapshots and from the journals alone, and none is public', async () => {
  await done(dan, { operation: 'identity.mute', target: cat.id })
  const before = [await followsOf(ben), await inboxOf(ben), await done(dan, { operation: 'mutes.list' })]
  for (const isReplayed of [false, true]) {
    client.close()
    await board.stop()
    if (isReplayed) {
      rmSync(feedSnapshotsDirectory(directory), { recursive: true })
      for (const shard of [0, 1]) rmSync(shardSnapshotsDirectory(shardDirectory(directory, shard)), { recursive: true })
    }
    board = await startBoard({ directory, env })
    client = await Client.of(board)
    expect([await followsOf(ben), await inboxOf(ben), await done(dan, { operation: 'mutes.list' })]).toEqual(before)
  }
  for (const path of ['/v1/export', '/api/updates?wait=0', '/api/changes?after=0&limit=200', '/api/modlog?room=hall'])
    expect((await client.get(path)).text).not.toMatch(/follow|mute|@sub-/)
  const logged = [...filesUnder(logDirectory(directory))].filter(([, bytes]) => bytes.includes('identity.mute'))
  expect(logged).toEqual([])
})
