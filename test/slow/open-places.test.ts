/** Streams, waits and exports are counted by network, from their request to their end. */
import { type IncomingMessage, request } from 'node:http'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const ada = person('ada')
const proxy = 'x-client'
const limits = {
  writes_per_identity_per_minute: null,
  writes_per_identity_burst: null,
  reads_per_address_per_minute: null,
  streams_per_address: 8,
  waits_per_address: 8,
  export_starts_per_network_per_hour: 4,
  networks: { '192.0.2.64/26': 2 },
}
const env = { SHARDS: '1', BROADSIDE_LIMITS: 'on', TRUST_PROXY: proxy, LIMITS: JSON.stringify(limits) }

describe.each(['uws', 'node'])('on the %s engine', (engine) => {
  let board: Board
  let client: Client
  const open = new Set<() => void>()

  beforeAll(async () => {
    board = await startBoard({ directory: boardDirectory(), env: { ...env, HTTP_ENGINE: engine } })
    client = await Client.of(board)
    // So many bytes that no socket accepts an export of them whole.
    const text = '\u0001'.repeat(32_000)
    for (let n = 0; n < 60; n++)
      expect((await client.post(ada, { room: 'long', text: `${n} ${text}` })).status).toBe(200)
    expect((await client.post(ada, { room: 'lobby', text: 'here' })).status).toBe(200)
  })
  afterEach(() => {
    for (const close of open) close()
  })
  afterAll(() => client.close())

  /** Sends a request as a client at this address; resolves when the answer begins, and reads none of it. */
  function ask(
    path: string,
    address: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const sent = request(`${board.address}${path}`, { agent: false, headers: { ...headers, [proxy]: address } })
      open.add(() => sent.destroy())
      sent.on('response', (answer) => {
        answer.on('error', () => {})
        answer.pause()
        resolve(answer)
      })
      sent.on('error', reject)
      sent.end()
    })
  }
  const statusesOf = async (answers: readonly Promise<IncomingMessage>[]) => {
    const statuses = (await Promise.all(answers)).map(({ statusCode }) => statusCode)
    return {
      ok: statuses.filter((each) => each === 200).length,
      refused: statuses.filter((each) => each === 429).length,
    }
  }
  const many = (count: number, path: string, addressOf: (n: number) => string, headers = {}) =>
    statusesOf(Array.from({ length: count }, (_, n) => ask(path, addressOf(n), headers)))

  test.each([
    ['a tail', {}],
    ['a stream of events', { accept: 'text/event-stream' }],
  ] as const)('%s counts for its /64 before anything is read for it, and for its /48', async (_what, headers) => {
    const addressOf = (n: number) => `2001:db8:1:1::${(n + 1).toString(16)}`
    expect(await many(60, '/tail/lobby', addressOf, headers)).toEqual({ ok: 8, refused: 52 })
    const refused = await ask('/tail/lobby', addressOf(0), headers)
    expect(refused.headers['retry-after']).toBe('5')
    // Four times as many for all /64 of a /48, however many there are.
    const others = (n: number) => `2001:db8:1:${(n + 2).toString(16)}::1`
    expect(await many(60, '/tail/lobby', others, headers)).toEqual({ ok: 24, refused: 36 })
    expect((await ask('/tail/lobby', '2001:db8:2::1', headers)).statusCode).toBe(200)
    for (const close of open) close()
    await vi.waitFor(
      async () => expect((await ask('/tail/lobby', addressOf(9), headers)).statusCode).toBe(200),
      patience,
    )
  })

  test('clients that hang up before they are answered hold no slot', async () => {
    const address = '192.0.2.1'
    for (let round = 0; round < 40; round++) {
      for (const path of ['/tail/lobby', '/api/updates?wait=50', '/v1/export?limit=1', '/tail/no-such-room']) {
        const sent = request(`${board.address}${path}`, { agent: false, headers: { [proxy]: address } })
        sent.on('error', () => {})
        sent.end()
        if (round % 2 === 0) await new Promise((resolve) => setTimeout(resolve, 2))
        sent.destroy()
      }
    }
    const fresh = async (path: string, count: number) => {
      const mine = Array.from({ length: count }, () => ask(path, address))
      const answers = await Promise.all(mine)
      for (const answer of answers) answer.destroy()
      return answers.map(({ statusCode }) => statusCode)
    }
    await vi.waitFor(async () => expect(await fresh('/tail/lobby', 8)).toEqual(Array(8).fill(200)), patience)
    await vi.waitFor(async () => expect(await fresh('/v1/export?limit=1', 2)).toEqual([200, 200]), patience)
    await vi.waitFor(async () => expect(await fresh('/api/updates?wait=1', 8)).toEqual(Array(8).fill(200)), patience)
  })

  test('whoever hangs up while they wait frees their slot, however they asked', async () => {
    const command = JSON.stringify({ operation: 'updates.get', data: '{"schema":1,"wait":50}' })
    const call = { name: 'updates_get', arguments: { wait: 50 } }
    const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call })
    const address = '2001:db8:6:1::1'
    const openPlaces = async () => {
      const { data } = await client.from(address).send('{"operation":"quota.get"}')
      const { quota } = data as unknown as {
        quota: { networks: { places: { waits_per_address: { open: number } } }[] }
      }
      return quota.networks[0]!.places.waits_per_address.open
    }
    // Whoever waited longest is answered first. So a slot that is free before this answer is free because its client left.
    let isAnswered = false
    const answered = () => {
      isAnswered = true
    }
    // It is closed, without an answer, when the test is over.
    ask('/api/updates?wait=50', '2001:db8:7:1::1').then(answered, () => {})
    const ways: readonly [path: string, method: string, body?: string][] = [
      ['/api/updates?wait=50', 'GET'],
      ['/v1/command', 'POST', command],
      [`/c64/${Buffer.from(command).toString('base64url')}`, 'GET'],
      ['/mcp', 'POST', message],
    ]
    for (const [path, method, body] of ways) {
      const headers = { ...(path === '/mcp' ? json : {}), [proxy]: address }
      const sent = request(`${board.address}${path}`, { agent: false, method, headers })
      sent.on('error', () => {})
      sent.end(body)
      await vi.waitFor(async () => expect([path, await openPlaces()]).toEqual([path, 1]), patience)
      sent.destroy()
      await vi.waitFor(async () => expect([path, await openPlaces()]).toEqual([path, 0]), patience)
      expect([path, isAnswered]).toEqual([path, false])
    }
  })

  test('MCP streams take the same slots, an operator can raise them, and refusals are counted by limit', async () => {
    expect(await many(20, '/tail/lobby', () => '192.0.2.70')).toEqual({ ok: 16, refused: 4 })
    const listening = (address: string) =>
      fetch(`${board.address}/mcp`, {
        method: 'POST',
        headers: {
          [proxy]: address,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: '{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}',
      })
    expect((await listening('192.0.2.70')).status).toBe(429)
    expect((await listening('192.0.2.71')).status).not.toBe(429)
    const { text } = await client.get('/metrics')
    const [, count] = /broadside_limited_total\{reason="streams_per_address"\} (\d+)/.exec(text)!
    expect(Number(count)).toBeGreaterThanOrEqual(5)
  })

  test('quota.get shows what a network has open', async () => {
    const placesOf = async (address: string) => {
      const { data } = await client.from(address).send('{"operation":"quota.get"}')
      return (data as unknown as { quota: { networks: { places: object }[] } }).quota.networks.map(
        ({ places }) => places,
      )
    }
    await many(3, '/tail/lobby', () => '2001:db8:5:1::1')
    await many(1, '/tail/lobby', () => '2001:db8:5:2::1')
    expect(await placesOf('2001:db8:5:1::2')).toMatchObject([
      { streams_per_address: { limit: 8, open: 3 }, waits_per_address: { limit: 8, open: 0 } },
      { streams_per_address: { limit: 32, open: 4 }, exports_per_network: { limit: 8, open: 0 } },
    ])
    expect(await placesOf('192.0.2.99')).toMatchObject([{ streams_per_address: { limit: 16, open: 0 } }])
    for (const close of open) close()
    const none = [{ streams_per_address: { open: 0 } }, { streams_per_address: { open: 0 } }]
    await vi.waitFor(async () => expect(await placesOf('2001:db8:5:1::2')).toMatchObject(none), patience)
  })

  test('a refused request holds no slot', async () => {
    const address = '192.0.2.2'
    for (let n = 0; n < 20; n++) {
      expect((await ask('/tail/no-such-room', address)).statusCode).toBe(400)
      expect((await ask('/api/updates?wait=20&cursor=bad', address)).statusCode).toBe(400)
      expect((await ask('/v1/export?limit=1&room=no-such-room', address)).statusCode).toBe(400)
    }
    expect((await ask('/tail/lobby', address)).statusCode).toBe(200)
    expect((await ask('/v1/export?limit=1', address)).statusCode).toBe(200)
  })

  test('long polls count for their network', async () => {
    const addressOf = (n: number) => `2001:db8:3:1::${(n + 1).toString(16)}`
    const waiting = Array.from({ length: 30 }, (_, n) => ask('/api/updates?wait=50', addressOf(n)))
    let answered = 0
    for (const each of waiting) void each.then(() => answered++)
    expect((await ask('/api/updates?wait=1', '2001:db8:4::1')).statusCode).toBe(200)
    await vi.waitFor(() => expect(answered).toBe(22), patience)
    expect((await client.post(ada, { room: 'lobby', text: 'news' })).status).toBe(200)
    expect(await statusesOf(waiting)).toEqual({ ok: 8, refused: 22 })
    expect((await ask('/api/updates?wait=1', addressOf(1))).statusCode).toBe(200)
  })

  test('a network has two exports at once, and a bounded number an hour; pages of one are reads', async () => {
    const address = '192.0.2.3'
    const held = [await ask('/v1/export', address), await ask('/v1/export', address)]
    expect(held.map(({ statusCode }) => statusCode)).toEqual([200, 200])
    expect((await ask('/v1/export', address)).statusCode).toBe(429)
    expect((await ask('/v1/export?limit=1', address)).statusCode).toBe(429)
    expect((await ask('/v1/export', '192.0.2.4')).statusCode).toBe(200)
    held[0]!.destroy()
    const page = async () => (await ask('/v1/export?limit=1', address)).statusCode
    await vi.waitFor(async () => expect(await page()).toBe(200), patience)
    const whole = async () => {
      const answer = await ask('/v1/export', address)
      answer.destroy()
      return answer.statusCode
    }
    for (const _ of [3, 4]) await vi.waitFor(async () => expect(await whole()).toBe(200), patience)
    await vi.waitFor(async () => expect(await page()).toBe(200), patience)
    const refused = await ask('/v1/export', address)
    expect(refused.statusCode).toBe(429)
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(60)
    for (let n = 0; n < 10; n++) {
      const answer = await ask('/v1/export?limit=1', address)
      expect(answer.statusCode).toBe(200)
      answer.resume()
      await new Promise((resolve) => answer.on('close', resolve))
    }
  })
})
