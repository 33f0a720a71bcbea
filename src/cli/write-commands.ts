/** `broadside reply`, `edit`, `vote`, and `attach`: what people do with posts. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { operationByName } from '../../actors/operations.ts'
import type { Board } from '../client/broadside.ts'
import { type Arguments, type Command, type ExitCode, exitCodes, type Terminal, UsageError } from './command-line.ts'
import { connected, printAnswer, standardInput, withErrorSentences } from './operation-command.ts'
import { keyOptionHelp, roomOf, urlOption, urlOptionHelp } from './shared-options.ts'

const common = {
  options: { ...urlOption, key: { type: 'string' } },
  help: [urlOptionHelp, keyOptionHelp],
} as const

/** Runs an operation with a key, and prints its answer. */
async function done(
  operation: string,
  args: Arguments,
  terminal: Terminal,
  act: (board: Board) => Promise<unknown>,
): Promise<ExitCode> {
  const board = await connected(args, true, terminal)
  const answer = await withErrorSentences(board.address, () => act(board))
  printAnswer(operationByName.get(operation)!, answer, { terminal, url: board.address })
  return exitCodes.ok
}

function eventOf(args: Arguments): string {
  const id = args.positionals[0]!
  if (/^[0-9a-f]{32}$/.test(id)) return id
  throw new UsageError(`"${id}" is not an event id: 32 hex digits, in the brackets before each post.`)
}

function textOf(args: Arguments): Promise<string> | string {
  const given = args.positionals[1]
  return given === undefined || given === '-' ? standardInput() : given
}

type TextCommand = Pick<Command, 'name' | 'summary' | 'example'> & {
  readonly act: (board: Board, event: string, text: string) => Promise<unknown>
}

/** A command that posts a text about an event. */
const textCommand = ({ name, summary, example, act }: TextCommand): Command => ({
  name,
  summary: `${summary} Without TEXT (or with -) the text comes from standard input.`,
  usage: `${name} EVENT_ID [TEXT] [options]`,
  optionHelp: common.help,
  example: `broadside ${name} 0123456789abcdef0123456789abcdef "${example}"`,
  options: common.options,
  positionals: { min: 1, max: 2 },
  async run(args, terminal) {
    const [event, text] = [eventOf(args), await textOf(args)]
    return done('post', args, terminal, (board) => act(board, event, text))
  },
})

export const replyCommand = textCommand({
  name: 'reply',
  summary: 'Replies to a post, in its room.',
  example: 'I agree.',
  act: (board, event, text) => board.reply(event, text),
})

export const editCommand = textCommand({
  name: 'edit',
  summary: 'Posts a new version of a post of yours.',
  example: 'Better words.',
  act: (board, event, text) => board.edit(event, text),
})

const votes: Readonly<Record<string, 1 | 0 | -1>> = { up: 1, down: -1, none: 0, '1': 1, '-1': -1, '0': 0 }

export const voteCommand: Command = {
  name: 'vote',
  summary: 'Votes for a post (up) or against it (down), or withdraws the vote (none).',
  usage: 'vote EVENT_ID up|down|none [options]',
  optionHelp: common.help,
  example: 'broadside vote 0123456789abcdef0123456789abcdef up',
  options: common.options,
  positionals: { min: 2, max: 2 },
  async run(args, terminal) {
    const value = votes[args.positionals[1]!]
    if (value === undefined) throw new UsageError(`A vote is up, down or none, not "${args.positionals[1]}".`)
    const event = eventOf(args)
    return done('vote', args, terminal, (board) => board.vote(event, value))
  },
}

const typeOfEnding: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  pdf: 'application/pdf',
  json: 'application/json',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
}

export const attachCommand: Command = {
  name: 'attach',
  summary: 'Uploads a file and posts it into a room, with TEXT or the name of the file.',
  usage: 'attach ROOM FILE [TEXT] [options]',
  optionHelp: [['--type TYPE', 'media type (default: by the ending of the name)'], ...common.help],
  example: 'broadside attach lobby picture.png "What I saw"',
  options: { ...common.options, type: { type: 'string' } },
  positionals: { min: 2, max: 3 },
  async run(args, terminal) {
    const [named = '', path = ''] = args.positionals
    const room = roomOf(named)
    const filename = basename(path)
    const data = readFileSync(path).toString('base64url')
    const ending = /\.(\w+)$/.exec(filename)?.[1]?.toLowerCase() ?? ''
    const media_type = args.text('type') ?? typeOfEnding[ending] ?? 'application/octet-stream'
    return done('post', args, terminal, async (board) => {
      const { blob } = await board.call('blob.put', { room, filename, media_type, data })
      return board.post(room, args.positionals[2] ?? filename, { attachments: [blob.id] })
    })
  },
}
