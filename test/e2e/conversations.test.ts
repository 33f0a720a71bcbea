import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type EventJson, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 })

const [ada, ben, cleo, eve, fay] = ['ada', 'ben', 'cleo', 'eve', 'fay'].map((name) => person(`talk ${name}`)) as [
  Signer,
  Signer,
  Signer,
  Signer,
  Signer,
]
type Signer = ReturnType<typeof person>

const directory = boardDirectory()
const env = { SHARDS: '3', COMPACT_SECONDS: '1' }
let board: Board
let client: Client

type Conversation = {
  readonly room: string
  readonly kind: string
  readonly members: readonly string[]
  readonly opener: string
  readonly answer: string
  readonly accepted: boolean
  readonly messages_left?: number
  readonly count: number
}
type Item = {
  readonly type: string
  readonly from: string
  readonly event?: EventJson
  readonly conversation?: Conversation
}

async function open(signer: Signer, others: readonly Signer[], text?: string, data?: object): Promise<Conversation> {
  const answer = await client.command(signer, {
    operation: 'conversation.open',
    members: others.map(({ id }) => id),
    ...(text === undefined ? {} : { text }),
    ...(data === undefined ? {} : { data: JSON.stringify(data) }),
  })
  expect(answer.code).toBe(undefined)
  return (answer.data as { conversation: Conversation }).conversation
}

const respond = (signer: Signer, room: string, answer: string) =>
  client.command(signer, {
    operation: 'conversation.respond',
    room,
    data: JSON.stringify({ schema: 1, answer }),
  })

async function list(signer: Signer, kind = 'active', limit = 50): Promise<Conversation[]> {
  const found: Conversation[] = []
  let cursor = ''
  do {
    const { data, code } = await client.command(signer, {
      operation: 'conversations.list',
      kind,
      limit,
      ...(cursor === '' ? {} : { cursor }),
    })
    expect(code).toBe(undefined)
    found.push(...(data as unknown as { conversations: Conversation[] }).conversations)
    cursor = data.next_cursor ?? ''
    expect(data.has_more).toBe(cursor !== '')
  } while (cursor !== '')
  return found
}

async function inbox(signer: Signer, fields: { kind?: string; limit?: number } = {}): Promise<Item[]> {
  const found: Item[] = []
  let cursor = ''
  do {
    const { data, code } = await client.command(signer, {
      operation: 'inbox.get',
      ...fields,
      ...(cursor === '' ? {} : { cursor }),
    })
    expect(code).toBe(undefined)
    found.push(...(data as unknown as { items: Item[] }).items)
    cursor = data.next_cursor ?? ''
  } while (cursor !== '')
  return found
}

const texts = (items: readonly Item[]) => items.map(({ type, event }) => `${type} ${event?.text}`)

beforeAll(async () => {
  board = await startBoard({ directory, env })
  client = await Client.of(board)
})
afterAll(() => client.close())

