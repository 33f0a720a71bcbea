import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { FRAME_HEADER_BYTES } from '../../storage/frame.ts'
import { DiskFull, Journal, JournalReader, type NewFrame } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { FOOTER_BYTES, indexPath, SEGMENT_HEADER_BYTES, segmentPath } from '../../storage/segment.ts'
import { FaultyDisk } from '../support/faulty-disk.ts'
import { keyOf, numberedFrame } from '../support/frames.ts'
import { scratchDirectory } from '../support/scratch.ts'

// Thousands of syncs and several processes take a while on a busy disk.
vi.setConfig({ testTimeout: 300_000 })

const canMount = tryMount()

function batch(first: number, count: number): NewFrame[] {
  return Array.from({ length: count }, (_, i) => numberedFrame(first + i))
}

/** Copied, because scan returns views. */
function framesOf(journal: Journal | JournalReader, from = 1, through?: number) {
  return Array.from(journal.scan(from, through), (frame) => ({ ...frame, payload: Buffer.from(frame.payload) }))
}

test('a batch costs one write and one sync, whatever its size, and returns the seq of its first frame', () => {
  const disk = new FaultyDisk()
  const journal = Journal.open({ directory: scratchDirectory(), disk })
  disk.syncs = 0
  // The first one also preallocates room for those that follow.
  expect(journal.append(batch(1, 1))).toBe(1)
  disk.writes = 0
  expect(journal.append(batch(2, 200))).toBe(2)
  expect(journal.append([])).toBe(202)
  expect(journal.nextSeq).toBe(202)
  expect([disk.writes, disk.syncs]).toEqual([1, 2])
  journal.close()
})

test('a batch that is synced in the background is there when it is durable, and not before', async () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory })
  journal.append(batch(1, 3))
  const later = new Promise<Error | undefined>((resolve) => journal.appendLater(batch(4, 20), resolve))
  expect([journal.isAppending, journal.nextSeq, journal.read(4)]).toEqual([true, 4, undefined])
  expect(framesOf(journal)).toHaveLength(3)
  expect(() => journal.append(batch(24, 1))).toThrow('a batch is already being appended')
  expect(() => [
    ...journal.compact(
      new Set([1]),
      () => Buffer.alloc(0),
      () => {},
    ),
  ]).toThrow('while a batch is pending')
  expect(await later).toBeUndefined()
  expect([journal.isAppending, journal.nextSeq]).toEqual([false, 24])
  expect(journal.append(batch(24, 1))).toBe(24)
  const frames = framesOf(journal)
  const chain = journal.chain()
  journal.close()
  const again = Journal.open({ disk: machineDisk, directory })
  expect(framesOf(again)).toEqual(frames)
  expect(again.chain()).toEqual(chain)
  again.close()
})

/** The durable seq that each frame of the newest segment carries. */
function durableNumbers(directory: string, firstSeq = 1): number[] {
  const bytes = readFileSync(segmentPath(directory, firstSeq))
  const numbers: number[] = []
  for (let at = SEGMENT_HEADER_BYTES; bytes[at] === 0xff; at += FRAME_HEADER_BYTES + bytes.readUInt32LE(at + 4))
    numbers.push(Number(bytes.readBigUInt64LE(at + 16)))
  return numbers
}

test('frames to be synced later are read immediately, and no frame calls them durable before they are', async () => {
  const directory = scratchDirectory()
  const disk = new FaultyDisk()
  const journal = Journal.open({ directory, disk })
  journal.append(batch(1, 2))
  disk.syncs = 0
  journal.appendUnsynced(batch(3, 1))
  journal.appendUnsynced(batch(4, 1))
  expect([journal.nextSeq, journal.durableSeq, disk.syncs]).toEqual([5, 2, 0])
  expect(framesOf(journal)).toMatchObject(batch(1, 4))
  const synced = new Promise<Error | undefined>((resolve) => journal.syncLater(resolve))
  journal.appendUnsynced(batch(5, 1))
  await journal.idle()
  expect([await synced, journal.durableSeq, disk.syncs]).toEqual([undefined, 4, 1])
  journal.appendUnsynced(batch(6, 1))
  expect(durableNumbers(directory)).toEqual([0, 0, 2, 2, 2, 4])
  journal.sync()
  journal.sync()
  expect([journal.durableSeq, disk.syncs]).toEqual([6, 2])
  journal.close()
})

