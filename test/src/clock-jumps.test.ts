import { mkdirSync, rmdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { acceptClock, ClockWatch, newestStamp } from '../../src/clock-jumps.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { scratchDirectory } from '../support/scratch.ts'

const hour = 3_600
const day = 24 * hour
const start = 1_790_000_000

/** Two clocks that the test controls. */
function watched(newest = 0, wall = start, directory = scratchDirectory()) {
  const time = { wall, monotonic: 5_000 }
  const clock = { wallSeconds: () => time.wall, monotonicMs: () => time.monotonic * 1_000 }
  const reported: unknown[] = []
  const report = (...said: unknown[]) => void reported.push(said)
  const watch = new ClockWatch({ clock, disk: machineDisk, directory, newest, report })
  const pass = (seconds: number): void => {
    time.wall += seconds
    time.monotonic += seconds
  }
  const accept = (at = time.wall) => acceptClock(machineDisk, directory, at)
  return { watch, time, pass, accept, directory, reported }
}

test.each([hour, day, -hour, -40 * day, 80 * 365 * day])(
  'clocks that drift %i s apart while the board runs are a jump, and time is held at its earlier value',
  (by) => {
    const { watch, time, pass } = watched()
    pass(500)
    expect(watch.check()).toBeUndefined()
    time.wall += by
    pass(7)
    expect(watch.check()).toMatchObject({ heldAt: start + 500 + 7, by })
    pass(2 * hour)
    expect(watch.check()).toMatchObject({ heldAt: start + 500 + 7 })
  },
)

test('a clock that is corrected gradually, or by less than an hour, has not jumped', () => {
  const { watch, time, pass } = watched()
  for (let n = 0; n < 100; n++) {
    pass(60)
    time.wall += n % 2 === 0 ? 50 * 60 : -20 * 60
    expect(watch.check()).toBeUndefined()
  }
})

test('a jump ends when the clocks agree again', () => {
  const { watch, time, pass } = watched()
  time.wall += day
  expect(watch.check()).toBeDefined()
  pass(hour)
  time.wall -= day
  expect(watch.check()).toBeUndefined()
})

test('a jump ends after 24 h, and the new time counts from then on', () => {
  const { watch, time, pass } = watched()
  time.wall += 3 * day
  expect(watch.check()).toBeDefined()
  pass(day - 1)
  expect(watch.check()).toBeDefined()
  pass(1)
  expect(watch.check()).toBeUndefined()
  pass(hour)
  expect(watch.check()).toBeUndefined()
})

test('a jump ends when the operator accepts the clock as it is now, and no other', () => {
  const { watch, time, pass, accept } = watched()
  accept()
  pass(10)
  time.wall += day
  expect(watch.check()).toBeDefined()
  pass(2)
  expect(watch.check()).toBeDefined()
  accept(time.wall + 80 * 365 * day)
  pass(2)
  expect(watch.check()).toBeDefined()
  accept()
  pass(2)
  expect(watch.check()).toBeUndefined()
})

test.each([
  ['as it stopped', 0, false],
  ['a month later', 30 * day, false],
  ['more than a month later', 30 * day + 1, true],
  ['in another century', 80 * 365 * day, true],
  ['a minute before', -60, false],
  ['a day before', -day, true],
])('a board that starts %s', (_when, by, isJump) => {
  const { watch } = watched(start, start + by)
  expect(watch.check()).toEqual(isJump ? expect.objectContaining({ heldAt: start, by }) : undefined)
})

test('a clock that jumps again during a hold reports how far ahead it is now, and can be accepted', () => {
  const { watch, time, pass, accept } = watched()
  time.wall += 365 * day
  expect(watch.check()).toMatchObject({ heldAt: start, by: 365 * day })
  pass(3)
  time.wall -= 365 * day - 2 * hour
  expect(watch.check()).toMatchObject({ heldAt: start, by: 2 * hour })
  pass(hour)
  expect(watch.check()).toMatchObject({ heldAt: start, by: 2 * hour })
  accept()
  pass(1)
  expect(watch.check()).toBeUndefined()
})

test('accepting a clock before a jump back does not accept that jump', () => {
  const { watch, time, pass, accept } = watched()
  accept()
  pass(2 * hour)
  expect(watch.check()).toBeUndefined()
  time.wall -= 2 * hour + 600
  expect(watch.check()).toBeDefined()
  pass(900)
  expect(watch.check()).toBeDefined()
  accept()
  expect(watch.check()).toBeUndefined()
})

test('a jump that the operator accepts before it is noticed is accepted', () => {
  const { watch, time, pass, accept } = watched()
  time.wall += day
  accept()
  pass(1)
  expect(watch.check()).toBeUndefined()
})

test.each([
  ['8 seconds', 8, false],
  ['59 minutes', 59 * 60, false],
  ['2 hours', 2 * hour, true],
])('a clock accepted while the board was stopped is accepted by a start %s later, or not', (_when, later, isJump) => {
  const directory = scratchDirectory()
  for (const by of [40 * day, -day]) {
    acceptClock(machineDisk, directory, start + by)
    const { watch, pass } = watched(start, start + by + later, directory)
    expect(watch.check() !== undefined).toBe(isJump)
    pass(1)
    expect(watch.check() !== undefined).toBe(isJump)
  }
})

test.each([
  ['a directory', (file: string) => mkdirSync(file)],
  ['no JSON', (file: string) => writeFileSync(file, '\0{')],
  ['empty', (file: string) => writeFileSync(file, '')],
])('an operator’s file that is %s accepts nothing, and is reported once with what to do', (_what, make) => {
  const { watch, time, pass, accept, directory, reported } = watched()
  const file = join(directory, 'clock-accepted.json')
  make(file)
  time.wall += day
  for (let n = 0; n < 3; n++) {
    expect(watch.check()).toBeDefined()
    pass(1)
  }
  expect(reported).toEqual([
    ['warn', 'clock.accept_unreadable', expect.objectContaining({ file, note: expect.stringContaining('Remove') })],
  ])
  if (statSync(file).isDirectory()) rmdirSync(file)
  accept()
  expect(watch.check()).toBeUndefined()
  expect(reported).toHaveLength(1)
})

test('a board running as another user can read what root accepted', () => {
  const { accept, directory } = watched()
  accept()
  expect(statSync(join(directory, 'clock-accepted.json')).mode & 0o777).toBe(0o644)
})

test.each([
  ['the log, where a shard is quiet', { log: start, shards: [start - 32 * day, start] }, start],
  ['a shard, where only private rooms are written to', { log: start - 60 * day, shards: [start] }, start],
  ['a shard, where nothing is public', { log: 0, shards: [start, 0] }, start],
  ['the log, where a shard was written to last by a clock of 2106', { log: start, shards: [4_300_000_000, 0] }, start],
  ['2106, where nothing was written since', { log: 4_300_000_000, shards: [4_300_000_000, 0] }, 4_300_000_000],
])('the newest stamp of a board is that of %s', (_where, { log, shards }, newest) => {
  expect(newestStamp(log, shards, start + day)).toBe(newest)
})
