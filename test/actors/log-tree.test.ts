import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Feed } from '../../actors/feed.ts'
import { decodeLogFrame, encodeLogFrame } from '../../actors/log/frame.ts'
import { openTree, provenRoot, rebuildTree, repairTree } from '../../actors/log/tree.ts'
import { Journal, JournalReader } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { CompactRange, leafHashes } from '../../storage/merkle.ts'
import { BadSectors } from '../support/bad-sectors.ts'
import { flipByte, scratchDirectory } from '../support/scratch.ts'

/** A log of frames with these numbers of entries. */
function logOf(counts: readonly number[]): { directory: string; journal: Journal; leaves: Buffer } {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax: 256 * 1024 })
  const range = new CompactRange()
  const all: Buffer[] = []
  for (const count of counts) {
    const firstLeaf = range.size
    const entries = Array.from({ length: count }, (_, n) => Buffer.from(`entry ${firstLeaf + n}`))
    const hashes = leafHashes(entries)
    all.push(hashes)
    range.append(hashes, Buffer.alloc(hashes.length * 2 + 32 * 54))
    const bundle = Buffer.concat(entries.flatMap((entry) => [Buffer.from([0, entry.length]), entry]))
    const facts = { type: 1, firstLeaf, firstChange: firstLeaf + 1, size: range.size, root: range.root(), ranges: [] }
    journal.append([encodeLogFrame({ ...facts, bundle, entries: count, checkpoint: `head ${range.size}` })])
  }
  return { directory, journal, leaves: Buffer.concat(all) }
}

const counts = [0, 1, 0, 5, 4_095, 1, 4_096, 3, 0, 700, 9_000, 2]

test('a tree file that cannot be opened is rebuilt', () => {
  const { journal, leaves } = logOf(counts)
  const path = join(scratchDirectory(), 'nodes.bin')
  const newest = decodeLogFrame(journal.read(journal.nextSeq - 1)!)
  const tree = { path, journal, first: 1, last: journal.nextSeq - 1, newest, report: () => {} }
  openTree({ ...tree, disk: machineDisk }).close()
  const places = new BadSectors('nodes.bin', 'openFile')
  const disk = {
    ...places.disk,
    removeFile: (removed: string) => {
      places.isBad = false
      machineDisk.removeFile(removed)
    },
  }
  const made = openTree({ ...tree, disk })
  expect([made.size, made.root()]).toEqual([leaves.length / 32, newest.root])
  made.close()
  journal.close()
})

test('leaf hashes computed from the frames are those of the entries, wherever the frames begin and end', () => {
  const { directory, journal, leaves } = logOf(counts)
  const log = JournalReader.open(machineDisk, directory)
  const feed = new Feed({ log, shards: [], kept: undefined, leaf: () => leaves, onRecord: () => {} })
  feed.follow(journal.nextSeq - 1)
  const { size } = feed.head
  expect(size).toBe(leaves.length / 32)
  const edges = [0, 1, 5, 6, 7, 4_101, 4_102, 8_198, 8_201, 8_901, 17_901, size - 1, size]
  for (const start of edges) {
    for (const end of edges.filter((each) => each >= start))
      expect(
        feed.leafHashes(feed.book.newest, start, end).equals(leaves.subarray(start * 32, end * 32)),
        `${start} to ${end}`,
      ).toBe(true)
  }
  log.close()
  journal.close()
})

const framesOf = (journal: Journal) => ({ journal, first: 1, last: journal.nextSeq - 1 })

