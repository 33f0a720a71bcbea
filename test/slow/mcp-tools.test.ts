/** tools.call on a third-party MCP server, over real sockets: both protocol versions, and everything that can go wrong. */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { createOutgoing } from '../../src/outgoing/request.ts'
import { callMcp } from '../../src/tool-calls/mcp.ts'
import { McpTools } from '../peers/mcp-tools.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { callResultOf } from '../support/payer-board.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

let server: McpTools
let board: Board
let client: Client

beforeAll(async () => {
  server = await McpTools.open()
  board = await startBoard({ directory: boardDirectory(), env: { BROADSIDE_LOOPBACK: '1' } })
  client = await Client.of(board)
})
afterAll(() => {
  client.close()
  server.close()
})

async function publish(mcp_url: string): Promise<string> {
  const listing = { schema: 1, name: 'Somebody’s server', description: 'x', category: 'data', mcp_url, url: mcp_url }
  const data = JSON.stringify({ ...listing, protocols: ['mcp'], price: '0' })
  const made = await client.command(person('publisher'), { operation: 'tools.publish', data })
  if (made.status !== 200) throw new Error(made.text)
  return (made.data as unknown as { tool: { id: string } }).tool.id
}

const call = async (caller: string, target: string, data: object) => {
  const fields = { operation: 'tools.call', target, data: JSON.stringify({ schema: 1, ...data }) }
  return callResultOf(await client.command(person(caller), fields))
}
type Result = { content: { text: string }[]; isError?: boolean; error?: { code: number; message: string } }

describe.each(['modern', 'sessions'] as const)('a server that speaks by %s', (kind) => {
  let tool: string
  beforeAll(async () => {
    tool = await publish(server.url(kind))
  })

  test('is called by the name of its tool, and its result is the output', async () => {
    server.asked.length = 0
    const found = await call(`adds ${kind}`, tool, { method: 'add', body: { a: 2, b: 3 } })
    expect(found).toMatchObject({ status: 200, paid_by: 'allowance', allowance: { left: 19 } })
    expect((found.output as Result).content).toEqual([{ type: 'text', text: '5' }])
    expect(server.asked.filter((each) => each === 'tools/call add')).toHaveLength(1)
    expect(server.headers['user-agent']).toMatch(/^Broadside\//)
    expect(Object.keys(server.headers)).not.toContain('authorization')
  })

  test('takes arguments as JSON text, which allows fractions', async () => {
    const found = await call(`adds halves ${kind}`, tool, { method: 'add', body: '{"a":0.5,"b":1e0}' })
    expect((found.output as Result).content).toEqual([{ type: 'text', text: '1.5' }])
    for (const body of ['0.5', '[1]', 'a: 0.5', '{"a":1234567890123456789}']) {
      const data = JSON.stringify({ schema: 1, method: 'add', body })
      const refused = await client.command(person('no object'), { operation: 'tools.call', target: tool, data })
      expect([body, refused.status, refused.code]).toEqual([body, 400, 'invalid_field'])
    }
  })

  test('has its own errors, which are answers', async () => {
    const failed = await call(`fails ${kind}`, tool, { method: 'fail' })
    expect(failed).toMatchObject({ status: 200, output: { isError: true }, allowance: { left: 19 } })
    const unknown = (await call(`asks ${kind}`, tool, { method: 'no-such-tool' })).output as Result
    expect(unknown.error !== undefined || unknown.isError === true).toBe(true)
    const bad = (await call(`errs ${kind}`, tool, { method: 'add', body: { a: 'two' } })).output as Result
    expect(bad.error !== undefined || bad.isError === true).toBe(true)
  })

  test('may not answer with more than a MiB, and says what payment it wants', async () => {
    const huge = await call(`drowns ${kind}`, tool, { method: 'huge' })
    expect(huge).toMatchObject({ status: 0, failure: 'too_large', allowance: { left: 20 } })
    expect(huge).not.toHaveProperty('output')
    const paid = await call(`pays ${kind}`, tool, { method: 'paid' })
    expect(paid).toMatchObject({
      status: 402,
      payment_needed: { accepts: [{ amount: '2500' }] },
      allowance: { left: 20 },
    })
  })

  test('is called without a name for its only tool, or else asked for its list', async () => {
    const listed = await call(`lists ${kind}`, tool, {})
    expect((listed.output as { tools: { name: string }[] }).tools.map(({ name }) => name)).toContain('hang')
    server.isAlone = true
    const only = await call(`guesses ${kind}`, tool, { body: { a: 20, b: 22 } })
    server.isAlone = false
    expect((only.output as Result).content[0]!.text).toBe('42')
  })

  test('that hangs is given up, with one timeout for all messages together', async () => {
    const outgoing = createOutgoing({ timers: systemClock, loopback: true, userAgent: 'test' })
    let clock = 0
    // Every reading of the clock is half a second later: two messages use up the time before the third is answered.
    const ask = {
      ...{ url: server.url(kind), tool: 'hang', args: {} },
      ...{ bounds: { totalMs: 3_000 }, now: () => (clock += 500) },
    }
    expect(await callMcp(outgoing, ask)).toMatchObject({ ok: false, failed: { failure: 'timeout' } })
    outgoing.close()
  })
})

test('a redirect by a server is not followed', async () => {
  server.asked.length = 0
  const found = await call('who follows', await publish(server.url('moved')), { method: 'add', body: { a: 1, b: 1 } })
  expect(found).toMatchObject({ status: 0, failure: 'redirect', allowance: { left: 20 } })
  expect(server.asked).toEqual([])
})

test.each(['2025-06-18\r\nx: y', '2025\u2028', '', '2'.repeat(33)])(
  'a server of version %j has answered, but not with MCP',
  async (version) => {
    const asked: string[] = []
    const strange = createServer(async (request, response) => {
      const { id, method } = JSON.parse((await request.toArray()).join('')) as { id: number; method: string }
      asked.push(method)
      if (method === 'server/discover') return void response.writeHead(400).end()
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: version } }))
    })
    await new Promise<void>((ready) => strange.listen(0, '127.0.0.1', ready))
    const outgoing = createOutgoing({ timers: systemClock, loopback: true, userAgent: 'test' })
    const url = `http://127.0.0.1:${(strange.address() as AddressInfo).port}/`
    const ask = { url, tool: 'add', args: {}, bounds: {}, now: () => performance.now() }
    expect(await callMcp(outgoing, ask)).toMatchObject({ ok: true, answered: { status: 200 } })
    expect(asked).toEqual(['server/discover', 'initialize'])
    outgoing.close()
    strange.close()
  },
)

test('a result with an integer that JavaScript would round is passed on as text', async () => {
  const ids = createServer(async (request, response) => {
    const { id } = JSON.parse((await request.toArray()).join('')) as { id: number }
    const result = id === 1 ? '"supportedVersions":["2026-07-28"]' : '"structuredContent":{"id":1234567890123456789}'
    response.end(`{"jsonrpc":"2.0","id":${id},"result":{${result}}}`)
  })
  await new Promise<void>((ready) => ids.listen(0, '127.0.0.1', ready))
  const tool = await publish(`http://127.0.0.1:${(ids.address() as AddressInfo).port}/`)
  const found = await call('who reads ids', tool, { method: 'find', body: {} })
  expect(found).toMatchObject({ status: 200, output: expect.stringContaining('"id":1234567890123456789') })
  ids.close()
})
