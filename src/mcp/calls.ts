/**
 * Calls at /mcp as commands of the board. A signed-in caller's commands are signed with the key of the sign-in; others are sent unsigned.
 * Permissions, refusals and limits are decided on the normal path of a command.
 */

import type { Operation } from '../../actors/kernel/operation.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { CommandPath } from '../command/ports.ts'
import { type DataShape, dataFault, dataShapeOf, kindOf, numberFault, type Shape } from '../format/data-fault.ts'
import { nearest } from '../format/nearest.ts'
import { flatNames, hasDataVersion } from '../format/operation-data.ts'
import { printable } from '../format/printable.ts'
import { envelopeOf, type Reply, refused } from '../format/reply.ts'
import { type Check, compile } from '../format/schema-check.ts'
import { type FieldValue, type SignableCommand, signingBytes } from '../format/signing.ts'
import { parseStrictText } from '../format/strict-json.ts'
import type { Random } from '../platform.ts'
import type { Caller } from '../sign-in/caller.ts'
import { isObject } from './brief.ts'
import { toolName } from './tool-list.ts'

export type Arguments = Readonly<Record<string, unknown>>

/** Who is calling, and a signal for when they disconnect. */
export type Calling = {
  readonly caller: Caller | undefined
  readonly address: string
  readonly signal: AbortSignal
}

export type CallsOptions = {
  readonly random: Random
  readonly front: Pick<CommandPath, 'execute'>
  readonly serviceId: string
  /** Unix seconds. */
  readonly wallSeconds: () => number
}

/** The body of the board's answer; undefined if none came, so that it is unknown whether the call took effect. */
export type Outcome = Readonly<Record<string, unknown>> | undefined

/** A refusal of a key of `data`, for a caller that sent the key as an argument. */
function inTermsOfTools(outcome: Outcome): Outcome {
  const error = (outcome?.error ?? {}) as { readonly field?: string; readonly message?: string }
  const { field, message } = error
  if (field?.startsWith('data.') !== true) return outcome
  const inTerms = { field: field.slice('data.'.length), message: message?.replaceAll('" in data', '"') }
  return { ...outcome, error: { ...error, ...inTerms } }
}

const signingNames: ReadonlySet<string> = new Set([
  'operation',
  'public_key',
  'timestamp',
  'nonce',
  'signature',
  'proof',
])

export class Calls {
  readonly #options: CallsOptions

  constructor(options: CallsOptions) {
    this.#options = options
  }

  /** Runs an operation with arguments as a tool takes them. `isFlat`: the keys of `data` were sent as separate arguments (see gathered). */
  async run(operation: Operation, given: Arguments, calling: Calling, isFlat = false): Promise<Outcome> {
    const strange = Object.keys(given).find((name) => signingNames.has(name))
    if (strange !== undefined) {
      const message = `${strange} is filled in by the board: omit it, or send a whole signed command with the tool command`
      return { ok: false, error: { code: 'unknown_field', message, field: strange } }
    }
    const input = inputOf(operation, given, isFlat)
    if ('code' in input) return envelopeOf(refused(input))
    const command = commandOf(operation, { ...given, ...(input.data === undefined ? {} : { data: input.data }) })
    const outcome = await this.#sent(operation, command, calling)
    return isFlat ? inTermsOfTools(outcome) : outcome
  }

  #sent(operation: Operation, command: Arguments, calling: Calling): Promise<Outcome> {
    const { caller } = calling
    // With a token that may not read private rooms, public ones are read.
    const signs = caller !== undefined && operation.scope !== undefined && caller.scopes.includes(operation.scope)
    if (!signs) return this.execute(command, calling)
    if (operation.kind === 'read' || typeof command.to !== 'string' || !command.to.startsWith('@'))
      return this.execute(this.#signed(command, caller), calling)
    return this.#addressed(command, caller, calling)
  }

  /** A write addressed to a handle: the caller's signature covers the id, as with every client. */
  async #addressed(command: Arguments, caller: Caller, calling: Calling): Promise<Outcome> {
    const found = await this.execute({ operation: 'identity.get', target: command.to }, calling)
    const { data, error } = (found ?? {}) as { data?: { identity: { id: string } }; error?: { code: string } }
    // Something that is not a handle at all is refused like any invalid field.
    if (error?.code === 'invalid_field') return this.execute(this.#signed(command, caller), calling)
    if (data === undefined) return found && { ok: false, error: { ...error, field: 'to' } }
    return this.execute(this.#signed({ ...command, to: data.identity.id }, caller), calling)
  }

  /** Names a write, so that repeating it is a retry. */
  requestId(): string {
    return this.#options.random(12).toString('base64url')
  }

  /** Sends a command as it is. */
  execute(command: object, { caller, address, signal }: Calling): Promise<Outcome> {
    return new Promise((resolve) => {
      const source = {
        via: 'mcp',
        address,
        ...(caller === undefined ? {} : { signedIn: caller.identity }),
        onGone: (callback: () => void) => signal.addEventListener('abort', callback, { once: true }),
      }
      this.#options.front.execute(Buffer.from(JSON.stringify(command)), source, (reply: Reply | undefined) =>
        resolve(reply && envelopeOf(reply)),
      )
    })
  }

  #signed(fields: Readonly<Record<string, unknown>>, caller: Caller): object {
    const command = {
      ...fields,
      public_key: caller.publicKey,
      timestamp: this.#options.wallSeconds(),
      nonce: this.#options.random(16).toString('base64url'),
    }
    const { serviceId } = this.#options
    // Values of a wrong type are signed as they are, and then refused by validation.
    const signature = isSignable(command) ? caller.sign(signingBytes(serviceId, command)) : Buffer.alloc(64)
    return { ...command, signature: signature.toString('base64url') }
  }
}