test('frames lost in a power cut before their later sync are cut, and are no damage', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ disk: machineDisk, directory })
  journal.append(batch(1, 2))
  for (let seq = 3; seq <= 8; seq++) journal.appendUnsynced(batch(seq, 1))
  const path = segmentPath(directory, 1)
  const bytes = readFileSync(path)
  journal.close()
  expect(durableNumbers(directory)).toEqual([0, 0, 2, 2, 2, 2, 2, 2])
  // The pages of the fifth frame were not written, those after it were.
  const sizes = batch(1, 5).map(({ payload }) => FRAME_HEADER_BYTES + payload.length)
  const end = sizes.reduce((sum, size) => sum + size, SEGMENT_HEADER_BYTES)
  bytes.fill(0, end - sizes[4]!, end)
  writeFileSync(path, bytes)
  const again = Journal.open({ disk: machineDisk, directory })
  expect(framesOf(again)).toMatchObject(batch(1, 4))
  again.close()
})

test('a segment is sealed after a sync of its frames, also while another sync is in progress', async () => {
  const directory = scratchDirectory()
  const disk = new FaultyDisk()
  const journal = Journal.open({ directory, segmentBytesMax: 4_096, disk })
  const synced: (Error | undefined)[] = []
  for (let seq = 1; seq <= 200; seq++) {
    journal.appendUnsynced(batch(seq, 1))
    if (seq % 70 === 1) journal.syncLater((failed) => synced.push(failed))
    // The sync is in progress while some segments are sealed.
    if (seq % 70 === 0) await journal.idle()
  }
  await journal.idle()
  expect(synced).toEqual([undefined, undefined, undefined])
  expect(framesOf(journal)).toMatchObject(batch(1, 200))
  journal.close()
  expect(disk.open).toBe(0)
  const again = Journal.open({ disk: machineDisk, directory })
  expect(again.nextSeq).toBe(201)
  again.close()
})

test('a background sync that fails poisons the journal permanently', async () => {
  const disk = new FaultyDisk()
  const journal = Journal.open({ directory: scratchDirectory(), disk })
  journal.appendUnsynced(batch(1, 1))
  disk.failNextSync = true
  const failed = await new Promise<Error | undefined>((resolve) => journal.syncLater(resolve))
  expect([failed?.name, journal.durableSeq]).toEqual(['SyncFailed', 0])
  expect(() => journal.appendUnsynced(batch(2, 1))).toThrow('poisoned')
  expect(() => journal.syncLater(() => {})).toThrow('poisoned')
  journal.close()
})

test('a file grows in a few steps, zero-filled up to its bound, and is cut to its frames when sealed or closed', () => {
  const disk = new FaultyDisk()
  const directory = scratchDirectory()
  const segmentBytesMax = 200_000
  const journal = Journal.open({ directory, disk, segmentBytesMax })
  const path = segmentPath(directory, 1)
  const sizes = new Set<number>()
  let framesEnd = statSync(path).size
  disk.writes = 0
  let batches = 0
  for (; !existsSync(indexPath(directory, 1)); batches++) {
    sizes.add(statSync(path).size)
    const frame = numberedFrame(journal.nextSeq)
    const end = framesEnd
    journal.append([frame])
    framesEnd += FRAME_HEADER_BYTES + frame.payload.length
    if (existsSync(indexPath(directory, 1))) {
      expect(statSync(path).size).toBe(end + FOOTER_BYTES)
      break
    }
    const behind = readFileSync(path).subarray(framesEnd)
    expect(behind.equals(Buffer.alloc(behind.length))).toBe(true)
  }
  expect(Math.max(...sizes)).toBeLessThanOrEqual(segmentBytesMax)
  expect(sizes.size).toBeLessThan(6)
  expect(batches).toBeGreaterThan(1_000)
  const newest = segmentPath(directory, journal.nextSeq - 1)
  expect(statSync(newest).size).toBeGreaterThan(60_000)
  const { nextSeq } = journal
  journal.close()
  expect(statSync(newest).size).toBe(
    SEGMENT_HEADER_BYTES + FRAME_HEADER_BYTES + numberedFrame(nextSeq - 1).payload.length,
  )
})

