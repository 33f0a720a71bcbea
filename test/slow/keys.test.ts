import { chmodSync, existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test, vi } from 'vitest'
import { boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'

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
