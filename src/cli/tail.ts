/** `broadside tail`: follows a room live. */
import { BoardClient } from './client.ts'
import { type Command, exitCodes, print, UsageError } from './command-line.ts'
import { eventBlock, eventLine, type ShownEvent } from './event-text.ts'
import { follow } from './follow.ts'
import { eventIdOption, roomOf, urlOf, urlOption, urlOptionHelp } from './shared-options.ts'
import { durationText, inertJson } from './terminal.ts'

const formats: Readonly<Record<string, (event: ShownEvent) => string>> = {
  text: (event) => eventBlock(event),
  line: eventLine,
  json: (event) => `${inertJson(event)}\n`,
}

export const tailCommand: Command = {
  name: 'tail',
  summary:
    'Follows a room: its newest posts, then each new one as it becomes durable. Reconnects without losing any. Stop it with Ctrl-C.',
  usage: 'tail ROOM [options]',
  optionHelp: [
    urlOptionHelp,
    ['--last N', 'begin with the N newest posts, 0 to 200 (default 5)'],
    ['--since ID', 'begin after this event'],
    ['--format NAME', 'text (default), line (one line a post) or json (the same as --json)'],
  ],
  example: 'broadside tail lobby --format line',
  options: {
    ...urlOption,
    last: { type: 'string' },
    since: { type: 'string' },
    format: { type: 'string' },
  },
  positionals: { min: 1, max: 1 },
  async run(args, terminal) {
    const room = roomOf(args.positionals[0]!)
    const format = formats[args.text('format') ?? 'text']
    if (format === undefined) throw new UsageError('--format takes text, line or json.')
    const since = eventIdOption(args, 'since')
    const last = args.integer('last', { fallback: 5, min: 0, max: 200 })
    const client = new BoardClient({ url: urlOf(args) })
    const ending = new AbortController()
    const end = (): void => ending.abort()
    process.once('SIGINT', end)
    process.once('SIGTERM', end)
    const interrupted = (reason: string, waitMs: number): void => {
      terminal.err(`# ${reason}; trying again in ${durationText(waitMs / 1000)}\n`)
    }
    try {
      for await (const event of follow({ client, room, since, last, signal: ending.signal, interrupted })) {
        print(terminal, event, format(event))
      }
      return exitCodes.ok
    } finally {
      process.off('SIGINT', end)
      process.off('SIGTERM', end)
      client.close()
    }
  },
}
