/** With HTTP threads all connections belong to one board, and a thread that dies takes only its own connections with it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { randomPart } from '../support/random-part.ts'
import { StreamClient } from '../support/stream-client.ts'
import { StreamReader } from '../support/stream-reader.ts'

vi.setConfig({ testTimeout: 120_000 })

const ada = person('ada')

/** SIGUSR2 is an error in one of these threads. */
const assassin = `
import { isMainThread, workerData } from 'node:worker_threads'
const channel = new BroadcastChannel('errors')
channel.unref()
if (isMainThread) process.on('SIGUSR2', () => channel.postMessage('an error'))
else if (workerData?.file?.includes('workers/http') && workerData.data.number === 1)
  channel.onmessage = ({ data }) => setImmediate(() => { throw new Error(data) })
`

/** Enough that every thread has some of them: the kernel distributes them. */
const readersMax = 32

async function readersOf(board: Board, room: string): Promise<StreamReader[]> {
  const readers = Array.from({ length: readersMax }, () => new StreamReader(board.address, `/tail/${room}`))
  await Promise.all(readers.map((reader) => reader.until((text) => text.includes('# live tail'))))
  return readers
}

async function figure(client: Client, name: string): Promise<number> {
  const { text } = await client.get('/metrics')
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.split(' ')[1],
  )
}

describe.each(randomPart(['uws', 'node']))('on the %s engine', (engine) => {
  const env = { HTTP_ENGINE: engine, HTTP_THREADS: '2' }

  test('posts through one connection reach the readers of every thread, and all are counted together', async () => {
    const board = await startBoard({ directory: boardDirectory(), env })
    const client = await Client.of(board)
    await client.post(ada, { room: 'desk', text: 'before' })
    const readers = await readersOf(board, 'desk')
    for (let n = 0; n < 3; n++) await client.post(ada, { room: 'desk', text: `to all of you ${n}` })
    for (const reader of readers) expect(await reader.until((text) => text.includes('to all of you 2'))).toContain('2')
    const stream = await StreamClient.open(board.address)
    const { status } = await stream.answer(
      stream.send(client.sign(ada, { operation: 'post', text: 'by WebSocket' }).body),
    )
    expect(status).toBe(200)
    stream.close()
    // The engine prints its own warnings, which are not JSON. Boards of tests have no limits, which is a warning.
    for (const line of board.lines.filter((each) => !each.includes('"setting.unprotected"')))
      expect(JSON.parse(line)).toMatchObject({ level: 'info' })
    const { text } = await client.get('/metrics')
    for (const thread of ['http-0', 'http-1']) expect(text).toContain(`{thread="${thread}"}`)
    expect(await figure(client, 'broadside_connections_open')).toBeGreaterThanOrEqual(readersMax)
    for (const reader of readers) reader.close()
    await expect.poll(() => figure(client, 'broadside_connections_open')).toBeLessThan(readersMax)
    client.close()
    expect((await board.stop()).code).toBe(0)
  })

  test('a thread that dies is replaced: its connections end, those of the other continue, and all work again', async () => {
    const threads = { ...env, NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(assassin)}` }
    const board = await startBoard({ directory: boardDirectory(), env: threads })
    const client = await Client.of(board)
    const { eventId, body } = client.sign(ada, { operation: 'post', room: 'desk', text: 'before' })
    expect((await client.send(body)).status).toBe(200)
    const readers = await readersOf(board, 'desk')
    board.signal('SIGUSR2')
    await vi.waitFor(
      () => expect(board.lines.filter((line) => line.includes('"thread.restarted"'))).toHaveLength(1),
      patience,
    )
    await vi.waitFor(() => expect(readers.filter(({ closed }) => closed).length).toBeGreaterThan(0), patience)
    const left = readers.filter(({ closed }) => !closed)
    expect(left.length).toBeGreaterThan(0)
    const again = await readersOf(board, 'desk')
    const others = await Client.of(board)
    await others.post(ada, { room: 'desk', text: 'after' })
    for (const reader of [...left, ...again])
      expect(await reader.until((text) => text.includes('after'))).toContain('after')
    expect((await others.get(`/api/events/${eventId}`)).status).toBe(200)
    for (const reader of [...left, ...again]) reader.close()
    client.close()
    others.close()
    expect((await board.stop()).code).toBe(0)
  })

  test('a second board on the same port is refused, and the first has all connections', async () => {
    const board = await startBoard({ directory: boardDirectory(), env })
    const port = Number(new URL(board.address).port)
    const { output } = await expectStartRefused({ directory: boardDirectory(), port, env })
    expect(output).toContain('in use')
    const client = await Client.of(board)
    for (let n = 0; n < 10; n++) expect((await client.get('/healthz')).status).toBe(200)
    client.close()
    expect((await board.stop()).code).toBe(0)
  })

  test('a client that sends much right after its WebSocket opens has all of it done', async () => {
    const board = await startBoard({ directory: boardDirectory(), env })
    const client = await Client.of(board)
    const bodies = Array.from({ length: 400 }, (_, n) => client.sign(ada, { operation: 'post', text: `${n}` }).body)
    const stream = await StreamClient.open(board.address)
    for (const body of bodies) stream.send(body)
    await stream.until(() => stream.messages.length === bodies.length)
    expect(new Set(stream.messages.map(({ status }) => status))).toEqual(new Set([200]))
    stream.close()
    client.close()
    expect((await board.stop()).code).toBe(0)
  })

  test('a WebSocket from a foreign page gets the refusal, and nothing that it sends is done', async () => {
    const board = await startBoard({ directory: boardDirectory(), env })
    const client = await Client.of(board)
    const { body, eventId } = client.sign(ada, { operation: 'post', text: 'from a foreign page' })
    const opened = await StreamClient.open(board.address, { origin: 'https://evil.example' }).catch(
      ({ message }: Error) => message,
    )
    if (opened instanceof StreamClient) {
      // The native engine opens a WebSocket immediately, or not at all.
      opened.send(body)
      expect(await opened.closed()).toBe(1008)
      expect(opened.messages.map(({ error }) => error?.code)).toEqual(['invalid_origin'])
    } else expect(opened).toMatch('403')
    expect(opened instanceof StreamClient).toBe(engine === 'uws')
    expect((await client.get(`/api/events/${eventId}`)).code).toBe('not_found')
    client.close()
    expect((await board.stop()).code).toBe(0)
  })

  test('requests in progress at a stop are answered', async () => {
    const board = await startBoard({ directory: boardDirectory(), env })
    const client = await Client.of(board)
    const first = await client.post(ada, { room: 'desk', text: 'first' })
    const { cursor } = (await client.get('/api/updates?wait=0')).data as { cursor?: string }
    const waiting = client.get(`/api/updates?wait=30&cursor=${cursor}`)
    await sleep(300)
    const ended = board.stop()
    const { status } = await waiting
    expect([first.status, status]).toEqual([200, 200])
    client.close()
    expect((await ended).code).toBe(0)
  })
})
