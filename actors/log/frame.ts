/**
 * The frames of the log's journal: each holds one head of the public log with the entries that led to it.
 *
 * Payload (little-endian):
 *
 * | bytes | what |
 * |---|---|
 * | 8  | size before = index of the first entry |
 * | 8  | number of the first change (from 1, never restarting) |
 * | 8  | new size |
 * | 32 | new root |
 * | 2  | r = ranges |
 * | 28·r | every shard in number order, even if it has nothing new (last = first - 1); on a resharded board a shard may appear several times, in the order of the entries: shard u16, reserved u16, first seq u64, last seq u64, changes u32, leaves u32 |
 * | 4  | e = entries |
 * | …  | e times: length u16 big-endian, entry as journals store it (see entry.ts) |
 * | …  | checkpoint: the signed note, to the end |
 *
 * Type 1: a batch of records. Type 2: the last frame of a log; its one entry is of kind `close`. Type 3: the first
 * frame of the next log; its one entry is of kind `open`. There sizes restart at 0, while changes and ranges continue.
 * Frames of type 3 are keyed, and their payload is preceded by
 *
 * | bytes | what |
 * |---|---|
 * | 16 | `openKey`: finds the newest such frame without reading the journal |
 * | 4  | n |
 * | n  | JSON list of the closed logs, oldest first (`ClosedLog`) |
 */

import { createHash } from 'node:crypto'
import { openCheckpoint } from '../../storage/checkpoint.ts'
import { NewerFormat } from '../../storage/disk.ts'
import { type Frame, type Journal, KEYED, type NewFrame } from '../../storage/journal.ts'
import { parseVkey } from '../../storage/note.ts'
import { entryText } from '../records/entry.ts'

export const logFrameType = 1
export const closeFrameType = 2
export const openFrameType = 3

/** Key of every frame of type 3. */
export const openKey = createHash('sha256').update('broadside: the log that follows another').digest().subarray(0, 16)

export type Range = {
  readonly shard: number
  readonly first: number
  readonly last: number
  readonly changes: number
  readonly leaves: number
}

export type LogFrame = {
  readonly type: number
  readonly firstLeaf: number
  readonly firstChange: number
  readonly size: number
  readonly root: Buffer
  readonly ranges: readonly Range[]
  /** Entries as journals store them, each after its length (u16 big-endian). */
  readonly bundle: Buffer
  readonly entries: number
  readonly checkpoint: string
}

/** A log that ended: what can be known about it without its frames. */
export type ClosedLog = {
  readonly origin: string
  readonly vkey: string
  readonly size: number
  /** Its last head, as a signed note. */
  readonly checkpoint: string
  /** Its first and last frame in the journal. */
  readonly first: number
  readonly last: number
  /** It was not closed: anything after this head is lost. */
  readonly isLost?: true
  /** Where the shards' journals ended when the log was given up; absent for logs from old releases. */
  readonly ends?: readonly number[]
}

/** `closed`: for the first frame of a log, the logs before it. */
export function encodeLogFrame(frame: LogFrame, closed: readonly ClosedLog[] = []): NewFrame {
  const checkpoint = Buffer.from(frame.checkpoint, 'utf8')
  const payload = Buffer.allocUnsafe(62 + frame.ranges.length * 28 + frame.bundle.length + checkpoint.length)
  payload.writeBigUInt64LE(BigInt(frame.firstLeaf), 0)
  payload.writeBigUInt64LE(BigInt(frame.firstChange), 8)
  payload.writeBigUInt64LE(BigInt(frame.size), 16)
  payload.set(frame.root, 24)
  payload.writeUInt16LE(frame.ranges.length, 56)
  let at = 58
  for (const range of frame.ranges) {
    payload.writeUInt16LE(range.shard, at)
    payload.writeUInt16LE(0, at + 2)
    payload.writeBigUInt64LE(BigInt(range.first), at + 4)
    payload.writeBigUInt64LE(BigInt(range.last), at + 12)
    payload.writeUInt32LE(range.changes, at + 20)
    payload.writeUInt32LE(range.leaves, at + 24)
    at += 28
  }
  payload.writeUInt32LE(frame.entries, at)
  payload.set(frame.bundle, at + 4)
  payload.set(checkpoint, at + 4 + frame.bundle.length)
  if (frame.type !== openFrameType) return { type: frame.type, flags: 0, payload }
  const list = Buffer.from(JSON.stringify(closed))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(list.length)
  return { type: frame.type, flags: KEYED, payload: Buffer.concat([openKey, length, list, payload]) }
}

