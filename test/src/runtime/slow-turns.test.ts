/** A long turn of the event loop is reported with what ran in it. The clock is fake: nothing here waits. */
import { beforeAll, expect, test } from 'vitest'
import { inTurn, noteCause, type SlowTurn, watchTurns, withCause } from '../../../src/runtime/slow-turns.ts'

let now = 0
const reports: SlowTurn[] = []
/** Work that takes this long. */
const takes = (ms: number): void => {
  now += ms
}
/** Runs in its own turn, with nothing else in it. */
const inFreshTurn = (work: () => void): Promise<void> =>
  new Promise((done) =>
    setTimeout(() => {
      work()
      done()
    }),
  )
/** The report on the turn in which `work` ran. */
async function turnOf(work: () => void): Promise<SlowTurn | undefined> {
  reports.length = 0
  await inFreshTurn(work)
  await inFreshTurn(() => {})
  return reports[0]
}

beforeAll(() => watchTurns(50, { now: () => now, report: (turn) => reports.push(turn) }))

test('a turn within the limit is not reported', async () => {
  expect(await turnOf(() => inTurn('short', () => takes(50)))).toBeUndefined()
})

test('a longer one is reported with everything that ran, the longest first, and nothing is counted twice', async () => {
  const turn = await turnOf(() => {
    inTurn('outer', () => {
      takes(20)
      inTurn('inner', () => takes(70))
      inTurn('inner', () => takes(10))
    })
  })
  expect(turn).toMatchObject({ thread: 'front', ms: 100 })
  expect(turn!.cpu_ms).toBeGreaterThanOrEqual(0)
  expect(turn!.ran.slice(0, 2)).toEqual([
    { cause: 'inner', ms: 80, times: 2 },
    { cause: 'outer', ms: 20, times: 1 },
  ])
})

test('short work that adds up in one turn is reported too', async () => {
  const turn = await turnOf(() => {
    for (let n = 0; n < 6; n++) inTurn('one of many', () => takes(10))
  })
  expect(turn!.ran).toContainEqual({ cause: 'one of many', ms: 60, times: 6 })
})

test('asynchronous work keeps its cause, under the name that was noted for it', async () => {
  const later = Promise.withResolvers<void>()
  inTurn('a request', () => {
    noteCause('/room/{room}')
    void later.promise.then(() => takes(60))
  })
  const turn = await turnOf(() => inTurn('another request', later.resolve))
  expect(turn!.ran).toContainEqual({ cause: '/room/{room}', ms: 60, times: 1 })
})

test('a callback counts for whoever supplied it, wherever it is called from', async () => {
  const callback = inTurn('/e/{event_id}', () => withCause(() => takes(60)))
  const turn = await turnOf(() => inTurn('a link', callback))
  expect(turn!.ran).toContainEqual({ cause: '/e/{event_id}', ms: 60, times: 1 })
})

test('work that throws is counted like work that returns', async () => {
  const turn = await turnOf(() => {
    expect(() =>
      inTurn('faulty', () => {
        takes(90)
        throw new Error('as planned')
      }),
    ).toThrow('as planned')
  })
  expect(turn!.ran).toContainEqual({ cause: 'faulty', ms: 90, times: 1 })
})
