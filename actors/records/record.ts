/**
 * Records: what the actors write into their journals, and how a record becomes the payload of a frame.
 *
 * Payload of every record (all integers little-endian):
 *
 * | bytes | what |
 * |---|---|
 * | 16    | key: first 16 bytes of the SHA-256 of the signing bytes of the command that caused it (its event id) |
 * | 2     | n = length of the log entry, 0 when the record has no leaf in the public log |
 * | n     | the log entry, as a record keeps it (see entry.ts); with the flag LEAVES several of them, each after its length (u16 big-endian) |
 * | rest  | body: one msgpack map, self-describing, names as in the types below; of an event a list, see EventBody |
 *
 * A body is hashed and served as stored and never encoded again. What a person signed lies in it byte for byte (`signed`).
 */

import { createHash, hash } from 'node:crypto'
import { MORE } from '../../storage/frame.ts'
import { type Frame, type NewFrame, STUB } from '../../storage/journal.ts'
import type { Command } from '../kernel/fields.ts'
import { Packr, Unpackr } from '../kernel/msgpack.ts'
import type { Infer, Schema } from '../kernel/schema.ts'
import { entryCommand, entryText } from './entry.ts'

/** Frame flags of this floor (storage uses 0x80, 0x40 and 0x20). */
export const PUBLIC = 0x01
export const LEAF = 0x02
/** With LEAF: one decision that is several leaves, all in one frame, so that a crash keeps all of them or none. */
const LEAVES = 0x04
const KEYED = 0x80

export const RecordType = { roomCreated: 1, event: 2, handleClaimed: 3, act: 4 } as const
export type RecordType = (typeof RecordType)[keyof typeof RecordType]

/** The signed command of a record: enough for anyone to check the signature again. */
export type Signed = {
  /** 32-byte public key that signed. */
  readonly key: Uint8Array
  /** 64-byte Ed25519 signature over `signed`. */
  readonly sig: Uint8Array
  /** The signing bytes: compact JSON, see spec of signing at /capabilities. Where `cut` stands, without a part of them. */
  readonly signed: Uint8Array
  readonly cut?: Cut
  /** Present where a delegate signed: in whose name, and by whose word. */
  readonly for?: Delegated
}

/** The delegation that a delegate acts by: the `delegation.create` that the identity's own key signed. */
export type Delegated = {
  /** 16-byte id: first half of the SHA-256 of `signed`. */
  readonly id: Uint8Array
  /** 32-byte public key of the identity itself. */
  readonly key: Uint8Array
  readonly sig: Uint8Array
  readonly signed: Uint8Array
}

/** The key of the identity itself, also where a delegate signed. */
export function ownKey(by: Signed): Uint8Array {
  return by.for?.key ?? by.key
}

/**
 * A part of the signing bytes that is kept elsewhere: the base64url text of a file stood at byte `at`. The bytes that were
 * signed are `signed` up to there, that text, and the rest; `signed` alone is still JSON, with an empty string in that place.
 * Of `data` that holds a secret nothing is kept: who signed it has it, and here it is only known again.
 */
type Cut = {
  readonly at: number
  /** SHA-256 of the file's bytes; of `data` with a secret, its HMAC with a key of the board. */
  readonly file: Uint8Array
  /** SHA-256 of the whole signing bytes. */
  readonly sha: Uint8Array
  /** Of a stub: `useMark` of its nonce. Absent where an older release made the stub, and where another actor remembers the command. */
  readonly nonce?: Uint8Array
  /** The same of its request id; absent where it has none. */
  readonly request?: Uint8Array
}

/** Commands that the market decides and remembers, and of which a room makes an event. */
export const requestsOfWork: ReadonlySet<string> = new Set(['work.create', 'work.edit'])

/**
 * What is kept of a nonce or a request id whose command is destroyed: 16 bytes of a SHA-256, by which it is known again. The text itself
 * must go: a nonce that is known lets anyone try out which text the hash of the command is of.
 * `author`: 64 hex.
 */
export function useMark(use: 'nonce' | 'request', room: string, author: string, text: string): Buffer {
  return hash('sha256', JSON.stringify([use, room, author, text]), 'buffer').subarray(0, 16)
}

/** The command in signed bytes; what is kept of one was checked before it was accepted. */
export function commandIn(signed: Uint8Array): Command {
  const { command } = JSON.parse(Buffer.from(signed.buffer, signed.byteOffset, signed.byteLength).toString('utf8')) as {
    readonly command: Command
  }
  return command
}

/** What `data` of a command says, in the form that its operation declares: it was checked against that before it was accepted. */
export function dataIn<Declared extends { readonly data: Schema }>({
  data,
}: Pick<Command, 'data'>): Infer<Declared['data']> {
  return JSON.parse(data === undefined || data === '' ? '{}' : data)
}

/** SHA-256 of the bytes that were signed. */
export function commandSha({ signed, cut }: Signed): Buffer {
  return cut === undefined ? createHash('sha256').update(signed).digest() : Buffer.from(cut.sha)
}

/** The bytes that were signed, from a record and the file that was cut out of it. */
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
  /** 32-byte identity id; absent: the operator owns it (made by a first post). */
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
  /** 16-byte id of the event that this is a later version of: `root` and `expires` are then that one's. */
  readonly original?: Uint8Array
  /** Unix seconds after which the text is gone. */
  readonly expires?: number
  /** 32-byte identity id that it is addressed to, where the command names a handle; else the command says it. */
  readonly to?: Uint8Array
  /** 16-byte ids of the attachments that it names; absent: none. */
  readonly blobs?: readonly Uint8Array[]
  /** Of an edit that names no format: the one it keeps from the version before. Absent: what was signed, text by default. */
  readonly format?: 'markdown'
  /** It is the request of a work that the same command makes. */
  readonly isRequest?: true
  /** The interface that the command came through. */
  readonly via: string
}

