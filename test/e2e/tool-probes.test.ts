/** Probes of a server of ours on loopback: the results are shown word for word, and decide who owns what. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Signer } from '../../src/cli/sign.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Probe = {
  id: string
  verdict: string
  verified: boolean
  opt_out: boolean
  mismatch: string[]
  saw: { well_known: { status?: number }; tool: { status?: number; body?: string; offers?: object[] } & string }
}
type Look = { tool: Record<string, unknown>; index: { listed: boolean; why: string }; probe?: Probe }

const operator = person('the operator')
const maker = person('the maker')
/** What the server answers, by path. */
const answers = new Map<string, (request: IncomingMessage, response: ServerResponse) => void>()
const asked: string[] = []
const machine = createServer((request, response) => {
  asked.push(`${request.method} ${request.url}`)
  const answer = answers.get(request.url!)
  if (answer === undefined) response.writeHead(404).end('nothing here')
  else answer(request, response)
})
let board: Board
let client: Client
let origin: string

beforeAll(async () => {
  await new Promise<void>((resolve) => machine.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(machine.address() as AddressInfo).port}`
  board = await startBoard({ directory: boardDirectory(), env: { OPERATORS: operator.id, BROADSIDE_LOOPBACK: '1' } })
  client = await Client.of(board)
})
afterAll(async () => {
  client.close()
  await board.stop()
  machine.close()
})

const dataOf = <Data>(answer: Answer): Data => {
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.data as unknown as Data
}
const json = (status: number, body: unknown, headers: Record<string, string> = {}) => {
  return (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  }
}
const publish = async (signer: Signer, path: string, more: object = {}) => {
  const said = { schema: 1, name: 'Probe Me', description: 'A tool to be looked at.', category: 'data' }
  const data = JSON.stringify({ ...said, url: `${origin}${path}`, ...more })
  return dataOf<{ tool: { id: string } }>(await client.command(signer, { operation: 'tools.publish', data })).tool.id
}
const probe = async (signer: Signer, target: string) =>
  dataOf<{ probe: Probe }>(await client.command(signer, { operation: 'tools.probe', target })).probe
const look = async (id: string) => dataOf<Look>(await client.get(`/api/tool?id=${id}`))
const accept = (more: object = {}) => ({
  scheme: 'exact',
  network: 'eip155:8453',
  amount: '2000',
  payTo: '0x1111111111111111111111111111111111111111',
  asset: '0x0',
  extra: { name: 'USDC' },
  ...more,
})
const demand = (...accepts: object[]) =>
  json(402, {}, { 'payment-required': Buffer.from(JSON.stringify({ x402Version: 2, accepts })).toString('base64') })
const paid = { price: '0.002', protocols: ['x402'], network: 'base' }

test('a free tool that answers is up, and its publisher sees what the probe saw', async () => {
  answers.set('/free', json(200, { answer: 42 }))
  const id = await publish(maker, '/free', { price: '0' })
  const seen = await probe(maker, id)
  expect(seen).toMatchObject({ verdict: 'ok', verified: false, opt_out: false, mismatch: [] })
  expect(seen.saw).toMatchObject({ well_known: { status: 404 }, tool: { status: 200, body: '{"answer":42}' } })
  expect((await look(id)).tool).toMatchObject({ state: 'up', verified: false })
  expect((await look(id)).probe).toMatchObject({ id: seen.id, verdict: 'ok' })
})

test('a 402 is parsed: the price is shown, and a difference from the listing is reported', async () => {
  answers.set('/paid', demand(accept()))
  const id = await publish(maker, '/paid', paid)
  const first = await probe(maker, id)
  expect(first).toMatchObject({ verdict: 'valid_402', mismatch: [] })
  expect(first.saw.tool.offers).toEqual([
    { protocol: 'x402', network: 'base', amount: '2000', price: '0.002', pay_to: accept().payTo },
  ])
  expect((await look(id)).tool.state).toBe('up')
  answers.set('/paid', demand(accept({ amount: '9000', network: 'eip155:137', payTo: '0x2' })))
  expect((await probe(maker, id)).mismatch).toEqual([
    'it asks $0.009 and is listed at $0.002',
    'it is paid on polygon and listed on base',
    `it is paid to 0x2, and to ${accept().payTo} at the last probe`,
  ])
  expect((await look(id)).tool.state).toBe('degraded')
})

test.each([
  ['a 402 without a payee', demand(accept({ payTo: '' })), 'degraded'],
  ['a 402 that nobody understands', json(402, { pay: 'me' }), 'degraded'],
  ['a paid tool that refuses before it asks for money', json(400, { error: 'x is missing' }), 'not_x402'],
  ['a paid tool that asks for none', json(200, {}), 'not_x402'],
  ['a connection that breaks', (_: IncomingMessage, response: ServerResponse) => response.destroy(), 'unreachable'],
  ['a redirect', json(302, {}, { location: 'https://elsewhere.example/' }), 'unreachable'],
] as const)('%s is recognized', async (name, answer, verdict) => {
  const path = `/${name.replaceAll(' ', '-')}`
  answers.set(path, answer as never)
  const id = await publish(maker, path, paid)
  expect((await probe(maker, id)).verdict).toBe(verdict)
})

test.each([
  ['one that speaks newer versions alone', { error: { code: -32022, data: { supported: ['2026-07-28'] } } }, 'ok'],
  ['one that is in error', { error: { code: -32603, message: 'no' } }, 'degraded'],
])('an MCP server: %s', async (name, said, verdict) => {
  const path = `/mcp/${name.replaceAll(' ', '-')}`
  answers.set(path, json(400, { jsonrpc: '2.0', id: 1, ...said }))
  const id = await publish(maker, path, { mcp_url: `${origin}${path}`, protocols: ['mcp'], price: '0' })
  expect((await probe(maker, id)).verdict).toBe(verdict)
})

test('three failed probes make a verdict, which lowers a listing and does not hide it', async () => {
  const id = await publish(maker, '/gone', { ...paid, name: 'Vanished Oracle' })
  const twin = await publish(maker, '/gone-too', { ...paid, name: 'Vanished Oracle' })
  answers.set('/gone', (_, response) => response.destroy())
  for (let n = 0; n < 3; n++) await probe(maker, id)
  const { results } = dataOf<{ results: { id: string; why: string; score: number }[] }>(
    await client.get('/api/tools?query=vanished+oracle'),
  )
  expect(results.slice(0, 2).map((each) => each.id)).toEqual([twin, id])
  expect(results[1]!.why).toMatch(/probes 0\/3 ok .*state down; verdict down; ranked lower for that/)
})

test('the identity named by the host is a verified owner and may change listings of others; a stranger may not probe', async () => {
  answers.set('/theirs', json(200, {}))
  const owner = person('the real owner')
  const id = await publish(maker, '/theirs', { price: '0' })
  asked.length = 0
  const stranger = await probe(person('a stranger'), id)
  expect([stranger.verdict, stranger.verified]).toEqual(['not_probed', false])
  expect(stranger.saw.tool).toContain('"owners"')
  expect(asked).toEqual(['GET /.well-known/broadside.json'])
  answers.set('/.well-known/broadside.json', json(200, { owners: [owner.id] }))
  expect(await probe(owner, id)).toMatchObject({ verdict: 'ok', verified: true })
  const data = JSON.stringify({
    schema: 1,
    name: 'Truly Theirs',
    description: 'x',
    category: 'data',
    url: `${origin}/theirs`,
  })
  expect((await client.command(owner, { operation: 'tools.update', target: id, data })).status).toBe(200)
  expect((await look(id)).tool).toMatchObject({ owner: owner.id, verified: true, name: 'Truly Theirs' })
  // The first publisher has no more say in it.
  expect((await client.command(maker, { operation: 'tools.withdraw', target: id })).code).toBe('forbidden')
})

test('a host that opts out of directories is in none, until it opts in again', async () => {
  const id = await publish(maker, '/shy', { price: '0', name: 'Shy Tool' })
  answers.set('/shy', json(200, {}))
  const found = async () =>
    dataOf<{ results: { id: string }[] }>(await client.get('/api/tools?query=shy')).results.some(
      (each) => each.id === id,
    )
  expect(await found()).toBe(true)
  answers.set('/.well-known/broadside.json', json(200, { opt_out: true }))
  expect(await probe(maker, id)).toMatchObject({ verdict: 'not_probed', opt_out: true })
  expect(await found()).toBe(false)
  expect((await look(id)).index).toMatchObject({ listed: false, why: expect.stringContaining('"opt_out": true') })
  answers.delete('/.well-known/broadside.json')
  await probe(maker, id)
  expect(await found()).toBe(true)
})

test('a repeated command probes once', async () => {
  answers.set('/once', json(200, {}))
  const id = await publish(maker, '/once', { price: '0' })
  const { body } = client.sign(maker, { operation: 'tools.probe', target: id })
  asked.length = 0
  const all = await Promise.all([client.send(body), client.send(body), client.send(body)])
  expect(new Set(all.map((answer) => JSON.stringify(dataOf<{ probe: Probe }>(answer).probe))).size).toBe(1)
  expect(asked.filter((each) => each === 'GET /once')).toHaveLength(1)
})
