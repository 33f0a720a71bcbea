import { type ClientRequest, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { readSecret } from '../../src/board-directory.ts'
import { CursorSealer } from '../../src/format/cursor.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type EventJson, person } from '../support/client.ts'
import { drainUpdates, fetchUpdates, requestUpdates, subject, type UpdateJson } from '../support/updates.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const [ada, ben, eve] = [person('ada'), person('ben'), person('eve')]

describe.each(['uws', 'node'])('updates on the %s engine', (engine) => {
  let board: Board
  let client: Client
  let rooms = 0
  const freshRoom = () => `room-${rooms++}`
  const post = async (fields: { readonly [field: string]: string }, by = ada) =>
    (await client.post(by, { text: 'hello', ...fields })).data.event!

  beforeAll(async () => {
    board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine, SHARDS: '3' } })
    client = await Client.of(board)
  })
  afterAll(async () => {
    client.close()
    await board.stop()
  })

  test('without a cursor it begins now, and then returns each thing once, as a reader sees it', async () => {
    const room = freshRoom()
    await post({ room })
    const begin = await fetchUpdates(client, {})
    expect(begin).toMatchObject({ schema: 1, updates: [], has_more: false })
    const first = await post({ room })
    const second = await post({ room, reply_to: first.event_id })
    const next = await fetchUpdates(client, { cursor: begin.cursor })
    expect(next.updates).toEqual([
      { type: 'event.posted', at: first.created_at, room, event: first },
      { type: 'event.posted', at: second.created_at, room, event: second },
    ])
    expect(await fetchUpdates(client, { cursor: next.cursor })).toMatchObject({ updates: [], has_more: false })
    const capabilities = await client.get('/capabilities')
    expect(next.generation).toBe((capabilities.data as { generation?: string }).generation)
  })

  test('a waiting request is answered by the next post, and by nothing else', async () => {
    const room = freshRoom()
    await post({ room })
    const { cursor: begun } = await fetchUpdates(client, { rooms: [room] })
    const waiting = fetchUpdates(client, { rooms: [room], wait: 55, cursor: begun })
    await post({ room: freshRoom() })
    const event = await post({ room })
    const { updates: found, cursor } = await waiting
    expect(found.map(subject)).toEqual([`event.posted ${event.event_id}`])
    expect(await fetchUpdates(client, { rooms: [room], wait: 1, cursor })).toMatchObject({
      updates: [],
      has_more: false,
    })
    const signed = fetchUpdates(
      client,
      { rooms: [room], wait: 55, cursor: (await fetchUpdates(client, {}, ben)).cursor },
      ben,
    )
    const last = await post({ room })
    expect((await signed).updates.map(subject)).toEqual([`event.posted ${last.event_id}`])
  })

  test('many that wait at one position get the same bytes', async () => {
    const room = freshRoom()
    await post({ room })
    const { cursor } = await fetchUpdates(client, { rooms: [room] })
    const answers = Array.from({ length: 40 }, () => requestUpdates(client, { rooms: [room], wait: 55, cursor }))
    const event = await post({ room })
    const texts = new Set((await Promise.all(answers)).map(({ text }) => text))
    expect([...texts].every((text) => text.includes(event.event_id))).toBe(true)
    // Some may have arrived after the post: they were served by their own read.
    expect(texts.size).toBeLessThanOrEqual(40)
  })

  test('rooms, kinds and limit narrow it; pages of any size return everything once and in order', async () => {
    const [one, two] = [freshRoom(), freshRoom()]
    const { cursor } = await fetchUpdates(client, {})
    const events: EventJson[] = []
    for (let n = 0; n < 6; n++) events.push(await post({ room: n % 2 === 0 ? one : two, text: `number ${n}` }))
    const posted = events.map(({ event_id }) => `event.posted ${event_id}`)
    const of = (room: string) => posted.filter((_, n) => events[n]!.room === room)
    const all = await drainUpdates(client, { cursor })
    expect(all.map(subject)).toEqual([`room.created ${one}`, posted[0], `room.created ${two}`, ...posted.slice(1)])
    for (const limit of [1, 2, 5, 200]) {
      expect((await drainUpdates(client, { cursor, limit })).map(subject)).toEqual(all.map(subject))
      expect((await drainUpdates(client, { cursor, limit, rooms: [one] })).map(subject)).toEqual([
        `room.created ${one}`,
        ...of(one),
      ])
      expect(
        (await drainUpdates(client, { cursor, limit, rooms: [one, two], kinds: ['event.posted'] })).map(subject),
      ).toEqual(posted)
      expect(
        (await drainUpdates(client, { cursor, limit, kinds: ['room.created', 'event.hidden'] })).map(subject),
      ).toEqual([`room.created ${one}`, `room.created ${two}`])
    }
    for (const wait of [0, 55])
      expect(await requestUpdates(client, { cursor, wait, rooms: [one, 'no-such-room'] })).toMatchObject({
        status: 400,
        code: 'not_found',
      })
  })

  test('a signed reader also gets replies to them and mentions, each beside the post', async () => {
    await client.command(ben, { operation: 'identity.register', handle: `ben-${engine}` })
    const room = freshRoom()
    const mine = await post({ room }, ben)
    const { cursor } = await fetchUpdates(client, {}, ben)
    const reply = await post({ room, reply_to: mine.event_id })
    const named = await post({ room, text: `what says @ben-${engine}, then?` })
    const addressed = await post({ room, to: ben.id })
    const both = await post({ room, text: `@ben-${engine} yes`, reply_to: mine.event_id })
    const own = await post({ room, text: `I, @ben-${engine}`, reply_to: mine.event_id }, ben)
    const expected = [
      `event.posted ${reply.event_id}`,
      `reply ${reply.event_id}`,
      `event.posted ${named.event_id}`,
      `mention ${named.event_id}`,
      `event.posted ${addressed.event_id}`,
      `mention ${addressed.event_id}`,
      `event.posted ${both.event_id}`,
      `reply ${both.event_id}`,
      `mention ${both.event_id}`,
      `event.posted ${own.event_id}`,
    ]
    for (const limit of [1, 2, 3, 200])
      expect((await drainUpdates(client, { cursor, limit }, ben)).map(subject)).toEqual(expected)
    const spoken = (kind: string) => expected.filter((each) => each.startsWith(kind))
    for (const kind of ['reply', 'mention'])
      expect((await drainUpdates(client, { cursor, limit: 1, kinds: [kind] }, ben)).map(subject)).toEqual(spoken(kind))
    expect(
      (await drainUpdates(client, { cursor: (await fetchUpdates(client, {}, eve)).cursor }, eve)).map(subject),
    ).toEqual([])
  })

  test('members get updates of their private rooms immediately, and nobody else of anything in them', async () => {
    const room = freshRoom()
    const open = freshRoom()
    await post({ room: open })
    const begin = (await fetchUpdates(client, {})).cursor
    const [ofAda, ofBen, ofEve] = await Promise.all(
      [ada, ben, eve].map(async (who) => (await fetchUpdates(client, {}, who)).cursor),
    )
    const made = await client.command(ada, {
      operation: 'room.create',
      room,
      visibility: 'private',
      members: [ben.id],
      text: 'canary',
    })
    expect(made.status).toBe(200)
    const waiting = fetchUpdates(client, { cursor: ofBen!, wait: 55, kinds: ['event.posted'] }, ben)
    const strangers = [
      fetchUpdates(client, { cursor: ofEve!, wait: 3 }, eve),
      fetchUpdates(client, { cursor: begin, wait: 3 }),
    ]
    for (const [cursor, who] of [[ofEve!, eve] as const, [begin, undefined] as const])
      expect(await requestUpdates(client, { cursor, wait: 55, rooms: [open, room] }, who)).toMatchObject({
        status: 403,
        code: 'private_room',
      })
    const secret = await post({ room, text: 'canary' })
    expect((await waiting).updates).toEqual([{ type: 'event.posted', at: secret.created_at, room, event: secret }])
    const answer = await post({ room, text: 'canary too', reply_to: secret.event_id }, ben)
    expect((await drainUpdates(client, { cursor: ofAda!, limit: 1 }, ada)).map(subject)).toEqual([
      `room.created ${room}`,
      `event.posted ${secret.event_id}`,
      `event.posted ${answer.event_id}`,
      `reply ${answer.event_id}`,
    ])
    for (const answer of await Promise.all(strangers)) expect(answer.updates).toEqual([])
    const seen = await post({ room: open, text: 'for all' })
    for (const [cursor, who] of [[ofEve, eve] as const, [begin, undefined] as const])
      expect((await drainUpdates(client, { cursor: cursor! }, who)).map(subject)).toEqual([
        `event.posted ${seen.event_id}`,
      ])
  })

  test('a member gets updates from their admission on, and none after their removal', async () => {
    const room = freshRoom()
    await client.command(ada, { operation: 'room.create', room, visibility: 'private' })
    const { cursor } = await fetchUpdates(client, {}, eve)
    await post({ room, text: 'before' })
    expect(await drainUpdates(client, { cursor }, eve)).toEqual([])
    await client.command(ada, { operation: 'room.member.add', room, target: eve.id })
    const now = await fetchUpdates(client, {}, eve)
    const waiting = fetchUpdates(client, { cursor: now.cursor, wait: 55 }, eve)
    const inside = await post({ room, text: 'inside' })
    const heard = await waiting
    expect(heard.updates.map(subject)).toEqual([`event.posted ${inside.event_id}`])
    await client.command(ada, { operation: 'room.member.remove', room, target: eve.id })
    const after = fetchUpdates(client, { cursor: heard.cursor, wait: 2 }, eve)
    await post({ room, text: 'after' })
    expect((await after).updates).toEqual([])
  })

  test('updates of documents go to those who may see them, items of a receive URL only to its owner', async () => {
    const inner = freshRoom()
    await client.command(ada, { operation: 'room.create', room: inner, visibility: 'private', members: [ben.id] })
    const anybody = (await fetchUpdates(client, {})).cursor
    const [ofBen, ofEve] = [(await fetchUpdates(client, {}, ben)).cursor, (await fetchUpdates(client, {}, eve)).cursor]
    const write = async (fields: { readonly [field: string]: string }) =>
      (await client.command(ada, {
        operation: 'docs.create',
        text: 'text',
        data: '{"schema":1,"title":"title"}',
        ...fields,
      })) as unknown as { data: { doc: { id: string } } }
    const open = (await write({})).data.doc.id
    await write({ visibility: 'unlisted' })
    const closed = (await write({ room: inner })).data.doc.id
    const made = await client.command(ben, { operation: 'receiver.create', data: '{"schema":1}' })
    const { receiver } = made.data as unknown as { receiver: { id: string; url: string } }
    const waiting = fetchUpdates(client, { cursor: ofBen, wait: 55, kinds: ['receiver.item'] }, ben)
    expect(await statusOf(new URL(receiver.url, board.address).href, 'POST')).toBe(200)
    expect((await waiting).updates).toMatchObject([{ type: 'receiver.item', receiver: receiver.id }])
    const documents = async (cursor: string, who?: typeof ada) =>
      (await drainUpdates(client, { cursor, limit: 1 }, who)).map(({ type, document, room }) => ({
        type,
        document,
        room,
      }))
    const written = (document: string, room?: string) => ({ type: 'document.written', document, room })
    expect(await documents(anybody)).toEqual([written(open)])
    expect(await documents(ofEve, eve)).toEqual([written(open)])
    const bens = await documents(ofBen, ben)
    expect(bens).toContainEqual(written(open))
    expect(bens).toContainEqual(written(closed, inner))
    expect(bens.filter(({ type }) => type === 'receiver.item')).toHaveLength(1)
    expect(bens).toHaveLength(3)
  })

  test('a cursor is valid only for its reader; whatever else is wrong is refused with a message', async () => {
    const { cursor } = await fetchUpdates(client, {})
    const ofBen = (await fetchUpdates(client, {}, ben)).cursor
    const forged = `${cursor.slice(0, -1)}${cursor.endsWith('A') ? 'B' : 'A'}`
    const listed = (await client.get('/api/events?limit=1')).data.next_cursor!
    const refused = (answer: Awaited<ReturnType<typeof requestUpdates>>) =>
      `${answer.status} ${answer.code} ${answer.field}`
    expect(refused(await requestUpdates(client, { cursor: ofBen }))).toBe('400 invalid_field cursor')
    expect(refused(await requestUpdates(client, { cursor }, ben))).toBe('400 invalid_field cursor')
    expect(refused(await requestUpdates(client, { cursor: ofBen }, ada))).toBe('400 invalid_field cursor')
    for (const bad of [forged, listed])
      expect(refused(await requestUpdates(client, { cursor: bad }))).toBe('400 invalid_field cursor')
    for (const [query, field] of [
      ['wait=56', 'wait'],
      ['wait=-1', 'wait'],
      ['wait=x', 'wait'],
      ['schema=2', 'schema'],
      ['limit=0', 'limit'],
      ['limit=201', 'limit'],
      ['room=No', 'room'],
      ['kinds=event.posted,nothing', 'kinds'],
      ['cursor=$', 'cursor'],
      // A client that lost its cursor learns so, and does not continue from now.
      ['cursor=', 'cursor'],
    ])
      expect([query, refused(await client.get(`/api/updates?${query}`))]).toEqual([query, `400 invalid_field ${field}`])
    expect(refused(await client.get('/api/updates?target=x'))).toBe('400 unknown_field target')
    for (const data of [{ wait: 56 }, { wait: -1 }, { rooms: ['No'] }, { kinds: ['nothing'] }, { more: 1 }]) {
      const sent = await client.command(ben, { operation: 'updates.get', data: JSON.stringify({ schema: 1, ...data }) })
      expect([data, refused(sent)]).toEqual([data, `400 invalid_field data.${Object.keys(data)[0]}`])
    }
    expect((await client.get('/api/updates?schema=1&wait=0&room=&kinds=')).status).toBe(200)
  })

  test('/time shows the clock; HEAD and OPTIONS are answered at these addresses', async () => {
    const { data } = await client.get('/time')
    const { unix, utc } = data as unknown as { unix: number; utc: string }
    expect(Math.abs(unix - Date.now() / 1000)).toBeLessThan(60)
    expect(new Date(utc).getTime()).toBe(unix * 1000)
    for (const path of ['/time', '/api/updates', '/api/changes']) {
      for (const [method, status] of [['HEAD', 200] as const, ['OPTIONS', 200] as const, ['DELETE', 405] as const])
        expect([path, method, await statusOf(`${board.address}${path}`, method)]).toEqual([path, method, status])
    }
  })
})

