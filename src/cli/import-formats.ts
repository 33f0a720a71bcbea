/**
 * Detects the format of a file or directory by its content, or takes it from `--format`. The reader of a format is loaded only when needed.
 */
import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { CommandFailed, UsageError } from './command-line.ts'
import { jsonOf } from './corpus.ts'
import { discourseEntries, isDiscourse } from './import-discourse.ts'
import { hackerNewsEntry, isHackerNewsItem } from './import-hacker-news.ts'
import { jsonLinesSource } from './import-json-lines.ts'
import { type LineSource, lineBytesMax, openLines } from './lines.ts'
import { type MessageSource, type Place, type SourceEntry, type SourceOptions, unreadable } from './message-source.ts'

export const formats = ['jsonl', 'mbox', 'discourse', 'slack', 'hackernews'] as const
export type Format = (typeof formats)[number]

/** An array or a single topic is read as a whole; larger collections have one record per line. */
const wholeBytesMax = 256 * 1024 * 1024

/** Opens what is to be imported. Throws CommandFailed, and UsageError if an option does not fit the format. */
export async function openSource(
  path: string,
  { format: asked, ...options }: SourceOptions & { readonly format: Format | undefined },
): Promise<MessageSource> {
  const kind = kindOf(path)
  if (kind === 'directory' || kind === 'zip') {
    if (asked !== undefined && asked !== 'slack')
      throw new CommandFailed(`${path} is a ${kind}, which only the slack format accepts. Give a file.`)
    return (await import('./import-slack.ts')).slackSource(path, kind === 'zip', options)
  }
  if (asked === 'slack')
    throw new CommandFailed(`${path} is neither a directory nor a zip file, and a Slack export is one of these.`)
  const file = openLines(path)
  const format = asked ?? (kind === 'pipe' ? 'jsonl' : await formatOfFile(file))
  const { room, system } = options
  if (format === 'jsonl') {
    if (room !== undefined)
      throw new UsageError(
        `--room is not for the jsonl format, whose lines name their rooms.${asked === undefined ? ` If ${path} is in another format, name that with --format.` : ''}`,
      )
    return jsonLinesSource(file, system)
  }
  if (room === undefined)
    throw new UsageError(`A file of the ${format} format names no room: give one with --room ROOM.`)
  if (format === 'mbox') return (await import('./import-mbox.ts')).mboxSource(file, room, system)
  return recordsSource(file, recordReaders[format]({ room, system: system ?? format }))
}

type RecordReader = (value: unknown, where: string) => AsyncIterable<SourceEntry>

const recordReaders = {
  discourse: (place) => (value, where) => discourseEntries(value, where, place),
  hackernews: (place) =>
    async function* (value, where) {
      yield await hackerNewsEntry(value, where, place)
    },
} satisfies Partial<Record<Format, (place: Place) => RecordReader>>

/** One record per line, or one JSON value, which may be an array of records. */
function recordsSource(file: LineSource, read: RecordReader): MessageSource {
  async function* each(value: unknown, where: string): AsyncGenerator<SourceEntry> {
    if (!Array.isArray(value)) return yield* read(value, where)
    for (const [n, record] of value.entries()) yield* read(record, `${where}, record ${n + 1}`)
  }
  return {
    async *entries() {
      const whole = (await isOnePerLine(file)) ? undefined : await wholeOf(file)
      if (whole !== undefined) return yield* each(whole, 'the file')
      for await (const { number, bytes, isCut } of file.lines()) {
        if (bytes.length === 0) continue
        const value = isCut ? undefined : jsonOf(bytes)
        const where = `line ${number}`
        if (value !== undefined) yield* each(value, where)
        else yield unreadable(where, isCut ? `longer than ${lineBytesMax} bytes` : 'not JSON in UTF-8')
      }
    },
    share: file.share,
    isRepeatable: file.fileBytes > 0,
    entriesName: 'records',
  }
}

async function isOnePerLine(file: LineSource): Promise<boolean> {
  for await (const { bytes, isCut } of file.lines()) if (bytes.length > 0) return !isCut && jsonOf(bytes) !== undefined
  return false
}

async function wholeOf(file: LineSource): Promise<unknown> {
  const bytes = await file.whole(wholeBytesMax)
  return bytes === undefined ? undefined : jsonOf(bytes)
}

type Kind = 'file' | 'directory' | 'zip' | 'pipe'

function kindOf(path: string): Kind {
  try {
    const stats = statSync(path)
    if (stats.isDirectory()) return 'directory'
    // The first bytes of a pipe can be read only once.
    if (!stats.isFile()) return 'pipe'
    const magic = Buffer.alloc(4)
    const file = openSync(path, 'r')
    try {
      readSync(file, magic, 0, magic.length, 0)
    } finally {
      closeSync(file)
    }
    return zipMagic.includes(magic.toString('latin1')) ? 'zip' : 'file'
  } catch (error) {
    throw new CommandFailed(`${path} cannot be read (${(error as Error).message}). Check the file's name.`)
  }
}

/** The magic of a zip, and of an empty one. */
const zipMagic: readonly string[] = ['PK\x03\x04', 'PK\x05\x06']

async function formatOfFile(file: LineSource): Promise<Exclude<Format, 'slack'>> {
  const beginning = (await file.beginning()).toString('utf8').replace(/^\ufeff?\s*/, '')
  if (beginning.startsWith('From ')) return 'mbox'
  if (!/^[[{]/.test(beginning)) return 'jsonl'
  const value = (await isOnePerLine(file)) ? await firstLineOf(file) : await wholeOf(file)
  const first: unknown = Array.isArray(value) ? value.find((each) => each !== null) : value
  if (isDiscourse(first)) return 'discourse'
  return isHackerNewsItem(first) ? 'hackernews' : 'jsonl'
}

async function firstLineOf(file: LineSource): Promise<unknown> {
  for await (const { bytes } of file.lines()) if (bytes.length > 0) return jsonOf(bytes)
  return undefined
}
