import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test, vi } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { findDamage } from '../support/find-damage.ts'
import { scratchDirectory } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const names = ['log.key', 'board.key', 'cursor.key']
/** Two stopped boards with one post each. */
const made: string[] = []

/** A stopped board with one post. */
async function madeBoard(env: Readonly<Record<string, string>> = {}): Promise<string> {
  const directory = boardDirectory()
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  await client.post(person('ada'), { text: 'kept' })
  client.close()
  expect(await board.stop()).toEqual({ code: 0, signal: null })
  return directory
}

async function run(...argv: string[]): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const terminal = capturedTerminal()
  const code = await main(argv, terminal)
  return { code, ...terminal.said }
}

beforeAll(async () => {
  for (let n = 0; n < 2; n += 1) made.push(await madeBoard())
})

test.each(names)('a board whose %s is missing refuses to start and creates no new one', async (name) => {
  const file = join(made[0]!, 'keys', name)
  renameSync(file, `${file}.away`)
  const refused = await expectStartRefused({ directory: made[0]! })
  expect(refused.code).toBe(1)
  expect(refused.output).toContain(`The key file ${file} is missing`)
  expect(existsSync(file)).toBe(false)
  renameSync(`${file}.away`, file)
})

test.each([
  ['board.key', 'with a new key, it would be a different board.'],
  ['log.key', 'broadside restored --lost ends it here and begins a new one'],
  ['cursor.key', 'broadside rekey --lost creates a new one'],
])('a board whose %s is missing or is another says how it goes on without it', async (name, words) => {
  const file = join(made[0]!, 'keys', name)
  const right = readFileSync(file)
  rmSync(file)
  expect((await expectStartRefused({ directory: made[0]! })).output).toContain(words)
  if (name === 'cursor.key') expect((await run('rekey', '--data', made[0]!)).err).toContain(words)
  if (name === 'log.key') expect((await run('log', 'rotate', '--data', made[0]!)).err).toContain(words)
  writeFileSync(file, `${'5a'.repeat(32)}\n`, { mode: 0o600 })
  expect((await expectStartRefused({ directory: made[0]! })).output).toContain(words.split(' ends it')[0])
  writeFileSync(file, right)
})

/** Starts the board, which must have this many posts and a log that it signs, and posts once more. Returns the key of its log. */
async function works(directory: string, posts: number): Promise<string> {
  const board = await startBoard({ directory })
  const client = await Client.of(board)
  expect((await client.get('/api/stats')).data.stats?.events).toBe(posts)
  expect((await client.post(person('ada'), { text: 'signed by the log' })).status).toBe(200)
  const vkey = (await client.get('/log/vkey')).text.trim()
  const exported = join(scratchDirectory(), 'export.jsonl')
  writeFileSync(exported, (await client.get('/v1/export')).text)
  expect(await run('verify', exported, '--vkey', vkey)).toMatchObject({ code: 0, err: '' })
  client.close()
  expect(await board.stop()).toEqual({ code: 0, signal: null })
  expect(findDamage(directory)).toEqual([])
  return vkey
}

/** Removes the key of the log that grows. */
function loseLogKey(directory: string): void {
  const keys = join(directory, 'keys')
  for (const name of readdirSync(keys)) if (name.startsWith('log')) rmSync(join(keys, name))
}

test('a board that has lost the key of its log goes on with a new log, and its old heads stay', async () => {
  const directory = await madeBoard()
  const lose = (...more: string[]) => run('restored', '--lost', '--data', directory, ...more)
  expect((await lose()).err).toContain('Nothing indicates that')
  const first = await works(directory, 1)
  loseLogKey(directory)
  const asked = await lose()
  expect(asked).toMatchObject({ code: 1, err: 'Nothing was changed. Add --yes to continue.\n' })
  const [, size] = /^The key of .*a is lost.*\n.*a ends at size (\d+)\. The mark knows of nothing after that\.\n/.exec(
    asked.out,
  )!
  expect(await lose('--yes')).toMatchObject({ code: 0, err: '' })
  const second = await works(directory, 2)
  expect(second).not.toBe(first)
  // The log before it does not name this log's key, and the mark is gone too.
  loseLogKey(directory)
  renameSync(`${directory}.mark`, `${directory}.mark.away`)
  expect(await lose('--yes')).toMatchObject({
    code: 1,
    err: expect.stringContaining('Give its public part with --vkey'),
  })
  expect(await lose('--yes', '--vkey', first)).toMatchObject({ code: 1 })
  expect(await lose('--yes', '--vkey', second)).toMatchObject({ code: 0, err: '' })
  await works(directory, 3)
  // A log that was rotated names the key of the next one in its last entry.
  expect(await run('log', 'rotate', '--data', directory)).toMatchObject({ code: 0 })
  loseLogKey(directory)
  rmSync(`${directory}.mark`)
  expect(await lose('--yes')).toMatchObject({ code: 0, err: '' })
  await works(directory, 4)
  const board = await startBoard({ directory })
  const client = await Client.of(board)
  const { logs } = (await client.get('/api/log/history')).data as unknown as {
    logs: readonly { readonly vkey: string; readonly lost?: boolean; readonly tree_size: number }[]
  }
  expect(logs.map(({ lost = false }) => lost)).toEqual([true, true, false, true, false])
  expect(logs.slice(0, 2)).toMatchObject([{ vkey: first, tree_size: Number(size) }, { vkey: second }])
  client.close()
  await board.stop()
  rmSync(`${directory}.mark.away`)
})

test.each(names)('a %s that others may read is refused with the command that fixes it', async (name) => {
  const file = join(made[0]!, 'keys', name)
  chmodSync(file, 0o644)
  const refused = await expectStartRefused({ directory: made[0]! })
  expect(refused.code).toBe(1)
  expect(refused.output).toContain(`chmod 600 ${file}`)
  chmodSync(file, 0o600)
})

test('with its keys restored a board is the one it was; with another board’s log key it refuses', async () => {
  const [one = '', other = ''] = made
  const board = await startBoard({ directory: one })
  const client = await Client.of(board)
  expect((await client.get('/api/stats')).data.stats?.events).toBe(1)
  client.close()
  await board.stop()
  renameSync(join(other, 'keys', 'log.key'), join(one, 'keys', 'log.key'))
  const refused = await expectStartRefused({ directory: one })
  expect(refused.code).toBe(1)
  expect(refused.output).toContain('do not belong together')
})

test('SERVICE_ID is fixed at the board’s creation: another one later is refused', async () => {
  const directory = await madeBoard({ SERVICE_ID: 'my-board' })
  const refused = await expectStartRefused({ directory, env: { SERVICE_ID: 'other-board' } })
  expect(refused.code).toBe(1)
  expect(refused.output).toContain('SERVICE_ID is other-board, but this board was created as my-board')
  for (const env of [{ SERVICE_ID: 'my-board' }, {}]) {
    const board = await startBoard({ directory, env })
    const client = await Client.of(board)
    expect(client.serviceId).toBe('my-board')
    client.close()
    await board.stop()
  }
})
