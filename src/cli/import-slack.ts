/**
 * An export of Slack: a directory or zip with users.json, channels.json, and a directory per channel with a file per day. Every channel
 * becomes a room, and threads follow `thread_ts`. Private channels and direct messages are not imported.
 *
 * In texts, mentions and links become names: `<@U01>` is `@name`, `<#C01|general>` is `#general`, `<https://x.test|x>` is `x
 * (https://x.test)`.
 */

import { CommandFailed } from './command-line.ts'
import { jsonOf, roomName, timeOf } from './corpus.ts'
import { type Archive, type ArchivedFile, openArchive } from './import-archive.ts'
import {
  fieldsOf,
  listIn,
  type MessageSource,
  markupCharactersMax,
  messageOf,
  type SourceEntry,
  type SourceOptions,
  skipped,
  textIn,
  tooMuchMarkup,
  unreadable,
} from './message-source.ts'

export function slackSource(path: string, isZip: boolean, { room, system = 'slack' }: SourceOptions): MessageSource {
  let share = 0
  return {
    async *entries() {
      const archive = await openArchive(path, isZip)
      try {
        const names = await namesIn(archive, path)
        const days = archive.files.filter((file) => file.path.split('/').length === names.depth + 2)
        for (const [n, day] of days.entries()) {
          yield* dayEntries(day, { room, system, names })
          share = (n + 1) / days.length
        }
      } finally {
        archive.close()
      }
    },
    share: () => share,
    isRepeatable: true,
    entriesName: 'records',
  }
}

type Names = {
  /** Directories above users.json: a zip may contain the export in one. */
  readonly depth: number
  readonly users: ReadonlyMap<string, string>
  /** By id, and by directory name. */
  readonly channels: ReadonlyMap<string, string>
  readonly isListed: (directory: string) => boolean
}

async function namesIn({ files }: Archive, path: string): Promise<Names> {
  const people = files.find((file) => /^([^/]+\/)?users\.json$/.test(file.path))
  if (people === undefined) throw new CommandFailed(`${path} has no users.json, which every Slack export has.`)
  const top = people.path.slice(0, -'users.json'.length)
  const list = async (name: string) => {
    const file = files.find((each) => each.path === `${top}${name}`)
    return file === undefined ? undefined : listIn(jsonOf(await file.read())).map(fieldsOf)
  }
  const users = new Map<string, string>()
  for (const { id, name, real_name: realName, profile } of (await list('users.json')) ?? []) {
    const shown = textIn(fieldsOf(profile).display_name) ?? textIn(realName) ?? textIn(name)
    if (typeof id === 'string' && shown !== undefined) users.set(id, shown)
  }
  const listed = await list('channels.json')
  if (listed === undefined)
    throw new CommandFailed(
      `${path} has no channels.json, which says which channels are public. Add it and run this again.`,
    )
  const channels = new Map<string, string>()
  for (const { id, name } of listed) if (typeof id === 'string' && typeof name === 'string') channels.set(id, name)
  const directories = new Set(channels.values())
  return { depth: top === '' ? 0 : 1, users, channels, isListed: (directory) => directories.has(directory) }
}

type Context = {
  readonly room: string | undefined
  readonly system: string
  readonly names: Names
}

async function* dayEntries(day: ArchivedFile, context: Context): AsyncGenerator<SourceEntry> {
  const channel = day.path.split('/').at(-2) ?? ''
  if (!context.names.isListed(channel))
    return yield skipped(day.path, 'files of private channels and direct messages were skipped')
  let bytes: Buffer
  try {
    bytes = await day.read()
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error
    return yield unreadable(day.path, error.message)
  }
  const messages = jsonOf(bytes)
  if (!Array.isArray(messages)) return yield unreadable(day.path, 'not a JSON array of messages')
  for (const [n, message] of messages.entries())
    yield messageEntry(fieldsOf(message), `${day.path}, message ${n + 1}`, channel, context)
}

/** Messages of people and programs; other subtypes record joins, departures, and renames. */
const spoken: ReadonlySet<unknown> = new Set([undefined, 'bot_message', 'thread_broadcast', 'me_message', 'file_share'])

function messageEntry(
  message: Readonly<Record<string, unknown>>,
  where: string,
  channel: string,
  { room, system, names }: Context,
): SourceEntry {
  const { type, subtype, ts, thread_ts: thread, text, user, bot_id: bot, username, user_profile: profile } = message
  if (type !== 'message') return unreadable(where, 'its "type" is not "message"')
  if (!spoken.has(subtype)) return skipped(where, 'messages about who joined, left or changed something were skipped')
  if (typeof ts !== 'string' || !/^\d{1,12}\.\d{1,9}$/.test(ts))
    return unreadable(where, '"ts" must be a Slack timestamp')
  const author = textIn(user) ?? textIn(bot) ?? textIn(username)
  if (author === undefined) return unreadable(where, 'it names no author (user, bot_id, username)')
  const known = names.users.get(author) ?? textIn(fieldsOf(profile).display_name) ?? textIn(fieldsOf(profile).real_name)
  const files = listIn(message.files).length
  if (typeof text === 'string' && text.length > markupCharactersMax) return unreadable(where, tooMuchMarkup)
  const words = typeof text === 'string' ? textOfSlack(text, names) : ''
  if (words.trim() === '' && files > 0) return skipped(where, 'messages with only files were skipped')
  const line = messageOf({
    system,
    id: `${channel}/${ts}`,
    room: room ?? roomOf(channel),
    author,
    authorName: known ?? textIn(username) ?? author,
    parents: typeof thread === 'string' && thread !== ts ? [`${channel}/${thread}`] : [],
    at: timeOf(Number(ts)),
    text: words,
  })
  return files === 0 ? { where, line } : { where, line, notes: [[files, 'files of messages were not imported']] }
}

/** Channels may have names in any script. */
function roomOf(channel: string): string {
  const name = channel
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, '-')
    .replace(/^[-_]+/, '')
    .slice(0, 64)
  return roomName.test(name) ? name : `channel-${Buffer.from(channel).toString('hex').slice(0, 32)}`
}

const entities: Readonly<Record<string, string>> = { '&amp;': '&', '&lt;': '<', '&gt;': '>' }

function textOfSlack(text: string, names: Names): string {
  return text
    .replace(/<([^<>]*)>/g, (_, inner: string) => referenceText(inner, names))
    .replace(/&(amp|lt|gt);/g, (entity) => entities[entity] ?? entity)
}

function referenceText(inner: string, { users, channels }: Names): string {
  const bar = inner.indexOf('|')
  const target = bar < 0 ? inner : inner.slice(0, bar)
  const label = bar < 0 ? undefined : textIn(inner.slice(bar + 1))
  const id = target.slice(1)
  if (target.startsWith('@')) return `@${users.get(id) ?? label ?? id}`
  if (target.startsWith('#')) return `#${channels.get(id) ?? label ?? id}`
  // `!here`, `!subteam^S01|@team`, `!date^…|a day`.
  if (target.startsWith('!')) return label ?? `@${id.replace(/\^.*$/s, '')}`
  const address = target.replace(/^mailto:/, '')
  return label === undefined || label === address ? address : `${label} (${address})`
}
