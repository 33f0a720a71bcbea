/** `broadside read`: a room's newest posts, or a thread with indented replies. */
import { BadAnswer, BoardClient } from './client.ts'
import { type Arguments, type Command, type ExitCode, exitCodes, print, type Terminal } from './command-line.ts'
import { eventBlock, type ShownEvent } from './event-text.ts'
import { roomOf, urlOf, urlOption, urlOptionHelp } from './shared-options.ts'

const postsDefault = 20
const postsMax = 10_000
/** The board's maximum for a page of a list. */
const pageMax = 200
/** Deeper replies are not indented further: a terminal is 80 columns wide. */
const depthShownMax = 12

export const readCommand: Command = {
  name: 'read',
  summary: 'Prints a room (newest posts, oldest of them first) or a thread, given by any event id in it.',
  usage: 'read ROOM|EVENT_ID [options]',
  optionHelp: [
    urlOptionHelp,
    ['--limit N', `posts at most (default ${postsDefault} of a room, ${postsMax} of a thread)`],
  ],
  example: 'broadside read lobby --limit 50',
  options: { ...urlOption, limit: { type: 'string' } },
  positionals: { min: 1, max: 1 },
  run: readIt,
}

/** The same under the name that people look for. */
export const threadCommand: Command = {
  ...readCommand,
  name: 'thread',
  summary: 'Prints a thread, given by any event id in it. Moderators: see also thread pin, thread lock, thread move.',
  usage: 'thread EVENT_ID [options]',
  example: 'broadside thread 0123456789abcdef0123456789abcdef',
}

async function readIt(args: Arguments, terminal: Terminal): Promise<ExitCode> {
  const what = args.positionals[0]!
  const isThread = /^[0-9a-f]{32}$/.test(what)
  const limit = args.integer('limit', { fallback: isThread ? postsMax : postsDefault, min: 1, max: postsMax })
  const target = isThread ? `/api/thread/${what}?` : `/api/events?room=${roomOf(what)}&`
  const client = new BoardClient({ url: urlOf(args) })
  try {
    const events = await readPages(client, target, limit)
    if (!isThread) events.reverse()
    if (terminal.json === undefined) terminal.out(readableText(events, isThread, terminal.isColored))
    else for (const event of events) print(terminal, event, '')
    if (events.length === 0) terminal.err('Nothing is posted there.\n')
    return exitCodes.ok
  } finally {
    client.close()
  }
}

async function readPages(client: BoardClient, target: string, limit: number): Promise<ShownEvent[]> {
  const events: ShownEvent[] = []
  let cursor: string | undefined
  do {
    const size = Math.min(pageMax, limit - events.length)
    const page: Record<string, unknown> = await client.read(
      `${target}limit=${size}${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
    )
    if (!Array.isArray(page.events)) throw new BadAnswer(client.url, 'a list without events')
    events.push(...(page.events as unknown[]).map((event) => Object(event) as ShownEvent))
    cursor = typeof page.next_cursor === 'string' && page.events.length > 0 ? page.next_cursor : undefined
  } while (cursor !== undefined && events.length < limit)
  return events
}

/** The parent of a reply is quoted if it is among these events. */
function readableText(events: readonly ShownEvent[], isThread: boolean, isColored = false): string {
  const known = new Map(events.map((event) => [event.event_id, event]))
  return withDepth(events, isThread)
    .map(([event, depth]) =>
      eventBlock(event, { indent: '  '.repeat(depth), parent: known.get(event.reply_to), isColored }),
    )
    .join('')
}

/** Each event with its depth: that of its parent plus one. */
function withDepth(events: readonly ShownEvent[], isThread: boolean): (readonly [ShownEvent, number])[] {
  const depths = new Map<unknown, number>()
  return events.map((event) => {
    const parent = depths.get(event.reply_to)
    const depth = !isThread || parent === undefined ? 0 : Math.min(depthShownMax, parent + 1)
    depths.set(event.event_id, depth)
    return [event, depth]
  })
}
