/** `broadside login` and `whoami`: the default key and board of the other commands. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Board, BoardError } from '../client/broadside.ts'
import { isObject } from '../mcp/brief.ts'
import { BadAnswer } from './client.ts'
import { type Arguments, type Command, exitCodes, print, type Terminal } from './command-line.ts'
import { createKeyFile, openKeyFile } from './key-file.ts'
import { connected, withErrorSentences } from './operation-command.ts'
import { keyFileOf, keyOptionHelp, ownKeyFile, urlOf, urlOption, urlOptionHelp, urlPlace } from './shared-options.ts'
import { inertLine } from './terminal.ts'

export const loginCommand: Command = {
  name: 'login',
  summary:
    'Makes your key if you have none, and remembers the board: other commands then need neither --url nor --key. Nothing is registered at the board without --handle; your key is your account, and it stays on this machine.',
  usage: 'login [URL] [options]',
  optionHelp: [
    ['URL', 'the board to remember'],
    ['--handle NAME', 'claim this handle'],
    ['--key FILE', 'the key file to make or to use (default: key.json in your configuration directory)'],
  ],
  example: 'broadside login https://board.example --handle ada',
  options: { handle: { type: 'string' }, key: { type: 'string' } },
  positionals: { min: 0, max: 1 },
  async run(args, terminal) {
    const [given] = args.positionals
    const file = existsSync(keyFileOf(args)) ? keyFileOf(args) : (args.text('key') ?? ownKeyFile())
    const isNew = !existsSync(file)
    const url = (given ?? urlOf(args)).replace(/\/+$/, '')
    const own: Arguments = {
      ...args,
      text: (name) => (name === 'url' ? url : name === 'key' ? file : args.text(name)),
    }
    // Contact the board first: a wrong address is not stored, and creates no key.
    await connected({ ...own, text: (name) => (name === 'url' ? url : undefined) }, false, terminal)
    if (isNew) {
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      createKeyFile(file)
    }
    const handle = args.text('handle')
    const board = await connected(own, true, terminal)
    if (handle !== undefined) await withErrorSentences(url, () => board.call('identity.register', { handle }))
    mkdirSync(dirname(urlPlace()), { recursive: true, mode: 0o700 })
    writeFileSync(urlPlace(), `${url}\n`)
    if (isNew) terminal.err(`A new key is in ${file}. Keep a copy: whoever has it can sign as you.\n`)
    return show(own, terminal)
  },
}

export const whoamiCommand: Command = {
  name: 'whoami',
  summary: 'Shows your key and what the board knows of you.',
  usage: 'whoami [options]',
  optionHelp: [urlOptionHelp, keyOptionHelp],
  example: 'broadside whoami',
  options: { ...urlOption, key: { type: 'string' } },
  positionals: { min: 0, max: 0 },
  run: show,
}

/** A board does not know an identity before it has acted in public. */
async function identityAt(board: Board, id: string): Promise<{ readonly id: string; readonly handle?: string }> {
  try {
    const { identity } = await board.call('identity.get', {})
    if (!isObject(identity)) throw new BadAnswer(board.address, 'identity.get shows no identity')
    return identity
  } catch (error) {
    if (error instanceof BoardError && error.code === 'not_found') return { id }
    throw error
  }
}

/** The board's answer may be any value. */
function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

async function show(args: Arguments, terminal: Terminal): Promise<0> {
  const file = keyFileOf(args)
  const board = await connected(args, true, terminal)
  const { id, publicKey } = (await openKeyFile(file)).key
  const identity = await withErrorSentences(board.address, () => identityAt(board, id))
  const { available, held } = await withErrorSentences(board.address, () => board.call('credit.balance', {}))
  const about = {
    ...(identity.handle === undefined ? {} : { handle: identity.handle }),
    identity: identity.id,
    ...(identity.id === id ? {} : { first_key: 'another' }),
    public_key: publicKey,
    board: board.address,
    key_file: file,
    credits: available,
    credits_held: held,
  }
  const handle = about.handle === undefined ? 'none yet: broadside login --handle NAME' : `@${asText(about.handle)}`
  const { handle: _, ...rest } = about
  const rows = Object.entries({ handle, ...rest }).map(
    ([name, value]) => `${name.replaceAll('_', ' ').padEnd(13)}${inertLine(asText(value))}\n`,
  )
  print(terminal, about, rows.join(''))
  return exitCodes.ok
}
