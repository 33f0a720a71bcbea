/** When the log notifies its readers of changes: a few immediately, many after a pause, and never before they are durable. */
import { expect, test, vi } from 'vitest'
import { Log } from '../../actors/log/log.ts'
import { type FactRecord, RecordType, toFrame } from '../../actors/records/record.ts'
import { Journal, JournalReader } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { writeLeafHash } from '../../storage/merkle.ts'
import { patience } from '../support/patience.ts'
import { scratchDirectory } from '../support/scratch.ts'

function frame(n: number) {
  const facts = { n }
  const act: FactRecord = { type: RecordType.act, room: 'lobby', at: n, author: Buffer.alloc(32), op: 'x', facts }
  return toFrame(act, Buffer.alloc(16, n), true, [Buffer.from(`entry ${n}`)])
}

/** A log over a shard's journal; the test fires its timers. */
class PacedLog {
  readonly directory = scratchDirectory()
  readonly told: number[] = []
  readonly pauses: (() => void)[] = []
  readonly #turns: (() => void)[] = []
  readonly #shard: Journal
  readonly #journal: Journal
  readonly log: Log
  #written = 0

  constructor() {
    const shardDirectory = scratchDirectory()
    this.#shard = Journal.open({ disk: machineDisk, directory: shardDirectory })
    this.#journal = Journal.open({ disk: machineDisk, directory: this.directory })
    this.log = new Log({
      journal: this.#journal,
      tree: { size: 0, append: () => {}, root: () => Buffer.alloc(32) } as never,
      shards: [JournalReader.open(machineDisk, shardDirectory)],
      sign: (size) => `size ${size}`,
      leafHash: writeLeafHash,
      confirm: () => {},
      published: (seq, head, change) => {
        expect(seq).toBeLessThanOrEqual(this.#journal.durableSeq)
        expect(head.size).toBe(change)
        this.told.push(change)
      },
      entriesPerFrameMax: 100,
      soon: (run) => {
        this.#turns.push(run)
        return () => {}
      },
      later: (run) => {
        this.pauses.push(run)
        return () => {
          const at = this.pauses.indexOf(run)
          if (at !== -1) this.pauses.splice(at, 1)
        }
      },
      start: { size: 0, change: 0, checkpoint: '', covered: [0] },
    })
  }

  /** That many changes become durable in the shard, and the log takes a turn. */
  add(changes: number): void {
    this.#shard.append(Array.from({ length: changes }, () => frame(++this.#written)))
    this.log.hint(0, this.#written)
    for (const turn of this.#turns.splice(0)) turn()
  }

  /** The sync in progress has ended. */
  async synced(): Promise<void> {
    await this.#journal.idle()
  }

  async pauseEnds(): Promise<void> {
    this.pauses.shift()!()
    await this.synced()
  }
}

test('after a quiet time a change is published as soon as it is durable, and the next ones together after a pause', async () => {
  const paced = new PacedLog()
  paced.add(1)
  expect(paced.told).toEqual([])
  await paced.synced()
  expect(paced.told).toEqual([1])
  paced.add(1)
  paced.add(1)
  await paced.synced()
  expect(paced.told).toEqual([1])
  await paced.pauseEnds()
  expect(paced.told).toEqual([1, 3])
})

test('after many changes at once the next ones are published together after a pause; after a few, without one', async () => {
  const paced = new PacedLog()
  paced.add(10)
  await paced.synced()
  expect([paced.told, paced.pauses.length]).toEqual([[10], 0])
  paced.add(1)
  await paced.synced()
  expect(paced.told).toEqual([10])
  await paced.pauseEnds()
  expect(paced.told).toEqual([10, 11])
  await paced.pauseEnds()
  paced.add(1)
  await paced.synced()
  expect(paced.told).toEqual([10, 11, 12])
})

test('changes during a sync wait for the next one', async () => {
  const paced = new PacedLog()
  paced.add(1)
  paced.add(4)
  await paced.synced()
  expect(paced.told).toEqual([1])
  await paced.pauseEnds()
  expect(paced.told).toEqual([1, 5])
})

test('a log that stops publishes all it has immediately, and nothing afterwards', async () => {
  const paced = new PacedLog()
  paced.add(1)
  await paced.synced()
  paced.add(2)
  await paced.log.stop()
  expect(paced.told).toEqual([1, 3])
  await vi.waitFor(() => expect(paced.pauses).toEqual([]), patience)
})
