import { expect, test, vi } from 'vitest'
import { boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { chooseSeed, Ledger, load, randomFrom } from '../support/load.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'

vi.setConfig({ testTimeout: 900_000 })

const ada = person('ada')

test('a second server on the same data directory refuses, naming the first, which continues undisturbed', async () => {
  const directory = boardDirectory()
  const first = await startBoard({ directory })
  const client = await Client.of(first)
  await client.post(ada, { text: 'before' })
  const second = await expectStartRefused({ directory })
  expect(second.code).toBe(1)
  expect(second.output).toContain(
    `in use by process ${first.child.pid}; stop that process, or choose another data directory`,
  )
  expect((await client.post(ada, { text: 'after' })).data.event?.seq).toBe(2)
  await first.kill()
  // The lock of a killed process does not count.
  const third = await startBoard({ directory })
  // The terminal it was started from is closed.
  third.signal('SIGHUP')
  expect(await third.ended).toEqual({ code: 0, signal: null })
  expect(third.lines.at(-1)).toContain('"stopped"')
})

test('a start with settings that are for tests warns of each in one line, and one without them does not', async () => {
  const warningsOf = async (env: Readonly<Record<string, string>>): Promise<unknown[]> => {
    const board = await startBoard({ directory: boardDirectory(), env })
    await board.stop()
    const events = board.lines.map(
      (line) => JSON.parse(line) as { readonly event: string; readonly settings?: unknown },
    )
    return events.filter(({ event }) => event === 'setting.unprotected').map(({ settings }) => settings)
  }
  expect(await warningsOf({ BROADSIDE_LOOPBACK: '1', BROADSIDE_LIMITS: 'off' })).toEqual([
    ['BROADSIDE_LOOPBACK=1', 'BROADSIDE_LIMITS=off'],
  ])
  expect(await warningsOf({ BROADSIDE_LIMITS: 'on' })).toEqual([])
})

test.each([
  ['uws', '1'],
  ['node', '1'],
  ['uws', '2'],
])(
  'SIGTERM under load on %s with HTTP_THREADS=%s: exit code 0 within 10 s, and everything acknowledged is there',
  async (engine, httpThreads) => {
    // The promise is ten seconds, because a supervisor kills what takes longer. One of three tries suffices, as the machine may be stalled.
    const env = { HTTP_ENGINE: engine, HTTP_THREADS: httpThreads }
    let took = await stopped(env)
    for (let tries = 1; tries < 3 && took >= 10_000; tries++) took = await stopped(env)
    expect(took).toBeLessThan(10_000)
  },
)

/** Stops a board under load with a tail; returns the milliseconds that it took. */
async function stopped(env: Readonly<Record<string, string>>): Promise<number> {
  const directory = boardDirectory()
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  const key = await logKeyOf(client)
  const ledger = new Ledger(new Heads(key), key)
  const random = randomFrom(chooseSeed('SIGTERM under load'))
  const tail = new Client(board.address, '').get('/tail/lobby')
  let asked = 0
  const onAcknowledged = (count: number) => {
    if (count !== 150) return
    asked = performance.now()
    board.signal('SIGTERM')
  }
  await load({ client, ledger, random, posts: 5_000, inFlight: 16, rooms: ['a', 'b'], onAcknowledged })
  expect(await board.ended).toEqual({ code: 0, signal: null })
  const took = performance.now() - asked
  expect((await tail).text).toContain('# live tail of room lobby')
  client.close()
  expect(ledger.acknowledged.size).toBeGreaterThanOrEqual(150)
  const second = await startBoard({ directory, env })
  const later = await Client.of(second)
  await ledger.check(later, 20)
  later.close()
  await second.stop()
  return took
}

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s a second time while stopping still ends with exit code 0',
  async (signal) => {
    const board = await startBoard({ directory: boardDirectory() })
    const client = await Client.of(board)
    const key = await logKeyOf(client)
    const ledger = new Ledger(new Heads(key), key)
    const onAcknowledged = (count: number) => {
      if (count !== 50) return
      board.signal(signal)
      board.signal(signal)
      setImmediate(() => board.signal(signal))
    }
    await load({ client, ledger, random: randomFrom(7), posts: 5_000, inFlight: 8, rooms: ['a'], onAcknowledged })
    expect(await board.ended).toEqual({ code: 0, signal: null })
    client.close()
  },
)
