import { randomBytes } from 'node:crypto'
import { readdirSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Damage } from '../../storage/disk.ts'
import { loadNewest, save } from '../../storage/snapshot.ts'
import { flipByte, scratchDirectory } from '../support/scratch.ts'

const journalId = randomBytes(16)
const state = (seq: number) => Buffer.from(`state at ${seq}`)

function saved(...seqs: number[]): string {
  const directory = scratchDirectory()
  for (const seq of seqs) save(directory, { journalId, seq, bytes: state(seq) })
  return directory
}

test('the newest snapshot is loaded and only two are kept', () => {
  const directory = saved(5, 80, 1000)
  expect(loadNewest(directory, journalId, 1000)).toEqual({ seq: 1000, bytes: state(1000) })
  expect(readdirSync(directory)).toHaveLength(2)
})

test('a snapshot with any byte changed, or cut anywhere, is passed over for the one before', () => {
  const directory = saved(5, 80)
  const path = join(directory, readdirSync(directory).sort().at(-1)!)
  const size = statSync(path).size
  for (let offset = 0; offset < size; offset++) {
    flipByte(path, offset)
    expect(loadNewest(directory, journalId, 100)).toEqual({ seq: 5, bytes: state(5) })
    flipByte(path, offset)
  }
  for (let length = size - 1; length >= 0; length -= 5) {
    truncateSync(path, length)
    expect(loadNewest(directory, journalId, 100)?.seq).toBe(5)
  }
})

test('a snapshot of another journal is no snapshot of this one', () => {
  expect(loadNewest(saved(5), randomBytes(16), 100)).toBeUndefined()
  expect(loadNewest(scratchDirectory(), journalId, 100)).toBeUndefined()
})

test('a snapshot beyond the end of the journal says that the journal lost what it had acknowledged', () => {
  expect(() => loadNewest(saved(5, 80), journalId, 79)).toThrow(Damage)
})
