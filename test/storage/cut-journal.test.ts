/** A journal that is cut after a frame is the journal as it was when that frame was its newest. */
import { cpSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cutJournal } from '../../storage/cut-journal.ts'
import { Journal } from '../../storage/journal.ts'
import { machineDisk as disk } from '../../storage/machine-disk.ts'
import { listSegments, segmentPath } from '../../storage/segment.ts'
import { numbered } from '../support/frames.ts'
import { scratchDirectory } from '../support/scratch.ts'

const frames = 24
const segmentBytesMax = 600

const open = (directory: string) => Journal.open({ disk, directory, segmentBytesMax })

/** One frame after the other; what the journal's chain was after each, and where its segments begin. */
function written() {
  const directory = scratchDirectory()
  const journal = open(directory)
  const chains = ['']
  for (let seq = 1; seq <= frames; seq++) {
    journal.append([numbered(seq)])
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

/** The journal in a copy, cut. */
function cut(whole: { readonly directory: string }, last: number, isSealed: boolean): [string, Journal] {
  const directory = copyOf(whole)
  cutJournal(disk, directory, { last, isSealed, isKept: true })
  // Cut short at its end, and done again.
  cutJournal(disk, directory, { last, isSealed, isKept: true })
  return [directory, open(directory)]
}

test('after each frame: those before it, their chain, and what follows again as it did', () => {
  const whole = written()
  const { chains, begun } = whole
  expect(begun.length).toBeGreaterThan(4)
  for (let last = 1; last < frames; last++) {
    const [directory, journal] = cut(whole, last, false)
    expect([journal.nextSeq, journal.chain().toString('hex')]).toEqual([last + 1, chains[last]])
    for (let seq = last + 1; seq <= frames; seq++) journal.append([numbered(seq)])
    expect(journal.chain().toString('hex')).toBe(chains[frames])
    expect(listSegments(disk, directory, 'log')).toEqual(begun)
    journal.close()
    expect(readdirSync(join(directory, 'lost+tail')).length).toBeGreaterThan(0)
  }
})

test('after a frame whose segment stays sealed: the next one is there, and empty', () => {
  const whole = written()
  for (const first of whole.begun.slice(1)) {
    const [directory, journal] = cut(whole, first - 1, true)
    expect(journal.nextSeq).toBe(first)
    expect(listSegments(disk, directory, 'log').at(-1)).toBe(first)
    for (let seq = first; seq <= frames; seq++) journal.append([numbered(seq)])
    expect(journal.chain().toString('hex')).toBe(whole.chains[frames])
    journal.close()
  }
})

test('what is not there cannot stay', () => {
  const whole = written()
  const newest = whole.begun.at(-1)!
  rmSync(segmentPath(whole.directory, newest))
  const last = newest + 1
  expect(() => cutJournal(disk, whole.directory, { last, isSealed: false, isKept: false })).toThrow('is damaged')
})
