import { createHash } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { expect, test } from 'vitest'
import { ReadableFrames } from '../../storage/around-damage.ts'
import { decodeFrame, encodeFrame, FOOTER, STUB } from '../../storage/frame.ts'
import { type JournalProblem, verifyJournal } from '../../storage/fsck-journal.ts'
import { Journal, JournalReader } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import {
  encodeSegmentHeader,
  indexPath,
  listSegments,
  readFooter,
  readSegmentHeader,
  SEGMENT_HEADER_BYTES,
  type SegmentHeader,
  seedOf,
  segmentPath,
} from '../../storage/segment.ts'
import { keyOf, numberedFrame } from '../support/frames.ts'
import { flipByte, scratchDirectory } from '../support/scratch.ts'

test('a header is decoded as it was written, and invalid with any byte changed', () => {
  const path = join(scratchDirectory(), 'a')
  const header = { journalId: keyOf(1), firstSeq: 2 ** 40 + 3, previousChain: Buffer.alloc(32, 5) }
  const bytes = encodeSegmentHeader(header)
  expect(bytes).toHaveLength(SEGMENT_HEADER_BYTES)
  writeFileSync(path, bytes)
  const file = machineDisk.openFile(path, 'read')
  expect(readSegmentHeader(file)).toEqual({ ...header, seed: seedOf(header.journalId), isOld: false })
  for (let offset = 0; offset < bytes.length; offset++) {
    flipByte(path, offset)
    expect(readSegmentHeader(file)).toBeUndefined()
    flipByte(path, offset)
  }
  file.close()
})

test('names sort like their seqs, and other files are not segments', () => {
  const directory = scratchDirectory()
  for (const seq of [900, 1, 10_000_000_000]) writeFileSync(segmentPath(directory, seq), '')
  for (const name of ['1.log', 'LOCK', `${'0'.repeat(19)}x.log`, `${'0'.repeat(20)}.log.tmp`]) {
    writeFileSync(join(directory, name), '')
  }
  writeFileSync(indexPath(directory, 7), '')
  expect(listSegments(machineDisk, directory, 'log')).toEqual([1, 900, 10_000_000_000])
  expect(listSegments(machineDisk, directory, 'idx')).toEqual([7])
})

function headerOf(path: string): SegmentHeader {
  const file = machineDisk.openFile(path, 'read')
  try {
    return readSegmentHeader(file)!
  } finally {
    file.close()
  }
}

/** What compaction does to a segment: payloads become stubs that carry the digest and the key. */
function replaceByStubs(path: string, isStub: (seq: number) => boolean): void {
  const bytes = readFileSync(path)
  const { seed } = headerOf(path)
  const parts = [bytes.subarray(0, SEGMENT_HEADER_BYTES)]
  for (let at = SEGMENT_HEADER_BYTES; at < bytes.length; ) {
    const frame = decodeFrame(bytes, at, bytes.length, seed)
    if (frame.frameBytes === undefined) throw new Error(frame.fault)
    at += frame.frameBytes
    const digest = createHash('sha256').update(frame.payload).digest()
    const stub = Buffer.concat([digest, frame.payload.subarray(0, 16), Buffer.from('reason')])
    const isReplaced = frame.type !== FOOTER && isStub(frame.seq)
    const payload = isReplaced ? stub : frame.payload
    const part = Buffer.alloc(28 + payload.length)
    const flags = isReplaced ? frame.flags | STUB : frame.flags
    const { type, seq, durableSeq } = frame
    encodeFrame(part, 0, { type, flags, payload }, { seq, durableSeq, seed })
    parts.push(part)
  }
  writeFileSync(path, Buffer.concat(parts))
}

test('a segment whose payloads became stubs keeps its chain hash, its seqs and its keys', () => {
  const directory = scratchDirectory()
  const options = { disk: machineDisk, directory, segmentBytesMax: 3000 }
  const journal = Journal.open(options)
  while (journal.nextSeq < 50) journal.append([numberedFrame(journal.nextSeq)])
  const chain = journal.chain()
  journal.close()
  for (const first of listSegments(machineDisk, directory, 'log')) {
    rmSync(indexPath(directory, first), { force: true })
    replaceByStubs(segmentPath(directory, first), (seq) => seq % 3 === 0)
  }
  const again = Journal.open(options)
  expect(again.chain()).toEqual(chain)
  for (let seq = 1; seq < 50; seq++) {
    expect(again.findKey(keyOf(seq))).toBe(seq)
    expect((again.read(seq)!.flags & STUB) !== 0).toBe(seq % 3 === 0)
  }
  again.close()
  const problems: unknown[] = []
  const check = verifyJournal(machineDisk, directory, (problem) => problems.push(problem))
  expect(problems).toEqual([])
  expect(check).toMatchObject({ frames: 49, damages: 0, nextSeq: 50, chain })
})

