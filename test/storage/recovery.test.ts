import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { encodeFrame, FRAME_HEADER_BYTES } from '../../storage/frame.ts'
import { verifyJournal } from '../../storage/fsck-journal.ts'
import { Damage, Journal, type JournalEvent } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { FOOTER_BYTES, indexPath, SEGMENT_HEADER_BYTES, seedOf, segmentPath } from '../../storage/segment.ts'
import { keyOf, numberedFrame } from '../support/frames.ts'
import { flipByte, scratchDirectory } from '../support/scratch.ts'

// Thousands of syncs and several processes take a while on a busy disk.
vi.setConfig({ testTimeout: 300_000 })

/** Bytes of the frames in `seqs` on disk. */
function bytesOf(from: number, through: number): number {
  let bytes = 0
  for (let seq = from; seq <= through; seq++) bytes += FRAME_HEADER_BYTES + numberedFrame(seq).payload.length
  return bytes
}

/** A journal of one segment: `batches` batches of `size` frames. */
function writeBatches(directory: string, batches: number, size: number): void {
  const journal = Journal.open({ disk: machineDisk, directory })
  for (let i = 0; i < batches; i++) {
    journal.append(Array.from({ length: size }, (_, k) => numberedFrame(journal.nextSeq + k)))
  }
  journal.close()
}

/** Three sealed segments and an active one, of 12 frames each except the last. */
function writeSegments(directory: string): { firsts: number[]; last: number; segmentBytesMax: number } {
  const segmentBytesMax = 3000
  const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax })
  while (readdirSync(directory).filter((name) => name.endsWith('.log')).length < 4)
    journal.append([numberedFrame(journal.nextSeq)])
  journal.append([numberedFrame(journal.nextSeq)])
  const last = journal.nextSeq - 1
  journal.close()
  const logs = readdirSync(directory).filter((name) => name.endsWith('.log'))
  return { firsts: logs.sort().map((name) => Number(name.slice(0, 20))), last, segmentBytesMax }
}

function expectNumbered(journal: Journal, last: number): void {
  expect(journal.nextSeq).toBe(last + 1)
  let seq = 1
  for (const frame of journal.scan(1)) {
    expect(frame).toMatchObject({ ...numberedFrame(seq), seq })
    seq++
  }
  expect(seq).toBe(last + 1)
}

function damageOf(act: () => unknown): Damage {
  try {
    act()
  } catch (error) {
    if (error instanceof Damage) return error
    throw error
  }
  throw new Error('no damage was found')
}

/** Kinds of problems that the full check finds. */
function problemsOf(directory: string): string[] {
  const kinds: string[] = []
  verifyJournal(machineDisk, directory, ({ kind }) => kinds.push(kind))
  return kinds
}

function seedIn(directory: string): number {
  return seedOf(readFileSync(log(directory)).subarray(4, 20))
}

function withoutZeros(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.findLastIndex((byte) => byte !== 0) + 1)
}

const log = (directory: string) => segmentPath(directory, 1)