function statusOf(url: string, method: string): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url, { method, agent: false }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode!))
    })
      .on('error', reject)
      .end()
  })
}

describe.each(['uws', 'node'])('the life of a wait on the %s engine', (engine) => {
  test('an address has a bounded number of waits; a client that leaves frees its slot, and SIGTERM answers the rest', async () => {
    const board = await startBoard({
      directory: boardDirectory(),
      env: { HTTP_ENGINE: engine, BROADSIDE_LIMITS: 'on', SHARDS: '2' },
    })
    const client = await Client.of(board)
    /** Waits, and again whenever it is answered, until it disconnects. */
    const hold = (): (() => void) => {
      let isOver = false
      const open = (): ClientRequest => {
        const sent = request(`${board.address}/api/updates?wait=55`, { agent: false }, (answer) =>
          answer.resume().on('end', async () => {
            await sleep(300)
            if (!isOver) waits = open()
          }),
        )
        sent.on('error', () => {})
        sent.end()
        return sent
      }
      let waits = open()
      return () => {
        isOver = true
        waits.destroy()
      }
    }
    const isFull = async () => (await requestUpdates(client, { wait: 1 })).code === 'rate_limited'
    const goAway = Array.from({ length: 64 }, hold)
    while (!(await isFull())) await sleep(1_000)
    const refused = await requestUpdates(client, { wait: 1 }, ada)
    expect(refused).toMatchObject({ status: 429, code: 'rate_limited' })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect(await fetchUpdates(client, {})).toMatchObject({ updates: [] })
    for (const each of goAway.splice(62)) each()
    // Slower than the rate of reads, which is refused with the same code.
    while (await isFull()) await sleep(100)
    let isOver = false
    /** Waits, and again whenever the check for a free slot held the slot, or when the wait ended before the board. */
    const waits = async (signer?: typeof ada): Promise<unknown> => {
      for (;;) {
        const answer = await requestUpdates(client, { wait: 55 }, signer)
        if (isOver) return answer
        await sleep(300)
      }
    }
    const waiting = [waits(), waits(ada)]
    // Both are waiting when no slot is left. The check leaves them the slot for a while.
    while (!(await isFull())) await sleep(1_000)
    for (const each of goAway) each()
    isOver = true
    const ended = board.stop()
    for (const answer of await Promise.all(waiting))
      expect(answer).toMatchObject({ status: 200, data: { updates: [], has_more: false } })
    expect((await ended).code).toBe(0)
    client.close()
  })
})

