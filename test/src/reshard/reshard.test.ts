/** A new number of shards, interrupted anywhere: the board is the old one or the new one, complete, and never a mixture. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { frameKey, fromFrame } from '../../../actors/records/record.ts'
import { shardOf } from '../../../actors/shard.ts'
import { logDirectory, readFacts, shardDirectory } from '../../../src/board-directory.ts'
import { systemClock } from '../../../src/clock.ts'
import { completeReshard } from '../../../src/exchange.ts'
import { checkCopy } from '../../../src/fsck/fsck.ts'
import { journalEnd } from '../../../src/log/covered.ts'
import { machine } from '../../../src/platform.ts'
import { OldJournals } from '../../../src/reshard/old-journals.ts'
import { Places } from '../../../src/reshard/places.ts'
import { planReshard, reshard } from '../../../src/reshard/reshard.ts'
import type { Disk } from '../../../storage/disk.ts'
import { JournalReader } from '../../../storage/journal.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { unpackBoard } from '../../fixtures/fixture.ts'
import { countRebuiltEntries } from '../../support/count-rebuilt-entries.ts'
import { randomFrom } from '../../support/load.ts'
import { scratchDirectory } from '../../support/scratch.ts'

vi.setConfig({ testTimeout: 300_000 })

class Cut extends Error {}

/** A disk that stops accepting changes after this many. */
function cutAfter(changes: number): { readonly disk: Disk; readonly made: () => number } {
  let made = 0
  const change =
    <Args extends unknown[], Result>(act: (...args: Args) => Result) =>
    (...args: Args): Result => {
      if (made >= changes) throw new Cut()
      made++
      return act(...args)
    }
  const { writeAtomic, renameDurable, removeFile, removeDirectory, makeDirectory } = machineDisk
  return {
    made: () => made,
    disk: {
      ...machineDisk,
      writeAtomic: change(writeAtomic),
      renameDurable: change(renameDurable),
      removeFile: change(removeFile),
      removeDirectory: change(removeDirectory),
      makeDirectory: change(makeDirectory),
    },
  }
}

function unpacked(): string {
  const path = join(scratchDirectory(), 'board')
  mkdirSync(path)
  unpackBoard(path)
  return path
}

const optionsOf = (path: string, disk: Disk, shards: number) => ({
  dataDirectory: path,
  markFile: `${path}.mark`,
  segmentBytesMax: 65_536,
  shards,
  platform: { ...machine, disk, clock: systemClock },
  report: () => {},
  onProgress: () => {},
})

/** Ids of all records, sorted: the content of the board, in whatever journals. */
function recordsIn(path: string): string[] {
  const found: string[] = []
  for (const step of new OldJournals(machineDisk, path).inOrder())
    if (!('head' in step)) found.push(`${step.frame.type} ${frameKey(step.frame).toString('hex')}`)
  return found.sort()
}

test('interrupted after any change of a name, it is the old board or the new one', async () => {
  const whole = unpacked()
  // Everything that a first start or reshard repairs is repaired.
  await reshard(optionsOf(whole, machineDisk, 1))
  const records = recordsIn(whole)
  const full = cutAfter(Number.POSITIVE_INFINITY)
  const other = join(scratchDirectory(), 'board')
  cpSync(whole, other, { recursive: true })
  await reshard(optionsOf(other, full.disk, 3))
  const ends = new Set<number>()
  for (let changes = 0; changes < full.made(); changes++) {
    const path = join(scratchDirectory(), 'board')
    cpSync(whole, path, { recursive: true })
    cpSync(`${whole}.mark`, `${path}.mark`)
    await expect(reshard(optionsOf(path, cutAfter(changes).disk, 3))).rejects.toThrow(Cut)
    // The next start.
    completeReshard(machineDisk, path)
    const { shards } = readFacts(machineDisk, path)
    ends.add(shards)
    expect([changes, checkCopy({ disk: machineDisk, path })]).toEqual([changes, { damages: [], problems: [] }])
    expect([changes, recordsIn(path)]).toEqual([changes, records])
    const journals = readdirSync(path).filter((name) => name.startsWith('shard-'))
    expect([changes, journals.length]).toEqual([changes, shards])
    expect([changes, readdirSync(path).filter((name) => name.startsWith('reshard'))]).toEqual([changes, []])
    rmSync(path, { recursive: true })
  }
  expect(ends).toEqual(new Set([1, 3]))
})

test('entries of damaged log frames are rebuilt in order, though the log belonged to other shards', async () => {
  const path = unpacked()
  await reshard(optionsOf(path, machineDisk, 3))
  const log = JournalReader.open(machineDisk, logDirectory(path))
  const through = journalEnd(machineDisk, logDirectory(path))
  log.advance(through)
  const shards = [0, 1, 2].map((shard) => JournalReader.open(machineDisk, shardDirectory(path, shard)))
  for (const shard of shards) shard.advance(Number.MAX_SAFE_INTEGER)
  const { same, other, none } = countRebuiltEntries(log, through, shards)
  expect([other, none]).toEqual([0, 0])
  expect(same).toBeGreaterThan(100)
  for (const reader of [log, ...shards]) reader.close()
})

