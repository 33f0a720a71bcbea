/** Bans from a room: what a banned identity cannot do there, who may ban whom, what a private room shows, and when it ends. */
import { beforeAll, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

type Person = ReturnType<typeof person>
const [operator, owner, mod, peer, troll, bob] = ['operator', 'owner', 'mod', 'peer', 'troll', 'bob'].map(person) as [
  Person,
  Person,
  Person,
  Person,
  Person,
  Person,
]
const directory = boardDirectory()
const env = { SHARDS: '2', OPERATORS: operator.id }
let board: Board
let client: Client

const data = (value: object) => JSON.stringify({ schema: 1, ...value })
const run = (who: Person, operation: string, fields: Record<string, string | number | string[]>) =>
  client.command(who, { operation, ...fields } as never)
const ban = (who: Person, room: string, target: Person, more: { ttl?: number } = {}) =>
  run(who, 'room.ban', { room, target: target.id, reason: 'insults others', ...more })
const unban = (who: Person, room: string, target: Person) => run(who, 'room.unban', { room, target: target.id })
const bansOf = async (who: Person, room: string) =>
  (await run(who, 'room.bans', { room })).data as unknown as {
    bans: { target: string; by: string; reason: string; expires_at?: number }[]
    next_cursor?: string
  }
const done = async (answer: Promise<Answer>) => {
  const { status, text, data: given } = await answer
  expect(status, text).toBe(200)
  return given
}

beforeAll(async () => {
  board = await startBoard({ directory, env })
  client = await Client.of(board)
  for (const [room, visibility] of [
    ['square', 'public'],
    ['den', 'private'],
  ] as const) {
    await done(run(owner, 'room.create', { room, visibility }))
    for (const each of [mod, peer]) await done(run(owner, 'room.moderator.add', { room, target: each.id }))
    for (const each of [troll, bob]) await done(run(owner, 'room.member.add', { room, target: each.id }))
  }
})

test('every write of a banned identity into the room is refused, and only there', async () => {
  const room = 'square'
  const root = (await done(client.post(bob, { room, text: 'a thread' }))).event_id!
  const own = (await done(client.post(troll, { room, text: 'mine' }))).event_id!
  const { doc } = (await done(
    run(troll, 'docs.create', { room, text: 'words', data: data({ title: 'Notes' }) }),
  )) as unknown as { doc: { id: string } }
  const request = (await done(client.post(troll, { room, kind: 'request', text: 'who can help?' }))).event_id!
  expect(await done(ban(mod, room, troll))).toMatchObject({
    ban: { room, target: troll.id, banned: true, reason: 'insults others' },
  })
  expect((await ban(mod, room, troll)).code).toBe('wrong_state')
  const refused = {
    thread: client.post(troll, { room, text: 'hello' }),
    reply: client.post(troll, { room, text: 'hello', reply_to: root }),
    'reply by its target': client.post(troll, { text: 'hello', reply_to: root }),
    edit: client.post(troll, { text: 'edited', data: data({ supersedes: own }) }),
    vote: run(troll, 'vote', { event_id: root, data: '{"value":1}' }),
    document: run(troll, 'docs.create', { room, text: 'words', data: data({ title: 'More' }) }),
    version: run(troll, 'docs.write', { target: doc.id, text: 'other', data: data({ base_version: 1 }) }),
    file: run(troll, 'blob.put', { room, filename: 'a.txt', media_type: 'text/plain', data: 'SGVsbG8K' }),
    work: run(troll, 'work.create', { room, text: 'do it', amount: 5, data: data({ title: 'A work' }) }),
    'work of a request': run(troll, 'work.create', { event_id: request, amount: 5, data: data({ title: 'A work' }) }),
    receiver: run(troll, 'receiver.create', { room, data: data({ post: true }) }),
  }
  for (const [what, sent] of Object.entries(refused)) {
    const { code, text } = await sent
    expect(`${what} ${code}`).toBe(`${what} room_write_restricted`)
    expect(text).toContain('you are banned from this room: its owner or a moderator can end that with room.unban')
  }
  expect((await run(troll, 'room.join', { room })).code).toBe('forbidden')
  for (const operation of ['room.member.add', 'room.moderator.add'])
    expect((await run(owner, operation, { room, target: troll.id })).text).toContain('room.unban')
  // It may still read, withdraw its own content, and write elsewhere.
  expect((await client.command(troll, { operation: 'event.get', event_id: root })).status).toBe(200)
  await done(run(troll, 'event.redact', { event_id: own, reason: 'mine' }))
  await done(client.post(troll, { room: 'lobby', text: 'elsewhere' }))
  expect((await run(troll, 'room.unban', { room, target: troll.id })).code).toBe('forbidden')
  const modlog = (await client.get(`/api/modlog?room=${room}`)).text
  expect(modlog).toContain('"action":"room.ban"')
})

test('nobody can ban those above them, or themselves', async () => {
  const room = 'square'
  expect((await ban(mod, room, owner)).code).toBe('wrong_state')
  expect((await ban(mod, room, peer)).code).toBe('forbidden')
  expect((await ban(bob, room, mod)).code).toBe('forbidden')
  expect(await ban(mod, room, mod)).toMatchObject({ code: 'invalid_field', field: 'target' })
  expect((await ban(owner, room, operator)).code).toBe('forbidden')
  await done(ban(owner, room, peer))
  const { moderators } = (await client.get(`/api/room?room=${room}`)).data.room as unknown as { moderators: string[] }
  expect(moderators).toEqual([mod.id])
  expect((await run(peer, 'room.ban', { room, target: bob.id, reason: 'x' })).code).toBe('forbidden')
  await done(unban(owner, room, peer))
  // A ban by the operator can be ended only by the operator.
  await done(ban(operator, room, bob))
  expect((await client.post(bob, { room, text: 'x' })).text).toContain('the operator of this board can end that')
  expect((await unban(owner, room, bob)).code).toBe('forbidden')
  await done(unban(operator, room, bob))
  await done(client.post(bob, { room, text: 'back' }))
})

test('in a private room a banned identity reads nothing, and no invite lets it in', async () => {
  const room = 'den'
  const event = (await done(client.post(bob, { room, text: 'inside' }))).event_id!
  expect((await run(troll, 'event.get', { event_id: event })).status).toBe(200)
  await done(ban(mod, room, troll))
  for (const [operation, fields] of [
    ['event.get', { event_id: event }],
    ['events.list', { room }],
    ['threads.list', { room }],
    ['room.get', { room }],
    ['room.bans', { room }],
    ['room.read_token', { room }],
    ['vote', { event_id: event, data: '{"value":1}' }],
  ] as const) {
    const { status, text } = await run(troll, operation, fields)
    expect(status, operation).toBeGreaterThanOrEqual(400)
    expect(text).not.toContain('inside')
  }
  const { invite } = (await done(run(owner, 'room.invite.create', { room }))) as unknown as { invite: { code: string } }
  const accept = () => run(troll, 'room.invite.accept', { data: data({ code: invite.code }) })
  expect((await accept()).code).toBe('forbidden')
  expect((await bansOf(bob, room)).bans).toMatchObject([{ target: troll.id, by: mod.id, reason: 'insults others' }])
  await done(unban(peer, room, troll))
  expect((await run(troll, 'event.get', { event_id: event })).status).toBeGreaterThanOrEqual(400)
  await done(accept())
  expect((await run(troll, 'event.get', { event_id: event })).status).toBe(200)
})

test('a temporary ban says when it ends, and bans survive a kill and a restart', async () => {
  const room = 'square'
  const guests = ['g1', 'g2', 'g3'].map(person)
  expect(await ban(mod, room, guests[0]!, { ttl: 59 })).toMatchObject({ code: 'invalid_field', field: 'ttl' })
  for (const guest of guests) await done(ban(mod, room, guest, { ttl: 3_600 }))
  expect((await client.post(guests[0]!, { room, text: 'x' })).text).toMatch(/until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/)
  const before = await bansOf(bob, room)
  expect(before.bans.map(({ target }) => target)).toEqual([...guests.map(({ id }) => id).reverse(), troll.id])
  const first = (await run(bob, 'room.bans', { room, limit: 2 })).data as typeof before
  const next = (await run(bob, 'room.bans', { room, limit: 2, cursor: first.next_cursor! })).data as typeof before
  expect([...first.bans, ...next.bans]).toEqual(before.bans)
  await board.kill()
  board = await startBoard({ directory, env })
  client = await Client.of(board)
  expect(await bansOf(bob, room)).toEqual(before)
  expect((await client.post(guests[1]!, { room, text: 'x' })).code).toBe('room_write_restricted')
  await board.stop()
  board = await startBoard({ directory, env })
  client = await Client.of(board)
  expect(await bansOf(bob, room)).toEqual(before)
  expect((await client.post(troll, { room, text: 'x' })).code).toBe('room_write_restricted')
})
