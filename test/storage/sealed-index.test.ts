import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { ByteBuffer } from 'flatbuffers'
import { describe, expect, test, vi } from 'vitest'
import { BlockCache } from '../../storage/block-cache.ts'
import { encodeFrame, FRAME_HEADER_BYTES } from '../../storage/frame.ts'
import { FrameWindow } from '../../storage/frame-window.ts'
import { Journal, JournalReader } from '../../storage/journal.ts'
import { LiveIndex } from '../../storage/live-index.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { type ByteSource, buildIndex, offsetBlockBytes, SealedIndex } from '../../storage/sealed-index.ts'
import { FOOTER_BYTES, indexPath, listSegments } from '../../storage/segment.ts'
import { FaultyDisk } from '../support/faulty-disk.ts'
import { keyOf, numberedFrame } from '../support/frames.ts'
import { flipByte, scratchDirectory } from '../support/scratch.ts'

// Thousands of syncs and several processes take a while on a busy disk.
vi.setConfig({ testTimeout: 300_000 })

const segmentBytesMax = 20_000

function writeJournal(directory: string): number {
  const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax })
  while (listSegments(machineDisk, directory, 'log').length < 4) journal.append([numberedFrame(journal.nextSeq)])
  const last = journal.nextSeq - 1
  journal.close()
  return last
}

function expectAnswers(view: Journal | JournalReader, last: number): void {
  for (let seq = 1; seq <= last; seq++) {
    expect(view.findKey(keyOf(seq))).toBe(seq)
    expect(view.read(seq)).toMatchObject({ ...numberedFrame(seq), seq })
  }
  for (let seq = last + 1; seq < last + 50; seq++) expect(view.findKey(keyOf(seq))).toBeUndefined()
}

function inMemory(bytes: Buffer): ByteSource & { reads: number } {
  const source = {
    reads: 0,
    size: () => bytes.length,
    readAt(into: Uint8Array, position: number): number {
      source.reads++
      return bytes.copy(into, 0, position, position + into.length)
    },
    prefetch: () => {},
  }
  return source
}

function indexOf(keys: Buffer[]) {
  const live = new LiveIndex(1001)
  for (const key of keys) live.add(100, 0x80, key)
  const facts = {
    journalId: randomBytes(16),
    firstSeq: 1001,
    count: keys.length,
    segmentBytes: live.end + FOOTER_BYTES,
    chain: randomBytes(32),
  }
  return { live, facts, bytes: buildIndex(live, facts) }
}

const hex6 = (i: number) => (i + 1).toString(16).padStart(6, '0')

describe('an index of many keys', () => {
  const shapes: Record<string, (i: number) => Buffer> = {
    'as even as hashes': keyOf,
    'counting up': (i) => Buffer.from(String(i).padStart(16, '0')),
    'different in the last bytes only': (i) => Buffer.from('7'.repeat(26) + hex6(i), 'hex'),
    'half at either end': (i) => Buffer.from((i % 2 ? 'f' : '0').repeat(26) + hex6(i), 'hex'),
  }
  test.each(Object.entries(shapes))('%s finds each of them and no other', (_, shape) => {
    const keys = Array.from({ length: 3000 }, (_, i) => shape(i))
    const { facts, bytes } = indexOf(keys)
    const source = inMemory(bytes)
    const index = SealedIndex.open(source, facts, new BlockCache(64, offsetBlockBytes))!
    expect(index.isIntact()).toBe(true)
    source.reads = 0
    for (const [i, key] of keys.entries()) expect(index.find(key)).toBe(1001 + i)
    expect(source.reads / keys.length).toBeLessThan(12)
    for (let i = 3000; i < 4000; i++) expect(index.find(shape(i))).toBeUndefined()
    for (const byte of [0, 255]) expect(index.find(Buffer.alloc(16, byte))).toBeUndefined()
  })

  test('with keys that are hashes costs few page reads', () => {
    const keys = Array.from({ length: 20_000 }, (_, i) => keyOf(i))
    const { facts, bytes } = indexOf(keys)
    const source = inMemory(bytes)
    const index = SealedIndex.open(source, facts, new BlockCache(64, offsetBlockBytes))!
    source.reads = 0
    for (const key of keys.slice(0, 1000)) index.find(key)
    expect(source.reads / 1000).toBeLessThan(3)
  })
})

