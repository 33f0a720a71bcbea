/** A journal of decisions that span several frames: what opening it does with one that ends anywhere. */

import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FRAME_HEADER_BYTES, MORE, type NewFrame } from '../../storage/frame.ts'
import { verifyJournal } from '../../storage/fsck-journal.ts'
import { Journal } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { SEGMENT_HEADER_BYTES, segmentPath } from '../../storage/segment.ts'
import { openWhole } from '../../storage/whole-decisions.ts'
import { numberedFrame } from '../support/frames.ts'
import { scratchDirectory } from '../support/scratch.ts'

/** Frame `seq` of a decision; `isLast`: whether it is its last one. */
function frame(seq: number, isLast: boolean): NewFrame {
  const { type, flags, payload } = numberedFrame(seq)
  return { type, flags: isLast ? flags : flags | MORE, payload }
}

/** Frames of decisions with these numbers of frames. */
function framesOf(decisions: readonly number[], firstSeq: number): NewFrame[] {
  const lasts = decisions.flatMap((size) => Array.from({ length: size }, (_, n) => n === size - 1))
  return lasts.map((isLast, n) => frame(firstSeq + n, isLast))
}

function bytesOf(frames: readonly NewFrame[]): number {
  return frames.reduce((sum, { payload }) => sum + FRAME_HEADER_BYTES + payload.length, 0)
}

test('wherever the file ends, only the complete decisions before that are kept, and the journal continues', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(sizes, sizes, fc.nat(), (first, second, at) => {
      const directory = scratchDirectory()
      const journal = openWhole({ disk: machineDisk, directory })
      for (const batch of [first, second]) journal.append(framesOf(batch, journal.nextSeq))
      journal.close()
      const path = segmentPath(directory, 1)
      const durable = SEGMENT_HEADER_BYTES + bytesOf(framesOf(first, 1))
      truncateSync(path, durable + (at % (statSync(path).size - durable + 1)))

      const end = statSync(path).size
      const all = framesOf([...first, ...second], 1)
      const kept = all.findLastIndex(
        ({ flags }, n) => (flags & MORE) === 0 && SEGMENT_HEADER_BYTES + bytesOf(all.slice(0, n + 1)) <= end,
      )
      const opened = openWhole({ disk: machineDisk, directory })
      expect(opened.nextSeq).toBe(kept + 2)
      expect(statSync(path).size).toBe(SEGMENT_HEADER_BYTES + bytesOf(all.slice(0, kept + 1)))
      opened.append(framesOf([2, 1], opened.nextSeq))
      opened.close()
      const again = openWhole({ disk: machineDisk, directory })
      const expected = [...all.slice(0, kept + 1), ...framesOf([2, 1], kept + 2)]
      expect([...again.scan(1)].map(({ type, flags }) => ({ type, flags }))).toEqual(
        expected.map(({ type, flags }) => ({ type, flags })),
      )
      again.close()
    }),
    { numRuns: 25 },
  )
})

test('a journal with only the beginning of a decision is empty, and that beginning is saved aside', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory })
  const { id } = journal
  journal.append([frame(1, false), frame(2, false)])
  journal.close()
  const before = readFileSync(segmentPath(directory, 1)).subarray(SEGMENT_HEADER_BYTES)
  const opened = openWhole({ disk: machineDisk, directory })
  expect([opened.nextSeq, opened.id]).toEqual([1, id])
  opened.close()
  const [saved] = readdirSync(join(directory, 'lost+tail'))
  expect(readFileSync(join(directory, 'lost+tail', saved!)).subarray(1)).toEqual(before.subarray(1))
  expect(readFileSync(segmentPath(directory, 1)).length).toBe(SEGMENT_HEADER_BYTES)
})

test('a crash during the cut leaves an end that the next start cuts', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory })
  journal.append([frame(1, true), frame(2, false)])
  journal.close()
  const path = segmentPath(directory, 1)
  const bytes = readFileSync(path)
  bytes[bytes.length - bytesOf([frame(2, false)])] = 0
  writeFileSync(path, bytes)
  const opened = openWhole({ disk: machineDisk, directory })
  expect(opened.nextSeq).toBe(2)
  opened.close()
})

test('after a sealed segment the newest one is cut; incomplete decisions that an older release sealed stay', () => {
  const directory = scratchDirectory()
  const options = { disk: machineDisk, directory, segmentBytesMax: 2_000 }
  const journal = Journal.open(options)
  while (readdirSync(directory).filter((name) => name.endsWith('.log')).length < 2)
    journal.append([frame(journal.nextSeq, false), frame(journal.nextSeq + 1, true)])
  const last = journal.nextSeq - 1
  journal.append([frame(last + 1, false)])
  journal.close()
  const opened = openWhole(options)
  expect(opened.nextSeq).toBe(last + 1)
  opened.append([frame(last + 1, false)])
  for (const _ of opened.compact(
    new Set([last + 1]),
    () => Buffer.alloc(1),
    () => {},
  ));
  opened.close()
  const sealed = openWhole(options)
  expect(sealed.nextSeq).toBe(last + 2)
  sealed.close()
  const problems: unknown[] = []
  verifyJournal(machineDisk, directory, (problem) => problems.push(problem))
  expect(problems).toEqual([])
})
