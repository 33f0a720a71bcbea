import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type EventJson, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { blockIds, StreamReader, sseIds } from '../support/stream-reader.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const ada = person('ada')

describe.each(['uws', 'node'])('a tail on the %s engine', (engine) => {
  let board: Board
  let client: Client
  let room = 0
  const posts = async (name: string, count: number, from = 0): Promise<EventJson[]> => {
    const made: EventJson[] = []
    for (let n = from; n < from + count; n += 1)
      made.push((await client.post(ada, { room: name, text: `number ${n}` })).data.event!)
    return made
  }
  const ids = (events: readonly EventJson[]) => events.map(({ event_id }) => event_id)

  beforeAll(async () => {
    board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine } })
    client = await Client.of(board)
  })
  afterAll(() => client.close())
  const freshRoom = () => `room-${room++}`

  test('begins with a line on what it is, shows the 5 newest posts, and then each as it is acknowledged', async () => {
    const name = freshRoom()
    const old = await posts(name, 8)
    const follower = new StreamReader(board.address, `/tail/${name}`)
    await follower.until((text) => blockIds(text).length === 5)
    expect(follower.text).toMatch(new RegExp(`^# live tail of room ${name}\\b.*\\n\\n`))
    const fresh = await posts(name, 3, 8)
    const text = await follower.until((all) => blockIds(all).length === 8)
    expect(blockIds(text)).toEqual(ids([...old.slice(-5), ...fresh]))
    const [reply] = [(await client.post(ada, { text: 'two\nlines', reply_to: fresh[0]!.event_id })).data.event!]
    const time = new Date(reply.created_at * 1000).toISOString().replace('.000Z', 'Z')
    const block = `[${reply.event_id}] ${name}/main ${ada.id} ${time} reply_to=${fresh[0]!.event_id}\ntwo\nlines\n\n`
    expect(await follower.until((all) => all.includes('lines\n\n'))).toContain(block)
    follower.close()
  })

  test('shows as many posts first as ?last says, and one line per post with ?format=line', async () => {
    const name = freshRoom()
    const made = await posts(name, 4)
    const none = new StreamReader(board.address, `/tail/${name}?last=0&format=line`)
    await none.until((text) => text.includes('\n\n'))
    expect(none.text).toMatch(
      /^# live tail of room .*: each line that begins with \[ is a post, with ⏎ for its line breaks/,
    )
    const many = new StreamReader(board.address, `/tail/${name}?last=200&format=line`)
    await many.until((text) => blockIds(text).length === 4)
    const { event } = (await client.post(ada, { room: name, text: 'a\nb\r\tc\u202e\u001b[2J' })).data
    for (const [follower, before] of [
      [none, []],
      [many, ids(made)],
    ] as const) {
      const text = await follower.until((all) => all.includes(event!.event_id) && all.endsWith('\n'))
      expect(blockIds(text)).toEqual([...before, event!.event_id])
      expect(text.split('\n').find((line) => line.startsWith(`[${event!.event_id}]`))).toMatch(
        / a⏎b\\x0d\tc\\u202e\\x1b\[2J$/,
      )
      follower.close()
    }
    for (const query of ['last=201', 'last=-1', 'last=x', 'format=html', 'since=x', 'more=1']) {
      expect([query, await client.get(`/tail/${name}?${query}`)]).toMatchObject([query, { status: 400 }])
    }
    const unknown = 'c'.repeat(32)
    const notFound = { status: 400, code: 'not_found' }
    expect(await client.get(`/tail/${name}?since=${unknown}`)).toMatchObject({ ...notFound, field: 'since' })
    const returning = { accept: 'text/event-stream', 'last-event-id': unknown }
    expect(await client.get(`/tail/${name}`, returning)).toMatchObject({ ...notFound, field: 'Last-Event-ID' })
  })

  test.each(['?since', 'Last-Event-ID', 'Last-Event-ID beside ?since'])(
    'loses or repeats nothing when resumed by %s over and over while others post',
    async (way) => {
      const name = freshRoom()
      const [first] = await posts(name, 1)
      const made = [first!]
      const writing = (async () => {
        for (let n = 1; n < 250; n += 1) made.push(...(await posts(name, 1, n)))
      })()
      const got: string[] = [first!.event_id]
      let rounds = 0
      while (got.length < 250) {
        const headers: Record<string, string> =
          way === '?since' ? {} : { accept: 'text/event-stream', 'last-event-id': got.at(-1)! }
        const query = { '?since': `?since=${got.at(-1)}`, 'Last-Event-ID': '' }[way] ?? `?since=${first!.event_id}`
        const follower = new StreamReader(board.address, `/tail/${name}${query}`, headers)
        const read = way === '?since' ? blockIds : sseIds
        const want = Math.min(1 + (rounds % 9), 250 - got.length)
        const text = await follower.until((all) => read(all).length >= want)
        follower.close()
        got.push(...read(text.slice(0, text.lastIndexOf('\n\n') + 2)))
        rounds += 1
      }
      await writing
      expect(got).toEqual(ids(made))
    },
  )

  test('sends each post as one server-sent event with its id and the event as JSON', async () => {
    const name = freshRoom()
    await posts(name, 2)
    const follower = new StreamReader(board.address, `/tail/${name}`, { accept: 'text/event-stream' })
    await follower.until((all) => sseIds(all).length === 2)
    const { event } = (await client.post(ada, { room: name, text: 'line\nid: x\n\ndata: y\u2028\r' })).data
    const text = await follower.until((all) => sseIds(all).length === 3)
    const [, json] = new RegExp(`^id: ${event!.event_id}\\ndata: ([^\\n]*)\\n\\n`, 'm').exec(text)!
    expect(JSON.parse(json!)).toEqual(event)
    follower.close()
  })

  test('keeps delivering while other followers come and go', async () => {
    const name = freshRoom()
    await posts(name, 1)
    for (let round = 0; round < 120; round += 1) {
      const leaving = new StreamReader(board.address, `/tail/${name}?last=1`)
      await leaving.until((text) => blockIds(text).length === 1)
      const staying = new StreamReader(board.address, `/tail/${name}?last=1`)
      // Somewhere between the other's request and its first line.
      for (let turn = 0; turn < round % 40; turn += 1) await new Promise((resolve) => setImmediate(resolve))
      leaving.close()
      await staying.until((text) => blockIds(text).length === 1)
      const { event_id } = (await client.post(ada, { room: name, text: `${round}` })).data
      const heard = staying.until((text) => text.includes(event_id!))
      const nothing = new Promise<string>((resolve) => setTimeout(resolve, patience.timeout, 'nothing').unref())
      expect(await Promise.race([heard, nothing]), `round ${round}: a follower was forgotten`).toContain(event_id)
      staying.close()
    }
  })

  test('a reader that takes nothing stops nobody, and one that returns for megabytes gets each post once', async () => {
    const name = freshRoom()
    await posts(name, 1)
    const stalled = connect({ host: '127.0.0.1', port: board.port })
    await once(stalled, 'connect')
    stalled.write(`GET /tail/${name} HTTP/1.1\r\nHost: a\r\n\r\n`)
    await once(stalled, 'readable')
    stalled.pause()
    const reader = new StreamReader(board.address, `/tail/${name}?last=0`)
    await reader.until((text) => text.includes('\n\n'))
    const made: string[] = []
    for (let n = 0; n < 40; n += 1) {
      const batch = Array.from({ length: 8 }, () => client.post(ada, { room: name, text: 'x'.repeat(30_000) }))
      made.push(...(await Promise.all(batch)).map(({ data }) => data.event_id!))
    }
    const text = await reader.until((all) => blockIds(all).length === made.length)
    expect(new Set(blockIds(text))).toEqual(new Set(made))
    expect((await client.get('/healthz')).status).toBe(200)
    reader.close()
    stalled.destroy()
    // Its backlog is many pages, each larger than a socket accepts at once.
    const [oldest, ...others] = blockIds(text)
    const returning = new StreamReader(board.address, `/tail/${name}?since=${oldest}`)
    await returning.until((all) => all.includes(`[${others.at(-1)}]`) && all.endsWith('x\n\n'))
    const [news] = await posts(name, 1)
    const all = await returning.until((read) => read.includes(`[${news!.event_id}]`))
    expect(blockIds(all)).toEqual([...others, news!.event_id])
    returning.close()
  })
})
