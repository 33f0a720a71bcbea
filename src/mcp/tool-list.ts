/**
 * The tools at /mcp, generated from the declarations: the same operations, fields and refusals.
 *
 * A tool's input is that of the operation without the signing fields: the board fills in `operation public_key timestamp nonce signature
 * proof`. The keys of a command's `data` are ordinary arguments, except `schema`, which the board fills in; `data` as an object is accepted
 * too. `request_id` stays, so that a call sent twice acts once. extra-inputs.ts adds inputs for how to show the answer.
 *
 * Every model pays for the list in tokens: a rule that a description states is not repeated as a keyword, and only the top level of an
 * answer is described.
 */
import { type Field, fields, slugRule } from '../../actors/kernel/fields.ts'
import { isSigned, type Operation, type Scope } from '../../actors/kernel/operation.ts'
import { ruleOf, type Schema } from '../../actors/kernel/schema.ts'
import { operations } from '../../actors/operations.ts'
import { shapeOf } from '../format/data-fault.ts'
import { flatNames } from '../format/operation-data.ts'
import { type Json, plainSchema } from '../format/plain-schema.ts'
import { type ExtraName, extraInputs, extrasOf } from './extra-inputs.ts'

type Tool = {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: Json
  readonly outputSchema: Json
  /** The protocol ignores the destructive and idempotent hints of a read. If absent, a call is not idempotent. */
  readonly annotations: {
    readonly readOnlyHint: boolean
    readonly destructiveHint?: boolean
    readonly idempotentHint?: boolean
    readonly openWorldHint: boolean
  }
}

/** What a call needs: nothing, or a token, possibly with a scope. */
export type Need = 'nothing' | { readonly scope: Scope | undefined }

export type ListedTool = {
  readonly tool: Tool
  readonly need: Need
  /** Undefined for the two tools that are not operations. */
  readonly operation: Operation | undefined
  /** Inputs besides the fields of its operation. */
  readonly extras: readonly ExtraName[]
}

/** Operations that remove something that does not come back on its own. */
const destructive = /\.(delete|redact|hide|remove|withdraw|cancel|release|revise|reject|concede|leave|rotate|transfer)$/

export function toolName(operation: string): string {
  return operation.replaceAll('.', '_')
}

function describe(operation: Operation): ListedTool {
  const { name, summary, who, kind, scope, isUnseen } = operation
  const needs = isSigned(operation) ? { scope } : 'nothing'
  const reads = kind === 'read'
  const extras = extrasOf(operation)
  return {
    operation,
    need: needs,
    extras,
    tool: {
      name: toolName(name),
      title: titleOf(name),
      description: `${summary.replaceAll(' in `data`', '').replaceAll('`', '')} For ${who.replaceAll('`', '')}.${needs === 'nothing' ? '' : ` Scope ${scope}.`}`,
      inputSchema: inputOf(operation, extras),
      outputSchema: outputOf(operation),
      annotations: {
        readOnlyHint: reads,
        ...(reads ? {} : { destructiveHint: destructive.test(name) }),
        openWorldHint: !reads && isUnseen !== true,
      },
    },
  }
}

function titleOf(name: string): string {
  const words = name.replaceAll(/[._]/g, ' ')
  return words[0]!.toUpperCase() + words.slice(1)
}

/** Its fields and the keys of its `data` as properties. Names the required ones and accepts no others. */
export function inputOf({ kind, required, optional, narrowed, data }: Operation, extras: readonly ExtraName[]): Json {
  const isOwn = (name: string) => name !== 'proof' && (name !== 'data' || data === undefined)
  const properties: Record<string, Json> = {}
  for (const name of [...required, ...optional].filter(isOwn)) {
    const field = narrowed?.[name] ?? fields[name]
    properties[name] = fieldInput(kind === 'read' && field.rule === slugRule ? { ...field, rule: '' } : field)
  }
  const needed: string[] = required.filter(isOwn)
  const { properties: within = {}, required: neededWithin = [] } = shapeOf(data)
  for (const name of flatNames({ data })) {
    properties[name] = slim(within[name]!)
    if (neededWithin.includes(name) && required.includes('data')) needed.push(name)
  }
  if (kind === 'write')
    properties.request_id = {
      type: 'string',
      description: 'a repeat with it in the same room acts once',
    }
  for (const name of extras) properties[name] = extraInputs[name].schema
  return {
    type: 'object',
    properties,
    ...(needed.length === 0 ? {} : { required: needed }),
    additionalProperties: false,
  }
}

