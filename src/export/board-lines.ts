/**
 * Lines of `/v1/export?stream=board`: one public record of the board each, as JSON from which the same record can be rebuilt.
 *
 * Bytes are hex where the schema says so, and `{"hex": "…"}` inside `facts`. The signed bytes are included as they were signed; if they
 * were redacted, or must not be shown, only `command_sha256` is left of them.
 */
import { createHash } from 'node:crypto'
import { hex } from '../../actors/kernel/hex.ts'
import { ActsOf, type BoardRecord, commandSha, joined, RecordType, type Signed } from '../../actors/records/record.ts'
import type { OpenFacts } from '../../actors/works/market/letters.ts'
import type { BoardHead, EndLine, RecordLine, SignedPart, VotesLine } from '../format/board-schema.ts'

/** The version of the lines. */
export const boardStreamVersion = 1

export type Head = BoardHead
export type End = EndLine

/** A record with its key (16 bytes) and its entries in the public log. */
export type HeldRecord = {
  readonly record: BoardRecord
  readonly key: Uint8Array
  readonly entries: readonly Uint8Array[]
}

/** What is shown in addition to the record itself. */
type Shown = {
  /** Whether the signed bytes are omitted. */
  readonly isGone: boolean
  /** For `blob.put`: the bytes of the file, which are contained in the signed bytes. */
  readonly file?: Uint8Array | undefined
  /** For `work.open`: the line of the signed request, which was recorded before its room accepted it. */
  readonly reserved?: RecordLine
}

const types = { 1: 'room', 2: 'event', 3: 'handle', 4: 'act' } as const
const typeNumbers = {
  room: RecordType.roomCreated,
  event: RecordType.event,
  handle: RecordType.handleClaimed,
  act: RecordType.act,
} as const

/** Fields of records that are bytes, or lists of bytes. */
const bytesFields: ReadonlySet<string> = new Set([
  'owner',
  'members',
  'author',
  'key',
  'reply',
  'root',
  'original',
  'to',
  'blobs',
])

export const opened = new ActsOf<OpenFacts>('work.open')

export function recordLine({ record, key, entries }: HeldRecord, shown: Shown): RecordLine {
  const { type, by, ...rest } = record
  const fields = Object.entries(rest).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, name === 'facts' ? marked(value) : shownField(name, value)]],
  )
  const line = {
    type: types[type],
    id: hex(key),
    ...Object.fromEntries(fields),
    ...(entries.length === 0 ? {} : { entries: entries.map((entry) => Buffer.from(entry).toString('latin1')) }),
    ...(by === undefined ? {} : { signed: signedPart(by, shown) }),
    ...(shown.reserved === undefined ? {} : { reserved: shown.reserved }),
  }
  return line as RecordLine
}

export function votesLine(event: string, { up, down }: { readonly up: number; readonly down: number }): VotesLine {
  return { type: 'votes', event, up, down }
}

function shownField(name: string, value: unknown): unknown {
  if (!bytesFields.has(name)) return value
  return Array.isArray(value) ? value.map(hex) : hex(value as Uint8Array)
}

function signedPart(by: Signed, { isGone, file }: Shown): SignedPart {
  const { key, sig, signed, cut, for: delegated } = by
  const isShown = !isGone && signed.length > 0 && (cut === undefined || file !== undefined)
  return {
    public_key: base64url(key),
    command_sha256: commandSha(by).toString('hex'),
    ...(isShown
      ? { signature: base64url(sig), signed_payload: joined(by, file ?? Buffer.alloc(0)).toString('utf8') }
      : {}),
    ...(isShown && cut !== undefined ? { file: { at: cut.at, length: textLength(file!) } } : {}),
    ...(delegated === undefined
      ? {}
      : {
          delegation: {
            id: hex(delegated.id),
            public_key: base64url(delegated.key),
            signature: base64url(delegated.sig),
            signed_payload: Buffer.from(delegated.signed).toString('utf8'),
          },
        }),
  }
}

