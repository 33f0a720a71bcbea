/**
 * A command for any operation, generated from its declaration: required fields become positional arguments, optional ones become options.
 * The client of src/client signs and sends.
 */
import { existsSync, readFileSync } from 'node:fs'
import { type FieldName, fields } from '../../actors/kernel/fields.ts'
import { isSigned, type Operation } from '../../actors/kernel/operation.ts'
import { namingOf, type Schema } from '../../actors/kernel/schema.ts'
import { type Board, BoardError, connect, NoAnswer } from '../client/broadside.ts'
import { shapeOf } from '../format/data-fault.ts'
import { nearest } from '../format/nearest.ts'
import { flatNames } from '../format/operation-data.ts'
import { plainSchema } from '../format/plain-schema.ts'
import { parseStrictText } from '../format/strict-json.ts'
import { isObject, listOf } from '../mcp/brief.ts'
import { answerText } from './answer-text.ts'
import { BadAnswer, Refused } from './client.ts'
import {
  type Arguments,
  type Command,
  CommandFailed,
  type ExitCode,
  exitCodes,
  print,
  type Terminal,
  UsageError,
} from './command-line.ts'
import { openKeyFile } from './key-file.ts'
import { checkKnownBoard } from './known-boards.ts'
import { keyFileOf, keyOptionHelp, urlOf, urlOption, urlOptionHelp } from './shared-options.ts'
import { inertLine } from './terminal.ts'

/** A field, or a key of `data`. */
type Part = { readonly name: string; readonly schema: Schema; readonly about: string; readonly isData: boolean }

/** With more required fields than this, those inside `data` become options, because their order would be hard to remember. */
const placesMax = 4
const common: ReadonlySet<string> = new Set(['url', 'key', 'json', 'help'])

function partsOf({ required, optional, narrowed, data }: Operation): readonly Part[] {
  const own = [...required, ...optional].filter((name) => name !== 'proof' && (name !== 'data' || data === undefined))
  const flat = flatNames({ data })
  return [
    ...own.map((name: FieldName) => {
      const { schema, meaning, rule } = narrowed?.[name] ?? fields[name]
      return { name, schema, about: meaning.includes(rule) ? meaning : `${meaning}: ${rule}`, isData: false }
    }),
    ...flat.map((name) => {
      const schema = data!.properties![name]!
      const { description, enum: choices } = plainSchema(schema)
      const words = [description, Array.isArray(choices) ? choices.join(', ') : undefined]
      return { name, schema, about: words.filter((word) => word !== undefined).join(': '), isData: true }
    }),
  ]
}

function isRequired({ required, data }: Operation, { name, isData }: Part): boolean {
  const within = shapeOf(data).required ?? []
  return isData ? required.includes('data') && within.includes(name) : required.some((each) => each === name)
}

/** A long text is last, so that it can come from standard input instead. */
function placesOf(operation: Operation, parts: readonly Part[], extra: readonly string[]): readonly Part[] {
  const needed = parts.filter((part) => isRequired(operation, part) && part.name !== 'text')
  const named = needed.length > placesMax ? needed.filter(({ isData }) => !isData) : needed
  const last = parts.filter(({ name }) => name === 'text' && operation.required.some((each) => each === 'text'))
  const more = parts.filter(({ name }) => extra.includes(name))
  return [...named, ...more, ...last]
}

function optionOf({ name, isData }: Part): string {
  const option = name.replaceAll('_', '-')
  return isData && common.has(option) ? `data-${option}` : option
}

function isSwitch({ schema }: Part): boolean {
  return plainSchema(schema).type === 'boolean'
}

export type Verb = {
  /** As typed after `broadside`. */
  readonly words: string
  readonly operation: Operation
  /** Optional fields that are positional too. */
  readonly places?: readonly string[]
}

