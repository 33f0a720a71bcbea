import { once } from 'node:events'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import type { Disk } from '../../storage/disk.ts'
import { Damage, type Frame, Journal, JournalReader } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { readPace } from '../../storage/read-pace.ts'
import { indexPath, listSegments, segmentPath } from '../../storage/segment.ts'
import { BadSectors } from '../support/bad-sectors.ts'
import { FaultyDisk } from '../support/faulty-disk.ts'
import { keyOf, numberedFrame } from '../support/frames.ts'
import { flipByte, scratchDirectory } from '../support/scratch.ts'

test('a worker thread that follows a live writer sees every durable frame and none beyond, over many segments', async () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax: 8000 })
  const worker = new Worker(new URL('../support/follower.ts', import.meta.url), { workerData: directory })
  onTestFinished(async () => {
    await worker.terminate()
  })
  let told = 0
  for (let round = 1; round <= 60; round++) {
    const first = journal.nextSeq
    const count = 1 + ((round * 7) % 23)
    journal.append(Array.from({ length: count }, (_, i) => numberedFrame(first + i)))
    const durable = journal.nextSeq - 1
    worker.postMessage(durable)
    // A reader that knows of one batch must not see the next, even if it is already on disk.
    if (round % 2) journal.append([numberedFrame(journal.nextSeq)])
    const [answer] = await once(worker, 'message')
    const good = durable - told
    expect(answer).toEqual({ good, last: durable, found: [true, true, true], beyond: undefined, unknown: undefined })
    told = durable
  }
  expect(listSegments(machineDisk, directory, 'log').length).toBeGreaterThan(5)
  journal.close()
})

test('a reader that was notified of nothing reads nothing', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory })
  journal.append([numberedFrame(1)])
  const reader = JournalReader.open(machineDisk, directory)
  expect(reader.read(1)).toBeUndefined()
  expect(Array.from(reader.scan(1))).toEqual([])
  expect(reader.findKey(keyOf(1))).toBeUndefined()
  reader.advance(1)
  reader.advance(0)
  expect(reader.read(1)).toMatchObject(numberedFrame(1))
  reader.close()
  journal.close()
})

test('a reader that slept while many segments were sealed catches up', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax: 2000 })
  journal.append([numberedFrame(1)])
  const reader = JournalReader.open(machineDisk, directory)
  reader.advance(1)
  expect(reader.read(1)?.seq).toBe(1)
  while (journal.nextSeq <= 300) journal.append([numberedFrame(journal.nextSeq)])
  reader.advance(300)
  // Far more segments than a reader keeps open.
  expect(listSegments(machineDisk, directory, 'log').length).toBeGreaterThan(25)
  for (const seq of [150, 1, 300, 2, 299]) {
    expect(reader.read(seq)).toMatchObject(numberedFrame(seq))
    expect(reader.findKey(keyOf(seq))).toBe(seq)
  }
  expect(Array.from(reader.scan(1), (frame) => frame.seq)).toHaveLength(300)
  reader.close()
  journal.close()
})

test('a reader keeps few segments open where descriptors are scarce, and returns each one', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax: 2000 })
  while (journal.nextSeq <= 600) journal.append([numberedFrame(journal.nextSeq)])
  journal.close()
  const opened = (descriptorsMax: number): number => {
    const disk = new FaultyDisk()
    disk.descriptorsMax = descriptorsMax
    const reader = JournalReader.open(disk, directory)
    reader.advance(600)
    for (let seq = 1; seq <= 600; seq++) expect(reader.read(seq)?.seq).toBe(seq)
    const { open } = disk
    reader.close()
    expect(disk.open).toBe(0)
    return open
  }
  const segments = listSegments(machineDisk, directory, 'log').length
  expect(segments).toBeGreaterThan(40)
  // Two for each sealed segment, and the active one.
  expect(opened(1_024)).toBe(2 * 16 + 1)
  expect(opened(1_048_576)).toBe(2 * (segments - 1) + 1)
})

