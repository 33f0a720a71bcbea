/**
 * What all commands have in common: how one is described, how its arguments are parsed, and how it exits.
 *
 * | exit code | meaning |
 * |---|---|
 * | 0 | done |
 * | 1 | refused by the board, or failed; the sentence on stderr says why |
 * | 2 | the command line is wrong |
 * | 3 | a signature, an id, a proof or a file did not verify |
 * | 4 | a mirror is complete and grows no more: its log is closed, and another goes on |
 */
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { explainFailure } from '../failure.ts'
import { nearest } from '../format/nearest.ts'
import { inertJson } from './terminal.ts'

export const exitCodes = { ok: 0, failed: 1, usage: 2, unverified: 3, closed: 4 } as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

export type Options = NonNullable<ParseArgsConfig['options']>

/** The two clocks of src/clock.ts, injected. */
type Clock = {
  /** Unix seconds. */
  readonly wallSeconds: () => number
  readonly monotonicMs: () => number
}

/** Where a command writes, and its clocks. Injected, so that a test can read what a person would see. */
export type Terminal = {
  readonly clock: Clock
  /** Resolves after this many milliseconds, and keeps the process alive until then. */
  readonly wait: (ms: number) => Promise<void>
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** True if a line may be redrawn in place. */
  readonly isInteractive: boolean
  /** Standard output is a terminal that shows colors, and colors are not disabled. */
  readonly isColored?: boolean
  /** Standard output itself, for commands that stream bytes with backpressure. */
  readonly outStream: NodeJS.WritableStream
  /** Set for a command with --json: writes whole lines of JSON to standard output. All other text then goes to `err`. */
  readonly json?: (line: string) => void
}

/** Prints the result of a command: `facts` as one line of JSON with --json, otherwise `text`. */
export function print({ out, json }: Terminal, facts: unknown, text: string): void {
  if (json === undefined) out(text)
  else json(`${inertJson(facts)}\n`)
}

/** The terminal for a command with --json: text goes to standard error, so that standard output has only JSON. */
export function jsonTerminal(terminal: Terminal): Terminal {
  return { ...terminal, json: terminal.out, out: terminal.err }
}

/** Runs a command with its arguments; every command accepts --json. */
export function runCommand(command: Command, args: Arguments, terminal: Terminal): Promise<ExitCode> {
  return command.run(args, args.flag('json') ? jsonTerminal(terminal) : terminal)
}

export type Arguments = {
  readonly positionals: readonly string[]
  /** The value of a string option; undefined if it was not given. */
  text(name: string): string | undefined
  flag(name: string): boolean
  /** A decimal integer within [min, max]; otherwise throws a UsageError that names the option and the range. */
  integer(name: string, range: { fallback: number; min: number; max: number }): number
}

export type Command = {
  readonly name: string
  /** One line, for the list of commands. */
  readonly summary: string
  /** The syntax of the command after `broadside`. */
  readonly usage: string
  /** The description of each option in `--help`, in order. */
  readonly optionHelp: readonly (readonly [string, string])[]
  readonly example: string
  /** More lines of `--help`, after the example. */
  readonly notes?: readonly string[]
  readonly options: Options
  /** Boolean options, which are true if given without a value. */
  readonly switches?: ReadonlySet<string>
  readonly positionals: { readonly min: number; readonly max: number }
  run(args: Arguments, terminal: Terminal): Promise<ExitCode>
}

/** The command line is wrong: exit 2. The message is a sentence that names the fix. */
export class UsageError extends Error {}

/** The command cannot continue: exit 1. The message is a sentence that names the fix. */
export class CommandFailed extends Error {
  /** Printed instead of the sentence with --json, for programs that act on it. */
  get facts(): Readonly<Record<string, unknown>> | undefined {
    return undefined
  }
}

/** Something does not verify: exit 3. The message names the place and the reason. */
export class Unverified extends Error {}

/**
 * The error with which a command ends: one that is meant for the user as it is, or the explanation of any other. `consequence`: a sentence
 * that follows.
 */
export function commandError(error: unknown, consequence = ''): Error {
  if (error instanceof UsageError || (error instanceof CommandFailed && consequence === '')) return error
  if (error instanceof Unverified) return new Unverified(followedBy(error.message, consequence))
  const problem = error instanceof CommandFailed ? error.message : explainFailure(error).problem
  return new CommandFailed(followedBy(problem, consequence))
}

