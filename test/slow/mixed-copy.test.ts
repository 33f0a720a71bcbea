/**
 * Copies made file by file from a running board: if the journals are newer than the log it is completed, provided its leaves can be rebuilt
 * identically; if the log is newer than the journals the copy is refused.
 */
import { cpSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { type Board, boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { findDamage } from '../support/find-damage.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 300_000 })

type Said = { readonly code: number; readonly out: string; readonly err: string }

async function run(...argv: string[]): Promise<Said> {
  const terminal = capturedTerminal()
  const code = await main(argv, terminal)
  return { code, ...terminal.said }
}

async function posts(client: Client, count: number): Promise<void> {
  const all = Array.from({ length: count }, (_, n) =>
    client.post(person(`writer ${n % 8}`), { room: `room-${n % 5}`, text: `post ${n}` }),
  )
  for (const { status } of await Promise.all(all)) expect(status).toBe(200)
}

/** `early`: the parts copied before more was posted. The board stops; the copy is in its place, beside the mark. */
async function mixed(shards: number, early: RegExp) {
  const directory = boardDirectory()
  const copy = `${directory}.copy`
  const board: Board = await startBoard({ directory, env: { SHARDS: String(shards) } })
  const client = await Client.of(board)
  const key = await logKeyOf(client)
  const heads = new Heads(key)
  const parts = ['board.json', 'keys', 'log', ...Array.from({ length: shards }, (_, n) => `shard-0${n}`)]
  const take = (wanted: (part: string) => boolean): void => {
    for (const part of parts.filter(wanted)) cpSync(join(directory, part), join(copy, part), { recursive: true })
  }
  await posts(client, 40)
  take((part) => early.test(part))
  await posts(client, 40)
  take((part) => !early.test(part))
  heads.record((await client.get('/api/log/checkpoint')).data.checkpoint!)
  client.close()
  await board.stop()
  rmSync(directory, { recursive: true })
  cpSync(copy, directory, { recursive: true })
  rmSync(copy, { recursive: true })
  await vi.waitUntil(() => existsSync(`${directory}.mark`), patience)
  return { directory, heads }
}

test('with one shard its log is completed: every head that was given out is true, and the mark agrees', async () => {
  const { directory, heads } = await mixed(1, /^log$/)
  expect(findDamage(directory)).toEqual([])
  const { code, out, err } = await run('restored', '--data', directory)
  expect([code, err]).toEqual([0, ''])
  expect(out).toMatch(/The journals have \d+ records that the log does not cover.* the same as before/)
  const board = await startBoard({ directory, env: { SHARDS: '1' } })
  const client = await Client.of(board)
  const [given] = heads.sizes.slice(-1)
  const size = heads.record((await client.get('/api/log/checkpoint')).data.checkpoint!)
  expect(size).toBeGreaterThanOrEqual(given!)
  if (size > given!) await heads.proveConsistent(client, given!, size)
  client.close()
  await board.stop()
  expect(findDamage(directory)).toEqual([])
})

test('with two shards the order may differ from what was published: it is refused, and --lost continues', async () => {
  const { directory } = await mixed(2, /^log$/)
  const { code, err } = await run('restored', '--data', directory)
  expect([code, err]).toEqual([1, expect.stringContaining('broadside restored --lost ends it here')])
  const lost = await run('restored', '--lost', '--yes', '--data', directory)
  expect([lost.code, lost.err]).toEqual([0, ''])
  expect(lost.out).toMatch(/\d+ records that it does not cover begin the new log/)
  const board = await startBoard({ directory, env: { SHARDS: '2' } })
  await board.stop()
  expect(findDamage(directory)).toEqual([])
})

test('a copy whose log is newer than its journals lacks posts: it is refused either way', async () => {
  const { directory } = await mixed(1, /^shard/)
  for (const more of [[], ['--lost', '--yes']]) {
    const { code, err } = await run('restored', '--data', directory, ...more)
    expect([code, err]).toEqual([1, expect.stringContaining('the log is newer than the journals')])
  }
  expect((await expectStartRefused({ directory })).output).toMatch(/though the signed log .*holds frame/)
})
