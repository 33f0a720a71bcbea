/** POST /v1/commands: many commands in one request with an answer for each, on both engines. */
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sizes } from '../../actors/kernel/limits.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Data, person } from '../support/client.ts'
import { createDelegation } from '../support/delegations.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Line = {
  readonly line: number
  readonly status: number
  readonly ok: boolean
  readonly data?: Data
  readonly error?: { readonly code: string; readonly field?: string; readonly retry_after?: number }
}

const ada = person('ada')

describe.each(['uws', 'node'])('on the %s engine', (engine) => {
  let board: Board
  let client: Client

  beforeAll(async () => {
    board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine, BROADSIDE_LIMITS: 'off' } })
    client = await Client.of(board)
  })
  afterAll(() => board.stop())

  const sendTo = async (address: string, body: string): Promise<Line[]> => {
    const answer = await fetch(`${address}/v1/commands`, { method: 'POST', body })
    expect(answer.status, await answer.clone().text()).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/x-ndjson')
    const text = await answer.text()
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
    return lines.sort((a, b) => a.line - b.line)
  }
  const send = (bodies: readonly string[]) => sendTo(board.address, `${bodies.join('\n')}\n`)
  const post = (fields: object) => client.sign(ada, { operation: 'post', ...fields })

  test('posts to one room are numbered in the order of their lines', async () => {
    const posts = Array.from({ length: 200 }, (_, n) => post({ room: 'in-order', text: `line ${n + 1}` }))
    const lines = await send(posts.map(({ body }) => body))
    expect(lines.map(({ line, status }) => [line, status])).toEqual(posts.map((_, n) => [n + 1, 200]))
    expect(lines.map(({ data }) => data!.event!.seq)).toEqual(posts.map((_, n) => n + 1))
    expect(lines.map(({ data }) => data!.event!.event_id)).toEqual(posts.map(({ eventId }) => eventId))
  })

  test('a line may refer to what an earlier line created, in any room', async () => {
    const first = post({ room: 'begun', text: 'the first' })
    const reply = post({ text: 'a reply without a room', reply_to: first.eventId })
    const edit = post({ text: 'edited', data: JSON.stringify({ schema: 1, supersedes: first.eventId }) })
    const read = JSON.stringify({ operation: 'event.get', event_id: first.eventId })
    const lines = await send([first, reply, edit].map(({ body }) => body).concat(read))
    expect(lines.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(lines[1]!.data!.event!.room).toBe('begun')
    expect(lines[3]!.data!.event!.text).toBe('edited')
  })

  test('a room and its first posts can be created in one request', async () => {
    const room = client.sign(ada, { operation: 'room.create', room: 'made-here', visibility: 'private' })
    const lines = await send([room.body, ...[1, 2, 3].map((n) => post({ room: 'made-here', text: `${n}` }).body)])
    expect(lines.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(lines.map(({ data }) => data!.event?.seq)).toEqual([undefined, 1, 2, 3])
  })

  test('the first posts of a new delegate keep their order too', async () => {
    const key = person(`helper ${engine}`)
    await createDelegation(client, ada, key)
    const posts = Array.from({ length: 300 }, (_, n) =>
      client.sign(key, { operation: 'post', room: 'helped', text: `${n}` }),
    )
    const lines = await send(posts.map(({ body }) => body))
    expect(lines.map(({ data }) => data!.event!.seq)).toEqual(posts.map((_, n) => n + 1))
  })

  test('a refused line gets the same answer as it would alone, and stops no other line', async () => {
    const good = [post({ room: 'mixed', text: 'one' }), post({ room: 'mixed', text: 'two' })] as const
    const alone = [
      '{"operation":"post"',
      '[]',
      '{"operation":"pots"}',
      JSON.stringify({ operation: 'post', text: 'unsigned' }),
      good[0].body.replace('"one"', '"forged"'),
      JSON.stringify({ operation: 'events.list', room: 'no-such-room' }),
    ]
    const lines = await send([good[0].body, ...alone, good[1].body])
    expect(lines[0]!.ok && lines.at(-1)!.ok).toBe(true)
    for (const [n, body] of alone.entries()) {
      const { status, text } = await client.send(body)
      const { line, status: found, ...envelope } = lines[n + 1]!
      expect([line, found, envelope]).toEqual([n + 2, status, JSON.parse(text)])
      expect(envelope.ok).toBe(false)
    }
  })

  test('repeating the same bytes has no second effect', async () => {
    const posts = Array.from({ length: 20 }, (_, n) => post({ room: 'again', text: `${n}` }).body)
    const first = await send(posts)
    const second = await send(posts)
    expect(second.map(({ data }) => data!.receipt!.duplicate)).toEqual(posts.map(() => true))
    expect(second.map(({ data }) => data!.event!.seq)).toEqual(first.map(({ data }) => data!.event!.seq))
  })

  test('an updates.get after another one does not end the waits of other requests', async () => {
    const ask = JSON.stringify({ operation: 'updates.get' })
    for (let n = 0; n < 10; n++)
      expect((await send(Array.from({ length: 5 }, () => ask))).map(({ status }) => status)).toEqual([
        200, 200, 200, 200, 200,
      ])
    expect((await client.get('/api/updates?wait=1')).status).toBe(200)
  })

  test('empty lines and lines with only a carriage return are no commands, but count as lines', async () => {
    const [one, two] = [post({ room: 'spaced', text: 'one' }), post({ room: 'spaced', text: 'two' })]
    const lines = await sendTo(board.address, `\n${one.body}\r\n\r\n\n${two.body}`)
    expect(lines.map(({ line, status }) => [line, status])).toEqual([
      [2, 200],
      [5, 200],
    ])
  })

  test('a body that is not a list of commands is refused as a whole, with the reason', async () => {
    const code = async (init: RequestInit, query = '') => {
      const answer = await fetch(`${board.address}/v1/commands${query}`, { method: 'POST', ...init })
      const { error } = (await answer.json()) as { error: { code: string; message: string } }
      return [answer.status, error.code, error.message] as const
    }
    expect(await code({ body: '' })).toEqual([400, 'missing_field', expect.stringContaining('no line')])
    expect(await code({ body: '{}\n'.repeat(sizes.batch_lines + 1) })).toEqual([
      400,
      'too_large',
      expect.stringContaining(`${sizes.batch_lines} lines`),
    ])
    expect(await code({ body: ' '.repeat(sizes.body_bytes + 1) })).toEqual([
      400,
      'too_large',
      expect.stringContaining(`${sizes.body_bytes}`),
    ])
    expect(await code({ body: '{}\n' }, '?a=1')).toEqual([400, 'invalid_field', expect.stringContaining('no query')])
    const encoded = { body: '{}\n', headers: { 'content-encoding': 'gzip' } }
    expect(await code(encoded)).toEqual([400, 'invalid_json', expect.stringContaining('Content-Encoding')])
    expect(await code({ method: 'PUT', body: '{}\n' })).toEqual([405, 'method_not_allowed', expect.anything()])
  })

  test('commands accepted before the connection was cut are stored exactly once', async () => {
    const posts = Array.from({ length: 400 }, (_, n) => post({ room: 'cut', text: `${n}` }).body)
    const body = `${posts.join('\n')}\n`
    await new Promise<void>((resolve) => {
      const socket = connect(board.port, '127.0.0.1')
      const head = `POST /v1/commands HTTP/1.1\r\nHost: board\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`
      socket.write(head + body)
      let received = ''
      socket.on('data', (chunk) => {
        received += chunk
        // The head may arrive before any answer.
        if (!received.includes('"line":')) return
        socket.destroy()
        resolve()
      })
    })
    const lines = await send(posts)
    expect(
      lines
        .filter(({ status }) => status !== 200)
        .map((line) => JSON.stringify(line))
        .slice(0, 3),
    ).toEqual([])
    expect(lines.some(({ data }) => data!.receipt!.duplicate === true)).toBe(true)
    expect(lines.map(({ data }) => data!.event!.seq)).toEqual(posts.map((_, n) => n + 1))
  })

  test('each line counts separately against the limits, and a refused line says when to retry', async () => {
    const limited = await startBoard({
      directory: boardDirectory(),
      env: { HTTP_ENGINE: engine, BROADSIDE_LIMITS: 'on' },
    })
    const own = await Client.of(limited)
    const burst = 80
    const posts = Array.from({ length: burst }, (_, n) => own.sign(ada, { operation: 'post', text: `${n}` }).body)
    const lines = await sendTo(limited.address, posts.join('\n'))
    const refused = lines.filter(({ status }) => status === 429)
    expect(lines).toHaveLength(burst)
    expect(lines.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(60)
    expect(refused.length).toBeGreaterThan(0)
    for (const { error } of refused) {
      expect(error!.code).toBe('rate_limited')
      expect(error!.retry_after).toBeGreaterThan(0)
    }
    await limited.stop()
  })
})