/** The logs that were closed before the one that this frame opens. */
export function closedBefore({ type, payload }: Frame): ClosedLog[] {
  if (type !== openFrameType) throw new Error(`a log frame of type ${type} cannot begin a log`)
  return JSON.parse(payload.toString('utf8', 20, 20 + payload.readUInt32LE(16))) as ClosedLog[]
}

/** The logs before the newest one, as its first frame lists them. */
export function closedLogs(journal: Pick<Journal, 'findKey' | 'read'>): ClosedLog[] {
  const seq = journal.findKey(openKey)
  const frame = seq === undefined ? undefined : journal.read(seq)
  return frame?.type === openFrameType ? closedBefore(frame) : []
}

/** Decodes a log frame; `bundle` and `root` are views of the frame's payload. */
export function decodeLogFrame({ type, payload: whole }: Frame): LogFrame {
  if (type < logFrameType || type > openFrameType) throw new NewerFormat('the log', `has a frame of type ${type}`)
  const payload = type === openFrameType ? whole.subarray(20 + whole.readUInt32LE(16)) : whole
  const ranges: Range[] = []
  const count = payload.readUInt16LE(56)
  let at = 58
  for (let i = 0; i < count; i++, at += 28) {
    ranges.push({
      shard: payload.readUInt16LE(at),
      first: Number(payload.readBigUInt64LE(at + 4)),
      last: Number(payload.readBigUInt64LE(at + 12)),
      changes: payload.readUInt32LE(at + 20),
      leaves: payload.readUInt32LE(at + 24),
    })
  }
  const entries = payload.readUInt32LE(at)
  const start = at + 4
  let end = start
  for (let i = 0; i < entries; i++) end += 2 + payload.readUInt16BE(end)
  return {
    type,
    firstLeaf: Number(payload.readBigUInt64LE(0)),
    firstChange: Number(payload.readBigUInt64LE(8)),
    size: Number(payload.readBigUInt64LE(16)),
    root: payload.subarray(24, 56),
    ranges,
    bundle: payload.subarray(start, end),
    entries,
    checkpoint: payload.toString('utf8', end),
  }
}

/** The entries of a C2SP tlog-tiles bundle, in order, as views of it. */
export function entriesIn(bundle: Buffer): Buffer[] {
  const entries: Buffer[] = []
  for (let at = 0; at < bundle.length; ) {
    const end = at + 2 + bundle.readUInt16BE(at)
    entries.push(bundle.subarray(at + 2, end))
    at = end
  }
  return entries
}

/** The texts of a frame's entries, in order: from entry `first`, counted from 0, to before `end`. */
export function* entriesOf(
  { bundle, entries }: LogFrame,
  first = 0,
  end = entries,
): Generator<Buffer, void, undefined> {
  let at = 0
  for (let i = 0; i < Math.min(end, entries); i++) {
    const next = at + 2 + bundle.readUInt16BE(at)
    if (i >= first) yield entryText(bundle.subarray(at + 2, next))
    at = next
  }
}

/** Whether the checkpoint in this frame is signed by this key, and is that of the frame. */
export function hasSigned(vkey: string, { checkpoint, size, root }: LogFrame): boolean {
  const key = parseVkey(vkey)
  const opened = key.ok ? openCheckpoint(checkpoint, key.value) : key
  return opened.ok && opened.value.size === size && opened.value.root.equals(root)
}