export type HandleClaimed = {
  readonly type: typeof RecordType.handleClaimed
  readonly room: typeof registryName
  readonly at: number
  readonly author: Uint8Array
  readonly key: Uint8Array
  readonly handle: string
  /** Present when claimed by `identity.register`; absent when a post claimed it (the post is the frame's key). */
  readonly by?: Signed
}

/**
 * Everything that is decided but makes no event: a vote, a member who joined, a document's new version.
 * One record type for all of them, so that an operation is added without another layout on disk.
 */
export type FactRecord<Given extends object = Facts> = {
  readonly type: typeof RecordType.act
  /** The actor that decided: a room's name, or a name that starts with `@`. */
  readonly room: string
  readonly at: number
  /** 32-byte identity id of who did it. */
  readonly author: Uint8Array
  /** What was done; the part of the state that owns it is found by this name. */
  readonly op: string
  /** What was decided, as msgpack values. What a person signed is in `by` and is not repeated here. */
  readonly facts: Given
  /** Absent where there is no signature: something that arrived at a receive URL. */
  readonly by?: Signed
}
export type Facts = Readonly<Record<string, unknown>>

/**
 * The acts of some names, whose deciders write facts of one form. Who reads a record back names the acts that it may be: a record of
 * another is an error, and never read as if it were one of these.
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
    throw new Error(`a record of ${what} is not one of ${[...this.#ops].join(', ')}`)
  }
}

/** The record, which is one of an act. */
export function actIn(record: BoardRecord): FactRecord {
  if (record.type !== RecordType.act) throw new Error(`a record of type ${record.type} is not one of an act`)
  return record
}

/** The record, which is one of an event. */
export function postIn(record: BoardRecord): PostRecord {
  if (record.type !== RecordType.event) throw new Error(`a record of type ${record.type} is not one of an event`)
  return record
}

/** 32 hex: the delegation by which it was done, or '' for the identity's own key. */
export function delegationOf({ by }: FactRecord): string {
  return by?.for === undefined ? '' : Buffer.from(by.for.id).toString('hex')
}

export type BoardRecord = RoomCreated | PostRecord | HandleClaimed | FactRecord

/** Journal name of the registry: no room can be called so. */
export const registryName = '@registry'

/** What the names of conversations begin with, and no others. */
export const conversationPrefix = 'dm-'

const nothing = Buffer.alloc(0)
const encoder = new Packr({ useRecords: false, variableMapSize: true })
const decoder = new Unpackr({ useRecords: false })

/**
 * Encodes a record; `key` is 16 bytes, `entries` are its leaves in the public log, as a record keeps them, 64 KiB in all at most.
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

/** What most events say: nil in their bodies. */
const usual = { page: 'main', kind: 'note', via: 'command' } as const
export const viaUsual = usual.via

/** What few events say besides; the rest of `by` is among it. */
type EventRest = Omit<
  PostRecord,
  'type' | 'room' | keyof typeof usual | 'seq' | 'at' | 'author' | 'by' | 'reply' | 'root'
> &
  Pick<Signed, 'cut' | 'for'>

/** The body of an event. nil: as usual, or absent. It is a tenth shorter than a map, and decoded in a third of the time. */
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

/** The text of the log entry of a frame with the LEAF flag, of the first of them where there are several. */
export function frameEntry(frame: Frame): Buffer {
  return entryText(keptEntries(frame)[0]!, frameKey(frame))
}

/** The texts of all log entries of a frame, in their order, in memory of their own: they outlast the frame. */
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

/** The log entries inside a frame as its record keeps them, in their order, as views. */
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

/** How many leaves of the public log a frame is. */
export function leavesOf(frame: Frame): number {
  const one = (frame.flags & LEAF) === 0 ? 0 : 1
  return (frame.flags & LEAVES) === 0 ? one : keptEntries(frame).length
}

function entryBlock(frame: Frame): Buffer {
  const at = keyAt(frame)
  return frame.payload.subarray(at + 18, at + 18 + frame.payload.readUInt16LE(at + 16))
}

/** Decodes the body; byte fields are views of the frame's payload. Of a stub: what was kept, without what was signed. */
export function fromFrame(frame: Frame): BoardRecord {
  const start = bodyOffset(frame)
  const body = isStub(frame)
    ? frame.payload.subarray(start + 4, start + 4 + frame.payload.readUInt32LE(start))
    : frame.payload.subarray(start)
  const decoded = decoder.unpack(body) as EventBody | object
  return isEventBody(decoded) ? eventIn(decoded) : ({ type: frame.type, ...decoded } as BoardRecord)
}

/** Otherwise it is a map: of another record, or of an event of release 1.0. */
function isEventBody(body: EventBody | object): body is EventBody {
  return Array.isArray(body)
}

/** Where the body begins in the payload; in a stub, its length. */
export function bodyOffset(frame: Frame): number {
  const at = keyAt(frame)
  return at + 18 + frame.payload.readUInt16LE(at + 16)
}

export function isStub(frame: Frame): boolean {
  return (frame.flags & STUB) !== 0
}

/**
 * What a stub keeps of an event or an act whose signed text was taken back, after digest and key: the log entry with its length, then
 * the length (u32) of a body that has everything but the signed bytes and the signature over them.
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

/** Marks of the nonce and the request id by which a retry is known; none where the text was gone before (an import of what it left). */
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

/** Where the key stands: after the digest of a stub. */
function keyAt(frame: Frame): number {
  return isStub(frame) ? 32 : 0
}
