import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { createNoteKey } from '../../storage/note-signer.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { welcomeAuthor, welcomeLeaves } from '../support/welcome-author.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('ada')
let client: Client
let folder: string
let mirror: string
let vkey: string
/** Sits between mirror and board; `change` may return other bytes for a path. */
let between: Server
let change: (path: string, body: Buffer) => Buffer | number = (_, body) => body
let address: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'broadside-mirror-'))
  mirror = join(folder, 'mirror')
  const board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
  await welcomeAuthor(client, ada, 'mirrored')
  await posts(300 - welcomeLeaves)
  vkey = (await client.get('/log/vkey')).text.trim()
  between = createServer((request, response) => {
    void (async () => {
      const answer = await fetch(`${client.address}${request.url}`, { headers: { 'accept-encoding': 'identity' } })
      const body = change(request.url!, Buffer.from(await answer.arrayBuffer()))
      response.writeHead(typeof body === 'number' ? body : answer.status).end(typeof body === 'number' ? '' : body)
    })()
  })
  await new Promise<void>((done) => between.listen(0, '127.0.0.1', done))
  address = `http://127.0.0.1:${(between.address() as AddressInfo).port}`
})
afterAll(() => {
  client.close()
  between.close()
  rmSync(folder, { recursive: true })
})

async function posts(count: number): Promise<void> {
  for (let n = 0; n < count; n++) expect((await client.post(ada, { room: 'mirrored', text: `${n}` })).status).toBe(200)
}

async function run(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const terminal = capturedTerminal()
  const code = await main(argv, terminal)
  return { code, ...terminal.said }
}

const files = (directory: string): string[] => readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()

test('a mirror holds every entry, verified, in the layout that any client reads', async () => {
  const made = await run('mirror', client.address, mirror)
  expect(made).toMatchObject({ code: 0, err: '' })
  expect(made.out).toContain('300 new entries verified (')
  expect(files(mirror)).toEqual(
    expect.arrayContaining([
      'checkpoint',
      'vkey',
      'tile/0/000',
      'tile/0/001.p/44',
      'tile/1/000.p/1',
      'tile/entries/000',
      'tile/entries/001.p/44',
    ]),
  )
  const served = await fetch(`${client.address}/log/${vkey.split('/log/')[1]!.split('+')[0]}/tile/1/000.p/1`)
  expect(readFileSync(join(mirror, 'tile/1/000.p/1'))).toEqual(Buffer.from(await served.arrayBuffer()))
  expect(await run('verify', mirror, '--vkey', vkey)).toMatchObject({ code: 0 })
})

test('it continues where it stopped, and drops the partial tiles that no checkpoint of its own needs', async () => {
  await posts(250)
  const again = await run('mirror', client.address, mirror)
  expect(again.out).toContain(
    '250 new entries verified, after 300 from earlier runs (not checked again; broadside verify',
  )
  expect(again.out).toContain('with the key you pinned')
  expect(files(mirror)).not.toContain('tile/0/001.p/44')
  expect(files(mirror)).not.toContain('tile/entries/001.p/44')
  expect(files(mirror)).toContain('tile/0/002.p/38')
  expect(await run('verify', mirror)).toMatchObject({ code: 0 })
  expect((await run('mirror', client.address, mirror)).out).toContain(
    '0 new entries verified, after 550 from earlier runs',
  )
})

test('an interrupted run is resumed: what it fetched is checked and used', async () => {
  const fresh = join(folder, 'interrupted')
  let fetched = 0
  change = (path, body) => (path.includes('/tile/entries/') && ++fetched > 1 ? 410 : body)
  expect((await run('mirror', address, fresh, '--vkey', vkey)).err).toContain('Run the same command again')
  change = (_, body) => body
  expect(files(fresh)).not.toContain('checkpoint')
  expect(await run('mirror', address, fresh, '--vkey', vkey)).toMatchObject({ code: 0 })
  expect(await run('verify', fresh)).toMatchObject({ code: 0 })
})