describe('conversations', () => {
  test('two who open the same one meet in it, and it is theirs alone', async () => {
    const [mine, his] = await Promise.all([open(ada, [ben], 'from ada'), open(ben, [ada, ben])])
    expect(his.room).toBe(mine.room)
    expect(mine).toMatchObject({ kind: 'dm' })
    expect([...mine.members].sort()).toEqual([ada.id, ben.id].sort())
    expect(await open(ada, [ben])).toMatchObject({ room: mine.room, opener: mine.opener })
    for (const signer of [ada, ben])
      expect((await client.command(signer, { operation: 'events.list', room: mine.room })).data.events).toHaveLength(1)
    const { room } = mine
    expect(await client.command(eve, { operation: 'events.list', room })).toMatchObject({ code: 'private_room' })
    expect(await client.post(eve, { room, text: 'x' })).toMatchObject({ code: 'private_room' })
    expect(await respond(eve, room, 'accept')).toMatchObject({ status: 403, code: 'private_room' })
    for (const path of ['/api/rooms', '/api/events', '/v1/export', '/api/identities'])
      expect((await client.get(path)).text).not.toContain(ada.id)
  })

  test('a group is another room than any of its pairs, and the order of members does not matter', async () => {
    const group = await open(cleo, [ada, ben])
    expect(group).toMatchObject({ kind: 'group', opener: cleo.id, answer: 'opened' })
    expect((await open(ada, [ben, cleo])).room).toBe(group.room)
    expect((await open(ada, [cleo])).room).not.toBe(group.room)
  })

  test('the same bytes again open nothing and say nothing twice', async () => {
    const signed = client.sign(ada, { operation: 'conversation.open', members: [eve.id], text: 'once' })
    const [first, again] = [await client.send(signed.body), await client.send(signed.body)]
    expect(again.data.receipt).toMatchObject({ event_id: first.data.receipt?.event_id, duplicate: true })
    const { room } = (again.data as unknown as { conversation: Conversation }).conversation
    expect((await client.command(ada, { operation: 'events.list', room })).data.events).toHaveLength(1)
  })

  test('a first message that is redacted is in no file any more', async () => {
    const secret = 'a first word to be taken back'
    const opened = await client.command(fay, { operation: 'conversation.open', members: [cleo.id], text: secret })
    const event_id = opened.data.receipt!.event_id
    const { room } = (opened.data as unknown as { conversation: Conversation }).conversation
    await client.command(fay, { operation: 'event.redact', event_id, reason: 'test' })
    expect((await client.command(cleo, { operation: 'events.list', room })).data.events).toEqual([])
    const files = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.log'))
    const holds = () => files.filter((name) => readFileSync(join(directory, name)).includes(secret))
    await vi.waitFor(() => expect(holds()).toEqual([]), { timeout: 20_000 })
    expect((await list(fay, 'all')).map((each) => each.room)).toContain(room)
  })

  test('before anybody accepts, its opener says ten times 4 KiB, and a block looks like silence', async () => {
    const ways = ['silence', 'decline', 'block']
    const outcomes: string[][] = []
    for (const way of ways) {
      const other = person(`other of ${way}`)
      const { room, messages_left } = await open(fay, [other], 'first')
      expect(messages_left).toBe(9)
      if (way !== 'silence')
        expect((await respond(other, room, way)).data).toMatchObject({ conversation: { answer: way } })
      const seen: string[] = []
      const note = (answer: { status: number; text: string }) =>
        seen.push(answer.status === 200 ? '200' : answer.text.replaceAll(room, 'ROOM'))
      note(await client.post(fay, { room, text: 'é'.repeat(2049) }))
      note(await client.post(fay, { room, text: 'é'.repeat(2048) }))
      for (let n = 3; n <= 11; n++) note(await client.post(fay, { room, text: `${n}` }))
      note(await client.command(fay, { operation: 'conversation.open', members: [other.id], text: 'more' }))
      const shown = (await list(fay, 'all')).find((each) => each.room === room)!
      seen.push(JSON.stringify({ ...shown, room: 'ROOM', members: [], created_at: 0, updated_at: 0 }))
      outcomes.push(seen)
      expect(await list(other, 'requests')).toHaveLength(way === 'silence' ? 1 : 0)
      expect(await list(other, 'left')).toHaveLength(way === 'silence' ? 0 : 1)
    }
    expect(outcomes[0]?.map((each) => each.slice(0, 3))).toEqual(['{"o', ...Array(9).fill('200'), '{"o', '{"o', '{"r'])
    expect(outcomes[0]?.[0]).toContain('too_large')
    expect(outcomes[0]?.[10]).toContain('wrong_state')
    expect(outcomes[1]).toEqual(outcomes[0])
    expect(outcomes[2]).toEqual(outcomes[0])
  })

  test('an answer or a post accepts, and lifts the limits', async () => {
    const { room } = await open(cleo, [eve], 'hello')
    expect(await list(eve, 'requests')).toMatchObject([{ answer: 'pending' }, { answer: 'pending' }])
    expect((await respond(eve, room, 'accept')).data).toMatchObject({
      conversation: { answer: 'accept', accepted: true },
    })
    expect((await client.post(cleo, { room, text: 'x'.repeat(8000) })).status).toBe(200)
    const { room: other } = await open(ben, [eve], 'hello')
    await client.post(eve, { room: other, text: 'hi' })
    const accepted = (await list(eve)).map((each) => `${each.room} ${each.answer}`)
    expect(accepted.sort()).toEqual([`${other} accept`, `${room} accept`].sort())
    expect((await client.post(ben, { room: other, text: 'x'.repeat(8000) })).status).toBe(200)
  })

  test('what is wrong is refused', async () => {
    const wrong = async (signer: Signer, fields: object) => {
      const answer = await client.command(signer, { operation: 'conversation.open', ...fields })
      return `${answer.code} ${answer.field}`
    }
    expect(await wrong(ada, { members: [ada.id] })).toBe('invalid_field members')
    expect(await wrong(ada, { members: [ben.id], data: '{"schema":1,"kind":"group"}' })).toBe('invalid_field data')
    expect(await wrong(ada, { members: [ben.id, eve.id], data: '{"schema":1,"kind":"dm"}' })).toBe('invalid_field data')
    expect(await respond(ada, 'lobby', 'accept')).toMatchObject({ code: 'not_found', field: 'room' })
    expect(await respond(ada, 'nowhere', 'accept')).toMatchObject({ code: 'not_found', field: 'room' })
    const { room } = await open(ada, [ben])
    for (const fields of [
      { operation: 'room.member.add', target: eve.id },
      { operation: 'room.member.remove', target: ben.id },
      { operation: 'room.moderator.add', target: ben.id },
      { operation: 'room.owner.transfer', target: ben.id },
      { operation: 'room.invite.create' },
      { operation: 'room.leave' },
    ])
      expect([fields, await client.command(ada, { ...fields, room })]).toMatchObject([fields, { code: 'wrong_state' }])
    for (const operation of ['conversations.list', 'inbox.get'])
      expect(await client.send(JSON.stringify({ operation }))).toMatchObject({ status: 403, code: 'unsigned' })
    const { text } = await client.command(ada, { operation: 'conversations.list', kind: 'all', limit: 1 })
    const { next_cursor } = (JSON.parse(text) as { data: { next_cursor: string } }).data
    for (const [signer, operation] of [
      [ben, 'conversations.list'],
      [ada, 'inbox.get'],
    ] as const)
      expect(await client.command(signer, { operation, cursor: next_cursor })).toMatchObject({ field: 'cursor' })
  })

  test('lists are the same whatever the size of their pages', async () => {
    const all = await list(ada, 'all')
    expect(all.length).toBeGreaterThan(3)
    expect(await list(ada, 'all', 1)).toEqual(all)
  })
})

