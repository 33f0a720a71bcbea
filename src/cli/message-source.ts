/**
 * What an import reads from: a file or a directory of one format, as messages in the terms of a corpus (src/cli/corpus.ts).
 *
 * Everything in it was written by strangers. A source holds one record at a time, reports what it cannot read, and goes on.
 */
import { hash } from 'node:crypto'
import { isBlank } from '../format/printable.ts'
import { type CorpusLine, plain, sourceFrom } from './corpus.ts'

/** Something that is not imported, as its count is reported: `3 attachments of messages`. */
type Note = readonly [count: number, what: string]

export type SourceEntry = {
  /** Where it stands, for a report: `line 3`. */
  readonly where: string
  readonly line: CorpusLine
  readonly notes?: readonly Note[]
}

export type MessageSource = {
  /** Reads it from its beginning. Throws CommandFailed where it cannot be read on. */
  entries(): AsyncGenerator<SourceEntry>
  /** Share of it that was read, 0..1. */
  share(): number
  /** It can be read twice, which a pipe cannot. */
  readonly isRepeatable: boolean
  /** What its entries are, where some are no messages. */
  readonly entriesName: string
}

export type SourceOptions = {
  /** The room of all messages; undefined: the format says it. */
  readonly room: string | undefined
  /** What `source.system` names; undefined: the format. */
  readonly system: string | undefined
}

/** Where the messages of a system go, and the name of that system in their source. */
export type Place = { readonly room: string; readonly system: string }

type Found = {
  readonly system: string
  /** Inside the system. */
  readonly id: string
  readonly room: string
  /** Inside the system: one key is made for each. */
  readonly author: string
  readonly authorName: string
  /** Id inside the system of what it answers, and of what stands above that, nearest first. */
  readonly parents?: readonly string[]
  /** Unix seconds. */
  readonly at: number | undefined
  readonly title?: string | undefined
  readonly text: string
  readonly format?: 'markdown' | undefined
}

/** Names of corpora are as long as this at most. */
const idCharactersMax = 400

/** A message of a system with ids of its own. */
export function messageOf(found: Found): CorpusLine {
  const { system, room, author, authorName, parents = [], at, format } = found
  const corpusId = (id: string): string => `${system}:${id.length > idCharactersMax ? hash('sha256', id) : id}`
  const text = legible(found.text).trimEnd()
  const title = found.title === undefined ? '' : legible(found.title).replaceAll('\n', ' ').trim()
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
      author: legible(author),
      // A name elsewhere claims no handle here.
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

/** What no post may hold is taken out. */
function legible(text: string): string {
  return text.replaceAll('\0', '').replaceAll('\r\n', '\n').toWellFormed()
}

/** An entry with nothing to post. */
export function skipped(where: string, what: string, count = 1): SourceEntry {
  return { where, line: { ok: true, message: undefined }, notes: [[count, what]] }
}

export function unreadable(where: string, problem: string): SourceEntry {
  return { where, line: { ok: false, problem } }
}

/** An object's fields; of anything else, none. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

export function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** A text, or undefined where there is none or an empty one. */
export function textIn(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Eight times what a post may hold. */
export const markupCharactersMax = 262_144
export const tooMuchMarkup = `its text has more than ${markupCharactersMax} characters with its markup`

/** HTML of strangers as plain text; undefined: it is too long. What is nested deeper than any honest text is shown as `...`. */
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
