/** The commands against a real board in a process of its own. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BoardClient } from '../../../src/cli/client.ts'
import { type BoardProcess, demoCorpus, startBoard } from '../../../src/cli/demo.ts'
import { follow } from '../../../src/cli/follow.ts'
import { main } from '../../../src/cli/main.ts'
import { program } from '../../support/program.ts'
import { capturedTerminal } from './captured-terminal.ts'

const directory = mkdtempSync(join(tmpdir(), 'broadside-board-'))
const dataDirectory = join(directory, 'data')
const key = join(directory, 'key.json')
let board: BoardProcess

beforeAll(async () => {
  board = await startBoard({ dataDirectory, port: 0 })
  expect(await main(['keygen', key], capturedTerminal())).toBe(0)
}, 300_000)

afterAll(async () => {
  await board.stop()
  rmSync(directory, { recursive: true, force: true })
})

async function run(...argv: string[]) {
  const terminal = capturedTerminal()
  const code = await main([...argv, '--url', board.address], terminal)
  return { code, ...terminal.said }
}

async function post(room: string, text: string, ...options: string[]): Promise<string> {
  const { code, out, err } = await run('post', room, text, '--key', key, ...options)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return /^event +([0-9a-f]{32})\nin log +leaf \d+/.exec(out)![1]!
}

test('a post is read in its room and its thread, replies indented, with control characters made visible', async () => {
  const root = await post('lobby', 'first \u001b[31mred\u202e')
  const reply = await post('lobby', 'second', '--reply-to', root)
  const room = await run('read', 'lobby')
  expect(room.out).toContain('first \\u{1b}[31mred\\u{202e}')
  const thread = await run('read', reply)
  expect(thread.out).toMatch(
    new RegExp(`^\\[${root}\\] lobby/main .*\n  \\[${reply}\\] .* to "first [^\n]*"\n  second\n`, 'ms'),
  )
  expect(await run('read', 'lobby', '--limit', '1')).toMatchObject({
    code: 0,
    out: expect.not.stringContaining('first'),
  })
})

test('a refusal by the board is exit code 1 and the board’s own sentence', async () => {
  expect(await run('post', 'lobby', 'text', '--key', key, '--handle', 'NOT A HANDLE')).toMatchObject({
    code: 1,
    err: expect.stringContaining('The board refused: '),
  })
  expect((await run('read', 'no-such-room-anywhere')).code).toBe(1)
})

test('a follower of a room loses and repeats nothing over a restart of the board', async () => {
  const first = await post('followed', 'post 0')
  const client = new BoardClient({ url: board.address })
  const ending = new AbortController()
  const seen: string[] = []
  const reading = (async () => {
    const options = {
      client,
      room: 'followed',
      since: first,
      last: 0,
      signal: ending.signal,
      interrupted: () => undefined,
    }
    for await (const event of follow(options)) seen.push(String(event.text))
  })()
  for (let n = 1; n <= 5; n += 1) await post('followed', `post ${n}`)
  const port = Number(new URL(board.address).port)
  await board.stop()
  board = await startBoard({ dataDirectory, port })
  for (let n = 6; n <= 10; n += 1) await post('followed', `post ${n}`)
  while (seen.length < 10) await sleep(20)
  ending.abort()
  await reading
  client.close()
  expect(seen).toEqual(Array.from({ length: 10 }, (_, n) => `post ${n + 1}`))
}, 300_000)

test('an import that is killed midway and restarted posts every message once, and its export verifies', async () => {
  const messages = 1200
  /** Posts of an import that was killed midway, and how many there were before it. */
  const killed = async (seed: string): Promise<{ corpus: string; others: number; posted: number }> => {
    const others = await events()
    const corpus = join(directory, `corpus-${seed}.jsonl`)
    writeFileSync(corpus, demoCorpus(messages))
    const args = ['import', corpus, '--url', board.address, '--seed', seed, '--in-flight', '16']
    const child = spawn(process.execPath, [program, ...args], { stdio: 'ignore' })
    const gone = once(child, 'exit')
    const state = `${corpus}.import`
    while (!existsSync(state) || readFileSync(state, 'utf8').split('\n').length < 200) await sleep(2)
    child.kill('SIGKILL')
    await gone
    return { corpus, others, posted: (await events()) - others }
  }
  let seed = 's'
  let { corpus, others, posted } = await killed(seed)
  // An import that finished before it was checked was not killed midway.
  for (let tries = 1; tries < 5 && posted === messages; tries++) {
    seed += 's'
    ;({ corpus, others, posted } = await killed(seed))
  }
  expect(posted).toBeLessThan(messages)
  const { code, out } = await run('import', corpus, '--seed', seed)
  expect(out).toContain('were posted by an earlier run')
  expect(code).toBe(0)
  expect((await events()) - others).toBe(messages)

  const path = join(directory, 'export.jsonl.gz')
  expect((await run('export', '--out', path)).code).toBe(0)
  const client = new BoardClient({ url: board.address })
  const { log } = await client.capabilities()
  client.close()
  const verified = capturedTerminal()
  expect(await main(['verify', path, '--vkey', log.vkey], verified)).toBe(0)
  expect(verified.said.out).toContain('verified, with the key you pinned')
  expect(verified.said.out).toMatch(/failures +0\n/)
  expect((await run('export', '--out', path)).err).toContain('not overwritten')
}, 300_000)

/** Posts on the board that are not by this test's own key. */
async function events(): Promise<number> {
  const terminal = capturedTerminal()
  expect(await main(['export', '--url', board.address], terminal)).toBe(0)
  const own = (JSON.parse(readFileSync(key, 'utf8')) as { id: string }).id
  const lines = terminal.said.out.split('\n').filter((line) => line.startsWith('{"type":"event"'))
  return lines.filter((line) => !line.includes(`"author":{"id":"${own}"`)).length
}

test('the demo does its job on a fresh board and says how long it took', async () => {
  const corpus = join(directory, 'small.jsonl')
  writeFileSync(corpus, demoCorpus(300))
  const terminal = capturedTerminal()
  expect(await main(['demo', corpus, '--once', '--port', '0'], terminal)).toBe(0)
  expect(terminal.said.out).toMatch(/^Posts +300, [\d,]+ posts\/s/m)
  expect(terminal.said.out).toMatch(/^Tail +(\d+) of \1 posts of "[a-z-]+" in order, none lost$/m)
  expect(terminal.said.out).toMatch(/^Proof +leaf \d+ of \d+, \d+ hashes \(\d+ bytes\), verified offline$/m)
  expect(terminal.said.out).toMatch(/^Export +.* 302 signatures good$/m)
}, 300_000)
