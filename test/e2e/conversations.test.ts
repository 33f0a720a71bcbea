import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type EventJson, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { drainUpdates, fetchUpdates, subject } from '../support/updates.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const ida = person('inbox ida')
const [ada, ben, cleo, eve, fay] = ['ada', 'ben', 'cleo', 'eve', 'fay'].map((name) => person(`talk ${name}`)) as [
  Signer,
  Signer,
  Signer,
  Signer,
  Signer,
]
type Signer = ReturnType<typeof person>

const [gil, hana] = [person('talk gil'), person('talk hana')]
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
      ...(kind === '' ? {} : { kind }),
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
  test('two people who open the same conversation share one room, which only they can see', async () => {
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

  test('a conversation that awaits an answer is listed when no kind is given, until it is left', async () => {
    const [opener, asked] = [person('pending opener'), person('pending asked')]
    const { room } = await open(opener, [asked], 'Shall we?')
    const seen = async (signer: Signer, kind?: string) => (await list(signer, kind)).map((each) => each.room)
    expect([await seen(opener, ''), await seen(asked, '')]).toEqual([[room], [room]])
    expect((await list(asked, ''))[0]).toMatchObject({ answer: 'pending', accepted: false })
    expect([await seen(asked, 'active'), await seen(asked, 'requests')]).toEqual([[], [room]])
    await respond(asked, room, 'decline')
    expect([await seen(asked, ''), await seen(asked, 'left')]).toEqual([[], [room]])
  })

  test('a group is a different room than any of its pairs, and the order of members does not matter', async () => {
    const group = await open(cleo, [ada, ben])
    expect(group).toMatchObject({ kind: 'group', opener: cleo.id, answer: 'opened' })
    expect((await open(ada, [ben, cleo])).room).toBe(group.room)
    expect((await open(ada, [cleo])).room).not.toBe(group.room)
  })

  test('repeating the same bytes opens nothing and posts nothing twice', async () => {
    const signed = client.sign(ada, { operation: 'conversation.open', members: [eve.id], text: 'once' })
    const [first, again] = [await client.send(signed.body), await client.send(signed.body)]
    expect(again.data.receipt).toMatchObject({ event_id: first.data.receipt?.event_id, duplicate: true })
    const { room } = (again.data as unknown as { conversation: Conversation }).conversation
    expect((await client.command(ada, { operation: 'events.list', room })).data.events).toHaveLength(1)
  })

  test('a redacted first message is removed from every file', async () => {
    const secret = 'a first word to be taken back'
    const opened = await client.command(fay, { operation: 'conversation.open', members: [cleo.id], text: secret })
    const event_id = opened.data.receipt!.event_id
    const { room } = (opened.data as unknown as { conversation: Conversation }).conversation
    await client.command(fay, { operation: 'event.redact', event_id, reason: 'test' })
    expect((await client.command(cleo, { operation: 'events.list', room })).data.events).toEqual([])
    const files = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.log'))
    const holds = () => files.filter((name) => readFileSync(join(directory, name)).includes(secret))
    await vi.waitFor(() => expect(holds()).toEqual([]), patience)
    expect((await list(fay, 'all')).map((each) => each.room)).toContain(room)
  })

  test('until somebody accepts, the opener may send ten messages of 4 KiB, and a block looks like silence', async () => {
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

  test('an answer or a post accepts the conversation and lifts the limits', async () => {
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

  test('nobody can accept a conversation they opened themselves, but they can rejoin one they left', async () => {
    const { room } = await open(ida, [cleo])
    expect(await respond(ida, room, 'accept')).toMatchObject({ status: 400, code: 'wrong_state', field: 'room' })
    expect((await respond(ida, room, 'decline')).status).toBe(200)
    expect((await respond(ida, room, 'accept')).data).toMatchObject({ conversation: { accepted: false } })
  })

  test('no other room can be named like a conversation', async () => {
    const create = { operation: 'room.create', room: 'dm-mine' }
    expect(await client.command(ada, create)).toMatchObject({ code: 'invalid_field', field: 'room' })
    expect(await client.post(ada, { room: 'dm-mine', text: 'x' })).toMatchObject({
      code: 'invalid_field',
      field: 'room',
    })
  })

  test('invalid requests are refused', async () => {
    const wrong = async (signer: Signer, fields: object) => {
      const answer = await client.command(signer, { operation: 'conversation.open', ...fields })
      return `${answer.code} ${answer.field}`
    }
    expect(await wrong(ada, { members: [ada.id] })).toBe('invalid_field members')
    expect(await wrong(ada, { members: [ben.id], data: '{"schema":1,"kind":"group"}' })).toBe('invalid_field data.kind')
    expect(await wrong(ada, { members: [ben.id, eve.id], data: '{"schema":1,"kind":"dm"}' })).toBe(
      'invalid_field data.kind',
    )
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

  test('lists have the same content whatever their page size', async () => {
    const all = await list(ada, 'all')
    expect(all.length).toBeGreaterThan(3)
    expect(await list(ada, 'all', 1)).toEqual(all)
  })
})

describe('the inbox', () => {
  const [gus, hal] = [person('inbox gus'), person('inbox hal')]
  const secret = 'inbox-cellar'

  test('the inbox has replies, mentions, addressed posts and requests, newest first', async () => {
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

  test('a mention in a private room reaches only its members', async () => {
    await client.command(hal, { operation: 'room.create', room: secret, visibility: 'private', members: [ida.id] })
    await client.post(ida, { text: 'ida is here', handle: 'ida' })
    await client.post(hal, { room: secret, text: 'psst @gus and @ida' })
    expect(texts(await inbox(ida))).toContain('mention psst @gus and @ida')
    expect(texts(await inbox(gus))).not.toContain('mention psst @gus and @ida')
  })

  test('the inbox has the same content whatever its page size, also when filtered by type', async () => {
    const all = await inbox(gus)
    expect(await inbox(gus, { limit: 1 })).toEqual(all)
    for (const kind of ['reply', 'mention', 'addressed', 'request'])
      expect(await inbox(gus, { kind, limit: 1 })).toEqual(all.filter(({ type }) => type === kind))
  })

  test('a blocked identity no longer reaches the inbox, not even from public rooms', async () => {
    const before = await inbox(gus)
    const [{ room }] = (await list(gus, 'requests')) as [Conversation]
    await respond(gus, room, 'block')
    await client.post(hal, { text: '@gus again' })
    expect(await inbox(gus)).toEqual(before.filter(({ from }) => from !== hal.id))
    await client.post(ida, { text: '@gus from ida, before' })
    for (let n = 0; n < 3; n++) await client.post(hal, { text: `@gus ${n}` })
    const page = await client.command(gus, { operation: 'inbox.get', limit: 1 })
    expect((page.data as unknown as { items: Item[] }).items).toMatchObject([{ from: ida.id }])
    const { cursor } = await fetchUpdates(client, {}, gus)
    const root = await client.post(gus, { text: 'a word of mine' })
    await client.post(hal, { text: '@gus once more', reply_to: root.data.event_id! })
    await client.post(hal, { room, text: 'let me in' })
    await open(hal, [gus, ida], 'a new room')
    const named = await client.post(ida, { text: '@gus from ida' })
    const heard = await drainUpdates(client, { cursor }, gus)
    const ofPrivate = heard.filter((each) => each.room !== 'lobby')
    expect(ofPrivate).toEqual([])
    expect(heard.filter(({ type }) => type === 'mention' || type === 'reply').map(subject)).toEqual([
      `mention ${named.data.event_id}`,
    ])
    await respond(gus, room, 'accept')
    expect(texts(await inbox(gus))).toContain('mention @gus again')
  })

  test('an edit that names somebody reaches their inbox; one that removes the name withdraws it', async () => {
    const named = await client.post(ada, { text: 'hey @gus, a slip' })
    const plain = await client.post(ada, { text: 'hey nobody' })
    const secretPost = await client.post(hal, { room: secret, text: 'nobody' })
    const { cursor } = await fetchUpdates(client, {}, gus)
    const begun = (await fetchUpdates(client, {}, ida)).cursor
    const edit = (id: string, text: string, signer = ada) =>
      client.post(signer, { text, data: JSON.stringify({ schema: 1, supersedes: id }) })
    await edit(named.data.event_id!, 'hey')
    await edit(plain.data.event_id!, 'hey @gus')
    await edit(plain.data.event_id!, 'hey again, @gus')
    await edit(secretPost.data.event_id!, 'psst, @ida', hal)
    const found = texts(await inbox(gus)).filter((each) => each.includes('hey'))
    expect(found).toContain('mention hey again, @gus')
    expect(found).not.toContain('mention hey, a slip')
    expect(found).not.toContain('mention hey')
    expect(found.filter((each) => each.includes('hey again'))).toHaveLength(1)
    const mentions = async (signer: Signer, from: string) =>
      (await drainUpdates(client, { cursor: from, kinds: ['mention'] }, signer)).map(subject)
    expect(await mentions(gus, cursor)).toEqual([`mention ${plain.data.event_id}`])
    expect(await mentions(ida, begun)).toEqual([`mention ${secretPost.data.event_id}`])
    expect(texts(await inbox(ida))).toContain('mention psst, @ida')
    await edit(plain.data.event_id!, 'hey, nobody at all')
    expect(texts(await inbox(gus)).filter((each) => each.includes('nobody at all'))).toEqual([])
  })

  test('conversations and inboxes are unchanged after a stop and after a kill', async () => {
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

test('a message by conversation.open is a post, so the policy of its room applies', async () => {
  const { room } = await open(gil, [hana], 'hello')
  const policy = (set: object) => client.command(gil, { operation: 'room.policy.set', room, data: JSON.stringify(set) })
  const say = async () => {
    const fields = { operation: 'conversation.open', members: [hana.id], text: 'again' }
    const { status, code } = await client.command(gil, fields)
    return [status, code]
  }
  expect((await policy({ max_events: 1 })).status).toBe(200)
  expect(await say()).toEqual([400, 'wrong_state'])
  await policy({ max_events: 0, closed: true })
  expect(await say()).toEqual([400, 'wrong_state'])
  await policy({ closed: false })
  expect(await say()).toEqual([200, undefined])
})