/** A segment of the version in which CRCs do not begin with the id of the journal. */
function makeVersion1(path: string): void {
  const bytes = readFileSync(path)
  const { seed } = headerOf(path)
  bytes[3] = 1
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 60)), 60)
  for (let at = SEGMENT_HEADER_BYTES; at < bytes.length; ) {
    const frame = decodeFrame(bytes, at, bytes.length, seed)
    if (frame.frameBytes === undefined) throw new Error(frame.fault)
    const payload = Buffer.from(frame.payload)
    at = encodeFrame(bytes, at, { ...frame, payload }, { seq: frame.seq, durableSeq: frame.durableSeq, seed: 0 })
  }
  writeFileSync(path, bytes)
}

test('a journal of version 1 is read, appended to, sealed and compacted; its next segment has version 3', () => {
  const directory = scratchDirectory()
  const options = { disk: machineDisk, directory, segmentBytesMax: 3000 }
  const made = Journal.open(options)
  while (made.nextSeq < 40) made.append([numberedFrame(made.nextSeq)])
  const chain = made.chain()
  made.close()
  const firsts = listSegments(machineDisk, directory, 'log')
  for (const first of firsts) makeVersion1(segmentPath(directory, first))
  const journal = Journal.open(options)
  expect(journal.chain()).toEqual(chain)
  while (listSegments(machineDisk, directory, 'log').length < firsts.length + 2)
    journal.append([numberedFrame(journal.nextSeq)])
  // One of the old segments and one of the new, each long enough for its stub.
  const long = (seq: number) => numberedFrame(seq).payload.length > 60
  const gone = new Set([4, ...Array.from({ length: 9 }, (_, n) => journal.nextSeq - 1 - n).filter(long)])
  for (const _ of journal.compact(
    gone,
    () => Buffer.from('gone'),
    () => {},
  ))
    void _
  for (let seq = 1; seq < journal.nextSeq; seq++) expect((journal.read(seq)!.flags & STUB) !== 0).toBe(gone.has(seq))
  const { nextSeq } = journal
  journal.close()
  const problems: unknown[] = []
  expect(verifyJournal(machineDisk, directory, (problem) => problems.push(problem))).toMatchObject({
    frames: nextSeq - 1,
    damages: 0,
  })
  expect(problems).toEqual([])
  const versions = listSegments(machineDisk, directory, 'log').map(
    (first) => readFileSync(segmentPath(directory, first))[3],
  )
  expect(versions.slice(0, firsts.length)).toEqual(firsts.map(() => 1))
  expect(new Set(versions.slice(firsts.length))).toEqual(new Set([3]))
  const again = Journal.open(options)
  const reader = JournalReader.open(machineDisk, directory)
  reader.advance(nextSeq - 1)
  expect([...reader.scan(1)].map(({ seq }) => seq)).toEqual(Array.from({ length: nextSeq - 1 }, (_, i) => i + 1))
  reader.close()
  again.close()
})

test('a payload that was changed along with its CRC is found by the chain hash', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax: 3000 })
  while (journal.nextSeq < 50) journal.append([numberedFrame(journal.nextSeq)])
  journal.close()
  const path = segmentPath(directory, 1)
  const bytes = readFileSync(path)
  const header = headerOf(path)
  const { seed } = header
  const frame = decodeFrame(bytes, SEGMENT_HEADER_BYTES, bytes.length, seed)
  if (frame.frameBytes === undefined) throw new Error(frame.fault)
  const payload = Buffer.from(frame.payload)
  payload[20]! ^= 1
  const { seq, durableSeq } = frame
  encodeFrame(bytes, SEGMENT_HEADER_BYTES, { ...frame, payload }, { seq, durableSeq, seed })
  writeFileSync(path, bytes)
  const problems: unknown[] = []
  verifyJournal(machineDisk, directory, (problem) => problems.push(problem))
  const file = machineDisk.openFile(path, 'read')
  const footer = readFooter(file, bytes.length, header)!
  file.close()
  const found = `${footer.chain.toString('hex')} in the footer`
  expect(problems).toContainEqual(expect.objectContaining({ kind: 'damage', path, offset: bytes.length - 64, found }))
})

