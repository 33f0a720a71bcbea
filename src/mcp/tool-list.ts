/**
 * The tools at /mcp, made from the declarations: the same operation, the same fields, the same refusals.
 *
 * Input is what the operation takes without what signs it: `operation public_key timestamp nonce signature proof` are the
 * board's work here. What a command has in `data` are arguments like all others, without `schema`, which the board fills in;
 * `data` as an object is taken too. `request_id` stays, so that a call sent twice acts once. How the answer is read has inputs
 * of its own (extra-inputs.ts). Every model pays for the list in tokens: a rule that a description states is not repeated as a
 * keyword, and of an answer only the top level is described.
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
  /** The protocol ignores the destructive and the idempotent hint of a read; absent, a call is not idempotent. */
  readonly annotations: {
    readonly readOnlyHint: boolean
    readonly destructiveHint?: boolean
    readonly idempotentHint?: boolean
    readonly openWorldHint: boolean
  }
}

/** What a call needs: nothing, or a token, perhaps with a scope. */
export type Need = 'nothing' | { readonly scope: Scope | undefined }

export type ListedTool = {
  readonly tool: Tool
  readonly need: Need
  /** Undefined: one of the two that are no operation. */
  readonly operation: Operation | undefined
  /** What it takes beside the fields of its operation. */
  readonly extras: readonly ExtraName[]
}

/** They take something away that does not come back by itself. */
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

/** Its fields as properties, and what it has in `data` beside them; required ones named, nothing else taken. */
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
    properties.request_id = { type: 'string', description: 'a repeated call with the same one acts once' }
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

/** Without the bounds of numbers that are none, and without what the description says in words. */
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

/** Of more keys than this, those without a type are left out; of more than that, those that are not always there. */
const [outputKeysMax, typedKeysMax] = [10, 12]

/** Names and types of the top level. A refusal has none of them; where a text is read in parts, it may stand for a value. */
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

/** What an operator does is done with a key of theirs, which no sign-in is. */
const described = operations.filter(({ scope }) => scope !== undefined && scope !== 'board:operate').map(describe)

/** All of them; which are listed, tool-sets.ts says. What needs no sign-in stands first. */
export const tools: readonly ListedTool[] = [
  ...described.filter(({ need }) => need === 'nothing'),
  ...described.filter(({ need }) => need !== 'nothing'),
  whoamiTool,
  command,
]

export const toolByName: ReadonlyMap<string, ListedTool> = new Map(tools.map((each) => [each.tool.name, each]))
