/** Settings of a board for the commands of its host: from the environment, from a settings file, and from `--data`. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config } from '../config.ts'
import {
  BadConfig,
  environment,
  fillEnvironment,
  isSetting,
  type SettingName,
  settings,
  type Variables,
} from '../environment.ts'
import { nearest } from '../format/nearest.ts'
import { parseStrictText } from '../format/strict-json.ts'
import type { Arguments, Command } from './command-line.ts'

export const settingsOptions = { data: { type: 'string' }, config: { type: 'string' } } satisfies Command['options']
export const configHelp: Command['optionHelp'][number] = [
  '--config FILE',
  'a JSON file of settings (default: broadside.json, if there is one); environment variables take precedence',
]
export const settingsHelp: Command['optionHelp'] = [
  ['--data DIR', 'the board’s directory (default: DATA_DIR or ./data)'],
  configHelp,
]

/** Throws BadConfig. The modules that hold limits are loaded only after the settings file was read. */
export async function boardSettings(args: Arguments): Promise<Config> {
  takeSettingsFile(args)
  const { readConfig } = await import('../config.ts')
  return readConfig(args.text('data'))
}

/** Reads the settings file, if there is one, and fills in what the environment leaves out. Throws BadConfig. */
export function takeSettingsFile(args: Arguments): SettingsFile | undefined {
  const file = readSettingsFile(args.text('config'))
  if (file !== undefined) fillEnvironment(file.given)
  return file
}

const settingsFileDefault = 'broadside.json'

/** A settings file: its path and its contents. */
type SettingsFile = { readonly path: string; readonly given: ReadonlyMap<SettingName, string> }

/** The settings file; by default `broadside.json`, if it exists. Throws BadConfig. */
export function readSettingsFile(named: string | undefined): SettingsFile | undefined {
  const path = resolve(named ?? settingsFileDefault)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (named === undefined && isAbsent(error)) return undefined
    throw new BadConfig(`The settings file cannot be read: ${String(error)}.`)
  }
  return { path, given: settingsIn(path, text) }
}

function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

/** `{"PORT": 8080, "OPERATORS": ["…"], "LIMITS": {…}}`. */
function settingsIn(path: string, text: string): ReadonlyMap<SettingName, string> {
  const parsed = parseStrictText(text)
  if (!parsed.ok) throw new BadConfig(`${path} is not JSON: ${parsed.message}.`)
  const { value } = parsed
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BadConfig(`${path} must be one JSON object, such as {"BASE_URL": "https://board.example"}.`)
  const given = new Map<SettingName, string>()
  for (const [name, each] of Object.entries(value)) {
    if (!isSetting(name)) {
      const meant = nearest(name, Object.keys(settings))
      const hint = meant === undefined ? 'broadside check-config lists them all.' : `Did you mean ${meant}?`
      throw new BadConfig(`${path}: "${name}" is not a setting. ${hint}`)
    }
    given.set(name, textOf(path, name, each))
  }
  return given
}

function textOf(path: string, name: SettingName, value: unknown): string {
  if (name === 'LIMITS' && typeof value === 'object' && value !== null) return JSON.stringify(value)
  if (typeof value === 'string' || typeof value === 'number') return String(value)
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(',')
  const rule = name === 'LIMITS' ? 'an object' : 'a string, a number or a list of strings'
  throw new BadConfig(`${path}: ${name} must be ${rule}.`)
}

/** Environment variables that look like misspelled settings, each with the one that was probably meant. */
export function misspelledSettings(variables: Variables = environment()): (readonly [name: string, meant: string])[] {
  // Short names belong to other programs.
  const long = Object.keys(settings).filter((name) => name.length > 6)
  return Object.keys(variables).flatMap((name) => {
    if (isSetting(name) || name.length <= 6) return []
    const alike = long.filter(({ length }) => Math.abs(length - name.length) <= 1)
    const meant = nearest(name, alike)
    return meant === undefined ? [] : [[name, meant] as const]
  })
}
