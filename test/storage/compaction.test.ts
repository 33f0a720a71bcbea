import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { verifyJournal } from '../../storage/fsck-journal.ts'
import { DiskFull, Journal, JournalReader, KEYED, STUB } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { removeSavedTails } from '../../storage/recovery.ts'
import { FaultyDisk } from '../support/faulty-disk.ts'
import { flipByte, scratchDirectory } from '../support/scratch.ts'

const kept = Buffer.from('what stays')

/** A journal of small segments: every payload is a 16-byte key and a unique text. */
function filled(directory: string, frames: number, disk = new FaultyDisk()): Journal {
  const journal = Journal.open({ directory, segmentBytesMax: 4096, disk })
  for (let seq = 1; seq <= frames; seq++)
    journal.append([{ type: 1, flags: KEYED, payload: Buffer.concat([keyOf(seq), Buffer.from(secretOf(seq))]) }])
  return journal
}

/** No segment in these tests is damaged. */
const never = (damage: Error): never => {
  throw damage
}

const keyOf = (seq: number): Buffer => Buffer.from(String(seq).padStart(16, 'k'))
const secretOf = (seq: number): string => `secret-${seq}-${'x'.repeat(80)}`

function compactAll(journal: Journal, seqs: ReadonlySet<number>): number {
  const steps = journal.compact(seqs, () => kept, never)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

function bytesOnDisk(directory: string): string {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  return names
    .filter((name) => /\.(log|idx|compact)$/.test(name))
    .map((name) => readFileSync(join(directory, name), 'latin1'))
    .join()
}

test('compacted payloads are nowhere on disk, everything else is unchanged, and the hash chain is valid', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 40 }), (picked) => {
      const directory = scratchDirectory()
      const journal = filled(directory, 90)
      const seqs = new Set(picked)
      expect(compactAll(journal, seqs)).toBe(seqs.size)
      const found = bytesOnDisk(directory)
      for (let seq = 1; seq <= 90; seq++) expect(found.includes(`secret-${seq}-`)).toBe(!seqs.has(seq))
      const checkAll = (opened: Pick<Journal, 'read' | 'findKey'>) => {
        for (let seq = 1; seq <= 90; seq++) {
          const { flags, payload } = opened.read(seq)!
          expect((flags & STUB) !== 0).toBe(seqs.has(seq))
          if (seqs.has(seq)) expect(payload.subarray(48, 48 + kept.length)).toEqual(kept)
          else expect(payload.subarray(16).toString()).toBe(secretOf(seq))
          expect(opened.findKey(keyOf(seq))).toBe(seq)
        }
      }
      checkAll(journal)
      journal.append([{ type: 1, flags: 0, payload: Buffer.from('goes on') }])
      journal.close()
      const problems: unknown[] = []
      expect(verifyJournal(machineDisk, directory, (problem) => problems.push(problem))).toMatchObject({
        damages: 0,
        frames: 91,
      })
      expect(problems).toEqual([])
      const again = Journal.open({ disk: machineDisk, directory, segmentBytesMax: 4096 })
      checkAll(again)
      expect(compactAll(again, seqs)).toBe(0)
      again.close()
    }),
    { numRuns: 15 },
  )
})

test('the chain hash of a compacted journal equals that of the journal as it was written', () => {
  const directory = scratchDirectory()
  const journal = filled(directory, 60)
  const before = journal.chain()
  compactAll(journal, new Set([1, 2, 30, 59]))
  expect(journal.chain()).toEqual(before)
  journal.close()
})

test('a compaction interrupted at any step leaves every frame intact, and the next one finishes it', () => {
  for (let steps = 0; steps < 6; steps++) {
    const directory = scratchDirectory()
    const journal = filled(directory, 90)
    const seqs = new Set([3, 33, 63, 88])
    const compacting = journal.compact(seqs, () => kept, never)
    for (let n = 0; n < steps; n++) compacting.next()
    // As a kill would: nothing is closed.
    const again = Journal.open({ disk: machineDisk, directory, segmentBytesMax: 4096 })
    for (let seq = 1; seq <= 90; seq++) expect(again.read(seq)?.seq).toBe(seq)
    compactAll(again, seqs)
    expect(bytesOnDisk(directory)).not.toMatch(/secret-(3|33|63|88)-/)
    again.close()
    journal.close()
  }
})

