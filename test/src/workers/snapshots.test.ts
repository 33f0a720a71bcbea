/** A background snapshot appears when all of it is written, and a stop during one writes a newer one. */
import { readdirSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { replayProgress } from '../../../src/workers/replay-progress.ts'
import { SnapshotKeeper } from '../../../src/workers/snapshots.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { loadNewest } from '../../../storage/snapshot.ts'
import { patience } from '../../support/patience.ts'
import { scratchDirectory } from '../../support/scratch.ts'

const journalId = Buffer.alloc(16, 3)
const image = (text: string) => ({ bytes: Buffer.from(text), columns: [Buffer.alloc(3_000_000, text)] })
const quiet = () => expect.unreachable('nothing goes wrong')

function opened() {
  const directory = scratchDirectory()
  const here = { clock: systemClock, disk: machineDisk, report: quiet }
  const keeper = SnapshotKeeper.open(here, directory, journalId, 0)
  return { directory, keeper, newest: () => loadNewest(machineDisk, directory, journalId)?.bytes.toString() }
}

test('it is written in the background, one at a time, and the next after as many new records', async () => {
  const { directory, keeper, newest } = opened()
  keeper.after(199_999, quiet)
  keeper.after(200_000, () => image('first'))
  keeper.after(500_000, quiet)
  expect(newest()).toBeUndefined()
  await vi.waitFor(() => expect(newest()).toBe('first'), patience)
  keeper.keep(200_000, quiet)
  keeper.after(400_000, () => image('second'))
  await vi.waitFor(() => expect(newest()).toBe('second'), patience)
  expect(readdirSync(directory)).toHaveLength(2)
})

test('a large board writes one when a thirty-second of all its records is new', async () => {
  const { keeper, newest } = opened()
  const all = 32_000_000
  keeper.after(all, () => image('first'))
  await vi.waitFor(() => expect(newest()).toBe('first'), patience)
  keeper.after(all + 1_000_000, quiet)
  keeper.after(all + 1_040_000, () => image('second'))
  await vi.waitFor(() => expect(newest()).toBe('second'), patience)
})

test('where frames have many records each, records are counted', async () => {
  const { keeper, newest } = opened()
  keeper.holds(500_000)
  keeper.after(100, quiet, 699_999)
  keeper.after(101, () => image('counted'), 700_000)
  await vi.waitFor(() => expect(newest()).toBe('counted'), patience)
})

test('a stop during a snapshot saves the newest state, also of the same frame', async () => {
  for (const seq of [200_000, 200_500]) {
    const { directory, keeper, newest } = opened()
    keeper.after(200_000, () => image('beside'))
    await new Promise((done) => setTimeout(done, 6))
    keeper.keep(seq, () => image('at the stop'))
    expect([newest(), readdirSync(directory).length]).toEqual(['at the stop', 1])
    await new Promise((done) => setTimeout(done, 30))
    expect([newest(), readdirSync(directory).length]).toEqual(['at the stop', 1])
  }
})

test('one that could not be written in the background is retried at the stop, and not before', async () => {
  const directory = scratchDirectory()
  let isFull = true
  const disk = {
    ...machineDisk,
    openFile: (...args: Parameters<typeof machineDisk.openFile>) => {
      if (isFull) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
      return machineDisk.openFile(...args)
    },
  }
  const said: string[] = []
  const here = { clock: systemClock, disk, report: (_level: string, event: string) => said.push(event) }
  const keeper = SnapshotKeeper.open(here, directory, journalId, 0)
  keeper.after(200_000, () => image('beside'))
  await vi.waitFor(() => expect(said).toEqual(['snapshot.not_kept']), patience)
  keeper.after(200_000, quiet)
  isFull = false
  keeper.keep(200_000, () => image('at the stop'))
  expect(loadNewest(machineDisk, directory, journalId)?.bytes.toString()).toBe('at the stop')
})

test('an unusable one, as after an update, is replaced by one of the same frame', () => {
  const { directory, keeper, newest } = opened()
  keeper.keep(200_000, () => image('older release'))
  const next = () => {
    const here = { clock: systemClock, disk: machineDisk, report: quiet }
    return SnapshotKeeper.open(here, directory, journalId, 200_000)
  }
  const useful = next()
  expect(useful.take(({ bytes }) => bytes.toString())).toBe('older release')
  useful.keep(200_000, quiet)
  const useless = next()
  expect(useless.take(() => undefined)).toBeUndefined()
  useless.keep(200_000, () => image('this release'))
  expect(newest()).toBe('this release')
})

test('a long replay reports its progress, and a short one nothing', () => {
  const said: unknown[] = []
  let now = 0
  const clock = { ...systemClock, monotonicMs: () => now }
  const progress = replayProgress({ clock, report: (...line) => said.push(line) }, 'shard 0', 10_000)
  for (let seq = 1; seq <= 10_000; seq++) {
    now += 0.5
    progress(seq)
  }
  expect(said).toEqual([
    ['info', 'replaying', { journal: 'shard 0', done: 4_032, frames: 10_000 }],
    ['info', 'replaying', { journal: 'shard 0', done: 8_064, frames: 10_000 }],
  ])
})