test('while journals are exchanged no command opens the directory, and neither does an older release', async () => {
  const path = unpacked()
  const { disk } = cutAfter(Number.POSITIVE_INFINITY)
  let isExchanging = false
  const cutAtExchange: Disk = {
    ...disk,
    renameDurable: (from, to) => {
      if (isExchanging) throw new Cut()
      disk.renameDurable(from, to)
    },
    writeAtomic: (file, bytes, mode) => {
      disk.writeAtomic(file, bytes, mode)
      if (file === join(path, 'board.json')) isExchanging = true
    },
  }
  await expect(reshard(optionsOf(path, cutAtExchange, 3))).rejects.toThrow(Cut)
  expect(() => readFacts(machineDisk, path)).toThrow(/interrupted.*Run broadside reshard again, or start the board/)
  expect(JSON.parse(readFileSync(join(path, 'board.json'), 'utf8'))).toMatchObject({ format: 2, shards: 3 })
  expect(completeReshard(machineDisk, path)).toBe(true)
  expect(readFacts(machineDisk, path)).toMatchObject({ format: 1, shards: 3 })
  expect(completeReshard(machineDisk, path)).toBe(false)
})

test('a rebuilt journal that does not match the board is discarded', async () => {
  const path = unpacked()
  const spoiling: Disk = {
    ...machineDisk,
    openFile: (file, mode) => {
      const opened = machineDisk.openFile(file, mode)
      const isBuilt = mode === 'read' && /reshard\.new\/log\/0+1\.log$/.test(file)
      if (isBuilt && existsSync(file)) {
        const bytes = readFileSync(file)
        // One byte of a checkpoint.
        const at = bytes.lastIndexOf('board.example.net')
        bytes[at] = 'c'.charCodeAt(0)
        writeFileSync(file, bytes)
      }
      return opened
    },
  }
  await expect(reshard(optionsOf(path, spoiling, 3))).rejects.toThrow()
  expect(readFacts(machineDisk, path).shards).toBe(2)
  expect(existsSync(join(path, 'reshard.new'))).toBe(false)
  expect(checkCopy({ disk: machineDisk, path }).problems).toEqual([])
})

test('too little room on the disk is reported before anything is written, and a plan needs as much', async () => {
  const path = unpacked()
  const { bytes } = planReshard(optionsOf(path, machineDisk, 3))
  const almost: Disk = { ...machineDisk, freeBytes: () => bytes - 1 }
  expect(() => planReshard(optionsOf(path, almost, 3))).toThrow(`need ${bytes} bytes in addition to the old ones`)
  const full: Disk = { ...machineDisk, freeBytes: () => 1_000 }
  await expect(reshard(optionsOf(path, full, 3))).rejects.toThrow(
    /need [\d]+ bytes in addition to the old ones.*Free space/,
  )
  expect(existsSync(join(path, 'reshard.new'))).toBe(false)
})

test('a restored backup must be declared before a reshard', async () => {
  const path = unpacked()
  writeFileSync(join(path, 'restored.json'), '{}')
  await expect(reshard(optionsOf(path, machineDisk, 3))).rejects.toThrow(/run broadside restored/)
})

test('a webhook misses nothing: events after its old position are after its new one', () => {
  const old = new OldJournals(machineDisk, unpacked())
  const random = randomFrom(71)
  for (const shards of [1, 3, 5]) {
    const places = new Places(old, shards, () => {})
    const [ends, ...others] = [
      places.marks([9, ...old.ends.map((end) => end + 1)]),
      places.marks([9]),
      places.marks([]),
    ]
    expect(ends).toEqual([9, ...places.counts.map((count) => count + 1)])
    expect(others).toEqual([[9], []])
    for (let round = 0; round < 50; round++) {
      const marks = old.ends.map((end) => 1 + random(end + 1))
      const [feed, ...next] = places.marks([7, ...marks])
      expect([feed, next.length]).toEqual([7, shards])
      for (const [shard, end] of old.ends.entries())
        for (let seq = marks[shard]!; seq <= end; seq++) {
          const place = places.of(shard, seq)
          expect(place.seq).toBeGreaterThanOrEqual(next[place.shard]!)
        }
    }
  }
})

test('records are on the shard that decides them, in the order in which they were decided', async () => {
  const path = unpacked()
  const orderIn = () => {
    const byActor = new Map<string, string[]>()
    for (const step of new OldJournals(machineDisk, path).inOrder()) {
      if ('head' in step) continue
      const { room } = fromFrame(step.frame)
      expect(step.shard).toBe(shardOf(room, readFacts(machineDisk, path).shards))
      const own = byActor.get(room) ?? []
      own.push(frameKey(step.frame).toString('hex'))
      byActor.set(room, own)
    }
    return byActor
  }
  const before = orderIn()
  for (const shards of [7, 2, 1]) {
    await reshard(optionsOf(path, machineDisk, shards))
    expect(orderIn()).toEqual(before)
  }
})
