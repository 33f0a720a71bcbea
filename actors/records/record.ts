/**
 * Records: what actors write to their journals, and how a record becomes the payload of a frame.
 *
 * Payload of every record (all integers little-endian):
 *
 * | bytes | what |
 * |---|---|
 * | 16    | key: first 16 bytes of the SHA-256 of the signing bytes of the command that caused it (its event id) |
 * | 2     | n = length of the log entry, 0 if the record has no leaf in the public log |
 * | n     | the log entry in stored form (see entry.ts); with the flag LEAVES several of them, each after its length (u16 big-endian) |
 * | rest  | body: one self-describing msgpack map, names as in the types below; for an event a list, see EventBody |
 *
 * A body is hashed and served as stored and never re-encoded. It contains the bytes that a person signed, unchanged (`signed`).
 */

import { createHash, hash } from 'node:crypto'
import { MORE } from '../../storage/frame.ts'
import { type Frame, type NewFrame, STUB } from '../../storage/journal.ts'
import type { Command } from '../kernel/fields.ts'
import { Packr, Unpackr } from '../kernel/msgpack.ts'
import type { Infer, Schema } from '../kernel/schema.ts'
import { entryCommand, entryText } from './entry.ts'

/** Frame flags of this layer (storage uses 0x80, 0x40 and 0x20). */
export const PUBLIC = 0x01
export const LEAF = 0x02
/** With LEAF: one decision that is several leaves, all in one frame, so that a crash keeps all of them or none. */
const LEAVES = 0x04
const KEYED = 0x80

export const RecordType = { roomCreated: 1, event: 2, handleClaimed: 3, act: 4 } as const
export type RecordType = (typeof RecordType)[keyof typeof RecordType]

/** The signed command of a record: enough for anyone to verify the signature again. */
export type Signed = {
  /** 32-byte public key that signed. */
  readonly key: Uint8Array
  /** 64-byte Ed25519 signature over `signed`. */
  readonly sig: Uint8Array
  /** The signing bytes: compact JSON, see the signing spec at /capabilities. If `cut` is present, a part of them is missing. */
  readonly signed: Uint8Array
  readonly cut?: Cut
  /** Present if a delegate signed: whose delegate, and by which delegation. */
  readonly for?: Delegated
}

/** The delegation that a delegate used: the `delegation.create` signed with the identity's own key. */
export type Delegated = {
  /** 16-byte id: first half of the SHA-256 of `signed`. */
  readonly id: Uint8Array
  /** 32-byte public key of the identity itself. */
  readonly key: Uint8Array
  readonly sig: Uint8Array
  readonly signed: Uint8Array
}

/** The key of the identity itself, even if a delegate signed. */
export function ownKey(by: Signed): Uint8Array {
  return by.for?.key ?? by.key
}

/**
 * A part of the signing bytes that is stored elsewhere: the base64url text of a file, cut out at byte `at`. The signed bytes
 * are `signed` up to `at`, that text, and the rest. `signed` alone is still JSON, with an empty string in that place. If `data`
 * holds a secret, it is not stored at all: only a hash is, to recognize it if it is sent again.
 */
type Cut = {
  readonly at: number
  /** SHA-256 of the file's bytes; for `data` with a secret, its HMAC under a key of the board. */
  readonly file: Uint8Array
  /** SHA-256 of the whole signing bytes. */
  readonly sha: Uint8Array
  /** For a stub: `useMark` of its nonce. Absent if an older release made the stub, or if another actor remembers the command. */
  readonly nonce?: Uint8Array
  /** The same for its request id; absent if it has none. */
  readonly request?: Uint8Array
}

/** Commands that the market decides and remembers, and from which a room makes an event. */
export const requestsOfWork: ReadonlySet<string> = new Set(['work.create', 'work.edit'])

/**
 * The mark that remains of a nonce or request id after its command is destroyed: 16 bytes of a SHA-256, enough to recognize it.
 * The text itself must go: anyone who knows the nonce could test guesses of the text against the hash of the command. `author`:
 * 64 hex.
 */
export function useMark(use: 'nonce' | 'request', room: string, author: string, text: string): Buffer {
  return hash('sha256', JSON.stringify([use, room, author, text]), 'buffer').subarray(0, 16)
}

/** The command in signed bytes. Stored commands were checked before they were accepted. */
export function commandIn(signed: Uint8Array): Command {
  const { command } = JSON.parse(Buffer.from(signed.buffer, signed.byteOffset, signed.byteLength).toString('utf8')) as {
    readonly command: Command
  }
  return command
}

