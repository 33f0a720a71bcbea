import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, newNonce, now, person, type SignedCommand } from '../support/client.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('ada')
const bob = person('bob')

/** How many events of a room have this text. */
async function countOf(client: Client, room: string, text: string): Promise<number> {
  const { data } = await client.get(`/api/events?room=${room}&limit=200`)
  return data.events!.filter((event) => event.text === text).length
}

/** The answer to a retry: the first one's ids and event, and the duplicate mark. */
function expectSame(retry: Answer, first: Answer): void {
  expect(retry).toMatchObject({ status: 200, data: { receipt: { duplicate: true } } })
  expect(retry.data.event_id).toBe(first.data.event_id)
  expect(retry.data.event).toEqual(first.data.event)
  const { duplicate, checkpoint, tree_size = 0, ...receipt } = retry.data.receipt!
  const { checkpoint: firstHead, tree_size: firstSize = 0, ...firstReceipt } = first.data.receipt!
  expect(receipt).toEqual(firstReceipt)
  expect(tree_size).toBeGreaterThanOrEqual(firstSize)
}

/** A post whose timestamp is off by this much; repeated if it was decided so late that it no longer was. */
async function postOff(client: Client, offset: number): Promise<{ signed: SignedCommand; answer: Answer }> {
  const isIn = (off: number) => Math.abs(off) <= 300
  for (;;) {
    const timestamp = now() + offset
    const signed = client.sign(ada, { operation: 'post', room: 'r-0', text: `off by ${offset}` }, { timestamp })
    const answer = await client.send(signed.body)
    if ((answer.status === 200) === isIn(offset) || isIn(timestamp - now()) === isIn(offset)) return { signed, answer }
  }
}

