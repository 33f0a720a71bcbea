/** A decision with several leaves: one frame, all its entries in order, with consecutive counts. */

import { expect, test } from 'vitest'
import { decodeLogFrame, entriesOf } from '../../actors/log/frame.ts'
import { ledgerEntries, noCommand, parseLedgerEntry } from '../../actors/log/ledger-entry.ts'
import { Log, stateAfter } from '../../actors/log/log.ts'
import { publicRecords } from '../../actors/log/public-records.ts'
import { type FactRecord, frameEntries, fromFrame, leavesOf, RecordType, toFrame } from '../../actors/records/record.ts'
import { systemClock } from '../../src/clock.ts'
import { Journal, JournalReader } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { writeLeafHash } from '../../storage/merkle.ts'
import { scratchDirectory } from '../support/scratch.ts'

const postings = [
  {
    type: 'post',
    code: 11,
    debit: `user:${'a'.repeat(64)}`,
    credit: 'escrow',
    amount: 101,
    transfer: '1'.repeat(32),
  },
  {
    type: 'direct',
    code: 20,
    debit: 'escrow',
    credit: `user:${'b'.repeat(64)}`,
    amount: 100,
    transfer: '2'.repeat(32),
  },
  { type: 'direct', code: 21, debit: 'escrow', credit: 'fees', amount: 1, transfer: '3'.repeat(32) },
] as const
const cause = { event: 'c'.repeat(32), room: 'lobby', time: 1_790_000_000, command: noCommand }
const entries = ledgerEntries(postings, 7, cause)

function frame(leaves: readonly Uint8Array[], n: number) {
  const act: FactRecord = {
    type: RecordType.act,
    room: '@market',
    at: n,
    author: Buffer.alloc(32),
    op: 'x',
    facts: { n },
  }
  return toFrame(act, Buffer.alloc(16, n), true, leaves)
}

test('an entry says what was posted, and is decoded as it was written', () => {
  expect(entries[1]!.toString()).toBe(
    `broadside/entry@v1\nkind ledger\nevent ${'c'.repeat(32)}\nroom lobby\nseq 8\ntime 1790000000\ncommand ${noCommand}\n` +
      `transfer ${'2'.repeat(32)}\ntype direct\ncode 20\ndebit escrow\ncredit user:${'b'.repeat(64)}\namount 100\n`,
  )
  expect(parseLedgerEntry(entries[2]!)).toEqual({ ...cause, ...postings[2], seq: 9 })
  expect(parseLedgerEntry(Buffer.from('broadside/entry@v1\nkind post\n'))).toBeUndefined()
})

test('a frame holds none, one or many entries beside its record, and the log makes leaves of all of them', () => {
  const directory = scratchDirectory()
  const shard = Journal.open({ disk: machineDisk, directory })
  const made = [frame(entries.slice(0, 1), 1), frame([], 2), frame(entries, 3), frame(entries.slice(2), 4)]
  shard.append(made)
  const shards = [JournalReader.open(machineDisk, directory)]
  const read = [...shard.scan(1)]
  expect(read.map(leavesOf)).toEqual([1, 0, 3, 1])
  expect(read.map((each) => frameEntries(each).map(String))).toEqual([
    [String(entries[0])],
    [],
    entries.map(String),
    [String(entries[2])],
  ])
  expect(read.map((each) => (fromFrame(each) as FactRecord).facts.n)).toEqual([1, 2, 3, 4])

  const journal = Journal.open({ disk: machineDisk, directory: scratchDirectory() })
  const confirmed: object[] = []
  let hashes = 0
  const log = new Log({
    journal,
    tree: { size: 0, append: (bytes: Buffer) => (hashes += bytes.length / 32), root: () => Buffer.alloc(32) } as never,
    shards,
    sign: (size) => `size ${size}`,
    leafHash: writeLeafHash,
    confirm: (_shard, range) => confirmed.push(range),
    published: () => {},
    entriesPerFrameMax: 100,
    soon: systemClock.soon,
    later: systemClock.later,
    start: { size: 0, change: 0, checkpoint: '', covered: [0] },
  })
  log.hint(0, 4)
  log.catchUp()
  expect(hashes).toBe(5)
  expect(confirmed).toMatchObject([{ through: 4, firstChange: 1, firstLeaf: 0, head: { size: 5 } }])
  const [written] = [...journal.scan(1)]
  expect([...entriesOf(decodeLogFrame(written!))].map(String)).toEqual([
    String(entries[0]),
    ...entries.map(String),
    String(entries[2]),
  ])
  expect(stateAfter(decodeLogFrame(written!))).toMatchObject({ size: 5, change: 4 })
  const records = [...publicRecords(written!, shards)]
  expect(records.map(({ change, leaf }) => [change, leaf])).toEqual([
    [1, 0],
    [2, 0xffff_ffff],
    [3, 1],
    [4, 4],
  ])
})