test.each([
  [
    'of a reader',
    (disk: Disk, directory: string) => {
      const reader = JournalReader.open(disk, directory)
      reader.advance(600)
      return reader
    },
  ],
  ['of the writer', (disk: Disk, directory: string) => Journal.open({ disk, directory })],
] as const)(
  'on a slow disk frames %s are prefetched from where they are read, and a damaged index changes no answer',
  (_name, open) => {
    const directory = scratchDirectory()
    const written = Journal.open({ disk: machineDisk, directory, segmentBytesMax: 40_000 })
    while (written.nextSeq <= 600) written.append([numberedFrame(written.nextSeq)])
    written.close()
    const disk = new FaultyDisk()
    const journal = open(disk, directory)
    const seqs = [3, 250, 90, 4, 5, 251]
    // Segments that are not open are left out.
    for (const seq of [3, 250]) expect(journal.read(seq)).toMatchObject(numberedFrame(seq))
    journal.prefetch(seqs)
    expect(disk.reads).toEqual([])
    disk.isSlow = true
    journal.prefetch(seqs)
    const prefetched = disk.reads.filter(({ what }) => what === 'soon')
    const [first, second] = [3, 250].map((seq) => segmentWith(directory, seq))
    expect(first).not.toBe(second)
    expect(new Set(prefetched.map(({ path }) => path))).toEqual(new Set([first, second]))
    disk.reads.length = 0
    for (const seq of seqs) expect(journal.read(seq)).toMatchObject(numberedFrame(seq))
    const read = disk.reads.filter(({ what, path }) => what === 'read' && (path === first || path === second))
    // The first read in each segment was prefetched; for the writer, which reads each frame alone, so was every other.
    for (const path of [first, second]) {
      const { from } = read.find((each) => each.path === path)!
      expect(prefetched.some((each) => each.path === path && each.from === from)).toBe(true)
    }
    if (journal instanceof Journal)
      for (const { path, from, to } of read)
        expect(prefetched.some((each) => each.path === path && each.from === from && each.to === to)).toBe(true)
    journal.close()
    const index = indexPath(directory, listSegments(machineDisk, directory, 'log')[0]!)
    writeFileSync(index, Buffer.alloc(statSync(index).size, 0xff))
    const again = open(disk, directory)
    for (const seq of seqs) expect(again.read(seq)).toMatchObject(numberedFrame(seq))
    again.prefetch(seqs)
    for (const seq of seqs) expect(again.read(seq)).toMatchObject(numberedFrame(seq))
    again.close()
  },
)

/** The path of the segment with this frame. */
function segmentWith(directory: string, seq: number): string {
  return segmentPath(directory, listSegments(machineDisk, directory, 'log').findLast((first) => first <= seq)!)
}

test('prefetching a closed file, or beyond the end of one, does no harm', async () => {
  const path = join(scratchDirectory(), 'file')
  writeFileSync(path, 'some bytes')
  const now = performance.now()
  for (let read = 0; read < 10; read++) readPace.note(1, now - 1, now)
  expect(machineDisk.readsAreSlow()).toBe(true)
  const file = machineDisk.openFile(path, 'read')
  file.prefetch(0, 4)
  file.prefetch(9, 1_000_000)
  file.prefetch(1_000, 4)
  file.close()
  file.prefetch(0, 4)
  const other = machineDisk.openFile(path, 'read')
  await new Promise((go) => setTimeout(go, 20))
  const into = Buffer.alloc(4)
  expect([other.readAt(into, 5), into.toString()]).toEqual([4, 'byte'])
  other.close()
})

test('frames of an unfinished write are not read, and the ones that replace them are', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory })
  journal.append([numberedFrame(1), numberedFrame(2)])
  const reader = JournalReader.open(machineDisk, directory)
  reader.advance(2)
  expect(reader.read(2)?.seq).toBe(2)
  journal.append([{ type: 1, flags: 0, payload: Buffer.from('first try') }])
  expect(Array.from(reader.scan(1))).toHaveLength(2)
  reader.advance(3)
  expect(reader.read(3)?.payload.toString()).toBe('first try')
  reader.close()
  journal.close()
})

