import { once } from 'node:events'
import { statSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { Damage, Journal, JournalReader } from '../../storage/journal.ts'
import { indexPath, listSegments, segmentPath } from '../../storage/segment.ts'
import { keyOf, numbered } from '../support/frames.ts'
import { flipByte, scratchDirectory } from '../support/scratch.ts'

test('a worker thread that follows a live writer sees every durable frame and none beyond, over many segments', async () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ directory, segmentBytesMax: 8000 })
  const worker = new Worker(new URL('../support/follower.ts', import.meta.url), { workerData: directory })
  onTestFinished(async () => {
    await worker.terminate()
  })
  let told = 0
  for (let round = 1; round <= 60; round++) {
    const first = journal.nextSeq
    const count = 1 + ((round * 7) % 23)
    journal.append(Array.from({ length: count }, (_, i) => numbered(first + i)))
    const durable = journal.nextSeq - 1
    worker.postMessage(durable)
    // Told of one batch, the reader must not see the next, which is on disk by the time it looks.
    if (round % 2) journal.append([numbered(journal.nextSeq)])
    const [answer] = await once(worker, 'message')
    const good = durable - told
    expect(answer).toEqual({ good, last: durable, found: [true, true, true], beyond: undefined, unknown: undefined })
    told = durable
  }
  expect(listSegments(directory, 'log').length).toBeGreaterThan(5)
  journal.close()
})

test('a reader that was told nothing reads nothing', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ directory })
  journal.append([numbered(1)])
  const reader = JournalReader.open(directory)
  expect(reader.read(1)).toBeUndefined()
  expect(Array.from(reader.scan(1))).toEqual([])
  expect(reader.findKey(keyOf(1))).toBeUndefined()
  reader.advance(1)
  reader.advance(0)
  expect(reader.read(1)).toMatchObject(numbered(1))
  reader.close()
  journal.close()
})

test('a reader that slept while many segments were sealed finds its way', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ directory, segmentBytesMax: 2000 })
  journal.append([numbered(1)])
  const reader = JournalReader.open(directory)
  reader.advance(1)
  expect(reader.read(1)?.seq).toBe(1)
  while (journal.nextSeq <= 300) journal.append([numbered(journal.nextSeq)])
  reader.advance(300)
  // Far more segments than a reader keeps open.
  expect(listSegments(directory, 'log').length).toBeGreaterThan(25)
  for (const seq of [150, 1, 300, 2, 299]) {
    expect(reader.read(seq)).toMatchObject(numbered(seq))
    expect(reader.findKey(keyOf(seq))).toBe(seq)
  }
  expect(Array.from(reader.scan(1), (frame) => frame.seq)).toHaveLength(300)
  reader.close()
  journal.close()
})

test('frames of an unfinished write are not read, and what takes their place is', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ directory })
  journal.append([numbered(1), numbered(2)])
  const reader = JournalReader.open(directory)
  reader.advance(2)
  expect(reader.read(2)?.seq).toBe(2)
  journal.append([{ type: 1, flags: 0, payload: Buffer.from('first try') }])
  expect(Array.from(reader.scan(1))).toHaveLength(2)
  reader.advance(3)
  expect(reader.read(3)?.payload.toString()).toBe('first try')
  reader.close()
  journal.close()
})

test('while a segment and its index are both damaged, each read says what is; and when the segment is whole again it is read', () => {
  const directory = scratchDirectory()
  const journal = Journal.open({ directory, segmentBytesMax: 2000 })
  while (listSegments(directory, 'log').length < 2) journal.append([numbered(journal.nextSeq)])
  const last = journal.nextSeq - 1
  journal.close()
  const segment = segmentPath(directory, 1)
  flipByte(segment, 1000)
  // Its head is sound, so that it is opened; its keys are not.
  flipByte(indexPath(directory, 1), statSync(indexPath(directory, 1)).size - 40)
  const reader = JournalReader.open(directory)
  reader.advance(last)
  for (let tries = 0; tries < 3; tries++) expect(() => reader.read(2)).toThrow(Damage)
  flipByte(segment, 1000)
  expect(reader.read(2)).toMatchObject(numbered(2))
  expect(reader.findKey(keyOf(2))).toBe(2)
  reader.close()
})