test('a tree file is rebuilt at start if it is missing, continued if it is right for an older head, and otherwise kept', () => {
  const { journal } = logOf(counts)
  const path = join(scratchDirectory(), 'nodes.bin')
  const newest = decodeLogFrame(journal.read(journal.nextSeq - 1)!)
  const reported: string[] = []
  const open = () => {
    reported.length = 0
    const tree = openTree({
      disk: machineDisk,
      path,
      ...framesOf(journal),
      newest,
      report: (_level, event, facts) => reported.push('kept' in facts ? `${event} after ${facts.kept}` : event),
    })
    expect(tree.root().equals(newest.root)).toBe(true)
    tree.close()
    return [...reported]
  }
  const after = (kept: number) => ['log.tree.unusable', `log.tree.rebuilt after ${kept}`]
  expect(open()).toEqual(['log.tree.rebuilt after 0'])
  expect(open()).toEqual([])
  const right = readFileSync(path)
  const damage: readonly (readonly [harm: () => void, kept: number])[] = [
    [() => flipByte(path, right.length - 1), newest.size - 2],
    [() => truncateSync(path, right.length - 1), newest.size - 2],
    // The nodes of 700 leaves: the frame before ends after 6.
    [() => truncateSync(path, 1_392 * 32), 6],
    [() => truncateSync(path, 31), 0],
    [() => writeFileSync(path, Buffer.alloc(right.length)), 0],
  ]
  for (const [harm, kept] of damage) {
    harm()
    expect(open()).toEqual(after(kept))
    expect(readFileSync(path).equals(right)).toBe(true)
  }
  journal.close()
})

test('a wrong hash that no start checks gives no root of an older size, until the file is rebuilt', () => {
  const { journal } = logOf(counts)
  const path = join(scratchDirectory(), 'nodes.bin')
  const newest = decodeLogFrame(journal.read(journal.nextSeq - 1)!)
  const file = { disk: machineDisk, path }
  const tree = { ...file, ...framesOf(journal), report: () => {} }
  rebuildTree(tree).close()
  const older = Array.from(journal.scan(1), (frame) => {
    const { size, root } = decodeLogFrame(frame)
    return { size, root: Buffer.from(root) }
  })
  for (const { size, root } of older) expect(provenRoot(file, size, newest)?.equals(root)).toBe(true)
  flipByte(path, 3)
  for (const { size, root } of older) {
    const found = provenRoot(file, size, newest)
    expect(found === undefined || found.equals(root), `size ${size}`).toBe(true)
  }
  expect(provenRoot(file, 1, newest)).toBeUndefined()
  rebuildTree(tree).close()
  expect(provenRoot(file, 1, newest)?.equals(older[1]!.root)).toBe(true)
  expect(provenRoot(file, newest.size + 1, newest)).toBeUndefined()
  expect(provenRoot({ ...file, path: join(scratchDirectory(), 'none') }, 1, newest)).toBeUndefined()
  journal.close()
})

test('a tree file is repaired from the frames, counting wrong hashes; frames with another root are rejected', () => {
  const { directory, journal } = logOf(counts)
  const path = join(scratchDirectory(), 'nodes.bin')
  const newest = decodeLogFrame(journal.read(journal.nextSeq - 1)!)
  openTree({ disk: machineDisk, path, ...framesOf(journal), newest, report: () => {} }).close()
  const right = readFileSync(path)
  const log = JournalReader.open(machineDisk, directory)
  log.advance(journal.nextSeq - 1)
  const mend = () => {
    const steps = repairTree(machineDisk, path, log.scan(1))
    let step = steps.next()
    while (!step.done) step = steps.next()
    return step.value
  }
  expect(mend()).toEqual({ leaves: newest.size, wrongBytes: 0 })
  flipByte(path, 3)
  flipByte(path, right.length - 3)
  expect(mend()).toEqual({ leaves: newest.size, wrongBytes: 2 })
  expect(readFileSync(path).equals(right)).toBe(true)
  log.close()

  const bundle = Buffer.from([0, 1, 65])
  const wrong = {
    type: 1,
    firstLeaf: newest.size,
    firstChange: 1,
    size: newest.size + 1,
    root: newest.root,
    ranges: [],
  }
  journal.append([encodeLogFrame({ ...wrong, bundle, entries: 1, checkpoint: '' })])
  const further = JournalReader.open(machineDisk, directory)
  further.advance(journal.nextSeq - 1)
  const steps = repairTree(machineDisk, path, further.scan(1))
  expect(() => {
    while (!steps.next().done);
  }).toThrow('do not give the root')
  expect(readFileSync(path).equals(right)).toBe(true)
  further.close()
  journal.close()
})