/** A text that ends in a command to copy has no full stop, so the next sentence begins a line. */
function followedBy(text: string, sentence: string): string {
  if (sentence === '') return text
  return /[.?!]$/.test(text) ? `${text} ${sentence}` : `${text}\n${sentence}`
}

const everyCommand: Options = { help: { type: 'boolean', short: 'h' }, json: { type: 'boolean' } }
const everyCommandHelp: Command['optionHelp'] = [
  ['--json', 'print JSON, one object per line, and nothing else on standard output'],
  ['--help', 'this text'],
]

/** Parses the arguments of one command. Throws UsageError. `help` is true if `--help` was given. */
export function readArguments(command: Command, argv: readonly string[]): { args: Arguments; help: boolean } {
  let parsed: ReturnType<typeof parseArgs>
  try {
    parsed = parseArgs({
      args: withTruth(command, argv),
      options: { ...command.options, ...everyCommand },
      allowPositionals: true,
      strict: true,
    })
  } catch (error) {
    throw new UsageError(`${firstSentence(error)}${meantOption(command, error)} See: broadside ${command.name} --help`)
  }
  const values = parsed.values as Record<string, string | boolean | undefined>
  const { positionals } = parsed
  const help = values.help === true
  const { min, max } = command.positionals
  if (!help && (positionals.length < min || positionals.length > max)) {
    const extra = positionals[max]
    const wrong = extra === undefined ? 'An argument is missing.' : `"${extra}" is one argument too many.`
    throw new UsageError(`${wrong} Usage: broadside ${command.usage}`)
  }
  return { args: argumentsOf(positionals, values), help }
}

function withTruth({ switches }: Command, argv: readonly string[]): string[] {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length
  const isValue = (text: string | undefined) => text === 'true' || text === 'false'
  return argv.map((each, n) => {
    const isSwitch = n < end && each.startsWith('--') && switches?.has(each.slice(2)) === true
    return isSwitch && !isValue(argv[n + 1]) ? `${each}=true` : each
  })
}

/** The option that was probably meant. */
function meantOption({ options }: Command, error: unknown): string {
  const [, unknown] = /Unknown option '--?([^']+)'/.exec(String(error)) ?? []
  const meant = unknown === undefined ? undefined : nearest(unknown, Object.keys({ ...options, ...everyCommand }))
  return meant === undefined ? '' : ` Did you mean "--${meant}"?`
}

function argumentsOf(positionals: readonly string[], values: Record<string, string | boolean | undefined>): Arguments {
  return {
    positionals,
    text(name) {
      const value = values[name]
      return typeof value === 'string' ? value : undefined
    },
    flag: (name) => values[name] === true,
    integer(name, { fallback, min, max }) {
      const value = values[name]
      if (typeof value !== 'string') return fallback
      const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
      if (!(number >= min && number <= max)) {
        throw new UsageError(`--${name} takes a whole number from ${min} to ${max}, not "${value}".`)
      }
      return number
    },
  }
}

/** The `--help` text of one command. */
export function helpOf(command: Command): string {
  const rows = [...command.optionHelp, ...everyCommandHelp]
  const width = Math.max(...rows.map(([name]) => name.length))
  const options = rows.map(([name, meaning]) => `  ${name.padEnd(width)}  ${meaning}`)
  return [
    `broadside ${command.usage}`,
    '',
    command.summary,
    '',
    'Options:',
    ...options,
    '',
    'Example:',
    `  ${command.example}`,
    '',
    ...(command.notes === undefined ? [] : [...command.notes, '']),
    exitCodeHelp,
    '',
  ].join('\n')
}

export const exitCodeHelp =
  'Exit codes: 0 done, 1 refused or failed, 2 wrong command line, 3 verification failed, 4 the mirrored log is closed, 70 a running board cannot continue, 75 another box leads this board.'

function firstSentence(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  const end = message.indexOf('. ')
  return end < 0 ? `${message.replace(/\.$/, '')}.` : message.slice(0, end + 1)
}

/** The result of `work`. Keeps the process alive until then, because the timers that `work` may wait for do not. */
export async function keepAlive<Result>(work: Promise<Result>): Promise<Result> {
  const staying = setInterval(() => {}, 60_000)
  try {
    return await work
  } finally {
    clearInterval(staying)
  }
}
