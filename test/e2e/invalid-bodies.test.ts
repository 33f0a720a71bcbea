/** Invalid commands count against the network that sends them, at every endpoint that takes a body, and against nobody else. */
import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const ada = person('invalid-bodies ada')
const operator = person('invalid-bodies operator')
const proxy = 'x-client'

type Answer = { readonly status: number; readonly code: string | undefined; readonly retry: string | undefined }

describe.each(['uws', 'node'])('on the %s engine', (engine) => {
  let board: Board
  let client: Client
  let addresses = 0

  beforeAll(async () => {
    // The allowance refills slowly, so that its use is visible however slow the machine is.
    const LIMITS = JSON.stringify({ unsigned_commands_per_address_per_minute: 12 })
    const env = { HTTP_ENGINE: engine, BROADSIDE_LIMITS: 'on', LIMITS, TRUST_PROXY: proxy, OPERATORS: operator.id }
    board = await startBoard({ directory: boardDirectory(), env })
    client = await Client.of(board)
  })
  afterAll(() => client.close())

  const freshAddress = () => `198.51.100.${++addresses}`

  function send(address: string, method: string, path: string, body = ''): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const headers = { [proxy]: address, 'content-length': Buffer.byteLength(body), accept: 'application/json' }
      const sent = request(`${client.address}${path}`, { method, headers, agent: false }, (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          const { error } = (text.startsWith('{') ? JSON.parse(text) : {}) as { error?: { code?: string } }
          resolve({ status: answer.statusCode!, code: error?.code, retry: answer.headers['retry-after'] })
        })
      })
      sent.on('error', reject)
      sent.end(body)
    })
  }

  const command = (fields: object) => JSON.stringify({ operation: 'post', ...fields })
  const bodies: readonly (readonly [what: string, code: string, body: string])[] = [
    ['half of a command', 'invalid_json', '{"operation":"post"'],
    ['no object', 'invalid_json', '[1,2]'],
    ['two megabytes of spaces', 'too_large', ' '.repeat(2_000_000)],
    ['half a megabyte of structure', 'invalid_json', `{"x":[${'{},'.repeat(170_000)}{}]}`],
    ['a list that is too long', 'invalid_field', command({ members: Array.from({ length: 5_000 }, () => 'f') })],
    ['a field that is unknown', 'unknown_field', command({ nothing: 1 })],
    ['a field of another type', 'invalid_field', command({ text: 7 })],
    ['no operation', 'missing_field', '{}'],
    ['a text of 600 KB', 'too_large', command({ text: 'x'.repeat(600_000) })],
    [
      'a signature that is none',
      'bad_signature',
      command({ public_key: ada.publicKey, signature: 'x', timestamp: 1, nonce: 'n' }),
    ],
    ['half of what is signed', 'missing_field', command({ public_key: ada.publicKey })],
  ]

  test('the reason a body is invalid is given until the limit of the network is reached, then only 429', async () => {
    const address = freshAddress()
    const seen = new Set<string>()
    let refused = 0
    for (let n = 0; refused < 5; n++) {
      expect(n).toBeLessThan(200)
      const [what, code, body] = bodies[n % bodies.length]!
      const answer = await send(address, 'POST', '/v1/command', body)
      if (answer.status === 429) {
        expect([what, answer.code]).toEqual([what, 'rate_limited'])
        expect(Number(answer.retry)).toBeGreaterThan(0)
        refused++
        continue
      }
      expect([what, answer.status, answer.code]).toEqual([what, 400, code])
      seen.add(what)
    }
    expect(seen.size).toBe(bodies.length)
    // Its own valid commands continue to work, and so do everybody else's.
    const { body } = client.sign(ada, { operation: 'post', text: `from ${address}` })
    expect(await send(address, 'POST', '/v1/command', body)).toMatchObject({ status: 200 })
    expect(await send(freshAddress(), 'POST', '/v1/command', '{}')).toMatchObject({ status: 400 })
    expect(await send(freshAddress(), 'GET', '/api/events')).toMatchObject({ status: 200 })
  })

  /** Sends the head of a request with none or a piece of its body: an answer then did not wait for the rest. */
  function begin(address: string, path: string, framing: string, piece = ''): Promise<string> {
    const { hostname, port } = new URL(client.address)
    return new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port) })
      let answer = ''
      socket.setEncoding('utf8').on('data', (text: string) => (answer += text))
      socket.on('error', reject).on('end', () => socket.destroy())
      socket.on('close', () => resolve(answer))
      socket.write(`POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\n${proxy}: ${address}\r\n${framing}\r\n\r\n${piece}`)
    })
  }

  async function exhausted(): Promise<string> {
    const address = freshAddress()
    while ((await send(address, 'POST', '/v1/command', '{}')).status !== 429) {
      // Each uses up one of what its network may send.
    }
    return address
  }

  const put = (signer: typeof ada, bytes: number) =>
    client.sign(signer, {
      operation: 'blob.put',
      filename: 'many.bin',
      data: randomBytes(bytes).toString('base64url'),
    }).body

  test('a large body from a network over its limit is not read, and its connection is closed', async () => {
    const address = await exhausted()
    for (const path of ['/v1/command', '/mcp']) {
      const answers = await Promise.all([
        begin(address, path, 'content-length: 2000000'),
        begin(address, path, 'transfer-encoding: chunked', `30000\r\n${' '.repeat(0x30000)}\r\n`),
      ])
      for (const answer of answers) {
        expect(answer).toMatch(/^HTTP\/1\.1 429 /)
        expect(answer).toMatch(/\r\nconnection: close\r\n/i)
        expect(answer).toMatch(/\r\nretry-after: \d/i)
      }
    }
    // A body that could still be a text is read.
    const long = client.sign(ada, { operation: 'post', text: '\u0001'.repeat(15_000) }).body
    expect(long.length).toBeGreaterThan(90_000)
    expect(await send(address, 'POST', '/v1/command', long)).toMatchObject({ status: 200 })
    expect(await send(freshAddress(), 'POST', '/v1/command', put(ada, 200_000))).toMatchObject({ status: 200 })
  })

  test('an identity with its own limit can upload from such a network after one more command, which nobody else can send for it', async () => {
    const grant = (target: string, data: string) =>
      client.command(operator, { operation: 'limits.grant', target, ttl: 600, data })
    const ben = person(`invalid-bodies ben ${engine}`)
    expect(await grant(ben.id, '{"schema":1,"factor":10}')).toMatchObject({ status: 200 })
    for (const who of [operator, ben]) {
      const address = await exhausted()
      const { body } = client.sign(who, { operation: 'post', text: `from ${address}` })
      expect((await send(freshAddress(), 'POST', '/v1/command', body)).status).toBe(200)
      // The command is public: anyone may send it again.
      expect((await send(address, 'POST', '/v1/command', body)).status).toBe(200)
      expect(await begin(address, '/v1/command', 'content-length: 2000000')).toMatch(/^HTTP\/1\.1 429 /)
      const { body: own } = client.sign(who, { operation: 'post', text: `really from ${address}` })
      expect((await send(address, 'POST', '/v1/command', own)).status).toBe(200)
      expect(await send(address, 'POST', '/v1/command', put(who, 1_000_000))).toMatchObject({ status: 200 })
    }
    const address = await exhausted()
    expect(await grant(`${address}/32`, '{"schema":1,"exempt":true}')).toMatchObject({ status: 200 })
    expect(await send(address, 'POST', '/v1/command', put(ada, 1_000_000))).toMatchObject({ status: 200 })
  })

  test('a signed command that is invalid counts too', async () => {
    const address = freshAddress()
    const statuses: number[] = []
    while (statuses.at(-1) !== 429 && statuses.length < 200) {
      const { body } = client.sign(ada, { operation: 'vote', event_id: '0'.repeat(32), data: '{"value":7}' })
      statuses.push((await send(address, 'POST', '/v1/command', body)).status)
    }
    expect(new Set(statuses)).toEqual(new Set([400, 429]))
  })

  const elsewhere: readonly (readonly [what: string, method: string, path: string, body: string])[] = [
    ['a link that writes', 'GET', `/c64/${Buffer.from('{"operation":').toString('base64url')}`, ''],
    ['half a message at /mcp', 'POST', '/mcp', '{"jsonrpc":"2.0"'],
    ['a list of a hundred thousand at /mcp', 'POST', '/mcp', `{"x":[${'1,'.repeat(100_000)}1]}`],
    ['two megabytes at /mcp', 'POST', '/mcp', `{"x":"${'x'.repeat(2_000_000)}"}`],
    ['a token request that is none', 'POST', '/oauth/token', 'grant_type=nothing&client_id=nobody'],
  ]
  test.each(elsewhere)('%s is eventually refused with 429', async (_what, method, path, body) => {
    const address = freshAddress()
    const statuses: number[] = []
    while (statuses.at(-1) !== 429 && statuses.length < 200)
      statuses.push((await send(address, method, path, body)).status)
    expect(statuses.at(-1)).toBe(429)
    expect(statuses.every((status) => status >= 400)).toBe(true)
    expect((await send(freshAddress(), method, path, body)).status).toBe(statuses[0])
  })

  test('a file of one megabyte is accepted, by POST and inside an MCP message', async () => {
    const data = Buffer.alloc(1_048_576, 7).toString('base64url')
    const put = () =>
      JSON.parse(client.sign(ada, { operation: 'blob.put', filename: 'seven.bin', data }).body) as object
    const [posted, called] = [put(), put()]
    expect(await send(freshAddress(), 'POST', '/v1/command', JSON.stringify(posted))).toMatchObject({ status: 200 })
    const message = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'command', arguments: { command: called } },
    }
    const found = await fetch(`${client.address}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2025-06-18',
        [proxy]: freshAddress(),
      },
      body: JSON.stringify(message),
    })
    // It reaches the tool, which says what it needs.
    expect(found.status).not.toBe(413)
    expect(await found.text()).not.toContain('at most')
  })
})