describe.each(['uws', 'node'])('on the %s engine', (engine) => {
  let board: Board
  let client: Client

  beforeAll(async () => {
    board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine } })
    client = await Client.of(board)
  })
  afterAll(() => client.close())

  test('the same bytes again give the same outcome, marked duplicate, and no second effect', async () => {
    const signed = client.sign(ada, { operation: 'post', room: 'again', text: 'once' })
    const first = await client.send(signed.body)
    expect(first.data.receipt).not.toHaveProperty('duplicate')
    for (let round = 0; round < 3; round += 1) expectSame(await client.send(signed.body), first)
    expect(await countOf(client, 'again', 'once')).toBe(1)
  })

  test('the same bytes sent ten times at once make one event, and all ten get it', async () => {
    const signed = client.sign(ada, { operation: 'post', room: 'rush', text: 'at once' })
    const answers = await Promise.all(Array.from({ length: 10 }, () => client.send(signed.body)))
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200))
    expect(answers.filter(({ data }) => data.receipt?.duplicate === undefined)).toHaveLength(1)
    expect(new Set(answers.map(({ data }) => data.event?.seq))).toEqual(new Set([1]))
    expect(await countOf(client, 'rush', 'at once')).toBe(1)
  })

  test('the same fields in another order and with other white space are the same command', async () => {
    const signed = client.sign(ada, { operation: 'post', room: 'again', text: 'spaced' })
    const first = await client.send(signed.body)
    const entries = Object.entries(JSON.parse(signed.body) as object).reverse()
    expectSame(await client.send(JSON.stringify(Object.fromEntries([...entries, ['page', '']]), null, 3)), first)
  })

  test('other bytes under a nonce of the same identity are nonce_reused; another identity or room may use it', async () => {
    const nonce = newNonce()
    await client.post(ada, { room: 'nonces', text: 'one' }, { nonce })
    const other = await client.post(ada, { room: 'nonces', text: 'two' }, { nonce })
    expect(other).toMatchObject({ status: 400, code: 'nonce_reused', field: 'nonce' })
    expect((await client.post(bob, { room: 'nonces', text: 'three' }, { nonce })).status).toBe(200)
    expect((await client.post(ada, { room: 'elsewhere', text: 'four' }, { nonce })).status).toBe(200)
    expect(await countOf(client, 'nonces', 'two')).toBe(0)
  })

  test('a request_id with the same content gives the first answer, whatever the nonce and time; other content is refused', async () => {
    const content = { operation: 'post', room: 'requests', text: 'asked', request_id: 'r-1' }
    const first = await client.command(ada, content)
    expectSame({ ...(await client.command(ada, content, { timestamp: now() - 5 })) }, first)
    expect(await countOf(client, 'requests', 'asked')).toBe(1)
    const other = await client.command(ada, { ...content, text: 'asked otherwise' })
    expect(other).toMatchObject({ status: 400, code: 'request_id_reused', field: 'request_id' })
    expect((await client.command(bob, content)).data.receipt).not.toHaveProperty('duplicate')
    expect((await client.command(ada, { ...content, room: 'requests-2' })).data.receipt).not.toHaveProperty('duplicate')
  })

  test('a refusal consumes neither nonce nor request_id', async () => {
    const nonce = newNonce()
    const wrong = { room: 'refused', text: 'x', reply_to: 'a'.repeat(32), request_id: 'q' }
    expect(await client.post(ada, wrong, { nonce })).toMatchObject({ status: 400, code: 'not_found' })
    expect((await client.post(ada, { room: 'refused', text: 'y', request_id: 'q' }, { nonce })).status).toBe(200)
  })

  test('a timestamp 300 s off is accepted, and one further off is stale', async () => {
    for (const offset of [-295, 295]) expect((await postOff(client, offset)).answer.status).toBe(200)
    const stale = { status: 400, code: 'stale_timestamp', field: 'timestamp' }
    for (const offset of [-310, 310]) expect((await postOff(client, offset)).answer).toMatchObject(stale)
    for (const timestamp of [1, 2 ** 53 - 1])
      expect(await client.post(ada, { text: 'stale' }, { timestamp })).toMatchObject(stale)
  })

  test('a retry of room.create and identity.register is a duplicate too', async () => {
    const person1 = person(`retry ${engine}`)
    for (const fields of [
      { operation: 'room.create', room: 'workshop' },
      { operation: 'identity.register', handle: `h-${engine}` },
    ]) {
      const signed = client.sign(person1, fields)
      const first = await client.send(signed.body)
      const again = await client.send(signed.body)
      expect([first.status, again.status]).toEqual([200, 200])
      expect(again.data).toEqual({ ...first.data, receipt: { ...first.data.receipt, duplicate: true } })
    }
  })
})

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'after a restart by %s retries, nonces and request ids are remembered, also past their time window',
  async (signal) => {
    const directory = boardDirectory()
    const board = await startBoard({ directory })
    const client = await Client.of(board)
    const posts: { signed: SignedCommand; first: Answer }[] = []
    const nonce = newNonce()
    const take = async (signed: SignedCommand) => posts.push({ signed, first: await client.send(signed.body) })
    for (let n = 0; n < 20; n += 1)
      await take(client.sign(ada, { operation: 'post', room: `r-${n % 3}`, text: `${n}` }))
    await take(client.sign(ada, { operation: 'post', room: 'r-0', text: 'nonce' }, { nonce }))
    await take(client.sign(ada, { operation: 'post', room: 'r-0', text: 'asked', request_id: 'r' }))
    const { signed: edge, answer: atEdge } = await postOff(client, -294)
    posts.push({ signed: edge, first: atEdge })
    const created = client.sign(bob, { operation: 'room.create', room: 'mine', visibility: 'private' })
    expect((await client.send(created.body)).status).toBe(200)
    const inside = client.sign(bob, { operation: 'post', room: 'mine', text: 'inside' })
    const insideFirst = await client.send(inside.body)
    board.signal(signal)
    await board.ended

    const second = await startBoard({ directory })
    const later = await Client.of(second)
    expect(later.serviceId).toBe(client.serviceId)
    for (const { signed, first } of posts) expectSame(await later.send(signed.body), first)
    // The time window of that command has passed by now; its result is remembered all the same.
    await vi.waitUntil(() => now() - (JSON.parse(edge.body) as { timestamp: number }).timestamp > 301, patience)
    expectSame(await later.send(edge.body), posts.at(-1)!.first)
    const otherText = client.sign(ada, { operation: 'post', room: 'r-0', text: 'other' }, { nonce })
    expect(await later.send(otherText.body)).toMatchObject({ status: 400, code: 'nonce_reused' })
    const otherAsked = await later.command(ada, { operation: 'post', room: 'r-0', text: 'else', request_id: 'r' })
    expect(otherAsked).toMatchObject({ status: 400, code: 'request_id_reused' })
    expectSame(
      await later.command(ada, { operation: 'post', room: 'r-0', text: 'asked', request_id: 'r' }),
      posts.at(-2)!.first,
    )
    expect(await later.send(created.body)).toMatchObject({ status: 200, data: { receipt: { duplicate: true } } })
    expectSame(await later.send(inside.body), insideFirst)
    expect((await later.get('/api/stats')).data.stats?.events).toBe(posts.length)
    await second.stop()
  },
)
