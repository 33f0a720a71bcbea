/** What a follower accepts of its leader's log, and what it refuses though every frame arrived intact. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { decodeLogFrame, encodeLogFrame, type LogFrame } from '../../../actors/log/frame.ts'
import { logDirectory, shardDirectory } from '../../../src/board-directory.ts'
import { FollowedLog } from '../../../src/log/followed-log.ts'
import { Assembly, openPayload, partsOf } from '../../../src/replication/batch.ts'
import { JournalsOut } from '../../../src/replication/journals-out.ts'
import { StreamSeal } from '../../../src/replication/stream-seal.ts'
import { formatCheckpoint } from '../../../storage/checkpoint.ts'
import { appendCopied, type CopiedFrames, Diverged, framesIn } from '../../../storage/copied-frames.ts'
import { bytesOf } from '../../../storage/frame.ts'
import { Journal, JournalReader, type NewFrame } from '../../../storage/journal.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { signNote } from '../../../storage/note.ts'
import { createNoteKey } from '../../../storage/note-signer.ts'
import { TreeWriter } from '../../../storage/tree.ts'
import { MemoryDisk } from '../../support/memory-disk.ts'
import { integrate, openLog, writePosts } from '../../support/posts-on-disk.ts'
import { scratchDirectory } from '../../support/scratch.ts'

/** Everything that a leader with some posts has, as it sends it; in log frames of a few entries each. */
function leaderOf(posts: number) {
  const directory = scratchDirectory()
  for (let count = 10; count <= posts; count += 10) {
    if (count === 10) writePosts({ directory, posts })
    integrate({ directory, posts: count })
  }
  const signed = openLog(directory)
  const { vkey, origin, newest } = signed
  const log = signed.journal.nextSeq - 1
  signed.close()
  const directories = { log: logDirectory(directory), shards: [shardDirectory(directory, 0)] }
  const shard = decodeLogFrame(readerOf(directories.log, log).read(log)!).ranges[0]!.last
  const out = new JournalsOut(machineDisk, directories, { log, shards: [shard] }, { log: 0, shards: [0] })
  const { journals, payload } = out.next()!
  const [posted, signatures] = openPayload({ journals }, payload).shares
  return { vkey, origin, newest, journals, payload, posted: posted!, signatures: signatures! }
}

function readerOf(directory: string, through: number): JournalReader {
  const reader = JournalReader.open(machineDisk, directory)
  reader.advance(through)
  return reader
}

function journalOf(id: string): { readonly journal: Journal; readonly directory: string } {
  const directory = scratchDirectory()
  const random = () => Buffer.from(id, 'hex')
  return { directory, journal: Journal.open({ disk: machineDisk, directory, isCopy: true, random }) }
}

/** Other frames, as a leader with those would send them. */
function sent(id: string, frames: readonly NewFrame[]): CopiedFrames {
  const { journal, directory } = journalOf(id)
  journal.append(frames)
  const last = journal.nextSeq - 1
  const bytes = Buffer.concat(Array.from(readerOf(directory, last).scan(1), (frame) => Buffer.from(bytesOf(frame))))
  const copied = { id, first: 1, last, bytes, chain: journal.chain().toString('hex'), rolls: [] }
  journal.close()
  return copied
}

function followerOf({ vkey, posted, signatures }: ReturnType<typeof leaderOf>) {
  const shard = journalOf(posted.id)
  appendCopied(shard.journal, posted)
  const { journal } = journalOf(signatures.id)
  const told: number[] = []
  const followed = new FollowedLog({
    journal,
    tree: TreeWriter.open(machineDisk, join(scratchDirectory(), 'nodes.bin'), 0),
    vkey,
    shards: [readerOf(shard.directory, posted.last)],
    published: (seq) => told.push(seq),
    start: { size: 0, change: 0, checkpoint: '', covered: [0] },
    isOver: false,
  })
  return { journal, followed, told }
}

test('the frames of the leader are accepted, and its head becomes the follower’s', () => {
  const leader = leaderOf(30)
  const { journal, followed, told } = followerOf(leader)
  expect(followed.take(leader.signatures)).toBe(false)
  expect(followed.head).toEqual({ size: leader.newest.size, checkpoint: leader.newest.checkpoint })
  expect(told).toEqual([leader.signatures.last])
  expect(journal.chain().toString('hex')).toBe(leader.signatures.chain)
  // Frames that are already here change nothing.
  expect(followed.take(leader.signatures)).toBe(false)
  expect(journal.nextSeq - 1).toBe(leader.signatures.last)
})

type Change = (frame: LogFrame, origin: string) => Partial<LogFrame>

