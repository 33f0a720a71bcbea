/** The scrubber of a running board: changes on the disk are reported, derived files are rebuilt, and the board continues. */
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { blobOf, putFields, sha256 } from '../support/blobs.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { flipByte } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const env = { SEGMENT_BYTES: '65536', SCRUB_BYTES_PER_SECOND: '200000000' }
const ada = person('ada')

const filesIn = (directory: string, suffix: string): string[] =>
  readdirSync(directory)
    .filter((name) => name.endsWith(suffix))
    .sort()
    .map((name) => join(directory, name))

type Said = Record<string, unknown>
const said = ({ lines }: Board, event: string): Said[] =>
  lines.map((line) => JSON.parse(line) as Said).filter((each) => each.event === event)

async function put(client: Client, bytes: string): Promise<string> {
  const file = { room: 'den', filename: 'a.txt', media_type: 'text/plain' }
  return blobOf(await client.command(ada, putFields(Buffer.from(bytes), file))).id
}

/** A stopped board with sealed segments, an attachment in a private room, and a search index. */
async function made(): Promise<string> {
  const directory = boardDirectory()
  const board = await startBoard({ directory, env: { ...env, SCRUB_BYTES_PER_SECOND: '0' } })
  const client = await Client.of(board)
  await client.command(ada, { operation: 'room.create', room: 'den', visibility: 'private' })
  await put(client, 'bytes of a file')
  for (let n = 0; ['log', 'shard-00'].some((part) => filesIn(join(directory, part), '.log').length < 3); n++) {
    const sent = Array.from({ length: 8 }, (_, k) =>
      client.post(person(`writer ${k}`), { room: 'hall', text: `post ${n * 8 + k} ${'lorem '.repeat(20)}` }),
    )
    for (const { status } of await Promise.all(sent)) expect(status).toBe(200)
  }
  expect((await client.get('/api/events?query=lorem')).status).toBe(200)
  client.close()
  expect((await board.stop()).code).toBe(0)
  return directory
}

test('damage is reported with its place, in the log, /healthz and /metrics; derived files are rebuilt', async () => {
  const directory = await made()
  const segment = filesIn(join(directory, 'shard-00'), '.log')[0]!
  const index = filesIn(join(directory, 'shard-00'), '.idx')[1]!
  const nodes = join(directory, 'log', 'nodes.bin')
  const [room] = readdirSync(join(directory, 'blobs'))
  const attachment = filesIn(join(directory, 'blobs', room!), '')[0]!
  const search = join(directory, 'search', 'index.db')
  const right = [index, nodes].map((path) => readFileSync(path))
  flipByte(segment, 2_000)
  for (const path of [index, nodes]) flipByte(path, readFileSync(path).length >> 1)
  flipByte(attachment, 3)
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  await vi.waitUntil(() => said(board, 'scrub.pass').length > 0, patience)
  const found = said(board, 'scrub.found')
  expect(new Set(found.map(({ path, kind, level, derived }) => JSON.stringify([path, kind, level, derived])))).toEqual(
    new Set(
      [
        [segment, 'segment', 'error', false],
        [index, 'index', 'warn', true],
        [nodes, 'tree', 'warn', true],
        [attachment, 'attachment', 'error', false],
      ].map((each) => JSON.stringify(each)),
    ),
  )
  await vi.waitUntil(() => [index, nodes].every((path, n) => readFileSync(path).equals(right[n]!)), patience)
  const health = await client.get('/healthz')
  expect([health.status, health.text]).toEqual([
    200,
    expect.stringMatching(/^ok\ndamage: (attachment|shard-00\/\d{20}\.log at byte \d+) and 1 more; .+\n$/),
  ])
  expect(health.text).not.toContain('den')
  const { text } = await client.get('/metrics')
  for (const kind of ['segment', 'index', 'tree', 'attachment'])
    expect(text).toContain(`broadside_scrub_found_total{kind="${kind}"} 1\n`)
  expect(text).toContain('broadside_notice{name="damage"} 1\n')
  expect(text).toMatch(/^broadside_scrubbed_bytes_total \d{5,}$/m)
  expect((await client.post(ada, { room: 'hall', text: 'it goes on' })).status).toBe(200)
  expect((await client.get('/api/events?query=lorem')).status).toBe(200)
  expect(readFileSync(search).length).toBeGreaterThan(0)
  client.close()
  expect((await board.stop()).code).toBe(0)
})

test('on a running board a removed tree file is rebuilt and grows; a missing attachment is reported, a deleted one is not', async () => {
  const directory = await made()
  const nodes = join(directory, 'log', 'nodes.bin')
  // Segments are read first, for some seconds.
  const board = await startBoard({ directory, env: { ...env, SCRUB_BYTES_PER_SECOND: '25000' } })
  const client = await Client.of(board)
  const deleted = await put(client, 'is deleted')
  await put(client, 'is lost')
  expect((await client.command(ada, { operation: 'blob.delete', target: deleted })).status).toBe(200)
  const attachment = join(directory, 'blobs', 'den', sha256('is lost'))
  for (const path of [nodes, attachment]) rmSync(path)
  await vi.waitUntil(() => said(board, 'scrub.pass').length > 0, patience)
  expect(said(board, 'scrub.found')).toMatchObject([
    { path: nodes, kind: 'tree', level: 'warn', problem: 'there is no such file' },
    { path: attachment, kind: 'attachment', level: 'error', problem: 'there is no such file' },
  ])
  expect(said(board, 'scrub.pass')).toMatchObject([{ damaged: 1 }])
  expect((await client.get('/healthz')).text).toMatch(/^ok\ndamage: attachment; .+\n$/)
  await vi.waitUntil(() => said(board, 'log.tree.mended').length > 0, patience)
  for (let n = 0; n < 10; n++) expect((await client.post(ada, { room: 'hall', text: `later ${n}` })).status).toBe(200)
  const { origin } = JSON.parse(readFileSync(join(directory, 'board.json'), 'utf8')) as { origin: string }
  expect((await client.get(`${origin.slice(origin.indexOf('/'))}/tile/0/000`)).status).toBe(200)
  client.close()
  expect((await board.stop()).code).toBe(0)
  const again = await startBoard({ directory, env: { ...env, SCRUB_BYTES_PER_SECOND: '0' } })
  expect(again.lines.filter((line) => line.includes('log.tree'))).toEqual([])
  expect((await again.stop()).code).toBe(0)
})

test('a damaged search index is found at the start, and answers as before', async () => {
  const directory = await made()
  const path = join(directory, 'search', 'index.db')
  const size = readFileSync(path).length
  flipByte(path, size - 4_096 + 100)
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  await vi.waitUntil(() => board.lines.some((line) => line.includes('search.index_made_again')), patience)
  await vi.waitUntil(async () => (await client.get('/api/events?query=post&limit=5')).status === 200, patience)
  client.close()
  expect((await board.stop()).code).toBe(0)
})

test('on a board without damage nothing is reported, and /healthz says only ok', async () => {
  const directory = await made()
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  await vi.waitUntil(() => board.lines.some((line) => line.includes('"scrub.pass"')), patience)
  expect(board.lines.filter((line) => line.includes('scrub.found'))).toEqual([])
  expect((await client.get('/healthz')).text).toBe('ok\n')
  client.close()
  expect((await board.stop()).code).toBe(0)
})