function commandOf(operation: Operation, given: Arguments): Readonly<Record<string, unknown>> {
  const { data, ...rest } = given
  // Many clients send null for omitted fields.
  const fields = Object.entries(rest).filter(([, value]) => value !== null)
  const isLeftOut = data === undefined || data === null
  return {
    operation: operation.name,
    ...Object.fromEntries(fields),
    ...(isLeftOut ? {} : { data: typeof data === 'string' ? data : JSON.stringify(data) }),
  }
}

function isSignable(command: Readonly<Record<string, unknown>>): command is SignableCommand & typeof command {
  return Object.values(command).every(
    (value): value is FieldValue =>
      typeof value === 'string' ||
      Number.isSafeInteger(value) ||
      (Array.isArray(value) && value.every((each) => typeof each === 'string')),
  )
}

/** Arguments with the keys of `data` gathered there; or why they cannot be. */
export type Gathered = { readonly args: Arguments; readonly isFlat: boolean } | Refusal

/**
 * A tool takes the keys of `data` as separate arguments or as `data`, never both, because one would have to override the other. If neither
 * is given, what is missing is named as an argument.
 */
export function gathered(operation: Operation, given: Arguments): Gathered {
  // Many clients send null for omitted arguments.
  const names = flatNames(operation).filter((name) => (given[name] ?? null) !== null)
  const isData = (given.data ?? null) !== null && given.data !== ''
  if (names.length === 0) return { args: given, isFlat: operation.data !== undefined && !isData }
  if (isData) {
    const message = `${toolName(operation.name)} takes ${names[0]} either as a separate argument or inside data, not both: omit data`
    return refusal('invalid_field', message, 'data')
  }
  const flat = new Set(flatNames(operation))
  const rest = Object.entries(given).filter(([name]) => name !== 'data' && !flat.has(name))
  const data = Object.fromEntries(names.map((name) => [name, given[name]]))
  return { args: { ...Object.fromEntries(rest), data }, isFlat: true }
}

type Given = Readonly<Record<string, unknown>>

/**
 * A call's `data` as an object, whether it was sent as an object or as JSON text; or what is wrong with the call, in the tool's terms.
 * There `data` is an object, the board fills in its version, and signing fields are not arguments.
 */
function inputOf(operation: Operation, given: Given, isFlat: boolean): { readonly data: Given | undefined } | Refusal {
  const strange = unknownArgument(operation, given)
  if (strange !== undefined) return strange
  const isLeftOut = given.data === undefined || given.data === null || given.data === ''
  if (operation.data === undefined || (isLeftOut && !operation.required.includes('data'))) return { data: undefined }
  const read = typeof given.data === 'string' ? parseStrictText(given.data) : undefined
  const data = isLeftOut ? {} : read === undefined ? given.data : read.ok ? read.value : given.data
  const isVersioned = hasDataVersion(operation)
  const { described, check } = toolData(operation)
  if (!isObject(data)) {
    const message = `${described.name} must be an object such as ${described.example}; ${kindOf(data)} was sent`
    return refusal('invalid_field', message, 'data')
  }
  const { schema, ...own } = data
  const judged = isVersioned ? own : data
  const words = isFlat ? { ...described, name: toolName(operation.name), isFlat } : described
  const fault = check(judged) ? numberFault(words, judged) : dataFault(words, judged, check.errors ?? [])
  if (fault !== undefined) return refusal('invalid_field', fault.message, fault.field)
  return { data: isVersioned ? { schema: 1, ...data } : data }
}

function unknownArgument(operation: Operation, given: Given): Refusal | undefined {
  const { name, kind, required, optional, data } = operation
  const own: readonly string[] = [...required, ...optional].filter((each) => each !== 'proof')
  const listed = data === undefined ? own : [...own.filter((each) => each !== 'data'), ...flatNames(operation)]
  const taken = [...listed, ...(kind === 'write' ? ['request_id'] : [])]
  // Many clients send null for omitted arguments.
  const isOne = (each: string) =>
    taken.includes(each) || own.includes(each) || each === 'request_id' || given[each] === null
  const strange = Object.keys(given).find((each) => !isOne(each))
  if (strange === undefined) return undefined
  const shown = printable(strange)
  const meant = nearest(strange, taken)
  const hint = meant === undefined ? `its arguments are ${taken.join(', ') || 'none'}` : `did you mean ${meant}?`
  return refusal('unknown_field', `${toolName(name)} has no argument "${shown}"; ${hint}`, shown)
}

type ToolData = { readonly described: DataShape; readonly check: Check }
const toolDatas = new Map<Operation, ToolData>()

/** `data` as the tool describes it: without `schema`, which has a single value. */
function toolData(operation: Operation): ToolData {
  const known = toolDatas.get(operation)
  if (known !== undefined) return known
  const { shape, example } = dataShapeOf(operation)
  const { schema, ...properties } = shape.properties ?? {}
  const required = (shape.required ?? []).filter((key) => key !== 'schema')
  const own: Shape = hasDataVersion(operation) ? { ...shape, properties, required } : shape
  const { schema: _, ...shown }: Given = JSON.parse(example)
  const name = `data of ${toolName(operation.name)}`
  const made = { described: { name, shape: own, example: JSON.stringify(shown) }, check: compile(own) }
  toolDatas.set(operation, made)
  return made
}
