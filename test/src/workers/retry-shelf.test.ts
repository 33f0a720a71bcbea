/** What a shard remembers for retries is found on disk, after a restart too; files that no snapshot names are removed. */
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { Columns } from '../../../actors/records/columns.ts'
import { RetryMemory } from '../../../actors/records/retry-memory.ts'
import { RetryShelf } from '../../../src/workers/retry-shelf.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { patience } from '../../support/patience.ts'
import { scratchDirectory } from '../../support/scratch.ts'

const at = 1_790_000_000
const entries = 5_000
const quiet = () => expect.unreachable('nothing goes wrong')

function lifeIn(directory: string) {
  const shelf = new RetryShelf({ disk: machineDisk, directory, report: quiet }, 1_000)
  return { shelf, memory: new RetryMemory({ spanSeconds: 100, shelf, name: () => 'ids' }) }
}

const fingerprintOf = (place: number) => (place * 7_919_000_003) % 2 ** 52
const found = (memory: RetryMemory) =>
  Array.from({ length: entries }, (_, n) => n + 1).filter((place) =>
    memory.find(fingerprintOf(place), (each) => each === place),
  ).length

test('entries on the shelf are found, after a start too, and their files are removed when they expire', async () => {
  const directory = scratchDirectory()
  const { memory } = lifeIn(directory)
  for (let place = 1; place <= entries; place++) memory.add(fingerprintOf(place), place, at)
  const files = ['ids-1000.retries', 'ids-2000.retries', 'ids-3000.retries', 'ids-4000.retries', 'ids-5000.retries']
  await vi.waitFor(() => expect(readdirSync(directory).sort()).toEqual(files), patience)
  expect(found(memory)).toBe(entries)
  const isOnShelf = () => memory.pack(new Columns())[0][3].every((full) => typeof full === 'string')
  await vi.waitFor(() => expect(isOnShelf()).toBe(true), patience)
  const columns = new Columns()
  const packed = structuredClone(memory.pack(columns))
  const start = () => {
    const life = lifeIn(directory)
    const isWhole = life.memory.restore(packed, new Columns(columns.all.map((each) => each.slice())), at)
    return { ...life, isWhole }
  }
  writeFileSync(join(directory, 'ids-9000.retries'), 'of a life that no snapshot knows')
  writeFileSync(join(directory, 'ids-9000.retries.0123456789abcdef.tmp'), 'half of one')
  const next = start()
  next.shelf.restored(true)
  expect([next.isWhole, found(next.memory)]).toEqual([true, entries])
  expect(readdirSync(directory).sort()).toEqual(files)
  rmSync(join(directory, files[2]!))
  expect(start().isWhole).toBe(false)
  next.memory.add(1, 1, at + 100)
  expect(found(next.memory)).toBe(entries)
  next.memory.add(1, 1, at + 200)
  expect([found(next.memory), readdirSync(directory)]).toEqual([0, []])
})
