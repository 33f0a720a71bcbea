/**
 * A signed head that the board has given to anybody is never newer than the one that every reader gets next: receipts of every kind of
 * write, proofs, histories, exports and pages, whichever thread of the board made them.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { setups, World } from '../support/operation-setups.ts'
import { randomPart } from '../support/random-part.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

/** The size in the first signed head of a text, such as `host/log/2026a\n12\n…`, plain or inside JSON or a page. */
function sizeIn(text: string): number {
  const found = /\/log\/\d{4}[a-z](?:\n|\\n)(\d+)(?:\n|\\n)/.exec(text)
  if (found === null) throw new Error(`no head in ${text.slice(0, 500)}`)
  return Number(found[1])
}

describe.each(randomPart(['uws', 'node']))('on %s', (engine) => {
  const operator = person('the operator')
  let board: Board
  let client: Client
  let world: World
  let readers: readonly (readonly [path: string, sizeOf: (text: string) => number])[]

  beforeAll(async () => {
    const env = { HTTP_ENGINE: engine, OPERATORS: operator.id, SHARDS: '2', BROADSIDE_LOOPBACK: '1' }
    board = await startBoard({ directory: boardDirectory(), env })
    client = await Client.of(board)
    world = new World(client, operator)
    const first = await world.post()
    const { origin } = JSON.parse((await client.get('/api/log/checkpoint')).text).data as { origin: string }
    const prefix = origin.slice(origin.indexOf('/'))
    readers = [
      ['/api/log/checkpoint', sizeIn],
      [`${prefix}/checkpoint`, sizeIn],
      ['/api/log/history', sizeIn],
      [`/api/log/proof?message=${first}`, sizeIn],
      [`/api/log/proof?message=${first}&format=tlog-proof`, sizeIn],
      ['/log', sizeIn],
      [`/e/${first}/proof`, (text) => Number(/of a log of (\d+)/.exec(text)![1])],
      ['/api/stats', (text) => (JSON.parse(text) as { data: { stats: { log_size: number } } }).data.stats.log_size],
      ['/metrics', (text) => Number(/^broadside_log_size (\d+)$/m.exec(text)![1])],
      ['/v1/export', sizeIn],
    ]
  })
  afterAll(async () => {
    client.close()
    await board.stop()
  })

  /** Queries every reader, twice: each must return at least the largest size that anybody had before. */
  async function olderHeads(given: number, by: string): Promise<string[]> {
    let largest = given
    const older: string[] = []
    for (let round = 0; round < 2; round++) {
      await Promise.all(
        readers.map(async ([path, sizeOf]) => {
          const before = largest
          const { status, text } = await client.get(path)
          expect([path, status]).toEqual([path, 200])
          const size = sizeOf(text)
          if (size < before) older.push(`${path} shows size ${size}, and ${before} was given out by or after ${by}`)
          largest = Math.max(largest, size)
        }),
      )
    }
    return older
  }

  test('after the receipt of any write nothing shows an older head', async () => {
    let receipts = 0
    const older: string[] = []
    for (const operation of operations.filter(({ kind }) => kind === 'write')) {
      const answer = await world.send(operation, await setups[operation.name]!(world))
      expect([operation.name, answer.status, answer.status === 200 ? '' : answer.text]).toEqual([
        operation.name,
        200,
        '',
      ])
      const size = answer.data.receipt?.tree_size
      if (size !== undefined) receipts++
      older.push(...(await olderHeads(size ?? 0, operation.name)))
    }
    expect(older).toEqual([])
    expect(receipts).toBeGreaterThan(5)
  })

  test('after work.create and its retry, while others post, nothing shows an older head', async () => {
    const older: string[] = []
    for (let times = 0; times < 20; times++) {
      const requester = await world.personWithCredits()
      const data = JSON.stringify({ schema: 1, title: 'Three reports', capabilities: ['qa'] })
      const asked = {
        operation: 'work.create',
        text: 'Find three reports.',
        room: `jobs-${times % 3}`,
        amount: 100,
        data,
      }
      const { body } = client.sign(requester, asked)
      const beside = Promise.all(Array.from({ length: 4 }, (_, n) => world.post(undefined, { room: `r-${n}` })))
      for (const answer of [await client.send(body), await client.send(body)])
        older.push(...(await olderHeads(answer.data.receipt!.tree_size ?? 0, 'work.create')))
      await beside
    }
    expect(older).toEqual([])
  })
})
