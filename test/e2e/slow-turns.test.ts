/** SLOW_TURN_MS on a real board: what blocked a thread's event loop is named in the log, and never in words that a user sent. */
import { expect, test } from 'vitest'
import type { SlowTurn } from '../../src/runtime/slow-turns.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'

const turnsOf = (lines: readonly string[]) =>
  lines.map((line) => JSON.parse(line) as SlowTurn & { event: string }).filter(({ event }) => event === 'slow_turn')

test.each([
  ['uws', 'back', 'back'],
  ['node', 'clerks', 'shard-0'],
])('a slow turn is logged with its route or operation and its thread (%s, %s)', async (engine, placement, thread) => {
  // Every turn that does anything takes longer than that.
  const board = await startBoard({
    directory: boardDirectory(),
    env: { SLOW_TURN_MS: '1', HTTP_ENGINE: engine, PLACEMENT: placement, SHARDS: '1' },
  })
  const client = await Client.of(board)
  await client.get('/openapi.json?secretword=1')
  await client.get('/openapi.json')
  await Promise.all(
    Array.from({ length: 200 }, (_, n) => client.post(person('ada'), { text: `secretword ${n} ${'x'.repeat(9_000)}` })),
  )
  await client.get('/room/secretword')
  const causes = (thread: string) =>
    turnsOf(board.lines)
      .filter((turn) => turn.thread === thread)
      .flatMap(({ ran }) => ran.map(({ cause }) => cause))
  await expect.poll(() => causes('front')).toEqual(expect.arrayContaining(['/openapi.json', 'post']))
  await expect.poll(() => causes(thread)).toContain('post')
  expect(board.lines.join('\n')).not.toContain('secretword')
  client.close()
  expect((await board.stop()).code).toBe(0)
})

test('without the variable nothing is logged', async () => {
  const board = await startBoard({ directory: boardDirectory() })
  const client = await Client.of(board)
  await client.get('/openapi.json')
  client.close()
  await board.stop()
  expect(turnsOf(board.lines)).toEqual([])
})
