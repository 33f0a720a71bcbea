/** The bench: time that this process stood still is not the input's, and what ends one job costs no other. */
import { afterEach, expect, test } from 'vitest'
import { Bench, type BenchResult } from '../../../src/own-tools/bench.ts'

const limitMs = 1_000
let bench: Bench
afterEach(() => bench.close())

const run = (): Promise<BenchResult> =>
  new Promise((done) => bench.run({ tool: 'broadside:diff', input: { before: 'a\n', after: 'b\n' }, from: '', done }))
const done = { output: { added: 1, removed: 1 } }

test('a board that stands still for longer than a job may take ends neither that job nor the next', async () => {
  bench = new Bench({ limitMs, waitingMax: 8 })
  expect(await run()).toMatchObject(done)
  const jobs = await new Promise<Promise<BenchResult>[]>((resolve) =>
    // The timers are next: what is due by then comes before what was told.
    setImmediate(() => {
      resolve([run(), run()])
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, limitMs + 100)
    }),
  )
  for (const found of await Promise.all(jobs)) expect(found).toMatchObject(done)
})
