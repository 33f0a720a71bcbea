/** The tools directory as its users see it: publish, find, change, withdraw, review, import, and all of it after a kill. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { readArguments } from '../../src/cli/command-line.ts'
import { createKeyFile } from '../../src/cli/key-file.ts'
import type { Signer } from '../../src/cli/sign.ts'
import { toolsCommand } from '../../src/cli/tools.ts'
import { importTools } from '../../src/cli/tools-import.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Result = {
  id: string
  score: number
  why: string
  subject_id: string
  description: string
  review_reward: { left: number }
}
type Search = { matched: number; next_cursor: string; results: Result[]; index: { docs: Record<string, number> } }
type Look = {
  tool: Record<string, unknown> & { reviews: Record<string, unknown>; doors: { door: string; source: string }[] }
  index: { listed: boolean; why: string; spam: boolean; duplicates: number }
}

const files = mkdtempSync(join(tmpdir(), 'broadside-tools-'))
const keyFile = join(files, 'operator.json')
const operator = createKeyFile(keyFile)
const directory = boardDirectory()
const start = () => startBoard({ directory, env: { OPERATORS: operator.id, SHARDS: '2' } })
let board: Board
let client: Client

beforeAll(async () => {
  board = await start()
  client = await Client.of(board)
})
afterAll(async () => {
  client.close()
  await board.stop()
})

const dataOf = <Data>(answer: Answer): Data => {
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.data as unknown as Data
}
const search = async (query: string) => dataOf<Search>(await client.get(`/api/tools?${query}`))
const idsOf = ({ results }: Search) => results.map(({ id }) => id)
const look = async (id: string) => dataOf<Look>(await client.get(`/api/tool?id=${encodeURIComponent(id)}`))
const listing = (more: object = {}) =>
  JSON.stringify({
    schema: 1,
    name: 'Tide Tables',
    description: 'High and low water for any harbour.',
    url: 'https://tides.example/v1',
    category: 'weather',
    ...more,
  })

async function publish(signer: Signer, more: object = {}) {
  const answer = await client.command(signer, { operation: 'tools.publish', data: listing(more) })
  return dataOf<{ tool: { id: string; subject_id: string; verified: boolean; verify?: string } }>(answer).tool
}

test('the board’s tools are listed from the start, also for a search without a query', async () => {
  const { results, matched, index } = await search('')
  expect(matched).toBe(10)
  expect(results.every(({ id }) => id.startsWith('broadside:'))).toBe(true)
  expect(index.docs).toEqual({ agent: 0, offering: 0, service: 10, site: 0 })
  expect((await look('broadside:hash')).tool).toMatchObject({ callable: 'callable', price: '0', kind: 'builtin' })
})

test('each tool of the board is its own review subject: reviews of one do not count for the others', async () => {
  const { results } = await search('')
  expect(new Set(results.map(({ subject_id }) => subject_id)).size).toBe(10)
  const { tool } = await look('broadside:diff')
  const said = { operation: 'tools.review', target: String(tool.subject_id), kind: 'works', text: 'it found the line' }
  dataOf(await client.command(person('reviewer of one'), said))
  expect((await look('broadside:diff')).tool.reviews).toMatchObject({ works: 1 })
  for (const { id } of results.filter((each) => each.id !== 'broadside:diff'))
    expect([id, (await look(id)).tool.reviews]).toMatchObject([id, { works: 0 }])
})

test('a published tool is found immediately, can be changed, and is gone when withdrawn', async () => {
  const maker = person('tide maker')
  const { id, verified, verify } = await publish(maker, { price: '0.004', protocols: ['x402'], network: 'base' })
  expect(id).toMatch(/^tide-tables-[0-9a-f]{6}$/)
  expect([verified, verify]).toEqual([false, expect.stringContaining(maker.id)])
  expect(idsOf(await search('query=tide+tables'))[0]).toBe(id)
  expect(idsOf(await search('query=harbour+under+1+cent+on+base'))).toEqual([id])
  expect((await search('query=harbour&max_price=0.003')).matched).toBe(0)
  const update = { operation: 'tools.update', target: id, data: listing({ name: 'Moon Phases', price: '0' }) }
  expect((await client.command(person('another'), update)).code).toBe('forbidden')
  dataOf(await client.command(maker, update))
  expect(idsOf(await search('query=moon'))).toContain(id)
  expect(idsOf(await search('query=tables'))).not.toContain(id)
  const { tool, index } = await look(id)
  expect(tool).toMatchObject({ name: 'Moon Phases', price: '0', owner: maker.id, verified: false })
  expect(index).toMatchObject({ listed: true, duplicates: 0 })
  dataOf(await client.command(maker, { operation: 'tools.withdraw', target: id }))
  expect(idsOf(await search('query=moon'))).not.toContain(id)
  expect((await look(id)).index).toMatchObject({ listed: false, why: 'its owner withdrew it' })
})

test('a repeated command creates no second listing', async () => {
  const signed = client.sign(person('hasty'), { operation: 'tools.publish', data: listing({ name: 'Once Only' }) })
  const [first, again] = [await client.send(signed.body), await client.send(signed.body)]
  expect(again.data.receipt?.duplicate).toBe(true)
  expect(dataOf<{ tool: object }>(again).tool).toEqual(dataOf<{ tool: object }>(first).tool)
  expect((await search('query=once+only')).results.filter(({ id }) => id.startsWith('once-only'))).toHaveLength(1)
})

test('a tool withdrawn by the operator is not found, and its publisher cannot list it again', async () => {
  const crook = person('crook')
  const { id } = await publish(crook, { name: 'Snake Oil' })
  dataOf(await client.command(operator, { operation: 'tools.withdraw', target: id, reason: 'a fraud' }))
  const update = { operation: 'tools.update', target: id, data: listing({ name: 'Snake Oil, improved' }) }
  expect(await client.command(crook, update)).toMatchObject({
    code: 'wrong_state',
    field: 'target',
    text: expect.stringContaining('the operator of this board withdrew this listing'),
  })
  expect((await look(id)).index).toMatchObject({ listed: false, why: 'the operator of this board withdrew it' })
  expect(idsOf(await search('query=snake+oil'))).not.toContain(id)
})

test('reviews are signed posts in their room; two reports of an outage lower a tool, one report that it works lifts it', async () => {
  const good = await publish(person('good maker'), { name: 'Kelp Census', url: 'https://kelp.example/' })
  const bad = await publish(person('bad maker'), { name: 'Kelp Census', url: 'https://other-kelp.example/' })
  const review = (signer: Signer, target: string, kind: string) =>
    client.command(signer, { operation: 'tools.review', target, kind, text: `it is ${kind}` })
  const event = dataOf<{ event: { room: string; kind: string; text: string; event_id: string } }>(
    await review(person('first reviewer'), bad.subject_id, 'down'),
  ).event
  expect(event).toMatchObject({ room: 'reviews', kind: 'review', text: 'it is down' })
  const proved = await client.get(`/api/log/proof?message=${event.event_id}`)
  expect(proved.status).toBe(200)
  await review(person('second reviewer'), bad.subject_id, 'works')
  dataOf(await review(person('second reviewer'), bad.subject_id, 'down'))
  const found = await search('query=kelp+census')
  expect(idsOf(found)).toEqual([good.id, bad.id])
  expect(found.results[1]!.why).toMatch(/reviews: 2 down; verdict down; ranked lower for that/)
  expect((await look(bad.id)).tool.reviews).toEqual({ works: 0, mixed: 0, down: 2, avoid: 0, verdict: 'down' })
  const { reviews } = dataOf<{ reviews: { author: string; kind: string }[] }>(
    await client.get(`/api/reviews?subject=${bad.subject_id}`),
  )
  expect(reviews.map(({ author, kind }) => [author, kind])).toEqual([
    [person('second reviewer').id, 'down'],
    [person('first reviewer').id, 'down'],
  ])
  // A redacted review counts for nothing, and the previous one counts again.
  dataOf(
    await client.command(person('first reviewer'), {
      operation: 'event.redact',
      event_id: event.event_id,
      reason: 'mine',
    }),
  )
  expect((await look(bad.id)).tool.reviews).toMatchObject({ works: 0, down: 1, verdict: '' })
  const again = dataOf<{ event: { event_id: string } }>(
    await review(person('second reviewer'), bad.subject_id, 'mixed'),
  )
  const taken = { operation: 'event.redact', event_id: again.event.event_id, reason: 'mine' }
  dataOf(await client.command(person('second reviewer'), taken))
  expect((await look(bad.id)).tool.reviews).toMatchObject({ works: 0, mixed: 0, down: 1, verdict: '' })
  // Nobody else begins threads in that room.
  expect((await client.post(person('chatter'), { room: 'reviews', text: 'hello' })).code).toBe('room_write_restricted')
})

test('an identity that describes its abilities is an agent in the directory', async () => {
  const signer = person('gardener')
  const profile = (capabilities: string[]) =>
    client.command(signer, {
      operation: 'identity.profile.set',
      data: JSON.stringify({ schema: 1, description: 'I prune espaliers.', capabilities }),
    })
  dataOf(await profile(['gardening', 'pruning']))
  expect(idsOf(await search('query=agents+that+prune'))).toEqual([`agent:${signer.id}`])
  expect((await look(`agent:${signer.id}`)).tool).toMatchObject({ type: 'agent', link: `/i/${signer.id}` })
  dataOf(await profile([]))
  expect(idsOf(await search('query=espaliers'))).toEqual([])
})

test('a list is imported by its ids, repeatably without effect, and its bad rows are named', async () => {
  const flood = Array.from({ length: 51 }, (_, n) => ({
    id: `list:flood-${n}`,
    type: 'service',
    kind: 'http',
    name: `Flood ${n}`,
    description: 'Premium access to everything.',
    url: `https://flood.example/${n}`,
  }))
  const bazaar = {
    resource: 'https://bazaar.example/echo',
    type: 'http',
    x402Version: 2,
    accepts: [{ scheme: 'exact', network: 'eip155:8453', amount: '2500', payTo: '0x0', extra: { name: 'USDC' } }],
    description: 'Echoes a whisper.',
    mimeType: 'application/json',
  }
  const service = {
    id: 'abacus',
    name: 'Abacus',
    serviceUrl: 'https://abacus.example',
    description: 'Counts beads.',
    categories: ['data'],
    methods: { tempo: {} },
    endpoints: [
      { method: 'POST', path: '/v1/count', description: 'Count beads', payment: { amount: '10000', decimals: 6 } },
      { method: 'GET', path: '/v1/help', description: 'Bead help', payment: null },
    ],
  }
  const registry = {
    server: {
      name: 'io.example/quill',
      description: 'Writes with a quill.',
      remotes: [{ url: 'https://quill.example/mcp' }],
    },
  }
  const lines = [...flood, bazaar, { services: [service] }, registry].map((each) => JSON.stringify(each))
  const file = join(files, 'list.jsonl')
  writeFileSync(file, [...lines, 'not json', '{"id":"x"}', lines[0]].join('\n'))
  const run = async () => {
    const terminal = capturedTerminal()
    const { args } = readArguments(toolsCommand, ['import', file, '--key', keyFile, '--url', board.address])
    const code = await importTools(file, args, terminal)
    return { code, out: terminal.said.out }
  }
  const first = await run()
  expect(first.code).toBe(1)
  expect(first.out).toMatch(/59 rows read: 56 imported, 0 unchanged/)
  expect(first.out).toMatch(/51 are flagged as spam/)
  expect(first.out).toMatch(/1 have the id of an earlier row/)
  expect(first.out).toMatch(
    /2 are not rows:\n {2}line 55: it is not JSON\n {2}line 56: it matches no known format of a list/,
  )
  expect((await run()).out).toMatch(/59 rows read: 0 imported, 56 unchanged/)
  const { results } = await search('query=whisper')
  expect(results[0]).toMatchObject({ id: 'x402:bazaar.example/echo', price: '0.0025', network: 'base', output: 'json' })
  expect(idsOf(await search('query=beads'))).toEqual(
    expect.arrayContaining(['mpp:abacus', 'mpp:abacus:post-v1-count', 'mpp:abacus:get-v1-help']),
  )
  expect((await look('mpp:abacus:post-v1-count')).tool).toMatchObject({ price: '0.01', service: 'mpp:abacus' })
  expect((await look('mcpreg:io.example/quill')).tool).toMatchObject({
    kind: 'mcp',
    mcp_url: 'https://quill.example/mcp',
  })
  expect((await look('list:flood-7')).index).toMatchObject({ listed: true, spam: true })
  // An identity that does not own the host cannot change its listings.
  const update = { operation: 'tools.update', target: 'x402:bazaar.example/echo', data: listing() }
  expect((await client.command(person('another'), update)).code).toBe('forbidden')
})

test('an unreadable address harms neither its listing nor the directory', async () => {
  const odd = { id: 'list:odd', type: 'service', kind: 'http', name: 'Odd Address', description: 'x', source: 'a test' }
  const rows = [{ ...odd, url: 'https://[bad' }]
  dataOf(await client.command(operator, { operation: 'tools.import', data: JSON.stringify({ schema: 1, rows }) }))
  expect(idsOf(await search('query=odd+address'))[0]).toBe('list:odd')
  expect((await look('list:odd')).index.listed).toBe(true)
})

test('paging over plain HTTP gives one consistent list while others publish', async () => {
  const whole = idsOf(await search('query=premium&limit=50'))
  const walked: string[] = []
  let cursor = ''
  for (let n = 0; walked.length < whole.length; n++) {
    const page = await search(`query=premium&limit=7${cursor === '' ? '' : `&cursor=${cursor}`}`)
    walked.push(...idsOf(page))
    cursor = page.next_cursor
    await publish(person(`premium ${n}`), { name: `Premium ${n}`, url: `https://premium-${n}.example/` })
  }
  expect(walked.slice(0, whole.length)).toEqual(whole)
  expect(new Set(walked).size).toBe(walked.length)
})

test('the directory is unchanged after a stop and after a kill', async () => {
  const asked = ['query=premium&limit=50', 'query=kelp', 'query=beads', 'category=weather']
  const state = async () => {
    const found = await Promise.all(asked.map(search))
    return found.map(({ results, matched }) => [matched, results.map(({ id, score }) => [id, score])])
  }
  const before = await state()
  const again = async () => {
    client.close()
    board = await start()
    client = await Client.of(board)
  }
  await board.stop()
  await again()
  expect(await state()).toEqual(before)
  const { id } = await publish(person('late'), { name: 'Zither Tuning', url: 'https://zither.example/' })
  const later = await state()
  await board.kill()
  await again()
  expect(await state()).toEqual(later)
  expect(idsOf(await search('query=zither'))[0]).toBe(id)
})

test('a tool has one address whatever its id holds; the id in a path leads there in every form it had', async () => {
  const id = 'x402:https://a.example/v1/search?q={q}&n=1#top'
  const row = { id, type: 'service', kind: 'x402', name: 'Odd', description: 'Its id is a URL.', source: 'a list' }
  dataOf(
    await client.command(operator, { operation: 'tools.import', data: JSON.stringify({ schema: 1, rows: [row] }) }),
  )
  const { tool } = await look(id)
  const path = String(tool.url)
  expect(path).toMatch(/^\/tools\/t_[0-9a-f]{32}$/)
  expect(tool.id).toBe(id)
  expect((await look(path.slice('/tools/'.length))).tool).toEqual(tool)
  const page = await client.get(path)
  expect([page.status, page.text.includes('<h1 dir="auto">Odd</h1>')]).toEqual([200, true])
  const plain = id.split('/').map(encodeURIComponent).join('/')
  for (const old of [encodeURIComponent(id), plain, plain.replaceAll('%3A', ':')]) {
    const { status, headers } = await client.get(`/tools/${old}`)
    expect([old, status, headers.location]).toEqual([old, 308, path])
  }
  expect((await client.get('/tools/broadside:hash')).headers.location).toMatch(/^\/tools\/t_[0-9a-f]{32}$/)
  expect((await client.get(`/tools/${encodeURIComponent('no/such tool')}`)).status).toBe(400)
  expect((await client.get('/tools/a%5Cb')).status).toBe(400)
  // Nobody takes over another's address with an id that looks like one.
  const liar = { ...row, id: path.slice('/tools/'.length), name: 'Liar' }
  dataOf(
    await client.command(operator, { operation: 'tools.import', data: JSON.stringify({ schema: 1, rows: [liar] }) }),
  )
  expect((await client.get(path)).text).toContain('<h1 dir="auto">Odd</h1>')
})