test('finds the newest of several frames with one key, among others with the same prefix', () => {
  const like = (i: number) => Buffer.from(`${'5'.repeat(20)}${hex6(i)}${'5'.repeat(6)}`, 'hex')
  const keys = [1, 2, 1, 3, 2, 1].flatMap((i, n) => [like(i), keyOf(n)])
  const { facts, bytes } = indexOf(keys)
  const index = SealedIndex.open(inMemory(bytes), facts, new BlockCache(64, offsetBlockBytes))!
  expect([1, 2, 3, 4].map((i) => index.find(like(i)))).toEqual([1011, 1009, 1007, undefined])
  expect(keys.filter((_, n) => n % 2 === 1).map((key) => index.find(key))).toEqual([1002, 1004, 1006, 1008, 1010, 1012])
})

test('without keys is valid, and each frame has its place', () => {
  const { facts, live } = indexOf([])
  live.add(77, 0, Buffer.alloc(1))
  const one = { ...facts, count: 1, segmentBytes: live.end + FOOTER_BYTES }
  const index = SealedIndex.open(inMemory(buildIndex(live, one)), one, new BlockCache(64, offsetBlockBytes))!
  expect(index.find(keyOf(1))).toBeUndefined()
  expect(index.placeOf(1001)).toEqual({ offset: 64, end: 64 + 77, seq: 1001 })
})

test('a read that fails once is no damage: the next one succeeds', () => {
  const disk = new FaultyDisk()
  const directory = scratchDirectory()
  const last = writeJournal(directory)
  // The first read of each segment opens it; the next reads are of its offsets, its header or its frame.
  for (let after = 0; after < 6; after++) {
    const reader = JournalReader.open(disk, directory)
    reader.advance(last)
    disk.readsUntilFailure = after
    let failures = 0
    for (let tries = 0; tries < 2; tries++) {
      try {
        expect(reader.read(1)).toMatchObject(numberedFrame(1))
      } catch (error) {
        expect(error).toMatchObject({ code: 'EIO' })
        failures++
      }
    }
    expect(failures).toBeLessThan(2)
    disk.readsUntilFailure = Number.POSITIVE_INFINITY
    expectAnswers(reader, last)
    reader.close()
    expect(disk.open).toBe(0)
  }
})

test('a window whose read failed reads again', () => {
  const disk = new FaultyDisk()
  const path = `${scratchDirectory()}/frames`
  const frames = [10, 4_000].map((length, at) => {
    const bytes = Buffer.alloc(FRAME_HEADER_BYTES + length)
    encodeFrame(
      bytes,
      0,
      { type: 1, flags: 0, payload: Buffer.alloc(length, 7) },
      { seq: at + 1, durableSeq: 0, seed: 0 },
    )
    return bytes
  })
  writeFileSync(path, Buffer.concat(frames))
  const file = disk.openFile(path, 'read')
  const window = new FrameWindow(file, { limit: file.size(), seed: 0, bytes: 64 })
  const first = window.at(0)
  expect(first).toMatchObject({ seq: 1 })
  disk.readsUntilFailure = 1
  // Its header is read, and then memory for all of it.
  expect(() => window.at(first.frameBytes!)).toThrow('EIO')
  expect(window.at(first.frameBytes!)).toMatchObject({ seq: 2 })
  file.close()
})

