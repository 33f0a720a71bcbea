import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { nextOf, previousOf } from '../../actors/log/rotation.ts'
import { main } from '../../src/cli/main.ts'
import { nextOrigin } from '../../src/log/signed-log.ts'
import { formatCheckpoint, openCheckpoint } from '../../storage/checkpoint.ts'
import { EMPTY_ROOT, leafHash } from '../../storage/merkle.ts'
import { verifyConsistency } from '../../storage/merkle-verify.ts'
import { parseVkey, signNote, type VerifierKey } from '../../storage/note.ts'
import { createNoteKey } from '../../storage/note-signer.ts'
import { parsePolicy } from '../../storage/tlog-policy.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { type Board, boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, type EventJson, person } from '../support/client.ts'
import { proveEvent } from '../support/log-checks.ts'
import { welcomeAuthor, welcomeLeaves } from '../support/welcome-author.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('ada')
const before = 270
const after = 5
let folder: string
let board: Board
let client: Client
let directory: string
let oldKey: VerifierKey
let newKey: VerifierKey
let oldVkey: string
let newVkey: string
let oldIds: string[]
let newIds: string[]
/** Sent in the first log, and sent again, byte for byte, in the second. */
let retried: string
let said: { code: number; out: string; err: string }

const keyOf = (vkey: string): VerifierKey => {
  const parsed = parseVkey(vkey.trim())
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.value
}
const fetched = async (path: string) => {
  const answer = await fetch(`${board.address}${path}`)
  return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) }
}
const text = async (path: string) => (await fetched(path)).bytes.toString()
const prefixOf = ({ name }: VerifierKey) => name.slice(name.indexOf('/'))

async function run(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const terminal = capturedTerminal()
  const code = await main(argv, terminal)
  return { code, ...terminal.said }
}

async function posts(count: number): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    const { status, data } = await client.post(ada, { room: 'rotated', text: `post ${n} of ${count}` })
    expect(status).toBe(200)
    ids.push(data.event_id!)
  }
  return ids
}

async function start(): Promise<void> {
  board = await startBoard({ directory, ...(board === undefined ? {} : { port: board.port }) })
  client = await Client.of(board)
}

async function stop(): Promise<void> {
  client.close()
  await board.stop()
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'broadside-rotation-'))
  directory = boardDirectory()
  await start()
  oldVkey = (await text('/log/vkey')).trim()
  oldKey = keyOf(oldVkey)
  oldIds = [await welcomeAuthor(client, ada), ...(await posts(before - welcomeLeaves))]
  retried = client.sign(ada, { operation: 'post', text: 'before the rotation' }).body
  const first = await client.send(retried)
  expect(first.data.receipt).toMatchObject({ log_index: before, tree_size: before + 1 })
  await stop()
  said = await run('log', 'rotate', '--data', directory)
  await start()
  newVkey = (await text('/log/vkey')).trim()
  newKey = keyOf(newVkey)
  newIds = await posts(after)
})
afterAll(() => {
  client.close()
  rmSync(folder, { recursive: true })
})

test('the log is not rotated if another box may lead', async () => {
  const own = boardDirectory()
  await (await startBoard({ directory: own, env: {} })).stop()
  const file = join(own, 'replication.json')
  const writes = { leader: '0'.repeat(32), epoch: 1, ack: 'quorum' }
  writeFileSync(file, JSON.stringify(writes))
  const refused = await run('log', 'rotate', '--data', own)
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('another box may have replaced it')])
  expect(readdirSync(join(own, 'keys')).filter((name) => /^log-/.test(name))).toEqual([])
  // The stream's settings now say that the board answers on its own.
  writeFileSync(file, JSON.stringify({ ...writes, ack: undefined }))
  writeFileSync(join(own, 'follower.json'), '{}')
  const followers = await run('log', 'rotate', '--data', own)
  expect([followers.code, followers.err]).toEqual([1, expect.stringContaining('the directory of a follower')])
  rmSync(join(own, 'follower.json'))
  expect((await run('log', 'rotate', '--data', own)).code).toBe(0)
})

test('the operator is told which log was closed, and the key of the next', () => {
  expect([said.code, said.err]).toEqual([0, ''])
  expect(said.out).toContain(`${oldKey.name} is closed with ${before + 2} entries`)
  expect(said.out).toContain(newVkey)
  expect(newKey.name).toBe(oldKey.name.replace(/a$/, 'b'))
  expect(newKey.publicKey.equals(oldKey.publicKey)).toBe(false)
  // Nobody can sign for the closed log again.
  expect(readdirSync(join(directory, 'keys')).sort()).toEqual([
    'board.key',
    'cursor.key',
    `log-${newKey.name.slice(-5)}.key`,
  ])
})