test('the chain hash equals what a reader of the format description computes', () => {
  const journal = Journal.open({ disk: machineDisk, directory: scratchDirectory() })
  expect(journal.chain()).toEqual(Buffer.alloc(32))
  const frames = batch(1, 70)
  journal.append(frames)
  const chain = createHash('sha256').update(Buffer.alloc(32))
  for (const [i, frame] of frames.entries()) {
    const seq = Buffer.alloc(8)
    seq.writeBigUInt64LE(BigInt(i + 1))
    chain.update(seq).update(Uint8Array.of(frame.type)).update(createHash('sha256').update(frame.payload).digest())
  }
  expect(journal.chain()).toEqual(chain.digest())
  journal.close()
})

test('any sequence of appends, rolls and reopenings leaves the list of frames that was appended', () => {
  const steps = fc.array(
    fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 1, max: 12 }) }, fc.constant('reopen' as const)),
  )
  fc.assert(
    fc.property(steps, fc.integer({ min: 200, max: 4000 }), (script, segmentBytesMax) => {
      const options = { disk: machineDisk, directory: scratchDirectory(), segmentBytesMax }
      let journal = Journal.open(options)
      const reader = JournalReader.open(machineDisk, options.directory)
      const { id } = journal
      let length = 0
      for (const step of script) {
        if (step === 'reopen') {
          const chain = journal.chain()
          journal.close()
          journal = Journal.open(options)
          expect(journal.chain()).toEqual(chain)
        } else {
          expect(journal.append(batch(length + 1, step))).toBe(length + 1)
          length += step
        }
        expect(journal.nextSeq).toBe(length + 1)
        reader.advance(length)
      }
      expect(journal.id).toEqual(id)
      const model = Array.from({ length }, (_, i) => ({ ...numberedFrame(i + 1), seq: i + 1 }))
      for (const view of [journal, reader]) {
        expect(framesOf(view)).toMatchObject(model)
        for (const { seq, payload } of model) {
          expect(view.read(seq)?.payload).toEqual(payload)
          expect(view.findKey(keyOf(seq))).toBe(seq)
        }
        expect(view.findKey(keyOf(length + 1))).toBeUndefined()
        expect(view.read(length + 1)).toBeUndefined()
        expect(view.read(0)).toBeUndefined()
      }
      journal.close()
      reader.close()
    }),
    { numRuns: 40 },
  )
})

test('a scan of any range returns that range', () => {
  const journal = Journal.open({ disk: machineDisk, directory: scratchDirectory(), segmentBytesMax: 3000 })
  for (let first = 1; first <= 60; first += 5) journal.append(batch(first, 5))
  fc.assert(
    fc.property(fc.integer({ min: -2, max: 70 }), fc.integer({ min: -2, max: 70 }), (from, through) => {
      const first = Math.max(1, from)
      const expected = Array.from({ length: Math.max(0, Math.min(60, through) - first + 1) }, (_, i) => first + i)
      expect(framesOf(journal, from, through).map((frame) => frame.seq)).toEqual(expected)
    }),
  )
  journal.close()
})

test('the newest frame with a key is found, whichever segment it is in', () => {
  const journal = Journal.open({ disk: machineDisk, directory: scratchDirectory(), segmentBytesMax: 2000 })
  const same = { ...numberedFrame(1), payload: Buffer.alloc(100, 7) }
  const key = same.payload.subarray(0, 16)
  for (const seq of [1, 2, 30, 60]) {
    while (journal.nextSeq < seq) journal.append([numberedFrame(journal.nextSeq)])
    journal.append([same])
    expect(journal.findKey(key)).toBe(seq)
  }
  while (journal.nextSeq < 100) journal.append([numberedFrame(journal.nextSeq)])
  expect(journal.findKey(key)).toBe(60)
  expect(() => journal.findKey(Buffer.alloc(15))).toThrow(RangeError)
  journal.close()
})

