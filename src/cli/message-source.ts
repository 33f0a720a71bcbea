/**
 * The input of an import: a file or directory of one format, as messages in the form of a corpus (src/cli/corpus.ts).
 *
 * All content is untrusted. A source holds one record at a time, reports what it cannot read, and continues.
 */
import { hash } from 'node:crypto'
import { isBlank } from '../format/printable.ts'
import { type CorpusLine, plain, sourceFrom } from './corpus.ts'

/** Something that is not imported, as counted in the report: `3 attachments of messages`. */
type Note = readonly [count: number, what: string]

export type SourceEntry = {
  /** Its location for a report: `line 3`. */
  readonly where: string
  readonly line: CorpusLine
  readonly notes?: readonly Note[]
}

export type MessageSource = {
  /** Reads from the beginning. Throws CommandFailed if it cannot continue. */
  entries(): AsyncGenerator<SourceEntry>
  /** Share that was read, 0..1. */
  share(): number
  /** Whether it can be read twice; a pipe cannot. */
  readonly isRepeatable: boolean
  /** What to call its entries, if not all are messages. */
  readonly entriesName: string
}

export type SourceOptions = {
  /** The room of all messages; undefined if the format determines it. */
  readonly room: string | undefined
  /** The name in `source.system`; undefined for the name of the format. */
  readonly system: string | undefined
}

/** The destination of a system's messages, and the name of that system in their source. */
export type Place = { readonly room: string; readonly system: string }

type Found = {
  readonly system: string
  /** Unique within the system. */
  readonly id: string
  readonly room: string
  /** Unique within the system; each author gets one key. */
  readonly author: string
  readonly authorName: string
  /** Ids within the system of what it answers and of that message's ancestors, nearest first. */
  readonly parents?: readonly string[]
  /** Unix seconds. */
  readonly at: number | undefined
  readonly title?: string | undefined
  readonly text: string
  readonly format?: 'markdown' | undefined
}

/** Longest id in a corpus. */
const idCharactersMax = 400

/** A message of a system with its own ids. */
export function messageOf(found: Found): CorpusLine {
  const { system, room, author, authorName, parents = [], at, format } = found
  const corpusId = (id: string): string => `${system}:${id.length > idCharactersMax ? hash('sha256', id) : id}`
  const text = withoutForbidden(found.text).trimEnd()
  const title = found.title === undefined ? '' : withoutForbidden(found.title).replaceAll('\n', ' ').trim()
  if (isBlank(text) && isBlank(title)) return { ok: false, problem: 'it has no text' }
  const id = corpusId(found.id)
  const above = parents.map(corpusId).filter((parent) => parent !== id)
  const shown = isBlank(text) ? title : text
  const titleShown = isBlank(text) || isBlank(title) ? undefined : title
  return {
    ok: true,
    message: {
      ...plain,
      id,
      room,
      author: withoutForbidden(author),
      // A name in another system does not claim a handle here.
      name: undefined,
      parent: above[0],
      ancestors: above.slice(1),
      system,
      source: sourceFrom({ system, id: found.id, author: authorName, at }),
      format,
      title: titleShown,
      text: shown,
      textBytes: Buffer.byteLength(titleShown === undefined ? shown : `${titleShown}\n\n${shown}`),
    },
  }
}

/** Removes what no post may contain. */
function withoutForbidden(text: string): string {
  return text.replaceAll('\0', '').replaceAll('\r\n', '\n').toWellFormed()
}

/** An entry with nothing to post. */
export function skipped(where: string, what: string, count = 1): SourceEntry {
  return { where, line: { ok: true, message: undefined }, notes: [[count, what]] }
}

export function unreadable(where: string, problem: string): SourceEntry {
  return { where, line: { ok: false, problem } }
}

/** An object's fields; none for any other value. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

export function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** A nonempty text, or undefined. */
export function textIn(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Eight times the limit of a post. */
export const markupCharactersMax = 262_144
export const tooMuchMarkup = `its text has more than ${markupCharactersMax} characters with its markup`

/** Untrusted HTML as plain text; undefined if it is too long. Nesting deeper than in any honest text is shown as `...`. */
export async function textOfHtml(html: string): Promise<string | undefined> {
  if (html.length > markupCharactersMax) return undefined
  const { convert } = await import('html-to-text')
  return convert(html, {
    wordwrap: false,
    limits: { maxDepth: 100, maxChildNodes: 100_000, maxInputLength: markupCharactersMax },
    selectors: [
      { selector: 'img', format: 'skip' },
      { selector: 'a', options: { hideLinkHrefIfSameAsText: true, ignoreHref: false, linkBrackets: ['(', ')'] } },
      ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({ selector, options: { uppercase: false } })),
    ],
  })
}