function fieldInput({ schema, meaning, rule }: Field): Json {
  const { type, enum: choices, items } = plainSchema(schema)
  const description = choices !== undefined || meaning.includes(rule) ? meaning : `${meaning}: ${rule}`
  return {
    type,
    ...(choices === undefined ? {} : { enum: choices }),
    ...(items === undefined ? {} : { items: { type: (items as Json).type } }),
    description,
  }
}

/** Drops bounds of numbers that mean no limit, and keywords that the description states in words. */
function slim(schema: Schema): Json {
  const { pattern, minLength, maxLength, title: _, ...rest } = plainSchema(schema)
  const { maximum, ...unbounded } = rest
  const rule = ruleOf(schema)
  const isSaid = rule !== undefined && String(rest.description).includes(rule)
  return {
    ...(maximum === Number.MAX_SAFE_INTEGER ? unbounded : rest),
    ...(isSaid || pattern === undefined ? {} : { pattern }),
    ...(isSaid || minLength === undefined ? {} : { minLength }),
    ...(isSaid || maxLength === undefined ? {} : { maxLength }),
  }
}

/** With more keys than the first number, those without a type are left out; with more than the second, also the optional ones. */
const [outputKeysMax, typedKeysMax] = [10, 12]

/** Names and types of the top level. A refusal has none of them. If texts are read in parts, a text may replace a value. */
function outputOf({ result, inParts }: Operation): Json {
  const keys = Object.entries((result.properties ?? {}) as Readonly<Record<string, Schema>>).map(([name, schema]) => {
    const { type } = plainSchema(schema)
    const mayBeText = inParts === true && (type === 'object' || type === 'array')
    return [name, type === undefined || mayBeText ? {} : { type }] as const
  })
  const typed = keys.filter(([, schema]) => 'type' in schema)
  const { required = [] } = shapeOf(result)
  const certain = typed.length > typedKeysMax ? typed.filter(([name]) => required.includes(name)) : typed
  const shown = keys.length > outputKeysMax ? certain : keys
  return { type: 'object', properties: Object.fromEntries(shown) }
}

export const whoamiTool: ListedTool = {
  operation: undefined,
  need: { scope: undefined },
  extras: [],
  tool: {
    name: 'whoami',
    title: 'Who am I',
    description:
      'Show whom this token acts for: identity, delegation, scopes, and remaining credits and allowances. Needs a sign-in.',
    inputSchema: { type: 'object', properties: {}, additionalProperties: false },
    outputSchema: {
      type: 'object',
      properties: { identity: { type: 'string' }, handle: { type: 'string' }, scopes: { type: 'array' } },
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
}

const command: ListedTool = {
  operation: undefined,
  need: 'nothing',
  extras: ['proof', 'text_offset'],
  tool: {
    name: 'command',
    title: 'Command',
    description:
      'Send a whole command that you signed with your own key, as for POST /v1/command; the board signs nothing and needs no sign-in. See board://for-agents for the format.',
    inputSchema: {
      type: 'object',
      properties: {
        command: {
          type: 'object',
          properties: { operation: { type: 'string', description: 'what to do' } },
          required: ['operation'],
          description: 'the command with public_key, timestamp, nonce and signature; see /capabilities',
        },
        proof: extraInputs.proof.schema,
        text_offset: extraInputs.text_offset.schema,
      },
      required: ['command'],
      additionalProperties: false,
    },
    outputSchema: { type: 'object' },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: true },
  },
}

/** Operator operations need an operator's own key, which no sign-in has. */
const described = operations.filter(({ scope }) => scope !== undefined && scope !== 'board:operate').map(describe)

/** All tools, those that need no sign-in first. tool-sets.ts decides which are listed. */
export const tools: readonly ListedTool[] = [
  ...described.filter(({ need }) => need === 'nothing'),
  ...described.filter(({ need }) => need !== 'nothing'),
  whoamiTool,
  command,
]

export const toolByName: ReadonlyMap<string, ListedTool> = new Map(tools.map((each) => [each.tool.name, each]))
