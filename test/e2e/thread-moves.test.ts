/**
 * A thread is moved: another room lists it, and nothing signed changes. On a board with one shard, and on one whose two rooms are on
 * different shards.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { shardOf } from '../../actors/shard.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { findDamage } from '../support/find-damage.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

type Person = ReturnType<typeof person>
const [both, home, there, ada, operator] = ['both', 'home', 'there', 'ada', 'operator'].map(person) as [
  Person,
  Person,
  Person,
  Person,
  Person,
]

/** A room name on the other shard of two than `garden`. */
const far = Array.from({ length: 20 }, (_, n) => `tools-${n}`).find(
  (name) => shardOf(name, 2) !== shardOf('garden', 2),
)!

type Refusal = { error?: { field?: string } }
type Row = { thread: string; room: string; page: string; listed_in?: string; pinned?: true; replies: number }

describe.each([1, 2])('on %i shards', (shards) => {
  const directory = boardDirectory()
  let board: Board
  let client: Client
  let thread: string
  let reply: string

  const start = async () => {
    board = await startBoard({ directory, env: { SHARDS: String(shards), OPERATORS: operator.id } })
    client = await Client.of(board)
  }
  const move = (who: Person, to: string, { id = thread, reason = '' } = {}) =>
    client.command(who, {
      operation: 'thread.move',
      event_id: id,
      ...(reason === '' ? {} : { reason }),
      data: JSON.stringify({ schema: 1, to }),
    })
  const done = async (who: Person, fields: Parameters<Client['command']>[1]) => {
    const answer = await client.command(who, fields)
    expect([fields.operation, answer.status, answer.text]).toEqual([fields.operation, 200, expect.anything()])
    return answer
  }
  const rows = async (query: string) =>
    (await client.get(`/api/threads?${query}`)).data as unknown as { threads: Row[]; pinned?: Row[] }
  const listed = async (room: string, query = '') =>
    (await rows(`room=${room}${query}`)).threads.map(({ thread: id }) => id)
  const moved = async () =>
    ((await client.get(`/api/thread/${thread}`)).data as unknown as { moved?: { to: string } }).moved
  const everywhere = async (room: string) =>
    Promise.all(['active', 'new', 'top'].map(async (order) => (await listed(room, `&order=${order}`)).includes(thread)))

  beforeAll(async () => {
    await start()
    for (const [room, owner] of [
      ['garden', home],
      [far, there],
    ] as const) {
      await done(owner, { operation: 'room.create', room })
      for (const role of ['room.member.add', 'room.moderator.add'])
        await done(owner, { operation: role, room, target: both.id })
    }
    thread = (await client.post(ada, { room: 'garden', text: 'Which saw for old apple trees?' })).data.event_id!
    reply = (await client.post(home, { text: 'A pruning saw.', reply_to: thread })).data.event_id!
    await client.post(ada, { room: 'garden', text: 'Something that stays.' })
    await client.post(ada, { room: far, text: 'A thread of the other room.' })
  })
  afterAll(async () => {
    client.close()
    await board.kill()
  })

  test('each invalid move is refused, with the field and the rule', async () => {
    await done(both, { operation: 'room.create', room: `hidden-${shards}`, visibility: 'private' })
    await done(both, { operation: 'room.create', room: 'shut' })
    const closed = JSON.stringify({ closed: true })
    await done(both, { operation: 'room.policy.set', room: 'shut', data: closed })
    const refusals = [
      [ada, far, 'forbidden', 'event_id'],
      [there, far, 'forbidden', 'event_id'],
      [home, far, 'forbidden', 'data.to'],
      [both, 'nowhere', 'not_found', 'data.to'],
      [both, `hidden-${shards}`, 'private_room', 'data.to'],
      [home, `hidden-${shards}`, 'private_room', 'data.to'],
      [both, 'shut', 'wrong_state', 'data.to'],
      [both, 'garden', 'wrong_state', 'data.to'],
      [both, 'No Slug', 'invalid_field', 'data.to'],
    ] as const
    for (const [who, to, code, field] of refusals) {
      const answer = await move(who, to)
      expect([to, answer.code, (JSON.parse(answer.text) as Refusal).error?.field]).toEqual([to, code, field])
    }
    await done(there, { operation: 'room.ban', room: far, target: home.id, reason: 'x' })
    expect(await move(home, far)).toMatchObject({ code: 'room_write_restricted' })
    await done(there, { operation: 'room.unban', room: far, target: home.id })
    expect(await listed('garden')).toContain(thread)
    expect(await listed(far)).not.toContain(thread)
  })

  test('a thread cannot leave a private room', async () => {
    const id = (await client.post(both, { room: `hidden-${shards}`, text: 'secret words' })).data.event_id!
    for (const who of [both, operator]) {
      const answer = await move(who, far, { id })
      expect(answer.code).toBe(who === both ? 'private_room' : 'not_found')
    }
    expect(JSON.stringify(await rows(`room=${far}`))).not.toContain('secret words')
  })

  test('a moderator of both rooms moves it: lists, feeds and pages follow, signed data does not change', async () => {
    const before = (await client.get(`/api/thread/${thread}`)).data.events
    await done(home, { operation: 'thread.pin', event_id: thread, data: '{"schema":1,"pinned":true}' })
    // Answers cached before the move must not be given again.
    expect(await everywhere('garden')).toEqual([true, true, true])
    expect(await everywhere(far)).toEqual([false, false, false])
    const pages = await Promise.all(
      [`/room/${far}`, '/room/garden', `/room/${far}.atom`].map((path) => client.get(path)),
    )
    expect(pages.map(({ text }) => text.includes(thread))).toEqual([false, true, false])

    const answer = await move(both, far, { id: reply, reason: 'About tools' })
    expect(answer.data).toMatchObject({ thread, room: 'garden', listed_in: far })
    expect(await everywhere('garden')).toEqual([false, false, false])
    expect(await everywhere(far)).toEqual([true, true, true])
    const [row] = (await rows(`room=${far}`)).threads.filter(({ thread: id }) => id === thread)
    expect(row).toMatchObject({ room: 'garden', listed_in: far, page: 'main', replies: 1 })
    expect(row!.pinned).toBeUndefined()
    expect((await rows('room=garden')).pinned).toBeUndefined()
    expect(await listed(far, '&page=main')).toContain(thread)
    expect(await listed('garden', '&page=main')).not.toContain(thread)
    expect(await listed(far, `&author=${ada.id}`)).toContain(thread)
    for (const suffix of ['atom', 'json']) {
      const [there, here] = await Promise.all(
        [far, 'garden'].map(async (room) => (await client.get(`/room/${room}.${suffix}`)).text.includes(thread)),
      )
      expect([suffix, there, here]).toEqual([suffix, true, false])
    }
    expect((await client.get(`/api/room?room=${far}`)).data.room).toMatchObject({ threads: 2, count: 1 })
    expect((await client.get('/api/room?room=garden')).data.room).toMatchObject({ threads: 1, count: 3 })

    const after = (await client.get(`/api/thread/${thread}`)).data
    expect(after.events).toEqual(before)
    expect(after).toMatchObject({ room: 'garden', moved: { to: far, by: both.id, reason: 'About tools' } })
    expect((await client.get(`/api/events?room=garden`)).text).toContain(thread)
    expect((await client.get(`/api/events?room=${far}`)).text).not.toContain(thread)
    expect((await client.get(`/api/log/proof?message=${thread}`)).status).toBe(200)
  })

  test('the pages say where it went and where it came from, without a script', async () => {
    const page = (await client.get(`/e/${reply}`)).text
    expect(page).toContain(`This thread was moved to <a href="/room/${far}">${far}</a> by `)
    expect(page).toContain('About tools')
    const row = new RegExp(`data-thread="${thread}".*?</li>`, 's')
    const there = row.exec((await client.get(`/room/${far}`)).text)![0]
    expect(there).toContain('from <a class="bare" href="/room/garden">garden</a>')
    expect((await client.get('/room/garden')).text).not.toContain(thread)
    expect(row.exec((await client.get('/')).text)![0]).toContain(`href="/room/${far}"`)
  })

  test('replies stay in the thread’s own room and bump it where it is listed; its own moderators moderate it', async () => {
    await client.post(ada, { room: far, text: 'Newer than it.' })
    // A cached answer of the listing room has to follow a room that it does not name.
    expect((await rows(`room=${far}&limit=1`)).threads).not.toMatchObject([{ thread }])
    const posted = await client.post(ada, { text: 'Thank you.', reply_to: reply })
    expect(posted.data.event).toMatchObject({ room: 'garden', thread })
    expect((await rows(`room=${far}&limit=1`)).threads).toMatchObject([{ thread, replies: 2 }])
    expect(await client.post(ada, { room: far, text: 'wrong room', reply_to: thread })).toMatchObject({
      code: 'not_found',
    })
    const hide = { operation: 'room.hide', event_id: posted.data.event_id!, reason: 'x' }
    expect((await client.command(there, hide)).code).toBe('forbidden')
    await done(home, hide)
    expect((await rows(`room=${far}`)).threads.find(({ thread: id }) => id === thread)).toMatchObject({ replies: 1 })
    await done(home, { operation: 'thread.lock', event_id: thread, data: '{"schema":1,"locked":true}' })
    expect((await client.post(ada, { text: 'too late', reply_to: thread })).code).toBe('wrong_state')
    await done(home, { operation: 'thread.lock', event_id: thread, data: '{"schema":1,"locked":false}' })
    const pin = { operation: 'thread.pin', event_id: thread, data: '{"schema":1,"pinned":true}' }
    expect(await client.command(home, pin)).toMatchObject({ code: 'wrong_state' })
  })

  test('the front page shows it only if both rooms are on it; both rooms’ logs have the move', async () => {
    const front = async () => (await rows('limit=50')).threads.some(({ thread: id }) => id === thread)
    expect(await front()).toBe(true)
    await done(there, { operation: 'room.policy.set', room: far, data: JSON.stringify({ front_page: false }) })
    expect(await front()).toBe(false)
    await done(there, { operation: 'room.policy.set', room: far, data: JSON.stringify({ front_page: true }) })
    expect(await front()).toBe(true)
    // Its own room is not on the front page, and no move puts its threads there.
    await done(home, { operation: 'room.policy.set', room: 'garden', data: JSON.stringify({ front_page: false }) })
    expect(await front()).toBe(false)
    expect((await rows(`author=${ada.id}`)).threads.some(({ thread: id }) => id === thread)).toBe(false)
    await done(home, { operation: 'room.policy.set', room: 'garden', data: JSON.stringify({ front_page: true }) })
    expect(await front()).toBe(true)
    for (const room of ['garden', far]) {
      const { entries } = (await client.get(`/api/modlog?room=${room}`)).data as unknown as {
        entries: { action: string; target: string; reason: string }[]
      }
      expect(entries).toContainEqual(
        expect.objectContaining({ action: 'thread.move', target: reply, reason: 'About tools' }),
      )
    }
  })

  test('followers of the old room get no more news of it; followers of the thread do', async () => {
    for (const [id, field] of [
      ['garden', 'room'],
      [thread, 'event_id'],
    ] as const)
      await done(home, { operation: field === 'room' ? 'room.follow' : 'thread.follow', [field]: id })
    await client.post(ada, { text: 'One more question.', reply_to: thread })
    const { follows } = (await client.command(home, { operation: 'follows.list' })).data as unknown as {
      follows: { room: string; thread?: string; new: number }[]
    }
    expect(follows.map((each) => [each.thread ?? each.room, each.new])).toEqual([
      [thread, 1],
      ['garden', 0],
    ])
  })

  test('moves survive a restart or a kill, and repeating the same bytes changes nothing', async () => {
    const signed = client.sign(both, {
      operation: 'thread.move',
      event_id: thread,
      data: JSON.stringify({ schema: 1, to: 'garden' }),
    })
    const shown = async () => [
      (await rows(`room=${far}`)).threads,
      (await rows('room=garden')).threads,
      (await rows('order=new')).threads,
      await moved(),
    ]
    const before = await shown()
    client.close()
    // From a snapshot, and from the journals.
    await (shards === 1 ? board.stop() : board.kill())
    await start()
    expect(await shown()).toEqual(before)
    expect((await client.send(signed.body)).data).toMatchObject({ listed_in: 'garden' })
    expect(await everywhere('garden')).toEqual([true, true, true])
    expect(await everywhere(far)).toEqual([false, false, false])
    expect(await moved()).toBeUndefined()
    await move(both, far)
    expect((await client.send(signed.body)).data.receipt).toMatchObject({ duplicate: true })
    expect(await listed(far)).toContain(thread)
  })

  test('the room it was moved to can send it back, an operator can move it anywhere, and the files are sound', async () => {
    expect(await move(there, 'shut')).toMatchObject({ code: 'forbidden' })
    expect((await move(there, 'garden')).data).toMatchObject({ listed_in: 'garden' })
    // Its right came from listing the thread.
    expect(await move(there, far)).toMatchObject({ code: 'forbidden' })
    expect((await move(operator, far)).data).toMatchObject({ listed_in: far })
    expect((await move(home, 'garden')).data).toMatchObject({ listed_in: 'garden' })
    expect(await everywhere('garden')).toEqual([true, true, true])
    client.close()
    await board.stop()
    expect(findDamage(directory)).toEqual([])
  })
})
