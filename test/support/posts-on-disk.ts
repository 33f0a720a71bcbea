/**
 * A board of many posts, made as files: its records are those of real posts, its log is made by the log actor's own code.
 * Signing and sending a million of them would take an hour; nothing that is read from them here asks for their signatures.
 */

import { createHash } from 'node:crypto'
import { formatEntry } from '../../actors/log/entry.ts'
import { Log, stateAfter } from '../../actors/log/log.ts'
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

export type OnDisk = {
  readonly directory: string
  readonly posts: number
  /** `host:port` in the name of its log: a board served there is the one that is meant. */
  readonly publicHost?: string
  readonly segmentBytesMax?: number
  readonly textBytes?: number
}

const startedAt = 1_790_000_000
const room = 'many'
const key = Buffer.alloc(32, 7)
const noSignature = Buffer.alloc(64)

/** Event ids of posts first..first+count-1, 32 hex. */
export function idOf(serviceId: string, n: number, textBytes = 100): string {
  return createHash('sha256')
    .update(signedBytes(serviceId, n, textBytes))
    .digest('hex')
    .slice(0, 32)
}

function signedBytes(serviceId: string, n: number, textBytes: number): Buffer {
  const text = `post ${n} `.padEnd(textBytes, '.')
  const nonce = `nonce-${n}`
  const command = { operation: 'post', room, text, public_key: key.toString('base64url'), timestamp: startedAt, nonce }
  return signingBytes(serviceId, command)
}

/** Makes the directory with a journal of one shard. Gives the service id. */
export function writePosts({
  directory,
  posts,
  publicHost = 'board.example',
  segmentBytesMax = 64 * 1024 * 1024,
  textBytes = 100,
}: OnDisk): string {
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
  const made: BoardRecord = { type: RecordType.roomCreated, room, at: startedAt, visibility: 'public' }
  journal.append([toFrame(made, Buffer.alloc(16, 9), true, [])])
  const author = Buffer.from(identityId(key), 'hex')
  let batch: NewFrame[] = []
  for (let n = 0; n < posts; n++) {
    const signed = signedBytes(serviceId, n, textBytes)
    const sha = createHash('sha256').update(signed).digest()
    const at = startedAt + Math.floor(n / 100)
    const event = sha.toString('hex', 0, 16)
    const entry = formatEntry({ kind: 'post', event, room, seq: n + 1, time: at, command: sha.toString('hex') })
    const by = { key, sig: noSignature, signed }
    const facts = {
      type: RecordType.event,
      room,
      page: 'main',
      kind: 'note',
      seq: n + 1,
      at,
      author,
      by,
      via: 'command',
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

export type Integrating = {
  readonly directory: string
  /** How many posts were written. */
  readonly posts: number
  readonly segmentBytesMax?: number
  readonly entriesPerFrameMax?: number
  /** Told of each head. */
  readonly onHead?: (size: number, checkpoint: string) => void
}

/** Brings the log up to the journal of the shard, as the log's thread does. Gives its size. */
export function integrate({
  directory,
  posts,
  segmentBytesMax = 64 * 1024 * 1024,
  entriesPerFrameMax = 4_096,
  onHead = () => {},
}: Integrating): number {
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
  // The first record makes the room.
  log.hint(0, posts + 1)
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
