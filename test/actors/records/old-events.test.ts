/** Events whose rows were moved to disk behave as in memory: each is found, is unchanged, and its thread continues. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { Columns } from '../../../actors/records/columns.ts'
import { EventIndex, none } from '../../../actors/records/event-index.ts'
import { systemClock } from '../../../src/clock.ts'
import { EventFiles } from '../../../src/workers/event-files.ts'
import type { Report } from '../../../src/workers/thread.ts'
import { DiskFull } from '../../../storage/disk.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { patience } from '../../support/patience.ts'
import { scratchDirectory } from '../../support/scratch.ts'
import { SeededRandom } from '../../support/seeded-random.ts'

const each = 64
const rowBytes = 60
const idOf = (n: number) => createHash('sha256').update(`event ${n}`).digest().subarray(0, 16)
const quiet = () => expect.unreachable('nothing goes wrong')

function filesIn(directory: string, disk = machineDisk, report: Report = quiet) {
  const random = (bytes: number) => Buffer.alloc(bytes, 7)
  return new EventFiles({ clock: systemClock, disk, random, report, directory }, each)
}

const columns = ['place', 'author', 'seq', 'at', 'root', 'parent', 'next', 'tail', 'room', 'page', 'kind'] as const
const others = ['change', 'shard', 'expires', 'leaf', 'rootOf', 'idHex'] as const

/** Everything an index says of an event. */
function said(index: EventIndex, slot: number): readonly unknown[] {
  const words = [...columns, ...others].map((name) => index[name](slot))
  return [...words, index.find(idOf(slot)), index.id(slot).toString('hex')]
}

/** One more event, at the end of any existing thread, old or new, or in a new one. */
function grow(indexes: readonly EventIndex[], chance: SeededRandom): void {
  const { count } = indexes[0]!
  const at = chance.below(3) === 0 ? none : chance.below(count + 1)
  const parent = at === none || at >= count ? none : at
  const event = {
    id: idOf(count),
    shard: 0,
    place: 2 * count + 1,
    room: chance.below(300),
    page: chance.below(3),
    kind: chance.below(3),
    author: chance.below(9),
    seq: count + 5,
    at: 1_790_000_000 + count,
    root: parent === none ? none : indexes[0]!.rootOf(parent),
    parent,
    isEdit: chance.below(8) === 0,
    expires: chance.below(6) === 0 ? 1_790_000_000 + chance.below(9_000) : 0,
    change: 2 * count + 1,
    leaf: 0,
  }
  for (const index of indexes) index.add(event)
}

function expectSame(index: EventIndex, plain: EventIndex): void {
  expect(index.count).toBe(plain.count)
  for (let slot = 0; slot < plain.count; slot++)
    expect([slot, ...said(index, slot)]).toEqual([slot, ...said(plain, slot)])
  expect([...index.expiring()]).toEqual([...plain.expiring()])
  for (let n = 0; n < 200; n++) expect(index.find(idOf(-1 - n))).toBe(none)
  expect(index.newestAt).toBe(plain.newestAt)
}

/** What a start restores from a snapshot of it. */
function restarted(index: EventIndex, directory: string, files = filesIn(directory)): EventIndex | undefined {
  const kept = new Columns()
  const packed = structuredClone(index.pack(kept))
  return EventIndex.of(packed, new Columns(kept.all.map((bytes) => bytes.slice())), files)
}

test.each([1, 2, 3])(
  'moved immediately or in the background, over restarts and a full disk, no event changes: %i',
  async (seed) => {
    const directory = scratchDirectory()
    const chance = new SeededRandom(`old events ${seed}`)
    const plain = new EventIndex()
    let isFull = false
    let refused = 0
    const full = () => {
      if (isFull) throw new DiskFull('a file', new Error('full'))
    }
    const disk = {
      ...machineDisk,
      writeAtomic: (...given: Parameters<typeof machineDisk.writeAtomic>) => {
        full()
        machineDisk.writeAtomic(...given)
      },
      writeAtomicLater: async (...given: Parameters<typeof machineDisk.writeAtomicLater>) => {
        full()
        await machineDisk.writeAtomicLater(...given)
      },
    }
    const files = () => filesIn(directory, disk, () => void refused++)
    let index = new EventIndex(files())
    for (let round = 0; round < 60; round++) {
      isFull = round >= 20 && round < 25
      for (let n = chance.below(80); n > 0; n--) {
        grow([index, plain], chance)
        index.shelve(round % 2 === 0)
      }
      if (round % 3 === 0) await new Promise((go) => setTimeout(go, 20))
      if (round % 11 === 10) index = restarted(index, directory, files())!
      if (round % 5 === 0) expectSame(index, plain)
    }
    await new Promise((go) => setTimeout(go, 50))
    expectSame(index, plain)
    expectSame(restarted(index, directory)!, plain)
    expect(refused).toBeGreaterThan(0)
    expect(readdirSync(directory).length).toBeGreaterThan(10)
  },
)