test('the file is a FlatBuffer that the FlatBuffers runtime can read', () => {
  const keys = Array.from({ length: 100 }, (_, i) => keyOf(i))
  const { facts, live, bytes } = indexOf(keys)
  const buffer = new ByteBuffer(bytes)
  expect(buffer.__has_identifier('BSIX')).toBe(true)
  const table = buffer.readInt32(0)
  const field = (slot: number) => table + buffer.__offset(table, 4 + slot * 2)
  const bytesAt = (slot: number) => {
    const start = buffer.__vector(field(slot))
    return Buffer.from(bytes.subarray(start, start + buffer.__vector_len(field(slot))))
  }
  expect(bytesAt(0)).toEqual(facts.journalId)
  expect(buffer.readUint64(field(1))).toBe(1001n)
  expect(buffer.readUint32(field(2))).toBe(facts.segmentBytes)
  expect(bytesAt(3)).toEqual(facts.chain)
  expect(buffer.__vector_len(field(4))).toBe(100)
  expect(buffer.readUint32(buffer.__vector(field(4)) + 4 * 99)).toBe(live.offsetOf(1100))
  expect(buffer.__vector_len(field(5))).toBe(100)
  const smallest = keys.toSorted(Buffer.compare)[0]!
  const start = buffer.__vector(field(5))
  expect(bytes.subarray(start, start + 16)).toEqual(smallest)
  expect(buffer.readUint32(start + 16)).toBe(keys.indexOf(smallest))
})

describe('an index is a cache', () => {
  const spoil: Record<string, (path: string) => void> = {
    deleted: (path) => rmSync(path),
    empty: (path) => truncateSync(path, 0),
    'cut in half': (path) => truncateSync(path, statSync(path).size >> 1),
    'changed in its head': (path) => flipByte(path, 40),
    'changed in a key': (path) => flipByte(path, statSync(path).size - 200),
    'changed in an offset': (path) => flipByte(path, 400),
    'changed in its CRC': (path) => flipByte(path, statSync(path).size - 1),
    'of another segment': (path) => writeFileSync(path, readFileSync(indexPath(path.slice(0, -25), 1))),
    'full of ones': (path) => writeFileSync(path, Buffer.alloc(5000, 0xff)),
  }
  test.each(Object.entries(spoil))('if it is %s, it is rebuilt with the same bytes and answers', (_, act) => {
    const directory = scratchDirectory()
    const last = writeJournal(directory)
    const path = indexPath(directory, listSegments(machineDisk, directory, 'log')[1]!)
    const bytes = readFileSync(path)
    act(path)
    const reader = JournalReader.open(machineDisk, directory)
    reader.advance(last)
    expectAnswers(reader, last)
    reader.close()
    const events: unknown[] = []
    const journal = Journal.open({
      disk: machineDisk,
      directory,
      segmentBytesMax,
      report: (event) => events.push(event),
    })
    expectAnswers(journal, last)
    journal.close()
    expect(events).toEqual([{ kind: 'index-rebuilt', path }])
    expect(readFileSync(path)).toEqual(bytes)
  })

  test('a reader that rebuilt one in memory does not trust the file after its files were closed', () => {
    for (const damage of ['changed in a key', 'changed in an offset']) {
      const directory = scratchDirectory()
      const last = writeJournal(directory)
      spoil[damage]!(indexPath(directory, listSegments(machineDisk, directory, 'log')[1]!))
      const reader = JournalReader.open(machineDisk, directory)
      reader.advance(last)
      expectAnswers(reader, last)
      reader.reopen()
      expectAnswers(reader, last)
      reader.close()
    }
  })

  test('a reader that found one intact does not blame frames for damage to it since', () => {
    const directory = scratchDirectory()
    const last = writeJournal(directory)
    const reader = JournalReader.open(machineDisk, directory)
    reader.advance(last)
    expectAnswers(reader, last)
    reader.reopen()
    spoil['changed in an offset']!(indexPath(directory, listSegments(machineDisk, directory, 'log')[1]!))
    expectAnswers(reader, last)
    reader.close()
  })

  test('a journal with its indexes opens without reading the frames of sealed segments', () => {
    const directory = scratchDirectory()
    const last = writeJournal(directory)
    const first = listSegments(machineDisk, directory, 'log')[1]!
    const path = indexPath(directory, first)
    expect(path.slice(0, -25)).toBe(directory)
    // Damage that only reading the frames can find.
    flipByte(`${path.slice(0, -4)}.log`, 1000)
    const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax })
    expect(journal.nextSeq).toBe(last + 1)
    journal.close()
  })
})