export function commandOf({ words, operation, places = [] }: Verb): Command {
  const parts = partsOf(operation)
  const byPlace = placesOf(operation, parts, places)
  const options = parts.filter((part) => !byPlace.includes(part))
  const required = byPlace.filter((part) => isRequired(operation, part) && part.name !== 'text').length
  const usage = byPlace.map((part) => {
    const name = part.name.toUpperCase()
    return isRequired(operation, part) && part.name !== 'text' ? name : `[${name}]`
  })
  return {
    name: words,
    summary: `${operation.summary.replaceAll(' in `data`', '').replaceAll('`', '')} For ${operation.who.replaceAll('`', '')}.`,
    usage: [words, ...usage, '[options]'].join(' '),
    optionHelp: [
      ...byPlace.map(({ name, about }) => [name.toUpperCase(), about] as const),
      ...options.map((part) => [`--${optionOf(part)} ${isSwitch(part) ? '[VALUE]' : 'VALUE'}`, part.about] as const),
      urlOptionHelp,
      keyOptionHelp,
    ],
    example: ['broadside', words, ...usage.slice(0, required)].join(' '),
    options: {
      ...Object.fromEntries(options.map((part) => [optionOf(part), { type: 'string' }])),
      ...urlOption,
      key: { type: 'string' },
    },
    switches: new Set(options.filter(isSwitch).map(optionOf)),
    positionals: { min: required, max: byPlace.length },
    async run(args, terminal) {
      const given = new Map<Part, string>()
      for (const part of parts) {
        const at = byPlace.indexOf(part)
        const text = at < 0 ? args.text(optionOf(part)) : args.positionals[at]
        if (text !== undefined) given.set(part, text)
      }
      const text = byPlace.find(({ name }) => name === 'text')
      if (text !== undefined && (given.get(text) ?? '-') === '-' && isRequired(operation, text))
        given.set(text, await standardInput())
      return runOperation(operation, valuesOf(given), args, terminal)
    },
  }
}

/** `broadside call OPERATION name=value …`: any operation, with its fields by name. */
export async function callOperation(operation: Operation, args: Arguments, terminal: Terminal): Promise<ExitCode> {
  const parts = partsOf(operation)
  const given = new Map<Part, string>()
  for (const text of args.positionals.slice(1)) {
    const [, name, value] = /^(\w+)=([\s\S]*)$/.exec(text) ?? []
    const part = parts.find((each) => each.name === name)
    if (name === undefined || value === undefined)
      throw new UsageError(`"${text}" is not name=value, like room=lobby. See: broadside help call`)
    if (part === undefined) {
      const names = parts.map((each) => each.name)
      const meant = nearest(name, names)
      const hint = meant === undefined ? `its fields are ${names.join(', ') || 'none'}` : `did you mean ${meant}?`
      throw new UsageError(`${operation.name} has no field "${name}"; ${hint}`)
    }
    given.set(part, await contentOf(part, value))
  }
  return runOperation(operation, valuesOf(given), args, terminal)
}

/**
 * `@FILE` stands for the content of a file, `-` for standard input, `@@` for a leading @. In fields that name someone, a leading @ is part
 * of the name.
 */
async function contentOf({ name, schema, isData }: Part, value: string): Promise<string> {
  const isFile = name === 'data' && !isData
  if (value === '-') return standardInput()
  if (!value.startsWith('@') || namingOf(schema) !== undefined) return value
  if (value.startsWith('@@')) return value.slice(1)
  const path = value.slice(1)
  // `target` names people in some operations and other things in others.
  if (name === 'target' || name === 'to') return value
  if (!existsSync(path)) throw new CommandFailed(`There is no file ${path}. To begin a text with @, write @@.`)
  const bytes = readFileSync(path)
  return isFile ? bytes.toString('base64url') : bytes.toString('utf8')
}

export async function standardInput(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) chunks.push(chunk)
  // The line feed at the end of a piped text was added by the shell, not by the author.
  return Buffer.concat(chunks).toString('utf8').replace(/\n$/, '')
}

type Values = { readonly [name: string]: unknown; readonly data?: unknown }

function valuesOf(given: ReadonlyMap<Part, string>): Values {
  const parts = [...given].map(([part, text]) => [part, valueFrom(part, text)] as const)
  const data = parts.filter(([{ isData }]) => isData).map(([{ name }, value]) => [name, value])
  const own = parts.filter(([{ isData }]) => !isData).map(([{ name }, value]) => [name, value])
  return { ...Object.fromEntries(own), ...(data.length === 0 ? {} : { data: Object.fromEntries(data) }) }
}

/** Parses a value by its declared type. The board checks everything beyond that. */
function valueFrom({ name, schema }: Part, text: string): unknown {
  const { type, enum: choices } = plainSchema(schema)
  if (type === 'string' || type === undefined) return type === undefined ? jsonOr(text) : text
  if (type === 'integer' || type === 'number') {
    if (!/^-?\d+(\.\d+)?$/.test(text)) throw new UsageError(`${name} must be a number, not "${text}".`)
    return Number(text)
  }
  if (type === 'boolean') {
    if (text !== 'true' && text !== 'false') throw new UsageError(`${name} must be true or false, not "${text}".`)
    return text === 'true'
  }
  if (type === 'array' && !text.startsWith('[')) return text === '' ? [] : text.split(',')
  const value = jsonOr(text)
  if (typeof value === 'string' && choices === undefined)
    throw new UsageError(`${name} must be JSON, such as ${type === 'array' ? '["a"]' : '{"a":1}'}, not "${text}".`)
  return value
}