describe('the inbox', () => {
  const [gus, hal, ida] = [person('inbox gus'), person('inbox hal'), person('inbox ida')]
  const secret = 'inbox-cellar'

  test('replies, mentions, addressed posts and requests, newest first', async () => {
    const root = await client.post(gus, { text: 'mine', handle: 'gus' })
    await client.post(gus, { text: '@gus my own word is no news' })
    await client.post(hal, { text: 'a reply', reply_to: root.data.event_id! })
    await client.post(hal, { text: 'hey @gus, look' })
    await client.post(hal, { text: 'for you', to: gus.id })
    for (const text of ['mail gus@gus.example', '@gusto', 'x@gus', '@gus_', 'https://a.example/@gus'])
      await client.post(hal, { text })
    await open(hal, [gus], 'a word in private')
    const items = await inbox(gus)
    expect(texts(items).sort()).toEqual([
      'addressed for you',
      'mention hey @gus, look',
      'reply a reply',
      'request undefined',
    ])
  })

  test('a mention in a private room reaches its members alone', async () => {
    await client.command(hal, { operation: 'room.create', room: secret, visibility: 'private', members: [ida.id] })
    await client.post(ida, { text: 'ida is here', handle: 'ida' })
    await client.post(hal, { room: secret, text: 'psst @gus and @ida' })
    expect(texts(await inbox(ida))).toContain('mention psst @gus and @ida')
    expect(texts(await inbox(gus))).not.toContain('mention psst @gus and @ida')
  })

  test('pages of any size give the same, of one type too', async () => {
    const all = await inbox(gus)
    expect(await inbox(gus, { limit: 1 })).toEqual(all)
    for (const kind of ['reply', 'mention', 'addressed', 'request'])
      expect(await inbox(gus, { kind, limit: 1 })).toEqual(all.filter(({ type }) => type === kind))
  })

  test('whoever is blocked reaches it no more, in public neither', async () => {
    const before = await inbox(gus)
    const [{ room }] = (await list(gus, 'requests')) as [Conversation]
    await respond(gus, room, 'block')
    await client.post(hal, { text: '@gus again' })
    expect(await inbox(gus)).toEqual(before.filter(({ from }) => from !== hal.id))
    await respond(gus, room, 'accept')
    expect(texts(await inbox(gus))).toContain('mention @gus again')
  })

  test('all of it is the same after a stop and after a kill', async () => {
    const look = async () => [
      await inbox(gus),
      await inbox(ida),
      await list(fay, 'all'),
      await list(eve, 'requests'),
      await list(ada, 'all'),
    ]
    const before = await look()
    for (const how of ['stop', 'kill'] as const) {
      client.close()
      await board[how]()
      board = await startBoard({ directory, env })
      client = await Client.of(board)
      expect(await look()).toEqual(before)
    }
  })
})