test('the closed log’s last entry names the next log and its key, and the next one’s first entry names that end', async () => {
  const end = openCheckpoint(await text(`${prefixOf(oldKey)}/checkpoint`), oldKey)
  if (!end.ok) throw new Error(end.problem)
  expect(end.value.size).toBe(before + 2)
  const oldName = oldKey.name.slice(-5)
  const last = await client.get(`/api/log/leaves?start=${before + 1}&end=${before + 2}&log=${oldName}`)
  const close = Buffer.from((last.data as unknown as { entries: string[] }).entries[0]!, 'base64')
  expect(nextOf(close)).toEqual({ origin: newKey.name, vkey: newVkey })
  const first = await client.get('/api/log/leaves?start=0&end=1')
  const open = Buffer.from((first.data as unknown as { entries: string[] }).entries[0]!, 'base64')
  expect(previousOf(open)).toEqual({ origin: oldKey.name, size: before + 2, root: Buffer.from(end.value.root) })
  const head = openCheckpoint(await text(`${prefixOf(newKey)}/checkpoint`), newKey)
  expect(head.ok && head.value.size).toBe(1 + after)
  const tile = (await fetched(`${prefixOf(newKey)}/tile/0/000.p/1`)).bytes
  expect(tile.equals(leafHash(open))).toBe(true)
})

test('every tile, bundle and proof of the closed log is served as before, and nothing beyond its end', async () => {
  const prefix = prefixOf(oldKey)
  for (const path of ['tile/0/000', 'tile/0/001.p/16', 'tile/1/000.p/1', 'tile/entries/000', 'tile/entries/001.p/16'])
    expect((await fetched(`${prefix}/${path}`)).status, path).toBe(200)
  for (const path of ['tile/0/001.p/17', 'tile/0/001', 'tile/1/000.p/2', 'tile/entries/001.p/17'])
    expect((await fetched(`${prefix}/${path}`)).status, path).toBe(404)
  expect(await text(`${prefix}/vkey`)).toBe(`${oldVkey}\n`)
  for (const id of [oldIds[0]!, oldIds.at(-1)!]) {
    const proof = await proveEvent(client, oldKey, id)
    expect(proof).toMatchObject({ log: { origin: oldKey.name, vkey: oldVkey }, tree_size: before + 2 })
    expect((await proveEvent(client, oldKey, id, before)).tree_size).toBe(before)
  }
  const proof = await proveEvent(client, newKey, newIds[0]!)
  expect(proof).toMatchObject({ log: { origin: newKey.name, vkey: newVkey }, leaf_index: 1, tree_size: 1 + after })
  const path = `/api/log/consistency?from=17&to=${before + 2}&log=${oldKey.name.slice(-5)}`
  const { consistency_path } = (await client.get(path)).data as unknown as { consistency_path: string[] }
  const roots = await Promise.all(
    [17, before + 2].map(async (size) =>
      Buffer.from((await proveEvent(client, oldKey, oldIds[3]!, size)).root_hash, 'hex'),
    ),
  )
  const hashes = consistency_path.map((hash) => Buffer.from(hash, 'hex'))
  expect(verifyConsistency(17, before + 2, hashes, roots[0]!, roots[1]!)).toBe(true)
  expect(await client.get('/api/log/leaves?start=0&end=1&log=1999a')).toMatchObject({
    status: 400,
    code: 'not_found',
    field: 'log',
  })
})

test('an event says which log it is in, if that is not the newest', async () => {
  const oldest = await client.get(`/api/events/${oldIds[0]}`)
  expect(oldest.data.event!.log).toEqual({ state: 'included', index: expect.any(Number), origin: oldKey.name })
  const newest = await client.get(`/api/events/${newIds[0]}`)
  expect(newest.data.event!.log).toEqual({ state: 'included', index: 1 })
})

test('the same bytes again give the receipt of the log in which they were accepted', async () => {
  const answer = await client.send(retried)
  expect(answer.data.receipt).toMatchObject({ duplicate: true, log_index: before, tree_size: before + 2 })
  expect(openCheckpoint(answer.data.receipt!.checkpoint!, oldKey).ok).toBe(true)
})

