/** The bench: time during which this process was suspended does not count against an input, and the end of one job affects no other. */

import { afterEach, expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { Bench, type BenchResult } from '../../../src/own-tools/bench.ts'
import { machine } from '../../../src/platform.ts'

let bench: Bench
afterEach(async () => {
  vi.useRealTimers()
  await bench.close()
})

const run = (from = ''): Promise<BenchResult> =>
  new Promise((done) => bench.run({ tool: 'broadside:diff', input: { before: 'a\n', after: 'b\n' }, from, done }))
const done = { output: { added: 1, removed: 1 } }

test('a board suspended for longer than a job may take ends neither that job nor the next', async () => {
  // With a fake clock: however slow this machine is, only the time that passes here counts.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  bench = new Bench({ limitMs: 1_000, waitingMax: 8, timers: systemClock, startThread: machine.startThread })
  expect(await run()).toMatchObject(done)
  const jobs = [run(), run()]
  // After a standstill, however long, the pending timer fires first, before messages that arrived meanwhile.
  vi.advanceTimersToNextTimer()
  for (const found of await Promise.all(jobs)) expect(found).toMatchObject(done)
})

test('networks take turns, so one that has many jobs waiting delays another by one job', async () => {
  bench = new Bench({ limitMs: 60_000, waitingMax: 64, timers: systemClock, startThread: machine.startThread })
  const finished: string[] = []
  const jobs = ['busy', 'busy', 'busy', 'busy', 'quiet', 'other', 'busy', 'quiet'].map(async (from) => {
    expect(await run(from)).toMatchObject(done)
    finished.push(from)
  })
  await Promise.all(jobs)
  expect(finished).toEqual(['busy', 'quiet', 'other', 'busy', 'quiet', 'busy', 'busy', 'busy'])
})
