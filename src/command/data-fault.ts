/**
 * What is wrong with the JSON inside `data`, in a sentence that names the key and what it must be.
 * Asked only for data that its schema has refused.
 */

import { printable } from '../format/printable.ts'
import type { Operation } from '../operations/operation.ts'

/** The parts of a JSON Schema that the sentences are made of. */
export type Shape = {
  readonly description?: string
  readonly pattern?: string
  readonly items?: Shape
  readonly maxItems?: number
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Shape[]
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly properties?: Readonly<Record<string, Shape>>
  readonly required?: readonly string[]
}

type Fault = { readonly instancePath: string }

/** `faults`: what the validator says, first things first. */
export function dataFault(
  { name, data, example: command }: Pick<Operation, 'name' | 'data' | 'example'>,
  value: unknown,
  faults: readonly Fault[],
): string {
  const shape = data as Shape
  const keys = shape.properties ?? {}
  const example = `a JSON object such as ${command.data ?? exampleOf(shape)}`
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return `data of ${name} must hold ${example}`
  }
  const given = value as Record<string, unknown>
  const unknown = Object.keys(given).find((key) => !Object.hasOwn(keys, key))
  if (unknown !== undefined) {
    const shown = printable(unknown)
    return `data of ${name} has no key "${shown}": its keys are ${Object.keys(keys).join(', ')}`
  }
  const missing = shape.required?.find((key) => !Object.hasOwn(given, key))
  if (missing !== undefined) return `data of ${name} needs the key "${missing}": ${ruleOf(keys[missing]!)}`
  const [fault] = faults
  const path = (fault?.instancePath ?? '').split('/').slice(1)
  const [key = ''] = path
  const wrong = keys[key]
  if (path.length === 2 && wrong?.items !== undefined)
    return `item ${path[1]} of "${key}" in data of ${name} must be ${ruleOf(wrong.items)}`
  if (path.length !== 1 || wrong === undefined)
    return `data of ${name} must hold ${example}: /${path.join('/')} is wrong`
  return `"${key}" in data of ${name} must be ${ruleOf(wrong)}`
}

/** What `data` has to hold, to end a sentence that says that it is missing. */
export function dataNeeds({ data, example }: Pick<Operation, 'data' | 'example'>): string {
  const { required = [] } = (data ?? {}) as Shape
  return required.length === 0
    ? ''
    : `; it needs ${required.join(', ')}, such as ${example.data ?? exampleOf(data as Shape)}`
}

/** What a value of this shape is, to follow "must be". */
export function ruleOf(shape: Shape): string {
  if (shape.const !== undefined) return JSON.stringify(shape.const)
  const choices = shape.enum ?? shape.anyOf?.map((each) => each.const)
  if (choices?.every((choice) => choice !== undefined))
    return `one of ${choices.map((choice) => JSON.stringify(choice)).join(', ')}`
  const { minimum, maximum = Number.MAX_SAFE_INTEGER } = shape
  if (shape.type === 'integer') {
    if (minimum === undefined) return 'an integer'
    return maximum === Number.MAX_SAFE_INTEGER
      ? `an integer of at least ${minimum}`
      : `an integer from ${minimum} to ${maximum}`
  }
  if (shape.type === 'array') return `a list of at most ${shape.maxItems} items, each ${ruleOf(shape.items ?? {})}`
  // What a pattern means stands in the description; the pattern itself is exact.
  if (shape.pattern !== undefined)
    return `a string that fits ${shape.pattern}${shape.description === undefined ? '' : ` (${shape.description})`}`
  if (shape.type === 'string' && shape.maxLength !== undefined)
    return `a string of ${shape.minLength ?? 0} to ${shape.maxLength} characters`
  return shape.type === undefined ? 'as /openapi.json says' : `of type ${shape.type}`
}

function exampleOf({ properties = {}, required = [] }: Shape): string {
  const known = required.filter((key) => properties[key]?.const !== undefined)
  return JSON.stringify(Object.fromEntries(known.map((key) => [key, properties[key]!.const])))
}