test('what a client pins names both logs, and the history tells of both', async () => {
  const policy = parsePolicy(await text('/log/policy'))
  expect(policy.ok && policy.value.logs.map(({ key, url }) => [key.name, url])).toEqual(
    [oldKey, newKey].map(({ name }) => [name, `${client.address}${name.slice(name.indexOf('/'))}`]),
  )
  const { data } = await client.get('/api/log/history')
  const history = data as unknown as { logs: Record<string, unknown>[]; points: { log: string; tree_size: number }[] }
  expect(history.logs.map(({ origin, vkey, state, tree_size }) => [origin, vkey, state, tree_size])).toEqual([
    [oldKey.name, oldVkey, 'closed', before + 2],
    [newKey.name, newVkey, 'open', 1 + after],
  ])
  expect(new Set(history.points.map(({ log }) => log))).toEqual(
    new Set([oldKey, newKey].map(({ name }) => name.slice(-5))),
  )
  expect((await client.get('/api/log/checkpoint')).data).toMatchObject({ origin: newKey.name, tree_size: 1 + after })
})

test('the log’s page shows how both grew, the final size of the closed one, and the newest head with its signature', async () => {
  const page = await text('/log')
  expect(page).toContain(`The log grew to ${before + 2 + 1 + after} entries since `)
  expect(page).toMatch(new RegExp(`<code>${oldKey.name}</code></a>, closed at ${before + 2} entries`))
  const checkpoint = await text(`${prefixOf(newKey)}/checkpoint`)
  expect(page).toContain(`<pre tabindex="0"><code>${checkpoint}</code></pre>`)
  expect(page).toContain(`broadside verify board.jsonl --vkey '${newVkey}'`)
})

test('one export holds both logs and verifies with either key, and an omitted or changed log is detected', async () => {
  const whole = await text('/v1/export')
  const path = join(folder, 'export.jsonl')
  writeFileSync(path, whole)
  for (const vkey of [oldVkey, newVkey]) {
    const good = await run('verify', path, '--vkey', vkey)
    expect([good.code, good.err]).toEqual([0, ''])
    expect(good.out).toMatch(/closed logs +1, each tied/)
    expect(good.out).toContain('signed by the log: verified, with the key you pinned')
  }
  const lines = whole.trimEnd().split('\n')
  const at = lines.findIndex((line) => line.startsWith('{"type":"log"'))
  const closed = JSON.parse(lines[at]!) as Record<string, string>
  const forgeries: [string, string[]][] = [
    ['the closed log is left out', lines.filter((_, n) => n !== at && n !== at - 1)],
    ['another close entry', lines.with(at, JSON.stringify({ ...closed, close: closed.open }))],
    ['another open entry', lines.with(at, JSON.stringify({ ...closed, open: closed.close }))],
    [
      'its last head is an older one',
      lines.with(
        at,
        JSON.stringify({ ...closed, checkpoint: (await proveEvent(client, oldKey, oldIds[0]!, before)).checkpoint }),
      ),
    ],
    ['the new log is left out', [...lines.slice(0, at + 1), lines.at(-1)!]],
  ]
  for (const [what, forged] of forgeries) {
    writeFileSync(path, `${forged.join('\n')}\n`)
    const bad = await run('verify', path, '--vkey', newVkey)
    expect(bad.code, what).toBe(3)
  }
})

test('a mirror of the closed log is complete, names the next one at each run and exits with 4; a separate mirror is made of that', async () => {
  const old = join(folder, 'old')
  const made = await run('mirror', client.address, old, '--vkey', oldVkey)
  expect([made.code, made.err]).toEqual([4, ''])
  expect(made.out).toContain(`This log is closed: ${newKey.name} follows it, with the key ${newVkey}`)
  expect((await run('mirror', client.address, old)).code).toBe(4)
  expect((await run('verify', old)).code).toBe(0)
  const next = await run('mirror', client.address, join(folder, 'new'))
  expect(next.out).toContain(`${1 + after} new entries verified`)
  expect(next.code).toBe(0)
})

test('fsck recomputes both logs', async () => {
  await stop()
  const { code, out } = await run('fsck', '--data', directory, '--signatures')
  expect([code, out]).toEqual([0, expect.stringContaining('Everything agrees.')])
  rmSync(join(directory, 'log', 'nodes.bin'))
  expect((await run('fsck', '--data', directory)).out).toContain('nodes.bin: missing')
  await start()
  await proveEvent(client, oldKey, oldIds[100]!)
  expect(existsSync(join(directory, 'log', 'nodes.bin'))).toBe(true)
})

