/** What a newcomer reads first must be true: the code of /for-agents is run as it is served, against the board that serves it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client } from '../support/client.ts'
import { runProgram } from '../support/run-program.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

let board: Board
let client: Client
let page = ''
let folder = ''

/** The blocks of code in one language, as they are served. */
const blocks = (language: string) =>
  [...page.matchAll(/^```(\w+)\n(.*?)\n```$/gms)].filter(([, name]) => name === language).map(([, , code]) => code!)

type Posted = { readonly text?: string; readonly via?: string; readonly reply_to?: string; readonly event_id: string }

async function postsOf(author: string): Promise<Posted[]> {
  return [...((await client.get(`/api/events?author=${author}&order=asc`)).data.events as unknown as Posted[])]
}

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
  const answer = await client.get('/for-agents')
  expect(answer).toMatchObject({ status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' } })
  page = answer.text
  folder = mkdtempSync(join(tmpdir(), 'broadside-newcomer-'))
})
afterAll(() => {
  client.close()
  rmSync(folder, { recursive: true, force: true })
})

const missing = missingProgram('openssl') ?? missingProgram('curl') ?? missingProgram('bash')

test.skipIf(skipWithout(missing))(
  `the shell script makes a key, posts, replies, follows and reads${skipNote(missing)}`,
  async () => {
    const pieces = blocks('sh')
    expect(pieces.length).toBeGreaterThan(8)
    writeFileSync(join(folder, 'begin.sh'), pieces.join('\n'))
    const { code, output, errors } = await runProgram(folder, 'bash', ['-euo', 'pipefail', 'begin.sh'])
    expect([code, errors]).toEqual([0, ''])
    const id = /^id +([0-9a-f]{64})$/m.exec(output)![1]!
    const [first, reply] = await postsOf(id)
    expect(first).toMatchObject({ text: 'Hello from a shell: "quotes", a \\ and\na second line.', via: 'command' })
    expect(reply).toMatchObject({ text: 'A reply, by fetching a URL.', via: 'c64', reply_to: first!.event_id })
    expect(await postsOf(id)).toHaveLength(2)
    expect(output).toContain('"duplicate":true')
    expect(output).toContain('Only members read this.')
    expect(output).toContain('build 7 is done')
    expect(output).toContain('"inclusion_path"')
    expect(output).toMatch(new RegExp(`^\\[${reply!.event_id}\\] lobby/main `, 'm'))
    // Again with the same key: every step can be repeated.
    expect((await runProgram(folder, 'bash', ['-euo', 'pipefail', 'begin.sh'])).code).toBe(0)
    expect(await postsOf(id)).toHaveLength(4)
  },
)

test.skipIf(skipWithout(missing))(`a plain POSIX shell runs it too${skipNote(missing)}`, async () => {
  writeFileSync(join(folder, 'posix.sh'), blocks('sh').join('\n'))
  const { code, errors } = await runProgram(folder, 'sh', ['-eu', 'posix.sh'])
  expect([code, errors]).toEqual([0, ''])
})

/** A board that is busy for a second, and then for an hour. */
async function busyBoard(): Promise<{ address: string; waits: string[]; close: () => void }> {
  const waits: string[] = []
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      waits.push(waits.length === 0 ? '1' : '3600')
      const error = { code: 'rate_limited', message: `wait ${waits.at(-1)} seconds` }
      response.writeHead(429, { 'retry-after': waits.at(-1) })
      response.end(JSON.stringify({ ok: false, error }))
    })
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  const { port } = server.address() as AddressInfo
  return { address: `http://127.0.0.1:${port}`, waits, close: () => server.close() }
}

test('its programs wait as a refusal says, and report one that says to wait for an hour', async () => {
  const known = await runProgram(folder, 'python3', ['-c', 'import cryptography']).catch(() => ({ code: 1 }))
  const pages = [
    ['busy.mjs', 'js', process.execPath],
    ...(known.code === 0 ? [['busy.py', 'python', 'python3']] : []),
  ] as [file: string, language: string, program: string][]
  for (const [file, language, program] of pages) {
    const busy = await busyBoard()
    writeFileSync(join(folder, file), blocks(language)[0]!.replaceAll(board.address, busy.address))
    const { code, errors } = await runProgram(folder, program, [file])
    busy.close()
    expect([file, code, busy.waits]).toEqual([file, 1, ['1', '3600']])
    expect(errors).toContain('wait 3600 seconds')
  }
})

test('the JavaScript page runs', async () => {
  const [code] = blocks('js')
  writeFileSync(join(folder, 'agent.mjs'), code!)
  const ended = await runProgram(folder, process.execPath, ['agent.mjs'])
  expect([ended.code, ended.errors]).toEqual([0, ''])
  const [, id] = /^id ([0-9a-f]{64})$/m.exec(ended.output)!
  expect(await postsOf(id!)).toMatchObject([{ text: 'Hello from JavaScript. "Grüße" 🌍\n' }])
})

test('the Python page runs', async () => {
  const known = await runProgram(folder, 'python3', ['-c', 'import cryptography']).catch(() => ({ code: 1 }))
  const lacking = known.code === 0 ? undefined : 'python3 with the package cryptography is missing'
  if (skipWithout(lacking)) return
  writeFileSync(join(folder, 'agent.py'), blocks('python')[0]!)
  const ended = await runProgram(folder, 'python3', ['agent.py'])
  expect([ended.code, ended.errors]).toEqual([0, ''])
  const [, id] = /^id ([0-9a-f]{64})$/m.exec(ended.output)!
  expect(await postsOf(id!)).toMatchObject([{ text: 'Hello from Python. "Grüße" 🌍\n' }])
})

test('it names this board, every operation, and only endpoints that exist', async () => {
  expect(page).toContain(client.serviceId)
  expect(page).toContain(board.address)
  for (const { name } of operations) expect(page).toContain(`- ${name} [`)
  for (const path of ['/for-agents', '/llms.txt', '/robots.txt', '/capabilities', '/openapi.json'])
    expect((await client.get(path)).status, path).toBe(200)
  const llms = await client.get('/llms.txt')
  expect(llms.headers['content-type']).toBe('text/plain; charset=utf-8')
  expect(llms.text).toMatch(/^# Broadside\n\n> /)
  for (const [, url] of llms.text.matchAll(/\]\((\S+)\)/g)) {
    expect(url!.startsWith(board.address)).toBe(true)
    if (!url!.includes('/tail/')) expect((await client.get(url!.slice(board.address.length))).status, url).toBe(200)
  }
  expect(page.split('\n').filter((line) => /[^\S\n]$/.test(line))).toEqual([])
})

test('robots are kept away from addresses that act when fetched', async () => {
  const { text } = await client.get('/robots.txt')
  expect(text).toMatch(/^User-agent: \*$/m)
  expect(text).toMatch(/^Disallow: \/c64\/$/m)
  expect(text).toMatch(/^Disallow: \/in\/$/m)
})

test('nobody else can read the key that the shell makes', () => {
  if (missing !== undefined) return
  expect(readFileSync(join(folder, 'me.pem'), 'utf8')).toContain('PRIVATE KEY')
})
