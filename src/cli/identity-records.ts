/**
 * What the journals of a board contain about one identity: its own acts and acts about it, in private rooms too. Read from the files; on a
 * running board, records appended in the meantime are missing.
 */
import { join } from 'node:path'
import type { BlobFacts, DeletedFacts } from '../../actors/attachments/attachments.ts'
import type { EraseFacts } from '../../actors/people/people.ts'
import type { RedactFacts } from '../../actors/posts/marks.ts'
import {
  ActsOf,
  type BoardRecord,
  frameKey,
  fromFrame,
  isStub,
  RecordType,
  type Signed,
} from '../../actors/records/record.ts'
import type { Disk } from '../../storage/disk.ts'
import { JournalReader } from '../../storage/journal.ts'
import { JournalEnd } from '../../storage/journal-copy.ts'
import { blobsDirectory, readFacts, shardDirectory } from '../board-directory.ts'

export type HeldRecord = {
  readonly shard: number
  readonly frame: number
  /** Id of the command, 32 hex. */
  readonly id: string
  readonly record: BoardRecord
  /** Whether the identity is the author of the record or its subject. */
  readonly relation: 'by' | 'about'
  /** The signed bytes were redacted and are gone from the disk. */
  readonly isRemoved: boolean
}

/** What of an identity is still there to be erased. */
export type ErasableContent = {
  /** 32 hex each. */
  readonly events: readonly string[]
  readonly files: readonly string[]
  readonly documents: readonly string[]
  /** Its profile and handle are erased. */
  readonly isErased: boolean
}

/** Every record by and about this identity (64 hex), shard by shard in journal order. */
export function* recordsOf(disk: Disk, dataDirectory: string, identity: string): Generator<HeldRecord> {
  for (const { shard, seq, id, record, isRemoved } of allRecords(disk, dataDirectory)) {
    const relation = relationOf(record, identity)
    if (relation !== undefined) yield { shard, frame: seq, id, record, relation, isRemoved }
  }
}

function* allRecords(disk: Disk, dataDirectory: string) {
  const { shards } = readFacts(disk, dataDirectory)
  for (let shard = 0; shard < shards; shard++) {
    const directory = shardDirectory(dataDirectory, shard)
    const end = new JournalEnd(disk, directory)
    end.advance()
    end.close()
    const reader = JournalReader.open(disk, directory)
    reader.advance(end.seq)
    try {
      for (const frame of reader.scan(1)) {
        // The frame is a view of a buffer that the next step overwrites.
        const kept = { ...frame, payload: Buffer.from(frame.payload) }
        const id = frameKey(kept).toString('hex')
        yield { shard, seq: frame.seq, id, record: fromFrame(kept), isRemoved: isStub(kept) }
      }
    } finally {
      reader.close()
    }
  }
}

function relationOf(record: BoardRecord, identity: string): HeldRecord['relation'] | undefined {
  if ('author' in record && hexOf(record.author) === identity) return 'by'
  if (record.type === RecordType.roomCreated) {
    if (record.owner !== undefined && hexOf(record.owner) === identity) return 'by'
    return record.members?.some((member) => hexOf(member) === identity) === true ? 'about' : undefined
  }
  if (record.type === RecordType.event)
    return record.to !== undefined && hexOf(record.to) === identity ? 'about' : undefined
  return record.type === RecordType.act && names(record.facts, identity) ? 'about' : undefined
}

/** Whether a value in these facts is the identity or its account. */
function names(value: unknown, identity: string): boolean {
  if (value === identity || value === `user:${identity}`) return true
  if (value instanceof Uint8Array) return value.length === 32 && hexOf(value) === identity
  return value !== null && typeof value === 'object' && Object.values(value).some((each) => names(each, identity))
}

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

/** Sealed secrets and hashes of secrets: useless to the person, useful to a thief. */
const secrets: ReadonlySet<string> = new Set(['sealed', 'hash', 'tag'])

/** A record as a JSON object: bytes as hex, signed text as it was signed. */
export function shownRecord({ shard, frame, id, record, relation, isRemoved }: HeldRecord): object {
  const { type, by, ...rest } = record
  return {
    type: Object.entries(RecordType).find(([, each]) => each === type)![0],
    relation,
    id,
    ...(plain(rest) as object),
    ...(by === undefined ? {} : shownSigned(by, isRemoved)),
    ...(isRemoved ? { removed: true } : {}),
    place: { shard, frame },
  }
}

/** `cut_at`: where a file or a secret was cut out of the signed bytes. */
function shownSigned({ key, sig, signed, cut, for: delegated }: Signed, isRemoved: boolean): object {
  const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')
  return {
    public_key: base64url(key),
    ...(isRemoved ? {} : { signature: base64url(sig), signed_payload: Buffer.from(signed).toString('utf8') }),
    ...(isRemoved || cut === undefined ? {} : { cut_at: cut.at }),
    ...(delegated === undefined ? {} : { delegation: hexOf(delegated.id) }),
  }
}

function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return hexOf(value)
  if (Array.isArray(value)) return value.map(plain)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !secrets.has(name))
      .map(([name, each]) => [name, plain(each)]),
  )
}

/** Path of the file that a `blob.put` names, in the directory of attachments. */
export function fileOf(dataDirectory: string, { record }: HeldRecord): { path: string; sha256: string } | undefined {
  if (!put.is(record)) return undefined
  const sha256 = hexOf(record.facts.sha256)
  return { path: join(blobsDirectory(dataDirectory), record.room, sha256), sha256 }
}

const put = new ActsOf<BlobFacts>('blob.put')
const made = new ActsOf<{ doc: string }>('docs.create')
const redacted = new ActsOf<RedactFacts>('event.redact')
const deleted = new ActsOf<Pick<DeletedFacts, 'target'>>('blob.delete', 'blob.remove', 'docs.delete')
const erased = new ActsOf<EraseFacts>('identity.erase')

/** What of this identity is not erased yet. Reads everything once. */
export function erasableContentOf(disk: Disk, dataDirectory: string, identity: string): ErasableContent {
  const [events, files, documents, gone] = [new Set<string>(), new Set<string>(), new Set<string>(), new Set<string>()]
  let isErased = false
  for (const { id, record } of allRecords(disk, dataDirectory)) {
    if (record.type === RecordType.event && hexOf(record.author) === identity && record.original === undefined)
      events.add(id)
    if (put.is(record) && hexOf(record.author) === identity) files.add(id)
    if (made.is(record) && hexOf(record.author) === identity) documents.add(record.facts.doc)
    if (redacted.is(record)) gone.add(hexOf(record.facts.id))
    if (deleted.is(record)) gone.add(record.facts.target)
    if (erased.is(record) && record.facts.target === identity) isErased = true
  }
  const left = (ids: ReadonlySet<string>) => [...ids].filter((id) => !gone.has(id))
  return { events: left(events), files: left(files), documents: left(documents), isErased }
}