function jsonOr(text: string): unknown {
  const read = parseStrictText(text)
  return read.ok ? read.value : text
}

/** Seconds to retry after a lost answer; short, because a person waits and can try again. */
const patience = 2

/** A connection for one command: signed if there is a key, with a command's error sentences on failure. */
export async function connected(args: Arguments, mustSign: boolean, terminal: Terminal): Promise<Board> {
  const file = keyFileOf(args)
  const isPresent = existsSync(file)
  if (!isPresent && (mustSign || args.text('key') !== undefined))
    throw new CommandFailed(`There is no key file ${file}. Make one with: broadside login`)
  const key = isPresent ? (await openKeyFile(file)).key : undefined
  const board = await withErrorSentences(urlOf(args), () =>
    connect(urlOf(args), { patience, ...(key === undefined ? {} : { key }) }),
  )
  if (key !== undefined) checkKnownBoard(board.address, board.service, terminal)
  return board
}

/** Converts the client's errors to the sentences that all commands exit with. */
export async function withErrorSentences<Value>(url: string, act: () => Promise<Value>): Promise<Value> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof BoardError) {
      const { status, code, field, retryAfter } = error
      const message = error.message.replace(`${code}: `, '').replace(` (field ${field})`, '')
      throw new Refused({ status, code, message, field, retryAfterSeconds: retryAfter })
    }
    if (error instanceof NoAnswer) {
      const hint = error.command === undefined ? ' Start one with "broadside serve", or name another with --url.' : ''
      throw new CommandFailed(`${inertLine(error.message)}.${hint}`)
    }
    if (error instanceof CommandFailed || error instanceof UsageError) throw error
    // The client's error about an answer that is not a board's, or a field that it cannot send.
    throw new CommandFailed(`${url}: ${inertLine(error instanceof Error ? error.message : String(error))}`)
  }
}

async function runOperation(
  operation: Operation,
  values: Values,
  args: Arguments,
  terminal: Terminal,
): Promise<ExitCode> {
  const board = await connected(args, isSigned(operation), terminal)
  // Its keys may all be optional: then the client adds only the version.
  const data = operation.data !== undefined && operation.required.some((each) => each === 'data') ? { data: {} } : {}
  const answer = await withErrorSentences(board.address, async () =>
    board.run({ operation: operation.name, ...data, ...(await named(board, operation, values)) }),
  )
  printAnswer(operation, answer, { terminal, url: board.address })
  return exitCodes.ok
}

type Place = { readonly terminal: Terminal; readonly url: string }

/** For a list: its items, followed by the fields that are next to the list. */
export function printAnswer(operation: Operation, answer: unknown, { terminal, url }: Place): void {
  if (!isObject(answer)) throw new BadAnswer(url, `${operation.name} has no data`)
  const list = listOf(operation)
  const items: unknown = list === undefined ? undefined : answer[list]
  if (!Array.isArray(items)) print(terminal, answer, answerText(answer))
  else {
    for (const item of items) print(terminal, item, answerText(item))
    const known = new Set(items.map((item) => JSON.stringify(item)))
    const beside = Object.entries(answer).filter(
      ([name, value]) =>
        name !== list && Array.isArray(value) && value.some((each) => !known.has(JSON.stringify(each))),
    )
    for (const [name, value] of beside) print(terminal, { [name]: value }, answerText({ [name]: value }))
    if (items.length + beside.length === 0) terminal.err('Nothing is there.\n')
  }
  if (answer.has_more === true && typeof answer.next_cursor === 'string')
    terminal.err(`There is more: add --cursor ${inertLine(answer.next_cursor)}\n`)
}

/** Resolves handles if only an id may be signed, so that the signed bytes say whom their author meant. */
async function named(board: Board, operation: Operation, values: Values): Promise<Values> {
  const found: Record<string, unknown> = { ...values }
  for (const { name, schema, isData } of partsOf(operation)) {
    const value = isData ? undefined : values[name]
    const isId = namingOf(schema) === 'id' || (name === 'to' && operation.kind === 'write')
    if (!isId || typeof value !== 'string' || !value.startsWith('@')) continue
    const { identity } = await board.call('identity.get', { target: value })
    found[name] = identity.id
  }
  return found
}
