/** EIO in a sealed segment makes only the frames in the bad place unreadable, as damage does, and only as long as it lasts. */
import { mkdirSync, rmSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type Disk, FailedRead } from '../../storage/disk.ts'
import { type JournalProblem, verifyJournal } from '../../storage/fsck-journal.ts'
import { Journal, JournalReader } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { segmentPath } from '../../storage/segment.ts'
import { BadSectors } from '../support/bad-sectors.ts'
import { numberedFrame } from '../support/frames.ts'
import { scratchDirectory } from '../support/scratch.ts'
import { sealedFrames } from '../support/sealed-frames.ts'

const frames = 600

/** A journal of several segments; `hit` is a frame in the middle of the second one, whose last byte is `bad`. */
function madeJournal() {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax: 16_000 })
  while (journal.nextSeq <= frames) journal.append([numberedFrame(journal.nextSeq)])
  journal.close()
  const sealed = [...sealedFrames(directory)]
  const { frame, ...place } = sealed.filter(({ path }) => path !== sealed[0]!.path)[20]!
  const end = place.offset + place.bytes
  return { directory, hit: { seq: frame.seq, ...place }, bad: { from: end - 1, to: end } }
}

function problemsWith(disk: Disk, directory: string): JournalProblem[] {
  const problems: JournalProblem[] = []
  verifyJournal(disk, directory, (problem) => problems.push(problem))
  return problems
}

function thrownBy(read: () => unknown): unknown {
  try {
    read()
  } catch (error) {
    return error
  }
  return undefined
}

test('every frame outside the bad place is read, one by one and in a scan, and the bad one once it can be', () => {
  const { directory, hit, bad } = madeJournal()
  const places = new BadSectors(hit.path, 'readAt', bad)
  const failed = { name: 'FailedRead', path: hit.path, offset: hit.offset, frame: hit.seq, code: 'EIO' }
  const reader = JournalReader.open(places.disk, directory)
  reader.advance(frames)
  for (let seq = 1; seq <= frames; seq++)
    if (seq === hit.seq) expect(thrownBy(() => reader.read(seq))).toMatchObject(failed)
    else expect(reader.read(seq)).toMatchObject(numberedFrame(seq))
  let scanned = 0
  const scan = () => {
    for (const { seq } of reader.scan(1)) expect(seq).toBe(++scanned)
  }
  expect(thrownBy(scan)).toMatchObject(failed)
  expect(scanned).toBe(hit.seq - 1)
  expect([...reader.scan(hit.seq + 1)]).toHaveLength(frames - hit.seq)
  places.isBad = false
  expect(reader.read(hit.seq)).toMatchObject(numberedFrame(hit.seq))
  expect([...reader.scan(1)]).toHaveLength(frames)
  reader.close()
})

test('a segment that cannot be opened, or whose header cannot be read, is damaged as long as that lasts', () => {
  const { directory, hit } = madeJournal()
  for (const places of [
    new BadSectors(hit.path, 'openFile'),
    new BadSectors(hit.path, 'readAt', { from: 0, to: 64 }),
  ]) {
    const reader = JournalReader.open(places.disk, directory)
    reader.advance(frames)
    expect(() => reader.read(hit.seq)).toThrow(FailedRead)
    expect(() => [...reader.scan(hit.seq)]).toThrow(FailedRead)
    places.isBad = false
    expect(reader.read(hit.seq)).toMatchObject(numberedFrame(hit.seq))
    reader.close()
  }
})

test('the full check reports one damaged frame where one cannot be read, and continues', () => {
  const { directory, hit, bad } = madeJournal()
  const { disk } = new BadSectors(hit.path, 'readAt', bad)
  const facts = { kind: 'damage', path: hit.path, offset: hit.offset, expected: `frame ${hit.seq}` }
  expect(problemsWith(disk, directory)).toMatchObject([
    { ...facts, found: expect.stringMatching(/^a read error \(EIO\)/) },
  ])
})

test('the full check reports each file that is unreadable or not a file, and continues', () => {
  const { directory, hit } = madeJournal()
  const index = hit.path.replace(/log$/, 'idx')
  const found = 'a read error (EIO)'
  for (const refused of ['openFile', 'readAt'] as const)
    expect(problemsWith(new BadSectors(hit.path, refused).disk, directory)).toMatchObject([
      { kind: 'damage', path: hit.path, offset: 0, found },
    ])
  const { disk } = new BadSectors(index, 'readAt')
  expect(problemsWith(disk, directory)).toMatchObject([{ kind: 'index', path: index, found }])
  rmSync(index)
  mkdirSync(index)
  expect(problemsWith(machineDisk, directory)).toMatchObject([{ kind: 'no-file', path: index }])
})

test('an unreadable active segment stops a start, which cuts nothing, and is damage to the full check', () => {
  const own = scratchDirectory()
  const made = Journal.open({ disk: machineDisk, directory: own })
  while (made.nextSeq <= 20) made.append([numberedFrame(made.nextSeq)])
  made.close()
  const path = segmentPath(own, 1)
  const before = machineDisk.readWhole(path)
  const { disk } = new BadSectors(path, 'readAt', { from: before.length - 40, to: before.length })
  expect(() => Journal.open({ disk, directory: own })).toThrow(FailedRead)
  expect(problemsWith(disk, own)).toMatchObject([
    { kind: 'damage', path, expected: 'frame 20', found: 'a read error (EIO)' },
  ])
  expect(machineDisk.readWhole(path)).toEqual(before)
})