test('a log is rotated again, also over a kill, and all three are proved', async () => {
  client.close()
  await board.kill()
  expect((await run('log', 'rotate', '--data', directory)).code).toBe(0)
  await start()
  await proveEvent(client, oldKey, oldIds[7]!)
  await proveEvent(client, newKey, newIds[0]!)
  const [third] = await posts(1)
  const proof = await proveEvent(client, keyOf(await text('/log/vkey')), third!)
  expect(proof).toMatchObject({ leaf_index: 1 })
  const exported = (await text('/v1/export')).trimEnd().split('\n')
  const origins = exported.flatMap(
    (line) => (JSON.parse(line) as EventJson & { log: { origin?: string } }).log?.origin ?? [],
  )
  expect(new Set(origins).size).toBe(3)
  const path = join(folder, 'three.jsonl')
  writeFileSync(path, `${exported.join('\n')}\n`)
  expect((await run('verify', path, '--vkey', oldVkey)).out).toMatch(/closed logs +2/)
})

test('a running board is not rotated, and an old copy of a rotated one does not start', async () => {
  expect(await run('log', 'rotate', '--data', directory)).toMatchObject({
    code: 1,
    err: expect.stringContaining('in use'),
  })
  await stop()
  const mark = readFileSync(`${directory}.mark`, 'utf8')
  expect(mark.split('\n').slice(1, 3)).toEqual([`after ${newVkey}`, `after ${oldVkey}`])
  // A copy from before the first rotation knows nothing of the log whose head the mark has.
  const { vkey, signer } = createNoteKey('board.example/log/2030z', Buffer.alloc(32, 7))
  const head = signNote(formatCheckpoint({ origin: signer.name, size: 0, root: EMPTY_ROOT }), signer)
  writeFileSync(`${directory}.mark`, `${vkey}\nafter ${newVkey}\nafter ${oldVkey}\n${head}`)
  const { code, output } = await expectStartRefused({ directory, port: board.port })
  expect([code, output]).toEqual([1, expect.stringContaining('which follows it, is unknown in this directory')])
  writeFileSync(`${directory}.mark`, mark)
  await start()
})

test('the next origin has the next letter, or the first one of a new year, and never one of a past year', () => {
  const at = (year: number) => Date.UTC(year, 5) / 1000
  expect(nextOrigin('b.example/log/2026a', at(2026), '')).toBe('b.example/log/2026b')
  expect(nextOrigin('b.example/log/2026c', at(2027), '')).toBe('b.example/log/2027a')
  expect(nextOrigin('b.example/log/2026a', at(2020), '')).toBe('b.example/log/2026b')
  expect(nextOrigin('b.example/log/2026z', at(2026), '')).toBeUndefined()
  expect(nextOrigin('127.0.0.1:8787/log/2026a', at(2026), 'https://b.example')).toBe('b.example/log/2026b')
})

test('a log named before BASE_URL was set is followed by one named after it', async () => {
  const place = boardDirectory()
  const nameless = await startBoard({ directory: place })
  const client = await Client.of(nameless)
  const first = await client.post(ada, { text: 'before it had a name' })
  expect(first.data.receipt).toMatchObject({ checkpoint: expect.stringMatching(/^127\.0\.0\.1:/) })
  client.close()
  await nameless.stop()
  const env = { BASE_URL: 'https://board.example' }
  vi.stubEnv('BASE_URL', env.BASE_URL)
  const rotated = await run('log', 'rotate', '--data', place)
  vi.unstubAllEnvs()
  expect([rotated.code, rotated.err]).toEqual([0, ''])
  const named = await startBoard({ directory: place, port: nameless.port, env })
  named.address = `http://127.0.0.1:${nameless.port}`
  const again = await Client.of(named)
  const next = parseVkey((await (await fetch(`${named.address}/log/vkey`)).text()).trim())
  expect(next).toMatchObject({ ok: true, value: { name: expect.stringMatching(/^board\.example\/log\/\d{4}b$/) } })
  expect((await again.get(`/e/${first.data.event_id}/proof`)).status).toBe(200)
  expect((await again.post(ada, { text: 'with its name' })).status).toBe(200)
  again.close()
  await named.stop()
  const notesOf = (board: Board) =>
    board.lines.flatMap((line) => /"log\.of_another_address".*"note":"([^"]*)"/.exec(line)?.[1] ?? [])
  expect([notesOf(nameless), notesOf(named)]).toEqual([[], []])
  const forgotten = await startBoard({ directory: place })
  await forgotten.stop()
  expect(notesOf(forgotten)).toEqual([expect.stringContaining('Set BASE_URL to the public address of this board')])
  const misspelled = await startBoard({
    directory: place,
    port: nameless.port,
    env: { BASE_URL: 'https://bord.example' },
  })
  await misspelled.stop()
  expect(notesOf(misspelled)).toEqual([expect.stringContaining('Correct BASE_URL if it is misspelled.')])
  expect((await run('fsck', '--data', place)).code).toBe(0)
})