/** Characters of base64url without padding. */
function textLength({ length }: Uint8Array): number {
  return Math.ceil((length * 4) / 3)
}

/** Converts values of facts to JSON. */
function marked(value: unknown): unknown {
  if (value instanceof Uint8Array) return { hex: hex(value) }
  if (Array.isArray(value)) return value.map(marked)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, marked(each)]))
}

function unmarked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unmarked)
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value)
  const [[name, digits] = ['', undefined]] = entries
  if (entries.length === 1 && name === 'hex' && typeof digits === 'string') return Buffer.from(digits, 'hex')
  return Object.fromEntries(entries.map(([each, inside]) => [each, unmarked(inside)]))
}

/** A record parsed from its line, which the schema has accepted. `file`: the bytes that were contained in the signed bytes. */
export type TakenRecord = HeldRecord & {
  /** Whether the signed bytes are missing. */
  readonly isGone: boolean
  readonly file: Buffer | undefined
}

/** The fields that a line of any record may have. */
type AnyLine = Pick<RecordLine, 'type' | 'id'> & {
  readonly entries?: readonly string[]
  readonly signed?: SignedPart
  readonly reserved?: unknown
}

/** `reserved`: the journal's number for the record of `work.open`'s signed request. */
export function takenRecord(line: RecordLine, reserved?: number): TakenRecord {
  const { type, id, entries = [], signed, reserved: _, ...rest } = line as AnyLine
  const fields = Object.entries(rest).map(([name, value]) => {
    if (name === 'facts')
      return [name, { ...(unmarked(value) as object), ...(reserved === undefined ? {} : { reserved }) }]
    return [name, bytesFields.has(name) ? bytesOf(value as string | readonly string[]) : value]
  })
  const cutOut = signed === undefined ? undefined : fileIn(signed)
  const by = signed === undefined ? {} : { by: signedOf(signed, cutOut) }
  return {
    record: { type: typeNumbers[type], ...Object.fromEntries(fields), ...by } as BoardRecord,
    key: Buffer.from(id, 'hex'),
    entries: entries.map((entry) => Buffer.from(entry, 'latin1')),
    isGone: signed !== undefined && signed.signed_payload === undefined,
    file: cutOut,
  }
}

function bytesOf(value: string | readonly string[]): Buffer | Buffer[] {
  return typeof value === 'string' ? Buffer.from(value, 'hex') : value.map((each) => Buffer.from(each, 'hex'))
}

const nothing = Buffer.alloc(0)

function signedOf(signed: SignedPart, file: Buffer | undefined): Signed {
  const { public_key, command_sha256, signature, signed_payload = '', delegation } = signed
  const payload = Buffer.from(signed_payload)
  const sha = Buffer.from(command_sha256, 'hex')
  const at = signed.file?.at ?? 0
  const cut =
    file === undefined
      ? signed_payload === ''
        ? { cut: { at: 0, file: nothing, sha } }
        : {}
      : { cut: { at, file: createHash('sha256').update(file).digest(), sha } }
  return {
    key: Buffer.from(public_key, 'base64url'),
    sig: signature === undefined ? nothing : Buffer.from(signature, 'base64url'),
    signed:
      file === undefined
        ? payload
        : Buffer.concat([payload.subarray(0, at), payload.subarray(at + signed.file!.length)]),
    ...cut,
    ...(delegation === undefined
      ? {}
      : {
          for: {
            id: Buffer.from(delegation.id, 'hex'),
            key: Buffer.from(delegation.public_key, 'base64url'),
            sig: Buffer.from(delegation.signature, 'base64url'),
            signed: Buffer.from(delegation.signed_payload),
          },
        }),
  }
}

function fileIn({ signed_payload, file }: SignedPart): Buffer | undefined {
  if (signed_payload === undefined || file === undefined) return undefined
  const text = Buffer.from(signed_payload).subarray(file.at, file.at + file.length)
  return Buffer.from(text.toString('latin1'), 'base64url')
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url')
}
