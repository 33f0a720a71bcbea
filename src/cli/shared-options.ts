/** Options that several commands take, said once. */
import { type Arguments, type Options, UsageError } from './command-line.ts'

const urlDefault = 'http://127.0.0.1:8787'
export const keyFileDefault = 'broadside-key.json'

export const urlOption: Options = { url: { type: 'string' } }
export const urlOptionHelp: readonly [string, string] = ['--url URL', `the board (default ${urlDefault})`]

export function urlOf(args: Arguments): string {
  return args.text('url') ?? urlDefault
}

const roomName = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** Throws UsageError when `text` cannot be a room. */
export function roomOf(text: string): string {
  if (roomName.test(text)) return text
  throw new UsageError(`"${text}" cannot be a room: its name is 1 to 64 of a-z 0-9 _ -, like "lobby".`)
}

/** An event id, or undefined when the option was not given. Throws UsageError. */
export function eventIdOption(args: Arguments, name: string): string | undefined {
  const text = args.text(name)
  if (text === undefined || /^[0-9a-f]{32}$/.test(text)) return text
  throw new UsageError(`--${name} takes an event id of 32 hex digits, not "${text}".`)
}
