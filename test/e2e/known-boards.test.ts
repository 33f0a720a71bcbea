/**
 * A server that claims the id of another board gets nothing signed, because it could relay it. Here such a server sits between the command
 * line and a real board, at an address that does not look like one of this machine.
 */
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { program } from '../support/program.ts'
import { runProgram } from '../support/run-program.ts'
import { scratchDirectory } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

let board: Board
let service: string
let between: Server
/** What the server in between was sent to relay. */
const passed: string[] = []
/** The id it claims; undefined: that of the board behind it. */
let pretended: string | undefined

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory(), env: { BROADSIDE_LIMITS: 'off' } })
  const { data } = (await (await fetch(`${board.address}/capabilities`)).json()) as { data: { service_id: string } }
  service = data.service_id
  between = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    if (request.method === 'POST') passed.push(String(body))
    const init = request.method === 'POST' ? { method: 'POST', body } : {}
    const answer = await fetch(new URL(request.url!, board.address), init)
    const text = await answer.text()
    response.writeHead(answer.status, { 'content-type': 'application/json', date: new Date().toUTCString() })
    response.end(pretended === undefined ? text : text.replaceAll(service, pretended))
  }).listen(0, '0.0.0.0')
  await once(between, 'listening')
})
afterAll(async () => {
  between.close()
  await board.kill()
})

const strange = () => `http://0.0.0.0:${(between.address() as AddressInfo).port}`

/** A person with their own key and home directory. */
async function somebody() {
  const folder = scratchDirectory()
  const run = (...args: string[]) => runProgram(folder, process.execPath, [program, ...args])
  expect((await run('keygen')).code).toBe(0)
  const file = join(folder, '.config', 'broadside', 'known-boards')
  return { folder, run, file }
}

const ways: readonly (readonly [string, ...string[]])[] = [
  ['post', 'lobby', 'hello'],
  ['call', 'post', 'room=lobby', 'text=hello'],
  ['whoami'],
]

test.each(ways)('nothing is signed for a server with the id of a board known elsewhere: %s', async (...args) => {
  pretended = undefined
  const { folder, run, file } = await somebody()
  expect((await run('post', 'lobby', 'at home', '--url', board.address)).code).toBe(0)
  expect(readFileSync(file, 'utf8')).toBe(`${board.address} ${service}\n`)
  passed.length = 0
  const refused = await run(...args, '--url', strange())
  expect([refused.code, passed]).toEqual([1, []])
  expect(refused.errors).toContain(
    `${strange()} says that it is ${service}, and you know that board at ${board.address}`,
  )
  // Both are one board: the error gives the command that records this.
  const fix = /echo '.*/.exec(refused.errors)![0]
  expect((await runProgram(folder, 'sh', ['-c', fix])).code).toBe(0)
  expect((await run(...args, '--url', strange())).code).toBe(0)
  expect((await run('post', 'lobby', 'again', '--url', board.address)).code).toBe(0)
})

test.each(ways)('nothing is signed for a board whose id differs from the first time: %s', async (...args) => {
  pretended = 'bs-once'
  const { folder, run } = await somebody()
  // The board refuses commands signed for a host name other than its own.
  await run('post', 'lobby', 'hello', '--url', strange())
  expect(passed.length).toBeGreaterThan(0)
  for (const id of ['bs-other', service]) {
    pretended = id
    passed.length = 0
    const refused = await run(...args, '--url', strange())
    expect([refused.code, passed]).toEqual([1, []])
    expect(refused.errors).toContain(
      `${strange()} was bs-once when you first signed for it, and now says that it is ${id}`,
    )
  }
  const fix = /echo '.*/.exec((await run(...args, '--url', strange())).errors)![0]
  await runProgram(folder, 'sh', ['-c', fix])
  expect((await run(...args, '--url', strange())).code).toBe(0)
})

test('boards on this machine may change and share ports freely, and a home directory that is not writable is reported', async () => {
  pretended = undefined
  const { folder, run, file } = await somebody()
  mkdirSync(join(folder, '.config', 'broadside'), { recursive: true })
  const localhost = board.address.replace('127.0.0.1', 'localhost')
  writeFileSync(file, `${board.address} bs-former\n${localhost} ${service}\nnonsense\n`)
  expect((await run('post', 'lobby', 'hello', '--url', board.address)).code).toBe(0)
  expect(readFileSync(file, 'utf8')).toBe(`${localhost} ${service}\n${board.address} ${service}\n`)
  const config = join(folder, 'other')
  writeFileSync(config, 'no directory')
  const env = { XDG_CONFIG_HOME: config }
  const args = [program, 'post', 'lobby', 'hello', '--url', board.address]
  const { code, errors } = await runProgram(folder, process.execPath, args, { env })
  expect([code, errors]).toEqual([0, expect.stringContaining('could not be saved in')])
  expect(existsSync(join(config, 'broadside'))).toBe(false)
})

test('when the known boards cannot be read, nothing is signed, and the error names the file', async () => {
  pretended = undefined
  const { run, file } = await somebody()
  mkdirSync(file, { recursive: true })
  passed.length = 0
  const { code, errors } = await run('post', 'lobby', 'hello', '--url', strange())
  expect([code, passed]).toEqual([1, []])
  expect(errors).toMatch(/known-boards, which records .* cannot be read \(EISDIR.*nothing was signed/)
  expect(errors).not.toContain('    at ')
})

test('a server whose id is not a valid name gets nothing signed', async () => {
  pretended = `x\\n${'y'.repeat(80)}`
  const { run } = await somebody()
  passed.length = 0
  for (const args of ways) {
    const { code, errors } = await run(...args, '--url', strange())
    expect([code, passed]).toEqual([1, []])
    expect(errors).toContain('does not answer like a board')
  }
})