/** An index of which all but the newest events are in files. */
function shelved(directory: string): EventIndex {
  const index = new EventIndex(filesIn(directory))
  const chance = new SeededRandom('shelved')
  for (let n = 0; n < 10 * each; n++) {
    grow([index], chance)
    index.shelve(true)
  }
  return index
}

test('a snapshot with a missing file or a damaged head is unusable; files that no snapshot names go', () => {
  const directory = scratchDirectory()
  const index = shelved(directory)
  const [first, second] = readdirSync(directory).sort()
  writeFileSync(join(directory, '000099-0000abcd.events'), 'of a life that no snapshot knows')
  const files = filesIn(directory)
  const kept = new Columns()
  expect(EventIndex.of(structuredClone(index.pack(kept)), kept, files)?.count).toBe(10 * each)
  files.restored(true)
  expect(readdirSync(directory)).not.toContain('000099-0000abcd.events')
  const path = join(directory, second!)
  const bytes = readFileSync(path)
  for (const at of [0, 5, 9, 13, 17, 40, 90, 160]) {
    const damaged = Buffer.from(bytes)
    damaged[at]! ^= 1
    writeFileSync(path, damaged)
    expect([at, restarted(index, directory)]).toEqual([at, undefined])
  }
  writeFileSync(path, readFileSync(join(directory, first!)))
  const reports: unknown[] = []
  const ofOthers = filesIn(directory, machineDisk, (level, event) => void reports.push([level, event]))
  expect(restarted(index, directory, ofOthers), 'it has the bytes of another file').toBeUndefined()
  expect(reports).toEqual([['warn', 'events.unreadable']])
  writeFileSync(path, bytes.subarray(0, 50))
  expect(restarted(index, directory)).toBeUndefined()
  writeFileSync(path, bytes)
  expect(restarted(index, directory)?.count).toBe(10 * each)
  rmSync(join(directory, first!))
  expect(restarted(index, directory)).toBeUndefined()
})

test('an altered row or cell is an error and never an answer, and its file is removed', () => {
  const directory = scratchDirectory()
  const index = shelved(directory)
  const plain = Array.from({ length: each }, (_, slot) => said(index, slot))
  const [first] = readdirSync(directory).sort()
  const path = join(directory, first!)
  const bytes = readFileSync(path)
  const body = bytes.length - each * rowBytes - 8 * each
  for (let at = body; at < bytes.length; at += 97) {
    const damaged = Buffer.from(bytes)
    damaged[at]! ^= 0x10
    writeFileSync(path, damaged)
    const reports: unknown[] = []
    const report: Report = (level, event) => void reports.push([level, event])
    const kept = new Columns()
    const again = EventIndex.of(structuredClone(index.pack(kept)), kept, filesIn(directory, machineDisk, report))!
    const wrong = () => {
      for (let slot = 0; slot < each; slot++) expect(said(again, slot)).toEqual(plain[slot])
    }
    expect(wrong, `byte ${at}`).toThrow('does not match')
    expect(reports[0]).toEqual(['error', 'events.unsound'])
    expect(readdirSync(directory)).not.toContain(first)
    writeFileSync(path, bytes)
  }
})

test('files that replace others are read, and cached reads of the others are not used', () => {
  const directory = scratchDirectory()
  const files = filesIn(directory)
  const [chance, plain] = [new SeededRandom('first'), new EventIndex()]
  const first = new EventIndex(files)
  for (let n = 0; n < 10 * each; n++) {
    grow([first], chance)
    first.shelve(true)
  }
  for (let n = 0; n < 10 * each; n++) said(first, n)
  files.restored(false)
  expect(readdirSync(directory)).toEqual([])
  const [second, other] = [new EventIndex(files), new SeededRandom('second')]
  for (let n = 0; n < 10 * each; n++) {
    grow([second, plain], other)
    second.shelve(true)
  }
  expectSame(second, plain)
})

test('a query from some time on searches no file whose events are all older', () => {
  const index = shelved(scratchDirectory())
  const newestOf = (slot: number) => index.at(slot - (slot % each) + each - 1)
  for (let slot = 0; slot < 8 * each; slot += 7) {
    expect(index.find(idOf(slot), newestOf(slot))).toBe(slot)
    expect(index.find(idOf(slot), newestOf(slot) + 1)).toBe(none)
  }
  // Events in memory are always searched.
  expect(index.find(idOf(index.count - 1), Number.MAX_SAFE_INTEGER)).toBe(index.count - 1)
})

test('an index without a shelf keeps everything, and cannot use a snapshot of one with a shelf', async () => {
  const directory = scratchDirectory()
  const index = shelved(directory)
  const kept = new Columns()
  expect(EventIndex.of(structuredClone(index.pack(kept)), kept)).toBeUndefined()
  const plain = new EventIndex()
  for (let n = 0; n < 300; n++) grow([plain], new SeededRandom(`plain ${n}`))
  plain.shelve()
  const again = new Columns()
  const restored = EventIndex.of(structuredClone(plain.pack(again)), again, filesIn(directory))!
  expectSame(restored, plain)
  // It holds more than necessary: the next call moves some to disk.
  restored.shelve(true)
  await vi.waitFor(() => expectSame(restored, plain), patience)
})