test('a cursor is valid after a restart and a kill; one of another generation is refused with the oldest valid one', async () => {
  const directory = boardDirectory()
  let board = await startBoard({ directory, env: { SHARDS: '2' } })
  let client = await Client.of(board)
  await client.command(ada, { operation: 'room.create', room: 'inner', visibility: 'private' })
  const first = (await client.post(ada, { room: 'outer', text: 'one' })).data.event_id!
  const cursors = [(await fetchUpdates(client, {})).cursor, (await fetchUpdates(client, {}, ada)).cursor]
  const ids: Record<string, string[]> = { outer: [], inner: [] }
  for (const end of ['stop', 'kill', 'stop'] as const) {
    for (const room of ['outer', 'inner']) ids[room]!.push((await client.post(ada, { room, text: end })).data.event_id!)
    await board[end]()
    client.close()
    board = await startBoard({ directory, env: { SHARDS: '2' } })
    client = await Client.of(board)
    const idsIn = (found: readonly UpdateJson[], room: string) =>
      found.filter((each) => each.type === 'event.posted' && each.room === room).map(({ event }) => event!.event_id)
    expect(idsIn(await drainUpdates(client, { cursor: cursors[0]!, limit: 2 }), 'outer')).toEqual(ids.outer)
    const mine = await drainUpdates(client, { cursor: cursors[1]!, limit: 2 }, ada)
    for (const room of ['outer', 'inner']) expect(idsIn(mine, room)).toEqual(ids[room])
  }
  const sealer = new CursorSealer(readSecret(machineDisk, join(directory, 'keys', 'cursor.key'))!)
  for (const place of [
    ['0'.repeat(32), '1'],
    [(await fetchUpdates(client, {})).generation, '1.1.1.1'],
    [(await fetchUpdates(client, {})).generation, 'zzzzzz'],
  ]) {
    const answer = await requestUpdates(client, { cursor: sealer.seal('updates:', place), wait: 1 })
    expect(answer).toMatchObject({ status: 400, code: 'expired', field: 'cursor' })
    const oldest = /oldest valid one is ([A-Za-z0-9_-]+)/.exec(answer.text)?.[1]
    if (place[1] === 'zzzzzz') continue
    expect((await drainUpdates(client, { cursor: oldest! })).map(subject)).toContain(`event.posted ${first}`)
  }
  client.close()
})