test('the full check finds nothing in an intact journal, the tail in a torn one, and the index when it is lost', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax: 3000 })
  while (journal.nextSeq < 50) journal.append([numberedFrame(journal.nextSeq)])
  journal.close()
  const kinds = () => {
    const found: string[] = []
    verifyJournal(machineDisk, directory, (problem) => found.push(problem.kind))
    return found
  }
  expect(kinds()).toEqual([])
  rmSync(indexPath(directory, 1))
  const last = listSegments(machineDisk, directory, 'log').at(-1)!
  writeFileSync(segmentPath(directory, last), 'torn', { flag: 'a' })
  expect(kinds()).toEqual(['index', 'torn-tail'])
  writeFileSync(segmentPath(directory, last), 'BSJ')
  expect(kinds()).toEqual(['index', 'headerless'])
})

test('the full check finds one damage if the newest file is cut to nothing or gone, though its frames were durable', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax: 3000 })
  while (journal.nextSeq < 50) journal.append([numberedFrame(journal.nextSeq)])
  journal.close()
  rmSync(join(directory, 'durable'), { force: true })
  const newest = segmentPath(directory, listSegments(machineDisk, directory, 'log').at(-1)!)
  for (const harm of [() => writeFileSync(newest, 'BSJ'), () => writeFileSync(newest, ''), () => rmSync(newest)]) {
    harm()
    const found: string[] = []
    const { nextSeq } = verifyJournal(
      machineDisk,
      directory,
      ({ kind, found: what }) => found.push(`${kind}: ${what}`),
      () => ({ seq: 49, by: 'a snapshot' }),
    )
    expect(found).toEqual([expect.stringMatching(/^damage: .*, though a snapshot holds frame 49$/)])
    expect(nextSeq).toBe(50)
  }
})

test('each damaged frame of a sealed segment is reported once, and everything after it is read', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax: 3000 })
  while (journal.nextSeq < 50) journal.append([numberedFrame(journal.nextSeq)])
  const chain = journal.chain()
  journal.close()
  const path = segmentPath(directory, 1)
  const sound = readFileSync(path)
  const { seed } = headerOf(path)
  const starts = [SEGMENT_HEADER_BYTES]
  for (;;) {
    const frame = decodeFrame(sound, starts.at(-1)!, sound.length, seed)
    if (frame.frameBytes === undefined) break
    starts.push(starts.at(-1)! + frame.frameBytes)
  }
  const problemsWith = (...offsets: number[]) => {
    const bytes = Buffer.from(sound)
    for (const offset of offsets) bytes[offset]! ^= 1
    writeFileSync(path, bytes)
    const found: JournalProblem[] = []
    const { nextSeq, frames, chain } = verifyJournal(machineDisk, directory, (problem) => found.push(problem))
    expect(nextSeq).toBe(50)
    const readable = new ReadableFrames(machineDisk, directory)
    const seqs = [...readable.through(49)].map(({ seq }) => seq)
    readable.close()
    expect(seqs).toHaveLength(frames)
    return { chain, seqs, told: found.map(({ kind, offset, expected }) => ({ kind, offset, expected })) }
  }
  const all = Array.from({ length: 49 }, (_, n) => n + 1)
  const damageOf = (seq: number) => ({ kind: 'damage', offset: starts[seq - 1], expected: `frame ${seq}` })
  // At each field of the frame: magic, length, seq, crc, payload.
  for (const at of [0, 4, 7, 8, 16, 24, 30]) {
    expect(problemsWith(starts[2]! + at)).toEqual({
      chain,
      seqs: all.filter((seq) => seq !== 3),
      told: [damageOf(3)],
    })
  }
  expect(problemsWith(starts[1]! + 40, starts[2]! + 40, starts[5]! + 40)).toEqual({
    chain,
    seqs: all.filter((seq) => ![2, 3, 6].includes(seq)),
    told: [damageOf(2), damageOf(6)],
  })
})
