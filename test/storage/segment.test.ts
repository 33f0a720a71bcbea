import { createHash } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openFile } from '../../storage/disk.ts'
import { decodeFrame, encodeFrame, FOOTER, STUB } from '../../storage/frame.ts'
import { verifyJournal } from '../../storage/fsck-journal.ts'
import { Journal } from '../../storage/journal.ts'
import {
  encodeSegmentHeader,
  indexPath,
  listSegments,
  readFooter,
  readSegmentHeader,
  SEGMENT_HEADER_BYTES,
  segmentPath,
} from '../../storage/segment.ts'
import { keyOf, numbered } from '../support/frames.ts'
import { flipByte, scratchDirectory } from '../support/scratch.ts'

test('a header comes back as it was written, and with any byte changed it is none', () => {
  const path = join(scratchDirectory(), 'a')
  const header = { journalId: keyOf(1), firstSeq: 2 ** 40 + 3, previousChain: Buffer.alloc(32, 5) }
  const bytes = encodeSegmentHeader(header)
  expect(bytes).toHaveLength(SEGMENT_HEADER_BYTES)
  writeFileSync(path, bytes)
  const file = openFile(path, 'read')
  expect(readSegmentHeader(file)).toEqual(header)
  for (let offset = 0; offset < bytes.length; offset++) {
    flipByte(path, offset)
    expect(readSegmentHeader(file)).toBeUndefined()
    flipByte(path, offset)
  }
  file.close()
})

test('names sort as their seqs do, and other files are not segments', () => {
  const directory = scratchDirectory()
  for (const seq of [900, 1, 10_000_000_000]) writeFileSync(segmentPath(directory, seq), '')
  for (const name of ['1.log', 'LOCK', `${'0'.repeat(19)}x.log`, `${'0'.repeat(20)}.log.tmp`]) {
    writeFileSync(join(directory, name), '')
  }
  writeFileSync(indexPath(directory, 7), '')
  expect(listSegments(directory, 'log')).toEqual([1, 900, 10_000_000_000])
  expect(listSegments(directory, 'idx')).toEqual([7])
})

/** What compaction will do to a segment: payloads become stubs that carry the digest and the key. */
function replaceByStubs(path: string, isStub: (seq: number) => boolean): void {
  const bytes = readFileSync(path)
  const parts = [bytes.subarray(0, SEGMENT_HEADER_BYTES)]
  for (let at = SEGMENT_HEADER_BYTES; at < bytes.length; ) {
    const frame = decodeFrame(bytes, at, bytes.length)
    if (frame.frameBytes === undefined) throw new Error(frame.fault)
    at += frame.frameBytes
    const digest = createHash('sha256').update(frame.payload).digest()
    const stub = Buffer.concat([digest, frame.payload.subarray(0, 16), Buffer.from('reason')])
    const isReplaced = frame.type !== FOOTER && isStub(frame.seq)
    const payload = isReplaced ? stub : frame.payload
    const part = Buffer.alloc(28 + payload.length)
    const flags = isReplaced ? frame.flags | STUB : frame.flags
    encodeFrame(part, 0, { type: frame.type, flags, payload }, frame.seq, frame.durableSeq)
    parts.push(part)
  }
  writeFileSync(path, Buffer.concat(parts))
}

test('a segment whose payloads became stubs keeps its chain hash, its seqs and its keys', () => {
  const directory = scratchDirectory()
  const options = { directory, segmentBytesMax: 3000 }
  const journal = Journal.open(options)
  while (journal.nextSeq < 50) journal.append([numbered(journal.nextSeq)])
  const chain = journal.chain()
  journal.close()
  for (const first of listSegments(directory, 'log')) {
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
  const check = verifyJournal(directory, (problem) => problems.push(problem))
  expect(problems).toEqual([])
  expect(check).toMatchObject({ frames: 49, damages: 0, nextSeq: 50, chain })
})

test('a payload that was changed with its CRC put right is found by the chain hash', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ directory, segmentBytesMax: 3000 })
  while (journal.nextSeq < 50) journal.append([numbered(journal.nextSeq)])
  journal.close()
  const path = segmentPath(directory, 1)
  const bytes = readFileSync(path)
  const frame = decodeFrame(bytes, SEGMENT_HEADER_BYTES, bytes.length)
  if (frame.frameBytes === undefined) throw new Error(frame.fault)
  const payload = Buffer.from(frame.payload)
  payload[20]! ^= 1
  encodeFrame(bytes, SEGMENT_HEADER_BYTES, { ...frame, payload }, frame.seq, frame.durableSeq)
  writeFileSync(path, bytes)
  const problems: unknown[] = []
  verifyJournal(directory, (problem) => problems.push(problem))
  const file = openFile(path, 'read')
  const footer = readFooter(file, bytes.length, 1)!
  file.close()
  const found = `${footer.chain.toString('hex')} in the footer`
  expect(problems).toContainEqual(expect.objectContaining({ kind: 'damage', path, offset: bytes.length - 64, found }))
})

test('the full check of a sound journal finds nothing, of a torn one the tail, of a lost index the index', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ directory, segmentBytesMax: 3000 })
  while (journal.nextSeq < 50) journal.append([numbered(journal.nextSeq)])
  journal.close()
  const kinds = () => {
    const found: string[] = []
    verifyJournal(directory, (problem) => found.push(problem.kind))
    return found
  }
  expect(kinds()).toEqual([])
  rmSync(indexPath(directory, 1))
  const last = listSegments(directory, 'log').at(-1)!
  writeFileSync(segmentPath(directory, last), 'torn', { flag: 'a' })
  expect(kinds()).toEqual(['index', 'torn-tail'])
  writeFileSync(segmentPath(directory, last), 'BSJ')
  expect(kinds()).toEqual(['index', 'unborn'])
})