/** `data` of a command, typed as its operation declares it: it was checked against that before the command was accepted. */
export function dataIn<Declared extends { readonly data: Schema }>({
  data,
}: Pick<Command, 'data'>): Infer<Declared['data']> {
  return JSON.parse(data === undefined || data === '' ? '{}' : data)
}

/** SHA-256 of the signed bytes. */
export function commandSha({ signed, cut }: Signed): Buffer {
  return cut === undefined ? createHash('sha256').update(signed).digest() : Buffer.from(cut.sha)
}

/** The signed bytes, from a record and the file that was cut out of it. */
export function joined({ signed, cut }: Signed, file: Uint8Array): Buffer {
  if (cut === undefined) return Buffer.from(signed.buffer, signed.byteOffset, signed.byteLength)
  const text = Buffer.from(Buffer.from(file).toString('base64url'), 'latin1')
  return Buffer.concat([signed.subarray(0, cut.at), text, signed.subarray(cut.at)])
}

export type RoomCreated = {
  readonly type: typeof RecordType.roomCreated
  readonly room: string
  /** Unix seconds. */
  readonly at: number
  readonly visibility: 'public' | 'private'
  /** 32-byte identity id; absent if the operator owns it (the room was made by a first post). */
  readonly owner?: Uint8Array
  readonly members?: readonly Uint8Array[]
  readonly about?: string
  readonly by?: Signed
}

export type PostRecord = {
  readonly type: typeof RecordType.event
  readonly room: string
  readonly page: string
  readonly kind: string
  /** Number inside the room, from 1, without gaps. */
  readonly seq: number
  readonly at: number
  /** 32-byte identity id of the author. */
  readonly author: Uint8Array
  readonly by: Signed
  /** 16-byte id of the event replied to. */
  readonly reply?: Uint8Array
  /** 16-byte id of the thread's root; absent on a root. */
  readonly root?: Uint8Array
  /** 16-byte id of the event that this is a later version of: `root` and `expires` are then that event's. */
  readonly original?: Uint8Array
  /** Unix seconds after which the text is removed. */
  readonly expires?: number
  /** 32-byte identity id of the addressee, if the command names a handle; otherwise the command itself has the id. */
  readonly to?: Uint8Array
  /** 16-byte ids of the attachments that it names; absent if none. */
  readonly blobs?: readonly Uint8Array[]
  /** For an edit that names no format: the format of the version before it. Absent: as signed, text by default. */
  readonly format?: 'markdown'
  /** It is the request of a work that the same command creates. */
  readonly isRequest?: true
  /** The interface through which the command came. */
  readonly via: string
}

export type HandleClaimed = {
  readonly type: typeof RecordType.handleClaimed
  readonly room: typeof registryName
  readonly at: number
  readonly author: Uint8Array
  readonly key: Uint8Array
  readonly handle: string
  /** Present if `identity.register` claimed it; absent if a post did (the frame's key is that post's id). */
  readonly by?: Signed
}

/**
 * Any decision that makes no event: a vote, a member who joined, a document's new version. One record type for all of them, so
 * that a new operation needs no new layout on disk.
 */
export type FactRecord<Given extends object = Facts> = {
  readonly type: typeof RecordType.act
  /** The actor that decided: a room's name, or a name that starts with `@`. */
  readonly room: string
  readonly at: number
  /** 32-byte identity id of who did it. */
  readonly author: Uint8Array
  /** What was done. This name finds the part of the state that owns it. */
  readonly op: string
  /** What was decided, as msgpack values. What a person signed is in `by` and is not repeated here. */
  readonly facts: Given
  /** Absent if there is no signature, as for something that arrived at a receive URL. */
  readonly by?: Signed
}
export type Facts = Readonly<Record<string, unknown>>

/**
 * Acts with certain names, whose deciders write facts of the same form. Readers of a record name the acts they expect: a record
 * of any other is an error, and is never read as if it were one of these.
 */
export class ActsOf<Given extends Facts> {
  readonly #ops: ReadonlySet<string>

  constructor(...ops: readonly string[]) {
    this.#ops = new Set(ops)
  }

  is(record: BoardRecord): record is FactRecord<Given> {
    return record.type === RecordType.act && this.#ops.has(record.op)
  }

  in(record: BoardRecord): FactRecord<Given> {
    if (this.is(record)) return record
    const what = record.type === RecordType.act ? record.op : `type ${record.type}`
    throw new Error(`a record of ${what} is none of ${[...this.#ops].join(', ')}`)
  }
}

/** The record as an act; throws for any other type. */
export function actIn(record: BoardRecord): FactRecord {
  if (record.type !== RecordType.act) throw new Error(`record type ${record.type} is not an act`)
  return record
}

