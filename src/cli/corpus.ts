/**
 * One line of a corpus as a message to import: untrusted JSON, checked field by field. There are two forms:
 *
 * `{"id","room","author","parent","title","text","created_at"}`; `parent`, `title`, and `created_at` (Unix seconds or an ISO 8601 time) may
 * be null or absent. The board stamps its own time; `created_at` becomes part of the source that the post names. The text to post is title
 * + empty line + text.
 *
 * `{"type":"event","event_id","room","page","kind","author":{"id","handle"},"reply_to","supersedes","text","format"}`, a line of another
 * board's export. Ids, keys, and signatures belong to that board: the texts are posted as new, with one new key per author. Its other lines
 * (tombstones, rotations, leaves, the end) contain nothing to post.
 */
import { hash } from 'node:crypto'
import { sourceSizes } from '../../actors/kernel/limits.ts'
import type { Source } from '../../actors/rooms/room.ts'
import { isBlank } from '../format/printable.ts'
import { inertLine, shortened } from './terminal.ts'

/** Maximum UTF-8 bytes of a post (spec 3). */
export const textBytesMax = 32_768
const idBytesMax = 1024
const requestIdBytesMax = 128

export type CorpusMessage = {
  readonly id: string
  readonly room: string
  /** The author; each gets one key. */
  readonly author: string
  /** The handle that the author would like. */
  readonly name: string | undefined
  /** What the message answers; for a later version, the event it is a version of. */
  readonly parent: string | undefined
  readonly isEdit: boolean
  readonly page: string | undefined
  readonly kind: string | undefined
  readonly format: string | undefined
  readonly text: string
  readonly textBytes: number
  /** The system that has its own space of author keys; undefined for the one that all JSON-lines files share. */
  readonly system: string | undefined
  /** Where it was originally published. */
  readonly source: Source
  /** Fallbacks for a parent that never appears, nearest first. */
  readonly ancestors: readonly string[]
  /** Precedes the text if the message begins a thread. */
  readonly title: string | undefined
}

export type CorpusLine =
  /** No message: an entry with nothing to post. */
  { readonly ok: true; readonly message: CorpusMessage | undefined } | { readonly ok: false; readonly problem: string }

export const roomName = /^[a-z0-9][a-z0-9_-]{0,63}$/
const handleName = /^[a-z0-9][a-z0-9_-]{1,31}$/

/** Parses one line. A text of any length is accepted here; the import decides whether it fits. */
export function parseCorpusLine(bytes: Uint8Array, system?: string): CorpusLine {
  const value = jsonOf(bytes)
  if (value === undefined) return bad('not JSON in UTF-8')
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return bad('not a JSON object')
  const fields = value as Record<string, unknown>
  return typeof fields.type === 'string' ? exported(fields, system) : composed(fields, system)
}

/** The value of JSON in UTF-8; undefined if it is not valid. */
export function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch {
    return undefined
  }
}

const linesWithoutText: ReadonlySet<string> = new Set([
  'tombstone',
  'rotation',
  'undelegation',
  'unreadable',
  'leaves',
  'log',
  'end',
])

/** Converts a line of an export to the other form. */
function exported(fields: Record<string, unknown>, system = 'broadside'): CorpusLine {
  const { type, event_id: id, room, author, reply_to, supersedes, text } = fields
  // The signed values, or the actual ones of the board next to them.
  const { page, actual_page = page, kind, actual_kind = kind, format, actual_format = format } = fields
  if (type !== 'event') {
    return linesWithoutText.has(type as string)
      ? { ok: true, message: undefined }
      : bad('"type" must be one that an export has, or left out')
  }
  const person = Object(author) as Record<string, unknown>
  const parent = supersedes ?? reply_to
  const line = composed({ id, room, author: person.id, parent, text, created_at: fields.created_at }, system)
  if (!line.ok || line.message === undefined) return line
  const known = (word: unknown) => (typeof word === 'string' && roomName.test(word) ? word : undefined)
  const { handle } = person
  const message = {
    ...line.message,
    source: typeof handle === 'string' ? { ...line.message.source, author: `@${handle}` } : line.message.source,
    name: typeof handle === 'string' ? handle : undefined,
    isEdit: supersedes !== undefined,
    page: known(actual_page),
    kind: known(actual_kind),
    format: actual_format === 'markdown' ? actual_format : undefined,
  }
  return { ok: true, message }
}

