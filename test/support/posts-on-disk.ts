/**
 * A board of many posts, created as files: its records equal those of real posts, and the log actor's own code makes its log. Signing and
 * sending a million of them would take an hour; nothing that reads them here verifies their signatures.
 */

import { createHash } from 'node:crypto'
import { Log, stateAfter } from '../../actors/log/log.ts'
import { postEntry } from '../../actors/records/entry.ts'
import { type BoardRecord, RecordType, toFrame } from '../../actors/records/record.ts'
import { openBoardDirectory, shardDirectory } from '../../src/board-directory.ts'
import { systemClock } from '../../src/clock.ts'
import { identityId, signingBytes } from '../../src/format/signing.ts'
import type { HighWaterMark } from '../../src/log/mark.ts'
import { SignedLog, type SignedLogOptions } from '../../src/log/signed-log.ts'
import { machine } from '../../src/platform.ts'
import { Journal, JournalReader, type NewFrame } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { writeLeafHash } from '../../storage/merkle.ts'

export type WritePostsOptions = {
  readonly directory: string
  readonly posts: number
  /** `host:port` in the name of its log, if a board served there is to be recognized. */
  readonly publicHost?: string
  readonly segmentBytesMax?: number
} & Shape

/** The shape of the posts. */
type Shape = {
  readonly textBytes?: number
  /** Threads of four in this many rooms, by many people, and one thread with a tenth of all. Omitted: one room, one person, no replies. */
  readonly rooms?: number
  /** Replaces all that: what each post is and where it goes; `rooms` says how many rooms that takes. */
  readonly sourceOf?: (n: number) => PostSource
}

/** `root`: number of the post that began its thread. */
export type PostSource = {
  readonly room: string
  readonly root: number
  readonly key: Buffer
  readonly text: string
}

const startedAt = 1_790_000_000
const noSignature = Buffer.alloc(64)
const authorsMax = 5_000

/** Event id of a post, 32 hex. */
export function idOf(serviceId: string, n: number, shape: Shape = {}): string {
  return createHash('sha256')
    .update(signedBytes(serviceId, n, shape))
    .digest('hex')
    .slice(0, 32)
}

function sourceFor(n: number, { rooms, textBytes = 100, sourceOf: given }: Shape): PostSource {
  if (given !== undefined) return given(n)
  const root = rooms === undefined ? n : n % 10 === 9 ? 0 : n - (n % 4)
  const key = Buffer.alloc(32, 7)
  if (rooms !== undefined) key.writeUInt32BE(n % authorsMax)
  return {
    room: rooms === undefined ? 'many' : `many-${(root / 4) % rooms}`,
    root,
    key,
    text: `post ${n} `.padEnd(textBytes, '.'),
  }
}

function signedBytes(serviceId: string, n: number, shape: Shape): Buffer {
  const { room, root, key, text } = sourceFor(n, shape)
  const reply = root === n ? {} : { reply_to: idOf(serviceId, root, shape) }
  const who = { public_key: key.toString('base64url'), timestamp: startedAt, nonce: `nonce-${n}` }
  return signingBytes(serviceId, { operation: 'post', room, text, ...reply, ...who })
}

/** Creates the directory with a journal of one shard. Returns the service id. */
export function writePosts({
  directory,
  posts,
  publicHost = 'board.example',
  segmentBytesMax = 64 * 1024 * 1024,
  ...shape
}: WritePostsOptions): string {
  const board = openBoardDirectory({
    disk: machineDisk,
    path: directory,
    serviceId: '',
    publicHost,
    shards: 1,
    now: startedAt,
    random: machine.random,
  })
  const { service_id: serviceId } = board.facts
  const journal = Journal.open({ disk: machineDisk, directory: shardDirectory(directory, 0), segmentBytesMax })
  const names = shape.rooms === undefined ? ['many'] : Array.from({ length: shape.rooms }, (_, n) => `many-${n}`)
  for (const [n, room] of names.entries()) {
    const made: BoardRecord = { type: RecordType.roomCreated, room, at: startedAt, visibility: 'public' }
    journal.append([toFrame(made, Buffer.alloc(16, `room ${n}.`), true, [])])
  }
  const seqs = new Map<string, number>()
  let batch: NewFrame[] = []
  for (let n = 0; n < posts; n++) {
    const { room, root, key } = sourceFor(n, shape)
    const seq = (seqs.get(room) ?? 0) + 1
    seqs.set(room, seq)
    const above = root === n ? undefined : Buffer.from(idOf(serviceId, root, shape), 'hex')
    const signed = signedBytes(serviceId, n, shape)
    const sha = createHash('sha256').update(signed).digest()
    const at = startedAt + Math.floor(n / 100)
    const entry = postEntry({ room, seq, time: at, sha })
    const by = { key, sig: noSignature, signed }
    const facts = {
      type: RecordType.event,
      room,
      page: 'main',
      kind: 'note',
      seq,
      at,
      author: Buffer.from(identityId(key), 'hex'),
      by,
      via: 'command',
      ...(above !== undefined && { reply: above, root: above }),
    }
    batch.push(toFrame(facts as BoardRecord, sha.subarray(0, 16), true, [entry]))
    if (batch.length === 4_096 || n === posts - 1) {
      journal.append(batch)
      batch = []
    }
  }
  journal.close()
  return serviceId
}

export type IntegrateOptions = {
  readonly directory: string
  /** How many posts were written, and into how many rooms. */
  readonly posts: number
  readonly rooms?: number
  readonly segmentBytesMax?: number
  readonly entriesPerFrameMax?: number
  /** Called for each head. */
  readonly onHead?: (size: number, checkpoint: string) => void
}

/** Brings the log up to the journal of the shard, as the log's thread does. Returns its size. */
export function integrate({
  directory,
  posts,
  rooms = 1,
  segmentBytesMax = 64 * 1024 * 1024,
  entriesPerFrameMax = 4_096,
  onHead = () => {},
}: IntegrateOptions): number {
  const signed = openLog(directory, segmentBytesMax)
  const reader = JournalReader.open(machineDisk, shardDirectory(directory, 0))
  const log = new Log({
    journal: signed.journal,
    tree: signed.tree,
    shards: [reader],
    sign: (size, root) => signed.sign(size, root),
    leafHash: writeLeafHash,
    confirm: (_shard, { head: { size, checkpoint } }) => onHead(size, checkpoint),
    published: () => {},
    entriesPerFrameMax,
    soon: systemClock.soon,
    later: systemClock.later,
    start: stateAfter(signed.newest),
  })
  // The first records create the rooms.
  log.hint(0, posts + rooms)
  log.catchUp()
  const { size } = log.head
  reader.close()
  signed.close()
  return size
}

/** The log of a directory that no board is using. */
export function openLog(
  directory: string,
  segmentBytesMax = 64 * 1024 * 1024,
  marks: readonly HighWaterMark[] = [],
  report: SignedLogOptions['report'] = () => {},
): SignedLog {
  const { facts } = openBoardDirectory({
    disk: machineDisk,
    path: directory,
    serviceId: '',
    publicHost: '',
    shards: 1,
    now: startedAt,
    random: machine.random,
  })
  const { origin } = facts
  return SignedLog.open({
    disk: machineDisk,
    dataDirectory: directory,
    origin,
    segmentBytesMax,
    marks,
    begin: () => 1,
    report,
  })
}
