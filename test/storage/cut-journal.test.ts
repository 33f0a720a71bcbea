/** A journal that is cut after a frame equals the journal as it was when that frame was its newest. */
import { cpSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cutJournal } from '../../storage/cut-journal.ts'
import { Journal } from '../../storage/journal.ts'
import { machineDisk as disk } from '../../storage/machine-disk.ts'
import { listSegments, segmentPath } from '../../storage/segment.ts'
import { numberedFrame } from '../support/frames.ts'
import { scratchDirectory } from '../support/scratch.ts'

const frames = 24
const segmentBytesMax = 600

const open = (directory: string) => Journal.open({ disk, directory, segmentBytesMax })

/** Writes frames one by one; returns the chain hash after each, and where segments begin. */
function written() {
  const directory = scratchDirectory()
  const journal = open(directory)
  const chains = ['']
  for (let seq = 1; seq <= frames; seq++) {
    journal.append([numberedFrame(seq)])
    chains.push(journal.chain().toString('hex'))
  }
  journal.close()
  return { directory, chains, begun: listSegments(disk, directory, 'log') }
}

function copyOf({ directory }: { readonly directory: string }): string {
  const copy = scratchDirectory()
  cpSync(directory, copy, { recursive: true })
  return copy
}

/** A copy of the journal, cut. */
function cut(whole: { readonly directory: string }, last: number, isSealed: boolean): [string, Journal] {
  const directory = copyOf(whole)
  cutJournal(disk, directory, { last, isSealed, isKept: true })
  // Interrupted at its end, and repeated.
  cutJournal(disk, directory, { last, isSealed, isKept: true })
  return [directory, open(directory)]
}

test('cut after any frame, it has the frames before, their chain, and continues as it did', () => {
  const whole = written()
  const { chains, begun } = whole
  expect(begun.length).toBeGreaterThan(4)
  for (let last = 1; last < frames; last++) {
    const [directory, journal] = cut(whole, last, false)
    expect([journal.nextSeq, journal.chain().toString('hex')]).toEqual([last + 1, chains[last]])
    for (let seq = last + 1; seq <= frames; seq++) journal.append([numberedFrame(seq)])
    expect(journal.chain().toString('hex')).toBe(chains[frames])
    expect(listSegments(disk, directory, 'log')).toEqual(begun)
    journal.close()
    expect(readdirSync(join(directory, 'lost+tail')).length).toBeGreaterThan(0)
  }
})

test('cut after a frame whose segment stays sealed, it has an empty next segment', () => {
  const whole = written()
  for (const first of whole.begun.slice(1)) {
    const [directory, journal] = cut(whole, first - 1, true)
    expect(journal.nextSeq).toBe(first)
    expect(listSegments(disk, directory, 'log').at(-1)).toBe(first)
    for (let seq = first; seq <= frames; seq++) journal.append([numberedFrame(seq)])
    expect(journal.chain().toString('hex')).toBe(whole.chains[frames])
    journal.close()
  }
})

test('frames that do not exist cannot be retained', () => {
  const whole = written()
  const newest = whole.begun.at(-1)!
  rmSync(segmentPath(whole.directory, newest))
  const last = newest + 1
  expect(() => cutJournal(disk, whole.directory, { last, isSealed: false, isKept: false })).toThrow('is damaged')
})