test('a log that serves other entries than it signed is found out, and the mirror stores none of them', async () => {
  const fresh = join(folder, 'lied-to')
  change = (path, body) => {
    if (path.endsWith('/tile/entries/001')) body[40]! ^= 1
    return body
  }
  const lied = await run('mirror', address, fresh, '--vkey', vkey)
  expect(lied.code).toBe(3)
  expect(lied.err).toContain('do not give the root that it signed for 550 entries')
  change = (_, body) => body
  expect(await run('mirror', address, fresh, '--vkey', vkey)).toMatchObject({ code: 0 })
})

test('a log that shows less than it has shown before is found out', async () => {
  const copy = join(folder, 'older')
  const old = (await fetch(`${address}/log/${vkey.split('/log/')[1]!.split('+')[0]}/checkpoint`)).text()
  const before = await old
  await posts(3)
  cpSync(mirror, copy, { recursive: true })
  expect(await run('mirror', address, copy)).toMatchObject({ code: 0 })
  change = (path, body) => (path.endsWith('/checkpoint') ? Buffer.from(before) : body)
  const shrunk = await run('mirror', address, copy)
  change = (_, body) => body
  expect(shrunk.code).toBe(3)
  expect(shrunk.err).toContain('signed a head of 553 entries, and now serves one of 550')
})

test('a mirror served at the root of a host is mirrored from there, by its own key or a pinned one', async () => {
  const root = createServer(({ url = '' }, response) => {
    const file = join(mirror, url)
    if (existsSync(file)) response.end(readFileSync(file))
    else response.writeHead(404).end()
  })
  await new Promise<void>((done) => root.listen(0, '127.0.0.1', done))
  const at = `http://127.0.0.1:${(root.address() as AddressInfo).port}/`
  for (const [name, options] of Object.entries({ named: [], pinned: ['--vkey', vkey] })) {
    const copy = join(folder, `of-a-root-${name}`)
    // Its name says that the log is at /log/… of a board, so it is looked for there.
    const missed = await run('mirror', at, copy, ...options)
    expect([name, missed.code]).toEqual([name, options.length === 0 ? 2 : 1])
    expect(missed.err).toContain(`${at}log/`)
    expect(await run('mirror', at, copy, '--prefix', ...options)).toMatchObject({ code: 0, err: '' })
    expect(await run('verify', copy, '--vkey', vkey)).toMatchObject({ code: 0 })
    expect((await run('mirror', at, copy, '--prefix')).out).toContain('0 new entries verified')
  }
  root.close()
})

test('another key, a changed byte on the mirror’s disk, and a directory that is no mirror are reported', async () => {
  const other = vkey.replace(/\+[0-9a-f]{8}\+/, '+00000000+')
  expect(await run('mirror', address, join(folder, 'x'), '--vkey', other)).toMatchObject({ code: 2 })
  const bundle = join(mirror, 'tile/entries/000')
  const bytes = readFileSync(bundle)
  bytes[100]! ^= 1
  writeFileSync(bundle, bytes)
  const damaged = await run('verify', mirror)
  expect(damaged.code).toBe(3)
  expect(damaged.err).toContain('tile/entries/000 and tile/0/000 are inconsistent. Remove it and mirror again.')
  const kept = readFileSync(join(mirror, 'vkey'))
  for (const [text, words] of [
    [Buffer.from(kept.map((byte, at) => (at === kept.length - 5 ? byte ^ 1 : byte))), "is not a log's key"],
    [createNoteKey('other.example/log/2026a', Buffer.alloc(32, 7)).vkey, 'names another log or key'],
  ] as const) {
    writeFileSync(join(mirror, 'vkey'), text)
    const harmed = await run('verify', mirror, '--vkey', vkey)
    expect([harmed.code, harmed.err]).toEqual([3, expect.stringContaining(`${join(mirror, 'vkey')} ${words}`)])
  }
  writeFileSync(join(mirror, 'vkey'), kept)
  // Stored data is not read again, and no output claims that it was.
  const again = await run('mirror', client.address, mirror)
  expect(again.out).toMatch(/ [0-9]+ new entries verified, after 550 from earlier runs \(not checked again/)
  expect((await run('verify', folder)).err).toContain('is not a mirror')
})
