/**
 * One line of a corpus as a message to import: JSON that a stranger wrote, checked field by field.
 *
 * `{"id","room","author","parent","title","text","created_at"}`; `parent` and `title` may be null or absent,
 * `created_at` is not sent (the board stamps its own time). Text to post = title + empty line + text.
 */
import { hash } from 'node:crypto'
import { inertLine, shortened } from './terminal.ts'

/** Bytes of UTF-8 in a post (spec 3). */
export const textBytesMax = 32_768
const idBytesMax = 1024
const requestIdBytesMax = 128

export type CorpusMessage = {
  readonly id: string
  readonly room: string
  readonly author: string
  readonly parent: string | undefined
  readonly text: string
  readonly textBytes: number
}

export type CorpusLine =
  | { readonly ok: true; readonly message: CorpusMessage }
  | { readonly ok: false; readonly problem: string }

const roomName = /^[a-z0-9][a-z0-9_-]{0,63}$/
const handleName = /^[a-z0-9][a-z0-9_-]{1,31}$/

/** Reads one line. A text of any length is accepted here: whether it fits is the import's to say. */
export function parseCorpusLine(bytes: Uint8Array): CorpusLine {
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(bytes))
  } catch {
    return bad('not JSON in UTF-8')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return bad('not a JSON object')
  const { id, room, author, parent = null, title = null, text } = value as Record<string, unknown>
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
  if (whole === '' || whole.includes('\0') || !whole.isWellFormed() || !author.isWellFormed() || !id.isWellFormed()) {
    return bad('the text must not be empty, hold a NUL or a lone surrogate')
  }
  const message = { id, room, author, parent: parent ?? undefined, text: whole, textBytes: Buffer.byteLength(whole) }
  return { ok: true, message }
}

/** The handle that an imported author asks for, or undefined when the name does not fit the rule of handles. */
export function handleFor(author: string): string | undefined {
  const handle = author.toLowerCase()
  return handleName.test(handle) ? handle : undefined
}

/** The same corpus id gives the same request id, so a repeated post is recognised (spec 1, "Retries are safe"). */
export function requestIdFor(corpusId: string): string {
  const plain = `import:${corpusId}`
  return /^[\x20-\x7e]+$/.test(plain) && plain.length <= requestIdBytesMax
    ? plain
    : `import:${hash('sha256', corpusId)}`
}

/** An id for a report: inert and short. */
export function shownId(id: string): string {
  return shortened(inertLine(id), 80)
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function bad(problem: string): CorpusLine {
  return { ok: false, problem }
}
