/** The bench: time that this process stood still is not the input's, and what ends one job costs no other. */

import { afterEach, expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { Bench, type BenchResult } from '../../../src/own-tools/bench.ts'
import { machine } from '../../../src/platform.ts'

let bench: Bench
afterEach(async () => {
  vi.useRealTimers()
  await bench.close()
})

const run = (): Promise<BenchResult> =>
  new Promise((done) => bench.run({ tool: 'broadside:diff', input: { before: 'a\n', after: 'b\n' }, from: '', done }))
const done = { output: { added: 1, removed: 1 } }

test('a board that stands still for longer than a job may take ends neither that job nor the next', async () => {
  // Its clock is in our hands: however slow this machine is, no job takes any time but what passes here.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  bench = new Bench({ limitMs: 1_000, waitingMax: 8, timers: systemClock, startThread: machine.startThread })
  expect(await run()).toMatchObject(done)
  const jobs = [run(), run()]
  // After a standstill, however long, the timer that is set comes at once, before what was told meanwhile.
  vi.advanceTimersToNextTimer()
  for (const found of await Promise.all(jobs)) expect(found).toMatchObject(done)
})