/** The record as an event; throws for any other type. */
export function postIn(record: BoardRecord): PostRecord {
  if (record.type !== RecordType.event) throw new Error(`record type ${record.type} is not an event`)
  return record
}

/** The delegation that was used (32 hex), or '' for the identity's own key. */
export function delegationOf({ by }: FactRecord): string {
  return by?.for === undefined ? '' : Buffer.from(by.for.id).toString('hex')
}

export type BoardRecord = RoomCreated | PostRecord | HandleClaimed | FactRecord

/** Journal name of the registry: no room can have it. */
export const registryName = '@registry'

/** The prefix of conversation names; no other names begin with it. */
export const conversationPrefix = 'dm-'

const nothing = Buffer.alloc(0)
const encoder = new Packr({ useRecords: false, variableMapSize: true })
const decoder = new Unpackr({ useRecords: false })

/**
 * Encodes a record. `key` is 16 bytes. `entries` are its leaves in the public log in stored form, at most 64 KiB in all.
 * `hasMore`: the next record belongs to the same decision, and a crash keeps both or none.
 */
export function toFrame(
  record: BoardRecord,
  key: Uint8Array,
  isPublic: boolean,
  entries: readonly Uint8Array[],
  hasMore = false,
): NewFrame {
  const { type } = record
  const packed = encoder.pack(bodyOf(record))
  const block = entries.length > 1 ? bundleOf(entries) : (entries[0] ?? nothing)
  const payload = Buffer.allocUnsafe(18 + block.length + packed.length)
  payload.set(key, 0)
  payload.writeUInt16LE(block.length, 16)
  payload.set(block, 18)
  payload.set(packed, 18 + block.length)
  const leaves = entries.length === 0 ? 0 : entries.length === 1 ? LEAF : LEAF | LEAVES
  return { type, flags: KEYED | (isPublic ? PUBLIC : 0) | leaves | (hasMore ? MORE : 0), payload }
}

/** Values that most events have; their bodies hold nil instead. */
const usual = { page: 'main', kind: 'note', via: 'command' } as const
export const viaUsual = usual.via

/** Fields that few events have, including the rest of `by`. */
type EventRest = Omit<
  PostRecord,
  'type' | 'room' | keyof typeof usual | 'seq' | 'at' | 'author' | 'by' | 'reply' | 'root'
> &
  Pick<Signed, 'cut' | 'for'>

/**
 * The body of an event. nil stands for the usual value, or for absent. It is a tenth shorter than a map and takes a third of
 * the time to decode.
 */
type EventBody = readonly [
  room: string,
  page: string | null,
  kind: string | null,
  seq: number,
  at: number,
  author: Uint8Array,
  key: Uint8Array,
  sig: Uint8Array,
  signed: Uint8Array,
  via: string | null,
  reply: Uint8Array | null,
  root: Uint8Array | null,
  rest?: EventRest,
]

function bodyOf(record: BoardRecord): object {
  if (record.type === RecordType.event) return eventBody(record)
  const { type, ...body } = record
  return body
}

function eventBody(record: PostRecord): EventBody {
  const { type, room, page, kind, seq, at, author, by, via, reply = null, root = null, ...others } = record
  const { key, sig, signed, ...more } = by
  const ownPage = page === usual.page ? null : page
  const ownKind = kind === usual.kind ? null : kind
  const ownVia = via === usual.via ? null : via
  const body = [room, ownPage, ownKind, seq, at, author, key, sig, signed, ownVia, reply, root] as const
  const rest = { ...others, ...more }
  return Object.keys(rest).length === 0 ? body : [...body, rest]
}

function eventIn(body: EventBody): PostRecord {
  const [room, page, kind, seq, at, author, key, sig, signed, via, reply, root, rest = {}] = body
  const { cut, for: delegated, ...others } = rest
  const more = { ...(cut === undefined ? {} : { cut }), ...(delegated === undefined ? {} : { for: delegated }) }
  return {
    type: RecordType.event,
    room,
    page: page ?? usual.page,
    kind: kind ?? usual.kind,
    seq,
    at,
    author,
    by: { key, sig, signed, ...more },
    via: via ?? usual.via,
    ...(reply === null ? {} : { reply }),
    ...(root === null ? {} : { root }),
    ...others,
  }
}

function bundleOf(entries: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    entries.flatMap((entry) => {
      const length = Buffer.allocUnsafe(2)
      length.writeUInt16BE(entry.length)
      return [length, entry]
    }),
  )
}

export function frameKey(frame: Frame): Buffer {
  const at = keyAt(frame)
  return frame.payload.subarray(at, at + 16)
}

