/** Lists that promise "newest first" keep that order even within one second. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { shardOf } from '../../actors/shard.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Data, type EventJson, type Fields, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Signer = ReturnType<typeof person>
type Conversation = { readonly room: string; readonly created_at: number; readonly updated_at: number }
type Item = { readonly event?: EventJson; readonly conversation?: Conversation }

const [reader, writer] = [person('order reader'), person('order writer')]
const operator = person('order operator')
const shards = 3
let client: Client

beforeAll(async () => {
  client = await Client.of(
    await startBoard({ directory: boardDirectory(), env: { SHARDS: String(shards), OPERATORS: operator.id } }),
  )
})
afterAll(() => client.close())

/** All of a list, by its cursors. */
async function whole<Each>(signer: Signer, name: string, fields: Fields): Promise<Each[]> {
  const found: Each[] = []
  let cursor = ''
  do {
    const answer = await client.command(signer, cursor === '' ? fields : { ...fields, cursor })
    expect(answer.code).toBe(undefined)
    found.push(...(answer.data as Data & Record<string, Each[]>)[name]!)
    cursor = answer.data.next_cursor ?? ''
  } while (cursor !== '')
  return found
}

/** Times in a list never increase; where several are equal, `order` says which item is newer. */
function isNewestFirst<Each>(items: readonly Each[], time: (each: Each) => number, order: (each: Each) => number) {
  return items.every((each, n) => {
    const next = items[n + 1]
    if (next === undefined) return true
    return time(each) > time(next) || (time(each) === time(next) && order(each) > order(next))
  })
}

test('an inbox is sorted newest first', async () => {
  const told = new Map<string, number>()
  const root = (await client.post(reader, { room: 'order', text: 'root' })).data.event!
  for (let n = 0; n < 30; n++) {
    const posted = await client.post(writer, { room: 'order', text: `${n}`, reply_to: root.event_id })
    told.set(posted.data.event!.event_id, n)
  }
  const items = await whole<Item>(reader, 'items', { operation: 'inbox.get' })
  expect(items).toHaveLength(30)
  // The point of the test is that many share a second.
  expect(new Set(items.map(({ event }) => event!.created_at)).size).toBeLessThan(30)
  expect(items.map(({ event }) => told.get(event!.event_id))).toEqual([...told.values()].reverse())
  expect(await whole<Item>(reader, 'items', { operation: 'inbox.get', limit: 7 })).toEqual(items)
})

test('conversations and requests of one shard are sorted newest first; across shards a second has no order', async () => {
  const rooms: string[] = []
  for (let n = 0; n < 24; n++) {
    const opening = { operation: 'conversation.open', members: [reader.id], text: `hello ${n}` }
    const { data } = await client.command(person(`order ${n}`), opening)
    rooms.push((data as unknown as { conversation: Conversation }).conversation.room)
  }
  const at = ({ item }: { item: Item }) => item.conversation!.created_at
  const asking = { operation: 'inbox.get', kind: 'request' }
  const requests = (await whole<Item>(reader, 'items', asking)).map((item) => ({ item }))
  const listing = { operation: 'conversations.list', limit: 5 }
  const listed = await whole<Conversation>(reader, 'conversations', listing)
  expect([requests.length, listed.length]).toEqual([24, 24])
  for (let n = 0; n < shards; n++) {
    const asked = requests.filter(({ item }) => shardOf(item.conversation!.room, shards) === n)
    expect(isNewestFirst(asked, at, ({ item }) => rooms.indexOf(item.conversation!.room))).toBe(true)
    const own = listed.filter(({ room }) => shardOf(room, shards) === n)
    expect(
      isNewestFirst(
        own,
        (each) => each.updated_at,
        ({ room }) => rooms.indexOf(room),
      ),
    ).toBe(true)
  }
})

test('one’s own documents and reports to the operator are sorted newest first', async () => {
  const [docs, reports]: [string[], string[]] = [[], []]
  for (let n = 0; n < 12; n++) {
    const data = JSON.stringify({ schema: 1, title: `${n}` })
    const made = await client.command(reader, { operation: 'docs.create', room: 'order', text: 'x', data })
    docs.push((made.data as unknown as { doc: { id: string } }).doc.id)
  }
  const own = { operation: 'docs.list', data: '{"schema":1,"own":true}', limit: 5 }
  expect((await whole<{ id: string }>(reader, 'docs', own)).map(({ id }) => id)).toEqual(docs.reverse())
  for (let n = 0; n < 12; n++) {
    const { event_id } = (await client.post(writer, { room: 'order', text: `bad ${n}` })).data.event!
    await client.command(reader, { operation: 'report', event_id, reason: 'spam' })
    reports.push(event_id)
  }
  const listed = await whole<{ event_id: string }>(operator, 'reports', { operation: 'reports.list', limit: 5 })
  expect(listed.map(({ event_id }) => event_id)).toEqual(reports.reverse())
})