test('only the saved tails of a journal are removed', () => {
  const directory = scratchDirectory()
  expect(removeSavedTails(machineDisk, directory)).toBe(0)
  mkdirSync(join(directory, 'lost+tail'))
  for (const name of ['00000001-1-64.bin', '00000002-9-64.bin'])
    writeFileSync(join(directory, 'lost+tail', name), 'words')
  writeFileSync(join(directory, 'other'), 'words')
  expect(removeSavedTails(machineDisk, directory)).toBe(2)
  expect(readdirSync(directory, { recursive: true })).toEqual(['lost+tail', 'other'])
})

test('a reader in another thread reads on while segments are rewritten, and sees the stubs after it reopens', () => {
  const directory = scratchDirectory()
  const journal = filled(directory, 90)
  const reader = JournalReader.open(machineDisk, directory)
  reader.advance(90)
  expect(reader.read(5)!.payload.subarray(16).toString()).toBe(secretOf(5))
  compactAll(journal, new Set([5]))
  expect([...reader.scan(1)].map(({ seq }) => seq)).toEqual(Array.from({ length: 90 }, (_, n) => n + 1))
  reader.reopen()
  expect(reader.read(5)!.flags & STUB).toBe(STUB)
  reader.close()
  journal.close()
})

test('a reader that reopens holds no file, not even that of the active segment that was rewritten once sealed', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory })
  const disk = new FaultyDisk()
  const reader = JournalReader.open(disk, directory)
  const write = (seq: number) => {
    journal.append([{ type: 1, flags: KEYED, payload: Buffer.concat([keyOf(seq), Buffer.from(secretOf(seq))]) }])
    reader.advance(seq)
  }
  for (let seq = 1; seq <= 20; seq++) write(seq)
  expect(reader.read(5)!.payload.subarray(16).toString()).toBe(secretOf(5))
  const steps = reader.scan(1)
  steps.next()
  compactAll(journal, new Set([5]))
  reader.reopen()
  steps.return()
  expect(disk.open).toBe(0)
  expect(reader.read(5)!.flags & STUB).toBe(STUB)
  expect(reader.findKey(keyOf(20))).toBe(20)
  reader.reopen()
  write(21)
  expect([...reader.scan(19)].map(({ seq }) => seq)).toEqual([19, 20, 21])
  reader.close()
  expect(disk.open).toBe(0)
  journal.close()
})

test('a damaged segment keeps its frames and is reported, and the others are compacted', () => {
  const directory = scratchDirectory()
  const journal = filled(directory, 90)
  const [first, second] = readdirSync(directory).filter((name) => name.endsWith('.log'))
  const end = Number.parseInt(second!, 10) - 1
  flipByte(join(directory, first!), readFileSync(join(directory, first!)).indexOf('secret-7-'))
  const told: string[] = []
  const onDamage = (damage: Error, left: readonly number[]) => told.push(`${damage.name} ${left}`)
  const steps = journal.compact(new Set([3, end, end + 1, 88]), () => kept, onDamage)
  while (steps.next().done !== true);
  expect(told).toEqual([`Damage 3,${end}`])
  expect([3, end, end + 1, 88].map((seq) => (journal.read(seq)!.flags & STUB) !== 0)).toEqual([
    false,
    false,
    true,
    true,
  ])
  journal.close()
})

test('a stub larger than its frame is refused, and nothing changes', () => {
  const directory = scratchDirectory()
  const journal = filled(directory, 3)
  const compacting = journal.compact(new Set([2]), () => Buffer.alloc(500), never)
  expect(() => [...compacting]).toThrow(RangeError)
  expect(journal.read(2)!.payload.subarray(16).toString()).toBe(secretOf(2))
  journal.close()
})

test('a compaction without room for its copy frees what the copy took, and leaves none of its files open', () => {
  const directory = scratchDirectory()
  const disk = new FaultyDisk()
  const journal = filled(directory, 90, disk)
  const names = readdirSync(directory)
  for (const room of [0, 1, 3000]) {
    const { open } = disk
    disk.bytesLeft = room
    expect(() => compactAll(journal, new Set([3, 33]))).toThrow(DiskFull)
    expect(disk.open).toBe(open)
    expect(readdirSync(directory)).toEqual(names)
  }
  disk.bytesLeft = Number.POSITIVE_INFINITY
  expect(compactAll(journal, new Set([3, 33]))).toBe(2)
  expect(bytesOnDisk(directory)).not.toMatch(/secret-(3|33)-/)
  journal.close()
  expect(disk.open).toBe(0)
})
