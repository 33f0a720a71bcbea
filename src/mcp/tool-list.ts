/**
 * The tools at /mcp, made from the declarations: the same operation, the same fields, the same refusals.
 *
 * Input is what the operation takes without what signs it: `operation public_key timestamp nonce signature proof` are the
 * board's work here. `data` is an object with the operation's closed schema, whose `schema` the board fills in; `request_id`
 * stays, so that a call sent twice acts once. How the answer is read has inputs of its own (extra-inputs.ts). The list is the
 * same for all callers.
 */
import { fields } from '../../actors/kernel/fields.ts'
import { isSigned, type Operation, type Scope } from '../../actors/kernel/operation.ts'
import { operations } from '../../actors/operations.ts'
import { type Json, plainSchema } from '../format/plain-schema.ts'
import { type ExtraName, extraInputs, extrasOf } from './extra-inputs.ts'

type Tool = {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: Json
  readonly annotations: {
    readonly readOnlyHint: boolean
    readonly destructiveHint: boolean
    readonly idempotentHint: boolean
    readonly openWorldHint: boolean
  }
}

/** What a call needs: nothing, or a token, perhaps with a scope. */
export type Need = 'nothing' | { readonly scope: Scope | undefined }

type ListedTool = {
  readonly tool: Tool
  readonly need: Need
  /** Undefined: one of the two that are no operation. */
  readonly operation: Operation | undefined
  /** What it takes beside the fields of its operation. */
  readonly extras: readonly ExtraName[]
}

/** They take something away that does not come back by itself. */
const destructive = /\.(delete|redact|hide|remove|withdraw|cancel|release|revise|leave)$/
/** They reach beyond this board. */
const outward: ReadonlySet<string> = new Set(['tools.call', 'tools.probe'])

export function toolName(operation: string): string {
  return operation.replaceAll('.', '_')
}

function describe(operation: Operation): ListedTool {
  const { name, summary, who, kind, scope } = operation
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
      description: `${summary.replaceAll('`', '')} For ${who.replaceAll('`', '')}.${needs === 'nothing' ? '' : ` Needs a sign-in with the scope ${scope}.`}`,
      inputSchema: inputOf(operation, extras),
      annotations: {
        readOnlyHint: reads,
        destructiveHint: destructive.test(name),
        // The same request_id acts once, but a call without one acts each time.
        idempotentHint: reads,
        openWorldHint: outward.has(name),
      },
    },
  }
}

function titleOf(name: string): string {
  const words = name.replaceAll(/[._]/g, ' ')
  return words[0]!.toUpperCase() + words.slice(1)
}

/** Its fields as properties, required ones named, nothing else taken. */
export function inputOf({ kind, required, optional, narrowed, data }: Operation, extras: readonly ExtraName[]): Json {
  const names = [...required, ...optional].filter((name) => name !== 'proof' && name !== 'data')
  const properties: Record<string, Json> = {}
  for (const name of names) {
    const { schema, meaning, rule } = narrowed?.[name] ?? fields[name]
    properties[name] = { ...plainSchema(schema), description: meaning.includes(rule) ? meaning : `${meaning}: ${rule}` }
  }
  const needed = required.filter((name) => name !== 'proof' && name !== 'data') as string[]
  if (data !== undefined) {
    const shape = dataShape(plainSchema(data))
    properties.data = shape
    if (required.includes('data') && Array.isArray(shape.required)) needed.push('data')
  }
  if (kind === 'write') properties.request_id = { ...plainSchema(fields.request_id.schema) }
  for (const name of extras) properties[name] = extraInputs[name].schema
  return {
    type: 'object',
    properties,
    ...(needed.length === 0 ? {} : { required: needed }),
    additionalProperties: false,
  }
}

/** Without `schema`: it has one value, and the board puts it there. */
function dataShape(shape: Json): Json {
  const { properties = {}, required = [], ...rest } = shape as { properties?: Json; required?: readonly string[] }
  const { schema: _, ...own } = properties as Json
  const needed = required.filter((name) => name !== 'schema')
  return { ...rest, properties: own, ...(needed.length === 0 ? {} : { required: needed }) }
}

/** `data` of the operation has a version to fill in. */
export function hasDataVersion({ data }: Operation): boolean {
  return data?.properties?.schema !== undefined
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
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
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
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  },
}

const described = operations.filter(({ isTool }) => isTool === true).map(describe)

/** What needs no sign-in stands first. */
export const listedTools: readonly ListedTool[] = [
  ...described.filter(({ need }) => need === 'nothing'),
  ...described.filter(({ need }) => need !== 'nothing'),
  whoamiTool,
  command,
]

export const toolByName: ReadonlyMap<string, ListedTool> = new Map(listedTools.map((each) => [each.tool.name, each]))
