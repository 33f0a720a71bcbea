/**
 * The check of attachments: every file is what its record says, and every file that is still promised is there.
 * A file may be missing when its blob was deleted, or when every post that named it was redacted; a redaction names the
 * original, and takes every version of it.
 */
import { createHash } from 'node:crypto'
import type { BlobFacts, DeletedFacts } from '../../actors/attachments/attachments.ts'
import type { RedactFacts } from '../../actors/posts/marks.ts'
import { ActsOf, type BoardRecord, type PostRecord, RecordType } from '../../actors/records/record.ts'
import { readBlob } from '../../storage/blob-files.ts'

type Put = {
  readonly where: string
  readonly room: string
  readonly sha256: string
  /** Ids of the originals of the posts that name it. */
  readonly events: string[]
  isMissing: boolean
}

const put = new ActsOf<BlobFacts>('blob.put')
const deleted = new ActsOf<DeletedFacts>('blob.delete')
const redacted = new ActsOf<RedactFacts>('event.redact')

export class BlobCheck {
  readonly #directory: string
  readonly #damage: (where: string, what: string) => void
  readonly #puts = new Map<string, Put>()
  readonly #redacted = new Set<string>()

  constructor(directory: string, damage: (where: string, what: string) => void) {
    this.#directory = directory
    this.#damage = damage
  }

  /** Takes a record with the id (32 hex) of its command. The file that was cut out of it, if it has one and the file is there. */
  take(record: BoardRecord, id: string, where: string): Buffer | undefined {
    if (record.type === RecordType.event) this.#attached(record, id)
    if (deleted.is(record)) this.#puts.delete(record.facts.target)
    if (redacted.is(record)) this.#redacted.add(Buffer.from(record.facts.id).toString('hex'))
    if (!put.is(record)) return undefined
    const sha256 = Buffer.from(record.facts.sha256).toString('hex')
    const file = readBlob(this.#directory, record.room, sha256)
    this.#puts.set(id, { where, room: record.room, sha256, events: [], isMissing: file === undefined })
    if (file === undefined || createHash('sha256').update(file).digest('hex') === sha256) return file
    this.#damage(where, `its file ${record.room}/${sha256} has other content`)
    return undefined
  }

  /** Blobs hang on the original, whichever version names them. */
  #attached({ blobs = [], original }: PostRecord, id: string): void {
    const event = original === undefined ? id : Buffer.from(original).toString('hex')
    for (const blob of blobs) this.#puts.get(Buffer.from(blob).toString('hex'))?.events.push(event)
  }

  /** After the last record. */
  end(): void {
    for (const { where, room, sha256, events, isMissing } of this.#puts.values()) {
      const isRedacted = events.length > 0 && events.every((id) => this.#redacted.has(id))
      if (isMissing && !isRedacted) this.#damage(where, `its file ${room}/${sha256} is missing`)
    }
  }
}