/** The newest log frame is another one: intact, but not matching the records. */
const faults: readonly (readonly [what: string, change: Change, problem: string])[] = [
  ['an entry', ({ bundle }) => ({ bundle: changed(bundle) }), 'entries that differ'],
  ['the root', ({ root }) => ({ root: changed(root) }), 'a root that does not match'],
  ['the size before', ({ firstLeaf }) => ({ firstLeaf: firstLeaf + 1 }), 'does not follow'],
  ['the number of a change', ({ firstChange }) => ({ firstChange: firstChange + 1 }), 'does not follow'],
  [
    'a range',
    ({ ranges }) => ({ ranges: ranges.map((each) => ({ ...each, changes: each.changes + 1 })) }),
    'wrong number of changes',
  ],
  ['the key', ({ size, root }, origin) => ({ checkpoint: forged(origin, size, root) }), 'no checkpoint'],
]

function changed(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  copy[copy.length - 5]! ^= 1
  return copy
}

function forged(origin: string, size: number, root: Buffer): string {
  return signNote(formatCheckpoint({ origin, size, root }), createNoteKey(origin, Buffer.alloc(32, 7)).signer)
}

test.each(faults)('%s was changed: nothing is accepted', (_what, change, problem) => {
  const leader = leaderOf(30)
  const { journal, followed } = followerOf(leader)
  const frames: NewFrame[] = framesIn(leader.signatures).map(({ type, flags, payload }) => ({ type, flags, payload }))
  const newest = leader.newest
  const other = encodeLogFrame({ ...newest, ...change(newest, leader.origin) })
  const sentOther = () => sent(leader.signatures.id, [...frames.slice(0, -1), other])
  const take = () => followed.take(sentOther())
  expect(take).toThrow(Diverged)
  expect(() => followerOf(leader).followed.take(sentOther())).toThrow(problem)
  expect(journal.nextSeq).toBe(1)
})

test('a journal that diverged is refused, and stays as it is', () => {
  const leader = leaderOf(10)
  const { journal } = journalOf(leader.posted.id)
  const frames = framesIn(leader.posted).map(({ type, flags, payload }) => ({
    type,
    flags,
    payload: Buffer.from(payload),
  }))
  const own = frames.slice(0, 4)
  own[3]!.payload[20]! ^= 1
  journal.append(own)
  const chain = journal.chain()
  expect(() => appendCopied(journal, leader.posted)).toThrow(Diverged)
  expect(() => appendCopied(journal, { ...leader.posted, id: '0'.repeat(32) })).toThrow(Diverged)
  expect([journal.nextSeq, journal.chain()]).toEqual([5, chain])
})

test('segments begin where the leader says, and repeating a beginning has no effect', () => {
  const leader = leaderOf(10)
  const { journal } = journalOf(leader.posted.id)
  const { last } = leader.posted
  const rolls = [4, last + 1]
  const chain = journal.chainWith(framesIn(leader.posted), rolls).toString('hex')
  for (let time = 0; time < 2; time++) appendCopied(journal, { ...leader.posted, chain, rolls })
  expect(journal.chain().toString('hex')).toBe(chain)
  expect([1, 4, last + 1].map((seq) => journal.mayCompact(seq))).toEqual([true, true, false])
})

test('parts become a batch with the last one; a new beginning or a later epoch discards unfinished parts', () => {
  const { journals } = leaderOf(10)
  const payload = Buffer.alloc(2_000_000, 1)
  const seal = new StreamSeal({
    disk: new MemoryDisk({ soon: (callback) => callback(), randomBelow: () => 0 }),
    dataDirectory: '/',
    wallSeconds: () => 1_800_000_000,
    random: randomBytes,
  })
  seal.begin()
  const parts = (epoch: number) =>
    partsOf({ header: { version: 1, epoch, leader: 'a'.repeat(32), journals }, payload }, seal)
  const assembly = new Assembly(seal)
  const [one, two, three] = parts(1)
  expect(parts(1)).toHaveLength(3)
  expect([one, two].map((part) => assembly.add(part!))).toEqual([undefined, undefined])
  expect([one, two].map((part) => assembly.add(part!))).toEqual([undefined, undefined])
  expect(assembly.add(three!)?.payload.equals(payload)).toBe(true)
  // Parts of the old epoch are ignored, in the middle of the new one or after it.
  const later = parts(2)
  expect(assembly.add(one!)).toBeUndefined()
  expect(assembly.add(later[0]!)).toBeUndefined()
  expect([two, three].map((part) => assembly.add(part!))).toEqual([undefined, undefined])
  expect(later.slice(1).map((part) => assembly.add(part)?.payload.length)).toEqual([undefined, payload.length])
  expect([one, two, three].map((part) => assembly.add(part!))).toEqual([undefined, undefined, undefined])
})