test('while a segment and its index are damaged, reads that need them say so, others work, and repair restores all', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax: 2000 })
  while (listSegments(machineDisk, directory, 'log').length < 2) journal.append([numberedFrame(journal.nextSeq)])
  const last = journal.nextSeq - 1
  journal.close()
  const segment = segmentPath(directory, 1)
  flipByte(segment, 1000)
  // Its head is intact, so it opens; its keys are not.
  flipByte(indexPath(directory, 1), statSync(indexPath(directory, 1)).size - 40)
  const reader = JournalReader.open(machineDisk, directory)
  reader.advance(last)
  const ofSealed = Array.from({ length: last - 1 }, (_, n) => n + 1)
  for (let tries = 0; tries < 3; tries++) {
    const unreadable = ofSealed.filter((seq) => {
      try {
        expect(reader.read(seq)).toMatchObject(numberedFrame(seq))
        return false
      } catch (error) {
        expect(error).toBeInstanceOf(Damage)
        return true
      }
    })
    expect(unreadable).toHaveLength(1)
    expect(() => reader.findKey(keyOf(2))).toThrow(Damage)
  }
  flipByte(segment, 1000)
  for (const seq of ofSealed) {
    expect(reader.read(seq)).toMatchObject(numberedFrame(seq))
    expect(reader.findKey(keyOf(seq))).toBe(seq)
  }
  reader.close()
})

test('whatever is requested, and whenever its files are closed, a reader returns exactly the frames it was notified of', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('append' as const), count: fc.integer({ min: 1, max: 9 }) }),
    fc.record({
      kind: fc.constantFrom('read' as const, 'find' as const),
      share: fc.double({ min: 0, max: 1.1, noNaN: true }),
    }),
    fc.record({ kind: fc.constant('begin' as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
    fc.record({ kind: fc.constantFrom('next' as const, 'leave' as const, 'advance' as const, 'reopen' as const) }),
  )
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 40 }), (steps) => {
      const directory = scratchDirectory()
      const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax: 1500 })
      const reader = JournalReader.open(machineDisk, directory)
      const at = (share: number) => Math.ceil(share * reader.through)
      /** A scan in progress, what it returns next, and how far it goes: as far as was durable when its first frame was requested. */
      let under: { readonly frames: Iterator<Frame>; next: number; last?: number } | undefined
      for (const each of steps) {
        if (each.kind === 'append')
          journal.append(Array.from({ length: each.count }, (_, n) => numberedFrame(journal.nextSeq + n)))
        else if (each.kind === 'advance') reader.advance(journal.nextSeq - 1)
        else if (each.kind === 'reopen') reader.reopen()
        else if (each.kind === 'read') {
          const seq = at(each.share)
          if (seq < 1 || seq > reader.through) expect(reader.read(seq)).toBeUndefined()
          else expect(reader.read(seq)).toMatchObject({ seq, ...numberedFrame(seq) })
        } else if (each.kind === 'find') {
          const seq = at(each.share)
          expect(reader.findKey(keyOf(seq))).toBe(seq < 1 || seq > reader.through ? undefined : seq)
        } else if (each.kind === 'begin') {
          under?.frames.return?.()
          const next = Math.max(1, at(each.share))
          under = { frames: reader.scan(next), next }
        } else if (under !== undefined && each.kind === 'next') {
          under.last ??= reader.through
          const { done, value } = under.frames.next()
          expect(done === true).toBe(under.next > under.last)
          if (!done) expect(value).toMatchObject({ seq: under.next, ...numberedFrame(under.next) })
          under.next++
        } else if (under !== undefined) {
          under.frames.return?.()
          under = undefined
        }
      }
      reader.advance(journal.nextSeq - 1)
      expect([...reader.scan(1)].map(({ seq }) => seq)).toEqual(Array.from({ length: reader.through }, (_, n) => n + 1))
      under?.frames.return?.()
      reader.close()
      journal.close()
    }),
    { numRuns: 40 },
  )
})

test('a reader whose newest segment cannot be read leaves no file open', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory })
  journal.append([numberedFrame(1)])
  const { disk } = new BadSectors('.log', 'readAt')
  let open = 0
  const counted = {
    ...disk,
    openFile: (...given: Parameters<typeof disk.openFile>) => {
      const file = disk.openFile(...given)
      open++
      return {
        ...file,
        close: () => {
          open--
          file.close()
        },
      }
    },
  }
  const reader = JournalReader.open(counted, directory)
  reader.advance(1)
  expect(() => reader.read(1)).toThrow('EIO')
  reader.close()
  expect(open).toBe(0)
  journal.close()
})
