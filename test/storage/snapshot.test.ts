import { randomBytes } from 'node:crypto'
import { cpSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Damage } from '../../storage/disk.ts'
import { type JournalProblem, verifyJournal } from '../../storage/fsck-journal.ts'
import { Journal } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { segmentPath } from '../../storage/segment.ts'
import { checkReached, loadNewest, reachOf, SnapshotWriter, save } from '../../storage/snapshot.ts'
import { numberedFrame } from '../support/frames.ts'
import { flipByte, scratchDirectory } from '../support/scratch.ts'

const journalId = randomBytes(16)
const state = (seq: number) => ({
  bytes: Buffer.from(`state at ${seq}`),
  columns: [new Uint8Array(0), Uint8Array.of(1, 2, 3, seq), new Uint8Array(9).fill(7)],
})

function saved(...seqs: number[]): string {
  const directory = scratchDirectory()
  for (const seq of seqs) save(machineDisk, directory, { journalId, seq, ...state(seq) })
  return directory
}

test('the newest snapshot is loaded and only two are retained', () => {
  const directory = saved(5, 80, 1000)
  expect(loadNewest(machineDisk, directory, journalId)).toEqual({ seq: 1000, ...state(1000) })
  expect(readdirSync(directory)).toHaveLength(2)
})

test('what a kill left of a snapshot is removed with the next one', () => {
  const directory = saved(5)
  writeFileSync(join(directory, `${'80'.padStart(20, '0')}.snapshot.tmp`), 'half of a snapshot')
  expect(loadNewest(machineDisk, directory, journalId)?.seq).toBe(5)
  save(machineDisk, directory, { journalId, seq: 1000, ...state(1000) })
  expect(readdirSync(directory).map((name) => Number.parseInt(name, 10))).toEqual([5, 1000])
})

/** So large that it takes several pieces. */
const large = { bytes: randomBytes(1_500_000), columns: [randomBytes(0), randomBytes(2_200_000), randomBytes(10)] }

test('a snapshot written in pieces is the same file, and appears only when it is complete', async () => {
  const directory = saved(5)
  const writer = new SnapshotWriter(machineDisk, directory, { journalId, seq: 80, ...large })
  let pieces = 0
  for (; writer.step(); pieces++) expect(loadNewest(machineDisk, directory, journalId)?.seq).toBe(5)
  expect(pieces).toBe(6)
  await new Promise<void>((done) => writer.finish((failed) => done(expect(failed).toBeUndefined())))
  save(machineDisk, directory, { journalId, seq: 1000, ...large })
  const [beside, atOnce] = readdirSync(directory).map((name) => readFileSync(join(directory, name)))
  expect(beside!.subarray(36)).toEqual(atOnce!.subarray(36))
  expect(loadNewest(machineDisk, directory, journalId)?.seq).toBe(1000)
})

test('a snapshot abandoned before its end or during its sync leaves the existing ones', async () => {
  const directory = saved(5)
  for (const steps of [0, 2, Number.POSITIVE_INFINITY]) {
    const writer = new SnapshotWriter(machineDisk, directory, { journalId, seq: 80, ...large })
    let isWhole = false
    for (let step = 0; step < steps && !isWhole; step++) isWhole = !writer.step()
    if (isWhole) writer.finish(() => expect.unreachable('it was given up'))
    writer.giveUp()
    await new Promise((done) => setTimeout(done, 20))
    expect(readdirSync(directory)).toHaveLength(1)
    expect(loadNewest(machineDisk, directory, journalId)).toEqual({ seq: 5, ...state(5) })
  }
})

test('each column has its own memory with room to grow', () => {
  const { columns } = loadNewest(machineDisk, saved(5), journalId)!
  expect(columns.map(({ buffer, byteOffset }) => [buffer.byteLength, byteOffset])).toEqual([
    [8, 0],
    [8, 0],
    [16, 0],
  ])
  expect([...new Uint8Array(columns[2]!.buffer)]).toEqual([...Array(9).fill(7), ...Array(7).fill(0)])
})

