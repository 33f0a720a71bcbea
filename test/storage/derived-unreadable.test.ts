/** EIO on derived files (indexes of sealed segments, the tree file and snapshots) costs time, but no answer. */
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Journal, JournalReader } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { CompactRange, HASH_BYTES, LEVELS_MAX, leafHash } from '../../storage/merkle.ts'
import { badSnapshots, loadNewest, reachOf, save } from '../../storage/snapshot.ts'
import { TreeWriter } from '../../storage/tree.ts'
import { TreeFileShort } from '../../storage/tree-layout.ts'
import { TreeReader } from '../../storage/tree-reader.ts'
import { TreeRepairer } from '../../storage/tree-repairer.ts'
import { BadSectors } from '../support/bad-sectors.ts'
import { keyOf, numberedFrame } from '../support/frames.ts'
import { scratchDirectory } from '../support/scratch.ts'

test.each(['openFile', 'readAt'] as const)(
  'indexes on which %s fails are rebuilt from the frames, at start and while reading',
  (refused) => {
    const directory = scratchDirectory()
    const { disk } = new BadSectors('.idx', refused)
    const options = { disk, directory, segmentBytesMax: 2_000 }
    const made = Journal.open(options)
    while (made.nextSeq < 100) made.append([numberedFrame(made.nextSeq)])
    made.close()
    const journal = Journal.open(options)
    const reader = JournalReader.open(disk, directory)
    reader.advance(99)
    for (let seq = 1; seq < 100; seq++) {
      expect(journal.read(seq)!.payload).toEqual(numberedFrame(seq).payload)
      expect(reader.read(seq)!.payload).toEqual(numberedFrame(seq).payload)
      expect(journal.findKey(keyOf(seq))).toBe(seq)
    }
    reader.close()
    journal.close()
  },
)

const leaves = Buffer.concat(Array.from({ length: 40 }, (_, n) => leafHash(Buffer.from(`leaf ${n}`))))

function rootOf(hashes: Buffer): Buffer {
  const range = new CompactRange()
  range.append(hashes, Buffer.alloc(2 * hashes.length + LEVELS_MAX * HASH_BYTES))
  return range.root()
}

test('a tree file that cannot be written does not stop its writer, and is repaired once it can be', () => {
  const path = join(scratchDirectory(), 'nodes.bin')
  const places = new BadSectors('nodes.bin', 'writeAt')
  const tree = TreeWriter.open(places.disk, path, 0)
  tree.append(leaves)
  expect([tree.size, tree.root()]).toEqual([40, rootOf(leaves)])
  tree.sync()
  const reader = TreeReader.open(machineDisk, path)
  reader.advance(40)
  expect(() => reader.root(40)).toThrow(TreeFileShort)
  const repairer = TreeRepairer.open(machineDisk, path)
  repairer.repair(leaves, rootOf(leaves))
  repairer.close()
  reader.forget()
  expect(reader.root(40)).toEqual(rootOf(leaves))
  reader.close()
  tree.close()
})

test('an unreadable part of a tree file counts as missing, and is written again', () => {
  const directory = scratchDirectory()
  const path = join(directory, 'nodes.bin')
  const tree = TreeWriter.open(machineDisk, path, 0)
  tree.append(leaves)
  tree.close()
  copyFileSync(path, join(directory, 'right'))
  const { disk } = new BadSectors('nodes.bin', 'readAt')
  const reader = TreeReader.open(disk, path)
  reader.advance(40)
  expect(() => reader.inclusionPath(3, 40)).toThrow(TreeFileShort)
  reader.close()
  const repairer = TreeRepairer.open(disk, path)
  repairer.repair(leaves, rootOf(leaves))
  expect(repairer.wrong).toBeGreaterThan(0)
  repairer.close()
  expect(machineDisk.readWhole(path)).toEqual(machineDisk.readWhole(join(directory, 'right')))
})

test('a tree file that cannot be opened counts as missing, and is read once it can be', () => {
  const path = join(scratchDirectory(), 'nodes.bin')
  const tree = TreeWriter.open(machineDisk, path, 0)
  tree.append(leaves)
  tree.close()
  const places = new BadSectors('nodes.bin', 'openFile')
  const reader = TreeReader.open(places.disk, path)
  reader.advance(40)
  expect(() => reader.inclusionPath(3, 40)).toThrow(TreeFileShort)
  places.isBad = false
  expect(reader.root(40)).toEqual(rootOf(leaves))
  reader.close()
})

test.each(['openFile', 'readAt'] as const)('a snapshot on which %s fails is skipped and reported', (refused) => {
  const directory = scratchDirectory()
  const journalId = Buffer.alloc(16, 5)
  for (const seq of [7, 9])
    save(machineDisk, directory, { journalId, seq, bytes: Buffer.from(`state ${seq}`), columns: [] })
  const { disk } = new BadSectors('9.snapshot', refused)
  const told: string[] = []
  const found = loadNewest(disk, directory, journalId, (path) => told.push(path))
  expect(found).toMatchObject({ seq: 7 })
  expect(told).toEqual([join(directory, `${'9'.padStart(20, '0')}.snapshot`)])
  expect(reachOf(disk, directory, journalId)).toBe(7)
  expect([...badSnapshots(disk, directory, journalId, 9)]).toMatchObject([{ path: told[0], isDamage: false }])
})