describe('the torn tail', () => {
  test('cut at any byte, the last segment opens with all whole frames, saves the rest aside and continues', () => {
    const original = scratchDirectory()
    writeBatches(original, 2, 2)
    const size = statSync(log(original)).size
    const bytes = readFileSync(log(original))
    const directory = scratchDirectory()
    for (let cut = 0; cut < size; cut++) {
      rmSync(directory, { recursive: true })
      cpSync(original, directory, { recursive: true })
      truncateSync(log(directory), cut)
      let whole = 0
      while (whole < 4 && SEGMENT_HEADER_BYTES + bytesOf(1, whole + 1) <= cut) whole++
      const events: JournalEvent[] = []
      const journal = Journal.open({ disk: machineDisk, directory, report: (event) => events.push(event) })
      expectNumbered(journal, whole)
      const kept = cut < SEGMENT_HEADER_BYTES ? 0 : SEGMENT_HEADER_BYTES + bytesOf(1, whole)
      const torn = kept === 0 ? bytes.subarray(0, cut) : withoutZeros(bytes.subarray(kept, cut))
      expect(events).toHaveLength(torn.length > 0 ? 1 : 0)
      for (const event of events) {
        if (event.kind !== 'tail-cut') throw new Error(event.kind)
        expect(event).toMatchObject({ path: log(directory), offset: kept, bytes: torn.length })
        expect(readFileSync(event.saved)).toEqual(torn)
      }
      journal.append([numberedFrame(whole + 1)])
      journal.close()
    }
  })

  test('zeros after the last frame are preallocated room: no problem, and cut silently', () => {
    const directory = scratchDirectory()
    writeBatches(directory, 3, 2)
    writeFileSync(log(directory), Buffer.alloc(200_001), { flag: 'a' })
    expect(problemsOf(directory)).toEqual([])
    const events: JournalEvent[] = []
    const journal = Journal.open({ disk: machineDisk, directory, report: (event) => events.push(event) })
    expect(events).toEqual([])
    expectNumbered(journal, 6)
    journal.close()
    expect(statSync(log(directory)).size).toBe(SEGMENT_HEADER_BYTES + bytesOf(1, 6))
  })

  test('a torn frame before such zeros is saved without them', () => {
    const directory = scratchDirectory()
    writeBatches(directory, 3, 2)
    const torn = Buffer.concat([Buffer.from('half a frame'), Buffer.alloc(70_000)])
    writeFileSync(log(directory), torn, { flag: 'a' })
    expect(problemsOf(directory)).toEqual(['torn-tail'])
    const events: JournalEvent[] = []
    const journal = Journal.open({ disk: machineDisk, directory, report: (event) => events.push(event) })
    expectNumbered(journal, 6)
    journal.close()
    expect(events).toMatchObject([{ kind: 'tail-cut', bytes: 12 }])
  })

  test('a frame after a gap of zeros that says it followed durable ones is damage, and so are zeros for durable frames', () => {
    const directory = scratchDirectory()
    writeBatches(directory, 3, 2)
    const bytes = readFileSync(log(directory))
    bytes.fill(0, SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES + bytesOf(1, 2))
    writeFileSync(log(directory), bytes)
    expect(damageOf(() => Journal.open({ disk: machineDisk, directory }))).toMatchObject({
      offset: SEGMENT_HEADER_BYTES,
    })
    const other = scratchDirectory()
    const { firsts } = writeSegments(other)
    const older = segmentPath(other, firsts[1]!)
    writeFileSync(older, Buffer.concat([readFileSync(older), Buffer.alloc(9)]))
    expect(damageOf(() => Journal.open({ disk: machineDisk, directory: other }))).toMatchObject({ path: older })
  })

  test('zeros after the footer of the newest segment, as a crash during sealing leaves them, are cut', () => {
    const directory = scratchDirectory()
    const { firsts, last, segmentBytesMax } = writeSegments(directory)
    rmSync(segmentPath(directory, firsts.at(-1)!))
    const sealed = segmentPath(directory, firsts.at(-2)!)
    const { size } = statSync(sealed)
    writeFileSync(sealed, Buffer.alloc(5_000), { flag: 'a' })
    expect(problemsOf(directory)).toEqual([])
    const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax })
    expect(statSync(sealed).size).toBe(size)
    expectNumbered(journal, firsts.at(-1)! - 1)
    expect(last).toBeGreaterThanOrEqual(firsts.at(-1)!)
    journal.append([numberedFrame(journal.nextSeq)])
    journal.close()
    expect(problemsOf(directory)).toEqual([])
  })

  test('a bad frame in the last batch takes the whole frames after it along: none was acknowledged', () => {
    const original = scratchDirectory()
    writeBatches(original, 3, 3)
    const start = SEGMENT_HEADER_BYTES + bytesOf(1, 6)
    for (let offset = start; offset < SEGMENT_HEADER_BYTES + bytesOf(1, 7); offset++) {
      const directory = scratchDirectory()
      cpSync(original, directory, { recursive: true })
      flipByte(log(directory), offset)
      const journal = Journal.open({ disk: machineDisk, directory })
      expectNumbered(journal, 6)
      journal.close()
    }
  })

  test('a frame that cannot follow a torn one proves nothing', () => {
    const directory = scratchDirectory()
    writeBatches(directory, 2, 2)
    const inner = Buffer.alloc(FRAME_HEADER_BYTES + 1)
    const place = { seq: 1_000_000, durableSeq: 999_999, seed: seedIn(directory) }
    encodeFrame(inner, 0, { type: 1, flags: 0, payload: Buffer.from('x') }, place)
    writeFileSync(log(directory), inner, { flag: 'a' })
    const journal = Journal.open({ disk: machineDisk, directory })
    expectNumbered(journal, 4)
    journal.close()
  })

  test('a payload full of forged frames that could follow proves nothing, wherever it is torn', () => {
    const original = scratchDirectory()
    writeBatches(original, 2, 2)
    const payload = Buffer.alloc(40 * (FRAME_HEADER_BYTES + 1))
    const imitated = { type: 1, flags: 0, payload: Buffer.from('x') }
    // Its sender knows the numbers, but not the id of the journal.
    for (let i = 0, at = 0; i < 40; i++)
      at = encodeFrame(payload, at, imitated, { seq: 5 + i, durableSeq: 4 + i, seed: 0 })
    const open = Journal.open({ disk: machineDisk, directory: original })
    open.append([{ type: 1, flags: 0, payload }])
    open.close()
    const start = SEGMENT_HEADER_BYTES + bytesOf(1, 4)
    for (const [from, to] of [
      [0, 28],
      [4, 8],
      [200, 400],
      [1000, Infinity],
    ] as const) {
      const directory = scratchDirectory()
      cpSync(original, directory, { recursive: true })
      const bytes = readFileSync(log(directory))
      writeFileSync(log(directory), bytes.fill(0, start + from, Math.min(start + to, bytes.length)))
      expect(problemsOf(directory)).toEqual(['torn-tail'])
      const journal = Journal.open({ disk: machineDisk, directory })
      expectNumbered(journal, 4)
      journal.close()
    }
  })

  test('only a few saved tails are retained', () => {
    const directory = scratchDirectory()
    for (let round = 0; round < 20; round++) {
      writeFileSync(log(directory), 'junk', { flag: 'a' })
      Journal.open({ disk: machineDisk, directory }).close()
    }
    const saved = readdirSync(join(directory, 'lost+tail'))
    expect(saved).toHaveLength(16)
    expect(saved.sort().at(-1)).toMatch(/^00000020-/)
  })
})