/** The text of the log entry of a frame with the LEAF flag; the first one if there are several. */
export function frameEntry(frame: Frame): Buffer {
  return entryText(keptEntries(frame)[0]!, frameKey(frame))
}

/** The texts of all log entries of a frame, in order, copied so that they outlast the frame. */
export function frameEntries(frame: Frame): Buffer[] {
  const key = frameKey(frame)
  return keptEntries(frame).map((kept) => {
    const text = entryText(kept, key)
    return text === kept ? Buffer.from(kept) : text
  })
}

/** `command` of the log entry of a frame with the LEAF flag: 64 hex, or '-'. */
export function frameCommand(frame: Frame): string {
  return entryCommand(keptEntries(frame)[0]!, frameKey(frame))
}

/** The log entries inside a frame in stored form, in order, as views. */
export function keptEntries(frame: Frame): Buffer[] {
  if ((frame.flags & LEAF) === 0) return []
  const block = entryBlock(frame)
  if ((frame.flags & LEAVES) === 0) return [block]
  const entries: Buffer[] = []
  for (let at = 0; at < block.length; ) {
    const end = at + 2 + block.readUInt16BE(at)
    entries.push(block.subarray(at + 2, end))
    at = end
  }
  return entries
}

/** How many leaves of the public log a frame has. */
export function leavesOf(frame: Frame): number {
  const one = (frame.flags & LEAF) === 0 ? 0 : 1
  return (frame.flags & LEAVES) === 0 ? one : keptEntries(frame).length
}

function entryBlock(frame: Frame): Buffer {
  const at = keyAt(frame)
  return frame.payload.subarray(at + 18, at + 18 + frame.payload.readUInt16LE(at + 16))
}

/** Decodes the body; byte fields are views of the frame's payload. For a stub: what remains, without the signed bytes. */
export function fromFrame(frame: Frame): BoardRecord {
  const start = bodyOffset(frame)
  const body = isStub(frame)
    ? frame.payload.subarray(start + 4, start + 4 + frame.payload.readUInt32LE(start))
    : frame.payload.subarray(start)
  const decoded = decoder.unpack(body) as EventBody | object
  return isEventBody(decoded) ? eventIn(decoded) : ({ type: frame.type, ...decoded } as BoardRecord)
}

/** A body that is not a list is a map: of another record type, or of an event from release 1.0. */
function isEventBody(body: EventBody | object): body is EventBody {
  return Array.isArray(body)
}

/** Offset of the body in the payload; in a stub, of its length. */
export function bodyOffset(frame: Frame): number {
  const at = keyAt(frame)
  return at + 18 + frame.payload.readUInt16LE(at + 16)
}

export function isStub(frame: Frame): boolean {
  return (frame.flags & STUB) !== 0
}

/**
 * The stub of an event or act whose signed text was redacted. After digest and key it has the log entry with its length, then
 * the length (u32) of a body that has everything but the signed bytes and their signature.
 */
export function stubOf(frame: Frame): Buffer {
  const { by, ...rest } = fromFrame(frame) as PostRecord | FactRecord
  if (by === undefined) throw new Error(`frame ${frame.seq} has no signed text to remove`)
  const cut: Cut = { at: 0, file: nothing, sha: commandSha(by), ...usesOf(by.signed, rest) }
  const body = encoder.pack(bodyOf({ ...rest, by: { ...by, sig: nothing, signed: nothing, cut } }))
  const block = entryBlock(frame)
  const kept = Buffer.allocUnsafe(6 + block.length + body.length)
  kept.writeUInt16LE(block.length, 0)
  kept.set(block, 2)
  kept.writeUInt32LE(body.length, 2 + block.length)
  kept.set(body, 6 + block.length)
  return kept
}

/** Marks of the nonce and request id, which identify a retry; none if the text was already gone (an import of a stub). */
function usesOf(
  signed: Uint8Array,
  record: Pick<PostRecord | FactRecord, 'room' | 'author'>,
): Pick<Cut, 'nonce' | 'request'> {
  if (signed.length === 0) return {}
  const { operation, nonce = '', request_id: request = '' } = commandIn(signed)
  if ('seq' in record && requestsOfWork.has(operation)) return {}
  const author = Buffer.from(record.author).toString('hex')
  const mark = (use: 'nonce' | 'request', text: string) => useMark(use, record.room, author, text)
  return { nonce: mark('nonce', nonce), ...(request === '' ? {} : { request: mark('request', request) }) }
}

/** Offset of the key: after the digest in a stub. */
function keyAt(frame: Frame): number {
  return isStub(frame) ? 32 : 0
}