test('a snapshot with any byte changed, or cut anywhere, is skipped in favor of the previous one', () => {
  const directory = saved(5, 80)
  const path = join(directory, readdirSync(directory).sort().at(-1)!)
  const size = statSync(path).size
  for (let offset = 0; offset < size; offset++) {
    flipByte(path, offset)
    expect(loadNewest(machineDisk, directory, journalId)).toEqual({ seq: 5, ...state(5) })
    flipByte(path, offset)
  }
  for (let length = size - 1; length >= 0; length -= 5) {
    truncateSync(path, length)
    expect(loadNewest(machineDisk, directory, journalId)?.seq).toBe(5)
  }
})

test('a snapshot of another journal is rejected', () => {
  expect(loadNewest(machineDisk, saved(5), randomBytes(16))).toBeUndefined()
  expect(loadNewest(machineDisk, scratchDirectory(), journalId)).toBeUndefined()
})

test('a snapshot beyond the end of the journal shows that the journal lost acknowledged frames', () => {
  const directory = saved(5, 80)
  expect(() => checkReached(directory, 80, 80)).not.toThrow()
  expect(() => checkReached(directory, 80, 79)).toThrow(Damage)
})

test.each<[what: string, harm: (path: string, lastFrameAt: number) => void, found: RegExp]>([
  ['changed', (path, at) => flipByte(path, at + 30), /^a frame with a bad CRC, though a snapshot holds frame 9$/],
  ['cut off', (path, at) => truncateSync(path, at), /^the end of the file, though/],
  ['made of zeros', (path, at) => writeFileSync(path, zerosFrom(readFileSync(path), at)), /^zeros, though/],
])(
  'a last frame that a snapshot holds and that was %s is damage in place, and nothing is cut',
  (_what, harm, found) => {
    const original = scratchDirectory()
    const journal = Journal.open({ disk: machineDisk, directory: original })
    let lastFrameAt = 0
    for (let seq = 1; seq <= 9; seq++) {
      lastFrameAt = withoutRoom(readFileSync(segmentPath(original, 1)))
      journal.append([numberedFrame(seq)])
    }
    const { id } = journal
    journal.close()
    const knownDurable = (snapshotAt: number) => {
      const snapshots = scratchDirectory()
      save(machineDisk, snapshots, { journalId: id, seq: snapshotAt, ...state(snapshotAt) })
      return (journalId: Buffer) => ({ seq: reachOf(machineDisk, snapshots, journalId), by: 'a snapshot' })
    }
    const directory = scratchDirectory()
    cpSync(original, directory, { recursive: true })
    const path = segmentPath(directory, 1)
    harm(path, lastFrameAt)
    const harmed = readFileSync(path)
    let thrown: unknown
    try {
      Journal.open({ disk: machineDisk, directory, knownDurable: knownDurable(9) })
    } catch (error) {
      thrown = error
    }
    const place = { path, offset: lastFrameAt, expected: 'frame 9', found: expect.stringMatching(found) as string }
    expect(thrown).toBeInstanceOf(Damage)
    expect(thrown).toMatchObject(place)
    expect([readdirSync(directory), readFileSync(path)]).toEqual([readdirSync(original), harmed])
    const problems: JournalProblem[] = []
    expect(verifyJournal(machineDisk, directory, (problem) => problems.push(problem), knownDurable(9)).nextSeq).toBe(10)
    expect(problems).toMatchObject([{ kind: 'damage', ...place }])

    const opened = Journal.open({ disk: machineDisk, directory, knownDurable: knownDurable(8) })
    expect(opened.nextSeq).toBe(9)
    opened.close()
  },
)

function zerosFrom(bytes: Buffer, at: number): Buffer {
  return Buffer.concat([bytes.subarray(0, at), Buffer.alloc(bytes.length - at)])
}

function withoutRoom(bytes: Buffer): number {
  return bytes.findLastIndex((byte) => byte !== 0) + 1
}