describe('damage', () => {
  test('any changed byte before the last batch of the last segment is refused with its place, and nothing is modified', () => {
    const original = scratchDirectory()
    writeBatches(original, 3, 2)
    const bytes = readFileSync(log(original))
    const directory = scratchDirectory()
    for (let offset = 0; offset < SEGMENT_HEADER_BYTES + bytesOf(1, 4); offset++) {
      rmSync(directory, { recursive: true })
      cpSync(original, directory, { recursive: true })
      flipByte(log(directory), offset)
      let frame = 1
      while (SEGMENT_HEADER_BYTES + bytesOf(1, frame) <= offset) frame++
      const expected = offset < SEGMENT_HEADER_BYTES ? 0 : SEGMENT_HEADER_BYTES + bytesOf(1, frame - 1)
      const damage = damageOf(() => Journal.open({ disk: machineDisk, directory }))
      expect(damage).toMatchObject({ path: log(directory), offset: expected })
      const changed = Buffer.from(bytes)
      changed[offset]! ^= 0x5a
      expect(readFileSync(log(directory)).equals(changed)).toBe(true)
      expect(readdirSync(directory)).toHaveLength(1)
      expect(check(directory)).toMatchObject([{ kind: 'damage', path: log(directory), offset: expected }])
    }
  })

  test('any changed byte of a sealed segment is found with its place, at the start or when it is read', () => {
    const original = scratchDirectory()
    const { firsts, last, segmentBytesMax } = writeSegments(original)
    const first = firsts[1]!
    const size = statSync(segmentPath(original, first)).size
    const directory = scratchDirectory()
    for (let offset = 0; offset < size; offset += offset < 100 || offset > size - 70 ? 1 : 23) {
      rmSync(directory, { recursive: true })
      cpSync(original, directory, { recursive: true })
      const path = segmentPath(directory, first)
      flipByte(path, offset)
      let frame = first
      while (frame < firsts[2]! - 1 && SEGMENT_HEADER_BYTES + bytesOf(first, frame) <= offset) frame++
      const inFrame = offset >= SEGMENT_HEADER_BYTES && offset < size - FOOTER_BYTES
      const expected = inFrame
        ? SEGMENT_HEADER_BYTES + bytesOf(first, frame - 1)
        : offset < 100
          ? 0
          : size - FOOTER_BYTES
      expect(check(directory)).toContainEqual(expect.objectContaining({ kind: 'damage', path, offset: expected }))
      if (!inFrame) {
        expect(damageOf(() => Journal.open({ disk: machineDisk, directory, segmentBytesMax }))).toMatchObject({
          path,
          offset: expected,
        })
        continue
      }
      const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax })
      expect(damageOf(() => Array.from(journal.scan(1)))).toMatchObject({ path, offset: expected })
      expect(damageOf(() => journal.read(frame))).toMatchObject({ path, offset: expected })
      expect(journal.read(frame === first ? frame + 1 : first)).toMatchObject(
        numberedFrame(frame === first ? frame + 1 : first),
      )
      expect(journal.read(last)).toMatchObject(numberedFrame(last))
      journal.close()
    }
  })

  test('a missing segment, a truncated one and one of another journal are refused', () => {
    const original = scratchDirectory()
    const { firsts } = writeSegments(original)
    const other = scratchDirectory()
    writeSegments(other)
    const spoil: Record<string, (directory: string) => void> = {
      'first missing': (directory) => rmSync(segmentPath(directory, 1)),
      'middle missing': (directory) => rmSync(segmentPath(directory, firsts[2]!)),
      'middle cut': (directory) => truncateSync(segmentPath(directory, firsts[1]!), 500),
      'middle empty': (directory) => truncateSync(segmentPath(directory, firsts[1]!), 0),
      'middle unsealed': (directory) =>
        truncateSync(
          segmentPath(directory, firsts[1]!),
          statSync(segmentPath(directory, firsts[1]!)).size - FOOTER_BYTES,
        ),
      'last foreign': (directory) => cpSync(segmentPath(other, firsts[3]!), segmentPath(directory, firsts[3]!)),
      'middle foreign': (directory) => cpSync(segmentPath(other, firsts[1]!), segmentPath(directory, firsts[1]!)),
      'all missing but an index': (directory) => {
        for (const first of firsts) rmSync(segmentPath(directory, first))
      },
    }
    for (const [what, act] of Object.entries(spoil)) {
      const directory = scratchDirectory()
      cpSync(original, directory, { recursive: true })
      act(directory)
      expect(() => Journal.open({ disk: machineDisk, directory }), what).toThrow(Damage)
    }
  })

  test('bytes after a footer are damage', () => {
    const directory = scratchDirectory()
    const { firsts } = writeSegments(directory)
    rmSync(segmentPath(directory, firsts[3]!))
    writeFileSync(segmentPath(directory, firsts[2]!), 'x', { flag: 'a' })
    expect(() => Journal.open({ disk: machineDisk, directory })).toThrow(/1 more bytes/)
  })
})