function composed(fields: Record<string, unknown>, system = 'jsonl'): CorpusLine {
  const { id, room, author, parent = null, title = null, text } = fields
  if (typeof id !== 'string' || id === '' || Buffer.byteLength(id) > idBytesMax) {
    return bad(`"id" must be a string of 1 to ${idBytesMax} bytes`)
  }
  if (typeof room !== 'string' || !roomName.test(room)) {
    return bad(`"room" must be a room's name (a-z 0-9 _ -, at most 64), for example "lobby"`)
  }
  if (typeof author !== 'string' || author === '') return bad('"author" must be a string that is not empty')
  if (parent !== null && typeof parent !== 'string') return bad('"parent" must be a string or null')
  if (title !== null && typeof title !== 'string') return bad('"title" must be a string or null')
  if (typeof text !== 'string') return bad('"text" must be a string')
  const whole = title === null || title === '' ? text : `${title}\n\n${text}`
  if (isBlank(whole))
    return bad(
      'the text must contain a visible character: it is empty, or contains only white space or invisible characters',
    )
  if (whole.includes('\0') || !whole.isWellFormed() || !author.isWellFormed() || !id.isWellFormed()) {
    return bad('the text must not contain a NUL or a lone surrogate')
  }
  const textBytes = Buffer.byteLength(whole)
  const source = sourceFrom({ system, id, author, at: timeOf(fields.created_at) })
  const own = { ...plain, id, room, author, name: author, parent: parent ?? undefined, source }
  return { ok: true, message: { ...own, text: whole, textBytes } }
}

/** Defaults for fields that few messages have. */
export const plain = {
  isEdit: false,
  page: undefined,
  kind: undefined,
  format: undefined,
  system: undefined,
  ancestors: [],
  title: undefined,
} as const

/** Control characters, line ends, and marks that change the text direction; claims must not contain them. */
const unclaimed = /[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/g

/** Fits a claim into the bounds of a post: an id that is too long is replaced by its hash, a name is cut. */
export function sourceFrom(claim: Omit<Source, 'at'> & { readonly at: number | undefined }): Source {
  const { system, id, at } = claim
  const author = Array.from(claim.author.replace(unclaimed, ' ').trim().toWellFormed())
  return {
    system,
    id: isClaimable(id) ? id : `sha256:${hash('sha256', id)}`,
    author: author.slice(0, sourceSizes.author_characters).join('') || 'unknown',
    ...(at === undefined ? {} : { at }),
  }
}

function isClaimable(id: string): boolean {
  return id !== '' && id.replace(unclaimed, '') === id && id.isWellFormed() && id.length <= sourceSizes.id_characters
}

/** Unix seconds from a number or from a text that names a time. */
export function timeOf(value: unknown): number | undefined {
  const seconds = typeof value === 'string' ? Date.parse(value) / 1_000 : value
  if (typeof seconds !== 'number' || !Number.isFinite(seconds)) return undefined
  const whole = Math.floor(seconds)
  return whole >= 0 && whole <= sourceSizes.time_maximum ? whole : undefined
}

/** The handle to request for an imported author; undefined if the name is not a valid handle. */
export function handleFor({ name = '' }: CorpusMessage): string | undefined {
  const handle = name.toLowerCase()
  return handleName.test(handle) ? handle : undefined
}

/** The same corpus id always yields the same request id, so the board recognizes a repeated post (spec 1, "Retries are safe"). */
export function requestIdFor(corpusId: string): string {
  const plain = `import:${corpusId}`
  return /^[\x20-\x7e]+$/.test(plain) && plain.length <= requestIdBytesMax
    ? plain
    : `import:${hash('sha256', corpusId)}`
}

/** An id for a report, inert and short. */
export function shownId(id: string): string {
  return shortened(inertLine(id), 80)
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function bad(problem: string): CorpusLine {
  return { ok: false, problem }
}