test('frames larger than a window and a batch larger than a segment are stored whole', () => {
  const options = { disk: machineDisk, directory: scratchDirectory(), segmentBytesMax: 100_000 }
  const journal = Journal.open(options)
  const large = { type: 9, flags: 0, payload: Buffer.alloc(700_000, 'x') }
  journal.append([numberedFrame(1)])
  journal.append([large, numberedFrame(3), large])
  journal.append([numberedFrame(5)])
  journal.close()
  const again = Journal.open(options)
  expect(framesOf(again).map((frame) => frame.payload.length)).toEqual(
    [numberedFrame(1), large, numberedFrame(3), large, numberedFrame(5)].map((frame) => frame.payload.length),
  )
  expect(again.read(4)?.payload).toEqual(large.payload)
  again.close()
})

test('an invalid frame refuses the whole batch and leaves the journal working', () => {
  const journal = Journal.open({ disk: machineDisk, directory: scratchDirectory(), frameBytesMax: 1000 })
  const tooLarge = { type: 1, flags: 0, payload: Buffer.alloc(1000) }
  expect(() => journal.append([numberedFrame(1), tooLarge])).toThrow(RangeError)
  expect(journal.append([numberedFrame(1)])).toBe(1)
  journal.close()
})

describe('disk faults', () => {
  test('a failed sync poisons the journal permanently, and what was durable before can still be read', () => {
    const disk = new FaultyDisk()
    const directory = scratchDirectory()
    const journal = Journal.open({ directory, disk })
    journal.append(batch(1, 3))
    disk.failNextSync = true
    expect(() => journal.append(batch(4, 2))).toThrow(/sync of .* failed/)
    expect(() => journal.append(batch(4, 2))).toThrow(/poisoned/)
    expect(journal.nextSeq).toBe(4)
    expect(journal.read(4)).toBeUndefined()
    expect(framesOf(journal)).toHaveLength(3)
    journal.close()
    const again = Journal.open({ disk: machineDisk, directory })
    expect(again.nextSeq).toBeGreaterThanOrEqual(4)
    expect(framesOf(again, 1, 3)).toMatchObject(batch(1, 3))
    again.close()
  })

  test('a failed background sync poisons the journal permanently, and nothing of its batch is there', async () => {
    const disk = new FaultyDisk()
    const journal = Journal.open({ directory: scratchDirectory(), disk })
    journal.append(batch(1, 3))
    disk.failNextSync = true
    const failed = await new Promise<Error | undefined>((resolve) => journal.appendLater(batch(4, 2), resolve))
    expect(failed?.name).toBe('SyncFailed')
    expect([journal.nextSeq, journal.isAppending]).toEqual([4, false])
    expect(() => journal.appendLater(batch(4, 1), () => {})).toThrow('poisoned')
    expect(() => journal.append(batch(4, 1))).toThrow('poisoned')
    expect(framesOf(journal)).toHaveLength(3)
    journal.close()
  })

  test('a full disk refuses a batch before its background sync, and the journal continues', async () => {
    const disk = new FaultyDisk()
    const journal = Journal.open({ directory: scratchDirectory(), disk })
    journal.append(batch(1, 3))
    disk.bytesLeft = 10
    expect(() => journal.appendLater(batch(4, 200_000), () => {})).toThrow(DiskFull)
    disk.bytesLeft = Infinity
    expect(await new Promise((resolve) => journal.appendLater(batch(4, 2), resolve))).toBeUndefined()
    expect(journal.nextSeq).toBe(6)
    journal.close()
  })

  test('a write error other than a full disk poisons the journal, and its partial batch is gone after a reopening', () => {
    const disk = new FaultyDisk()
    const directory = scratchDirectory()
    const journal = Journal.open({ directory, disk })
    journal.append(batch(1, 3))
    disk.failNextWrite = new Error('EIO')
    expect(() => journal.append([numberedFrame(4)])).toThrow('EIO')
    expect(() => journal.append([numberedFrame(4)])).toThrow(/poisoned/)
    journal.close()
    const again = Journal.open({ disk: machineDisk, directory })
    expect(again.nextSeq).toBe(4)
    again.close()
  })

  test('a disk that fills up at any byte refuses the batch, keeps what was durable, and continues when there is room', () => {
    let refused = 1
    let room = 0
    for (; refused > 0; room += 61) {
      const disk = new FaultyDisk()
      const options = { directory: scratchDirectory(), segmentBytesMax: 1500, disk }
      const journal = Journal.open(options)
      disk.bytesLeft = room
      refused = 0
      while (journal.nextSeq <= 20) {
        try {
          journal.append(batch(journal.nextSeq, 2))
        } catch (error) {
          expect(error).toHaveProperty('name', 'DiskFull')
          refused++
          expect(framesOf(journal)).toHaveLength(journal.nextSeq - 1)
          // Freed bit by bit, so that a roll is refused at each of its steps.
          disk.bytesLeft += 700
        }
      }
      expect(framesOf(journal)).toMatchObject(batch(1, 20))
      const chain = journal.chain()
      journal.close()
      const again = Journal.open({ disk: machineDisk, directory: options.directory })
      expect(again.chain()).toEqual(chain)
      again.close()
    }
    expect(room).toBeGreaterThan(3000)
  })

  test('what a full disk accepted of a refused batch is removed immediately', () => {
    const disk = new FaultyDisk()
    const directory = scratchDirectory()
    const journal = Journal.open({ directory, disk })
    journal.append(batch(1, 3))
    const bytes = batch(1, 3).reduce(
      (sum, { payload }) => sum + FRAME_HEADER_BYTES + payload.length,
      SEGMENT_HEADER_BYTES,
    )
    disk.bytesLeft = 50
    expect(() => journal.append(batch(4, 2))).toThrow(DiskFull)
    expect(statSync(segmentPath(directory, 1)).size).toBe(bytes)
    journal.close()
  })

  test('a batch that just fits is accepted without room to preallocate', () => {
    const disk = new FaultyDisk()
    const directory = scratchDirectory()
    const journal = Journal.open({ directory, disk })
    const frames = batch(1, 3)
    const bytes = frames.reduce((sum, { payload }) => sum + FRAME_HEADER_BYTES + payload.length, 0)
    disk.bytesLeft = bytes + 100
    expect(journal.append(frames)).toBe(1)
    expect(statSync(segmentPath(directory, 1)).size).toBe(SEGMENT_HEADER_BYTES + bytes)
    disk.bytesLeft = Infinity
    expect(journal.append(batch(4, 1))).toBe(4)
    expect(framesOf(journal)).toHaveLength(4)
    journal.close()
  })

  test('a start rewrites the last batch before it syncs: after a failed sync its pages may only look clean', () => {
    const disk = new FaultyDisk()
    const directory = scratchDirectory()
    const journal = Journal.open({ directory, disk })
    journal.append(batch(1, 3))
    disk.failNextSync = true
    expect(() => journal.append(batch(4, 2))).toThrow()
    journal.close()
    disk.writes = 0
    disk.syncs = 0
    const again = Journal.open({ directory, disk })
    expect([disk.writes, disk.syncs]).toEqual([1, 1])
    expect(framesOf(again)).toMatchObject(batch(1, 5))
    again.close()
  })

  test.runIf(canMount)(
    'a real file system that fills up refuses writes, allows all reads, and accepts writes when there is room',
    () => {
      const directory = scratchDirectory()
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=96k', 'tmpfs', directory])
      try {
        writeFileSync(join(directory, 'ballast'), Buffer.alloc(32 * 1024))
        const options = { disk: machineDisk, directory: join(directory, 'journal'), segmentBytesMax: 16 * 1024 }
        const journal = Journal.open(options)
        const fill = () => {
          for (;;) journal.append(batch(journal.nextSeq, 10))
        }
        expect(fill).toThrow(DiskFull)
        const full = journal.nextSeq
        expect(framesOf(journal)).toMatchObject(batch(1, full - 1))
        rmSync(join(directory, 'ballast'))
        expect(fill).toThrow(DiskFull)
        expect(journal.nextSeq).toBeGreaterThan(full)
        const last = journal.nextSeq - 1
        journal.close()
        const again = Journal.open(options)
        expect(framesOf(again)).toMatchObject(batch(1, last))
        expect(again.nextSeq).toBe(last + 1)
        again.close()
      } finally {
        execFileSync('umount', [directory])
      }
    },
  )
})

/** Only root can create a small file system. */
function tryMount(): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false
  const directory = mkdtempSync(join(tmpdir(), 'broadside-mount-'))
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=16k', 'tmpfs', directory])
  if (status === 0) spawnSync('umount', [directory])
  rmdirSync(directory)
  return status === 0
}
