/** The public records of a board with damaged files: all except the damaged ones, each with its number. */

import { readFileSync, writeFileSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { decodeLogFrame } from '../../actors/log/frame.ts'
import { readableRecords } from '../../actors/log/public-records.ts'
import { logDirectory, shardDirectory } from '../../src/board-directory.ts'
import { type Disk, FailedRead } from '../../storage/disk.ts'
import { FRAME_HEADER_BYTES } from '../../storage/frame.ts'
import { Damage, Journal, JournalReader } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { FOOTER_BYTES, listSegments, SEGMENT_HEADER_BYTES, segmentPath } from '../../storage/segment.ts'
import { BadSectors } from '../support/bad-sectors.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { countRebuiltEntries } from '../support/count-rebuilt-entries.ts'
import { chooseSeed, randomFrom } from '../support/load.ts'
import { flipByte } from '../support/scratch.ts'
import { type FrameLocation, sealedFrames } from '../support/sealed-frames.ts'

const shards = 2
const posts = 1_000
const random = randomFrom(chooseSeed('readable records'))
const directory = boardDirectory()
const journals = [logDirectory(directory), ...Array.from({ length: shards }, (_, n) => shardDirectory(directory, n))]
/** Newest frame of the log. */
let through = 0
let whole: readonly string[] = []

beforeAll(async () => {
  const board = await startBoard({ directory, env: { SHARDS: String(shards), SEGMENT_BYTES: '65536' } })
  const client = await Client.of(board)
  const ada = person('readable records')
  await client.command(ada, { operation: 'room.create', room: 'hidden', data: '{"visibility":"private"}' })
  // Several at a time, so that frames of the log cover more than one record, and of both shards.
  for (let n = 0; n < posts; n += 5)
    await Promise.all(
      Array.from({ length: 5 }, (_, at) =>
        client.post(ada, {
          room: at === 4 ? 'hidden' : `room-${at}`,
          text: `number ${n + at} ${'.'.repeat(random(600))}`,
        }),
      ),
    )
  client.close()
  await board.stop()
  const log = Journal.open({ disk: machineDisk, directory: logDirectory(directory) })
  through = log.nextSeq - 1
  log.close()
  const { records, damages } = read()
  expect(damages).toBe(0)
  expect(records.length).toBeGreaterThan(posts / 2)
  whole = records
})

/** Each record as its position and the number of its change. */
function read(disk: Disk = machineDisk): { readonly records: readonly string[]; readonly damages: number } {
  const [log, ...readers] = journals.map((each) => JournalReader.open(disk, each)) as [
    JournalReader,
    ...JournalReader[],
  ]
  log.advance(through)
  let damages = 0
  let seq = 0
  const records: string[] = []
  try {
    for (const batch of readableRecords({ log, shards: readers, from: 1, through, onDamage: () => damages++ })) {
      expect(batch.seq).toBe(++seq)
      for (const { frame, shard, change } of batch.records) records.push(`${shard} ${frame.seq} ${change}`)
    }
  } finally {
    for (const reader of [log, ...readers]) reader.close()
  }
  expect(seq).toBe(through)
  return { records, damages }
}

/** A place in the frames of a sealed segment, `length` bytes of which are changed while `work` runs. */
function damaged<Result>(journal: string, length: number, work: () => Result): Result {
  const sealed = listSegments(machineDisk, journal, 'log').slice(0, -1)
  const path = segmentPath(journal, sealed[random(sealed.length)]!)
  const before = readFileSync(path)
  const at = SEGMENT_HEADER_BYTES + random(before.length - SEGMENT_HEADER_BYTES - FOOTER_BYTES - length)
  const after = Buffer.from(before)
  for (let n = at; n < at + length; n++) after[n]! ^= 0x5a
  writeFileSync(path, after)
  try {
    return work()
  } finally {
    writeFileSync(path, before)
  }
}

const isPartOf = (part: readonly string[]) => part.every((each) => whole.includes(each))

test('a changed byte in a shard costs at most one record, and changes no other number', () => {
  for (const shard of journals.slice(1))
    for (let n = 0; n < 30; n++) {
      const { records, damages } = damaged(shard, 1, read)
      expect(damages).toBeGreaterThan(0)
      expect(isPartOf(records)).toBe(true)
      expect(whole.length - records.length).toBeLessThanOrEqual(1)
    }
})

test('a changed byte in the log costs no record', () => {
  for (let n = 0; n < 40; n++) {
    const { records, damages } = damaged(journals[0]!, 1, read)
    expect(damages).toBe(1)
    expect(records).toEqual(whole)
  }
})

test('records that a failed read does not return are not skipped: they may be there later', () => {
  for (const journal of journals) {
    const { path, offset } = [...sealedFrames(journal)].at(random(20))!
    const places = new BadSectors(path, 'readAt', { from: offset, to: offset + 1 })
    expect(() => read(places.disk)).toThrow(FailedRead)
    places.isBad = false
    expect(read(places.disk)).toEqual({ records: whole, damages: 0 })
  }
})

test('a changed sector costs what is in it; no other record gets another number', () => {
  for (const shard of journals.slice(1))
    for (let n = 0; n < 30; n++) {
      const { records } = damaged(shard, 2_048, read)
      expect(isPartOf(records)).toBe(true)
      expect(records.length).toBeGreaterThan(whole.length - 40)
    }
})

/** Where the frames of sealed segments are, by number. */
const placesIn = (journal: string): ReadonlyMap<number, FrameLocation> =>
  new Map(Array.from(sealedFrames(journal), ({ frame, ...place }) => [frame.seq, place]))

/** One byte of each of these frames is changed while `work` runs. */
function withDamaged<Result>(places: readonly FrameLocation[], work: () => Result): Result {
  const flipAll = () => {
    for (const { path, offset, bytes } of places) flipByte(path, offset + bytes - 1)
  }
  flipAll()
  try {
    return work()
  } finally {
    flipAll()
  }
}

/** Frames of the log that cover several records of a shard, with the places of all of them. */
function batches(): { readonly head: FrameLocation; readonly records: readonly FrameLocation[] }[] {
  const heads = placesIn(journals[0]!)
  const records = journals.slice(1).map(placesIn)
  const log = JournalReader.open(machineDisk, journals[0]!)
  log.advance(through)
  const found = [...heads].flatMap(([seq, head]) =>
    decodeLogFrame(log.read(seq)!).ranges.flatMap(({ shard, first, last }) => {
      const covered = Array.from({ length: last - first + 1 }, (_, n) => records[shard]!.get(first + n))
      const whole = covered.filter((place) => place !== undefined)
      return whole.length > 1 && whole.length === covered.length ? [{ head, records: whole }] : []
    }),
  )
  log.close()
  return found
}

test('several damaged records of one batch cost only themselves, or that batch', () => {
  const all = batches()
  expect(all.length).toBeGreaterThan(20)
  for (let n = 0; n < 30; n++) {
    const { records: places } = all[random(all.length)]!
    const two = [places[0]!, places.at(-1)!]
    const { records, damages } = withDamaged(two, read)
    expect(damages).toBeGreaterThan(1)
    expect(isPartOf(records)).toBe(true)
    expect(whole.length - records.length).toBeLessThanOrEqual(places.length)
  }
})

test('a damaged frame of the log and a damaged record that it covers cost at most what that frame covers', () => {
  const all = batches()
  for (let n = 0; n < 30; n++) {
    const { head, records: places } = all[random(all.length)]!
    const { records } = withDamaged([head, places[random(places.length)]!], read)
    expect(isPartOf(records)).toBe(true)
    expect(whole.length - records.length).toBeLessThanOrEqual(10)
  }
})

test('damage that cannot be read around is refused, and nothing is taken for lost', () => {
  // Adjacent frames of the log.
  expect(() => damaged(journals[0]!, 4_096, read)).toThrow(Damage)
  for (const shard of journals.slice(1)) {
    const [first, ...others] = listSegments(machineDisk, shard, 'log').map((each) => segmentPath(shard, each))
    // The header of a sealed segment, and a frame of the active one.
    for (const [path, offset] of [
      [first!, 20],
      [others.at(-1)!, SEGMENT_HEADER_BYTES + FRAME_HEADER_BYTES + 10],
    ] as const) {
      flipByte(path, offset)
      expect(() => read()).toThrow(Damage)
      flipByte(path, offset)
    }
  }
  expect(read().records).toEqual(whole)
})

test('entries of adjacent frames of the log are rebuilt from their records, in order', () => {
  const [log, ...readers] = journals.map((each) => JournalReader.open(machineDisk, each)) as [
    JournalReader,
    ...JournalReader[],
  ]
  log.advance(through)
  for (const reader of readers) reader.advance(Number.MAX_SAFE_INTEGER)
  const { same, other, none } = countRebuiltEntries(log, through, readers)
  expect([other, none]).toEqual([0, 0])
  expect(same).toBeGreaterThan(100)
  for (const reader of [log, ...readers]) reader.close()
})