describe('a crash during a roll', () => {
  function crashed(change: (directory: string, firsts: number[]) => void): void {
    const directory = scratchDirectory()
    const { firsts, segmentBytesMax } = writeSegments(directory)
    // Without its frames the newest segment is as after the roll.
    truncateSync(segmentPath(directory, firsts[3]!), SEGMENT_HEADER_BYTES)
    change(directory, firsts)
    const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax })
    expectNumbered(journal, firsts[3]! - 1)
    journal.append([numberedFrame(journal.nextSeq)])
    journal.close()
    expect(check(directory)).toEqual([])
    const again = Journal.open({ disk: machineDisk, directory, segmentBytesMax })
    expectNumbered(again, firsts[3]!)
    for (let seq = 1; seq <= firsts[3]!; seq++) expect(again.findKey(keyOf(seq))).toBe(seq)
    again.close()
  }

  test('after the header of the next segment', () => crashed(() => {}))

  test('at any byte of the header of the next segment', () => {
    for (let size = 0; size < SEGMENT_HEADER_BYTES; size += 9) {
      crashed((directory, firsts) => truncateSync(segmentPath(directory, firsts[3]!), size))
    }
  })

  test('between index and next segment', () => {
    crashed((directory, firsts) => rmSync(segmentPath(directory, firsts[3]!)))
  })

  test('between footer and index, with half an index written', () => {
    crashed((directory, firsts) => {
      rmSync(segmentPath(directory, firsts[3]!))
      rmSync(indexPath(directory, firsts[2]!))
      writeFileSync(`${indexPath(directory, firsts[2]!)}.tmp`, 'half')
    })
  })

  test('at any byte of the footer', () => {
    for (let cut = 1; cut <= FOOTER_BYTES; cut += 7) {
      crashed((directory, firsts) => {
        rmSync(segmentPath(directory, firsts[3]!))
        rmSync(indexPath(directory, firsts[2]!))
        const path = segmentPath(directory, firsts[2]!)
        truncateSync(path, statSync(path).size - cut)
      })
    }
  })
})

test('a first start interrupted at any byte of the header starts over', () => {
  for (const size of [0, 1, 30, 63]) {
    const directory = scratchDirectory()
    Journal.open({ disk: machineDisk, directory }).close()
    truncateSync(log(directory), size)
    const journal = Journal.open({ disk: machineDisk, directory })
    expect(journal.append([numberedFrame(1)])).toBe(1)
    journal.close()
  }
})

test('a journal is created in a directory that does not exist yet', () => {
  const directory = join(scratchDirectory(), 'a/b')
  Journal.open({ disk: machineDisk, directory }).close()
  expect(existsSync(log(directory))).toBe(true)
})

function check(directory: string) {
  const problems: unknown[] = []
  verifyJournal(machineDisk, directory, (problem) => problems.push(problem))
  return problems
}
