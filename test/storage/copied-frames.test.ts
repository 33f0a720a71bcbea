/** Frames of another machine's journal, appended to a copy of it. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { appendCopied, placeOf } from '../../storage/copied-frames.ts'
import { bytesOf } from '../../storage/frame.ts'
import { Journal, JournalReader, KEYED } from '../../storage/journal.ts'
import { machineDisk as disk } from '../../storage/machine-disk.ts'
import { scratchDirectory } from '../support/scratch.ts'

test('saved tails stay when whole frames are appended, and go when one arrives without its text', () => {
  const source = scratchDirectory()
  const there = Journal.open({ disk, directory: source })
  for (let seq = 1; seq <= 3; seq++)
    there.append([
      { type: 1, flags: KEYED, payload: Buffer.from(`${String(seq).padStart(16, 'k')}${'a text '.repeat(20)}`) },
    ])
  const directory = scratchDirectory()
  const here = Journal.open({ disk, directory, isCopy: true, random: () => there.id })
  const tails = join(directory, 'lost+tail')
  mkdirSync(tails)
  writeFileSync(join(tails, '00000001-2-4096.bin'), 'a text')
  const take = (last: number) => {
    const first = here.nextSeq
    const reader = JournalReader.open(disk, source)
    reader.advance(last)
    const frames = [...reader.scan(first, last)]
    const bytes = Buffer.concat(frames.map((frame) => Buffer.from(bytesOf(frame))))
    reader.close()
    appendCopied(here, {
      ...placeOf(there),
      last,
      chain: here.chainWith(frames, []).toString('hex'),
      first,
      bytes,
      rolls: [],
    })
  }
  take(2)
  expect(readdirSync(tails)).toHaveLength(1)
  there.roll()
  const steps = there.compact(
    new Set([3]),
    () => Buffer.from('what stays'),
    (damage) => {
      throw damage
    },
  )
  while (!steps.next().done);
  take(3)
  expect(readdirSync(tails)).toEqual([])
  there.close()
  here.close()
})
