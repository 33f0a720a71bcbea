/**
 * Options that several commands share: which board, and whose key. Options override the environment, which overrides the settings of
 * `broadside login`.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { userSettings } from '../environment.ts'
import { hostText } from '../listening.ts'
import { type Arguments, type Options, UsageError } from './command-line.ts'

const urlDefault = 'http://127.0.0.1:8787'
/** A key file with this name in the current directory is used if no other is named. */
export const keyFileDefault = 'broadside-key.json'

export const urlOption: Options = { url: { type: 'string' } }
export const urlOptionHelp: readonly [string, string] = [
  '--url URL',
  `the board (default: BROADSIDE_URL, or that of "broadside login", or ${urlDefault})`,
]
export const keyOptionHelp: readonly [string, string] = [
  '--key FILE',
  `your key (default: BROADSIDE_KEY, or ${keyFileDefault} here, or that of "broadside login")`,
]

export function urlOf(args: Arguments): string {
  return args.text('url') ?? userSettings().url ?? rememberedUrl() ?? urlDefault
}

/** The file with the address stored by `broadside login`. */
export function urlPlace(): string {
  return join(userSettings().directory, 'board')
}

/** The board that runs on this machine with these settings. */
export function urlOfOwnBoard(args: Arguments, { host, port }: Pick<Config, 'host' | 'port'>): string {
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return args.text('url') ?? userSettings().url ?? `http://${hostText(local)}:${port}`
}

function rememberedUrl(): string | undefined {
  const place = urlPlace()
  const text = existsSync(place) ? readFileSync(place, 'utf8').trim() : ''
  return text === '' ? undefined : text
}

/** The key file that a command signs with; it may not exist. */
export function keyFileOf(args: Arguments): string {
  const given = args.text('key') ?? userSettings().keyFile
  if (given !== undefined) return given
  const own = ownKeyFile()
  return existsSync(keyFileDefault) || !existsSync(own) ? keyFileDefault : own
}

/** The default key of this person, independent of the current directory. */
export function ownKeyFile(): string {
  return join(userSettings().directory, 'key.json')
}

const roomName = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** Throws UsageError if `text` is not a valid room name. */
export function roomOf(text: string): string {
  if (roomName.test(text)) return text
  throw new UsageError(`"${text}" cannot be a room: its name is 1 to 64 of a-z 0-9 _ -, like "lobby".`)
}

/** An event id; undefined if the option was not given. Throws UsageError. */
export function eventIdOption(args: Arguments, name: string): string | undefined {
  const text = args.text(name)
  if (text === undefined || /^[0-9a-f]{32}$/.test(text)) return text
  throw new UsageError(`--${name} takes an event id of 32 hex digits, not "${text}".`)
}
