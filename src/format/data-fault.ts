/**
 * Describes what is wrong with the JSON in `data`, in a sentence that names the key and what it must be. Called only for data that its
 * schema has refused.
 */

import type { Operation } from '../../actors/kernel/operation.ts'
import { namingOf, ruleOf as patternRuleOf, type Schema, wordsOf } from '../../actors/kernel/schema.ts'
import { nearest } from './nearest.ts'
import { printable } from './printable.ts'

/** The parts of a JSON Schema from which the sentences are built. */
export type Shape = Schema & {
  readonly description?: string
  readonly pattern?: string
  readonly items?: Shape
  readonly minItems?: number
  readonly maxItems?: number
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Shape[]
  /** Each requires one key: exactly one of these keys is allowed. */
  readonly oneOf?: readonly Shape[]
  readonly allOf?: readonly Shape[]
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly properties?: Readonly<Record<string, Shape>>
  readonly required?: readonly string[]
}

/** A validator's finding: where the value is wrong and, for an object, the extra or missing key. */
type Fault = {
  readonly instancePath: string
  readonly params?: { readonly additionalProperty?: string; readonly missingProperty?: string }
}

/** `field`: `data`, or `data.` and the key that is wrong. */
type DataFault = { readonly message: string; readonly field: string }

/** How sentences name an operation's `data`, and what it contains. */
export type DataShape = {
  readonly name: string
  readonly shape: Shape
  readonly example: string
  /** It was sent as separate arguments, so its keys are arguments. */
  readonly isFlat?: boolean
}

/** A declared schema, by the keywords that the declarations use. */
export function shapeOf(data: Schema | undefined): Shape {
  return (data ?? {}) as Shape
}

export function dataShapeOf({ name, data, example }: Pick<Operation, 'name' | 'data' | 'example'>): DataShape {
  const shape = shapeOf(data)
  return { name: `data of ${name}`, shape, example: String(example.data ?? exampleOf(shape)) }
}

/** The keys that `data` must have and that have only one value, such as `schema`. */
export function constantsOf({ properties = {}, required = [] }: Shape): Readonly<Record<string, unknown>> {
  const known = required.filter((key) => properties[key]?.const !== undefined)
  return Object.fromEntries(known.map((key) => [key, properties[key]!.const]))
}

/** `faults`: the validator's findings, in order. */
export function dataFault(
  { name, shape, example, isFlat = false }: DataShape,
  value: unknown,
  faults: readonly Fault[],
): DataFault {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return {
      message: `${name} must contain a JSON object such as ${example}; ${kindOf(value)} was sent`,
      field: 'data',
    }
  const fieldOf = (key: string) => fieldIn(isFlat, key)
  const keys = shape.properties ?? {}
  const unknown = Object.keys(value).find((key) => !Object.hasOwn(keys, key))
  if (unknown !== undefined) return { message: unknownKey(name, shape, unknown), field: fieldOf(unknown) }
  const missing = shape.required?.find((key) => !Object.hasOwn(value, key))
  if (missing !== undefined)
    return {
      message: `${name} needs the ${isFlat ? 'argument' : 'key'} "${missing}": ${ruleOf(keys[missing]!)}`,
      field: fieldOf(missing),
    }
  const [fault] = faults
  const path = pathOf(fault?.instancePath ?? '')
  const [key = ''] = path
  const place = placeOf(path)
  const wrong = path.reduce<Shape | undefined>(stepInto, shape)
  if (key === '' || wrong === undefined) {
    const choices = [shape, ...(shape.allOf ?? [])].flatMap(({ oneOf }) =>
      oneOf === undefined ? [] : [`exactly one of ${oneOf.flatMap(({ required = [] }) => required).join(', ')}`],
    )
    const rule = choices.length > 0 ? `have ${choices.join(' and ')}` : `contain a JSON object such as ${example}`
    return { message: `${name} must ${rule}`, field: key === '' ? 'data' : fieldOf(key) }
  }
  const { additionalProperty, missingProperty } = fault?.params ?? {}
  const within = `"${place}" in ${name}`
  if (additionalProperty !== undefined)
    return { message: unknownKey(within, wrong, additionalProperty), field: fieldOf(key) }
  if (missingProperty !== undefined) {
    const rule = ruleOf(wrong.properties?.[missingProperty] ?? {})
    return { message: `${within} needs the key "${missingProperty}": ${rule}`, field: fieldOf(key) }
  }
  const found = path.reduce<unknown>((inside, part) => (Object(inside) as Record<string, unknown>)[part], value)
  return { message: `${within} must be ${ruleOf(wrong)}${sentInstead(wrong, found)}`, field: fieldOf(key) }
}

/** What is wrong with data that its schema accepts: a number in it that no signed command can hold. */
export function numberFault(
  { name, shape, isFlat = false }: Omit<DataShape, 'example'>,
  data: Readonly<Record<string, unknown>>,
): DataFault | undefined {
  for (const [key, value] of Object.entries(data)) {
    const number = unsafeNumber(value)
    if (number === undefined) continue
    const takesText = shape.properties?.[key]?.type === undefined
    const way = takesText ? `send "${key}" as a string with its JSON text` : 'write it as a string'
    const rule = `commands have only integers up to ${Number.MAX_SAFE_INTEGER}`
    return { message: `"${key}" in ${name} contains ${number}, and ${rule}: ${way}`, field: fieldIn(isFlat, key) }
  }
  return undefined
}

function unsafeNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? undefined : value
  for (const each of Object.values(Object(value))) {
    const found = typeof each === 'string' ? undefined : unsafeNumber(each)
    if (found !== undefined) return found
  }
  return undefined
}

function fieldIn(isFlat: boolean, key: string): string {
  return `${isFlat ? '' : 'data.'}${printable(key)}`
}

/** What `data` must contain, as the end of a sentence that says it is missing. */
export function dataNeeds({ shape, example }: DataShape): string {
  const { required = [] } = shape
  return required.length === 0 ? '' : `; it needs ${required.join(', ')}, such as ${example}`
}

/** Describes a value of this shape, to follow "must be". */
export function ruleOf(shape: Shape): string {
  if (shape.const !== undefined) return JSON.stringify(shape.const)
  const choices = choicesOf(shape)
  if (choices.length > 0) return `one of ${choices.map((choice) => JSON.stringify(choice)).join(', ')}`
  const rule = patternRuleOf(shape)
  if (rule !== undefined) return rule
  const { minimum, maximum = Number.MAX_SAFE_INTEGER } = shape
  if (shape.type === 'integer') {
    if (minimum === undefined) return 'an integer'
    return maximum === Number.MAX_SAFE_INTEGER
      ? `an integer of at least ${minimum}`
      : `an integer from ${minimum} to ${maximum}`
  }
  if (shape.type === 'array') {
    const { minItems = 0, maxItems, items = {} } = shape
    return `a list of ${minItems === 0 ? 'at most' : `${minItems} to`} ${maxItems} items, each ${ruleOf(items)}`
  }
  if (shape.type === 'string' && shape.maxLength !== undefined)
    return `a string of ${shape.minLength ?? 0} to ${shape.maxLength} characters`
  if (shape.type === 'boolean') return 'true or false'
  return shape.type === undefined
    ? 'as /openapi.json states'
    : `${/^[aeiou]/.test(shape.type) ? 'an' : 'a'} ${shape.type}`
}

/** Ends the sentence with the choice that was probably meant, or says that a handle is not accepted here. */
export function meantBy(shape: Shape, value: unknown): string {
  if (typeof value !== 'string') return ''
  if (namingOf(shape) === 'id' && handle.test(value))
    return `; "${value}" is a handle, and a signature over a name proves nothing: identity.get gives its id and key`
  const words = wordsOf(shape)
  const wrong = words.length === 0 ? value : value.split(',').find((word) => !words.includes(word))
  const meant = wrong === undefined ? undefined : nearest(wrong, [...choicesOf(shape).map(String), ...words])
  return meant === undefined ? '' : `; did you mean ${JSON.stringify(meant)}?`
}

const handle = /^@?[a-z0-9][a-z0-9_-]{1,31}$/i

/** The same, or the type that was sent if it is wrong. */
function sentInstead(shape: Shape, value: unknown): string {
  const meant = meantBy(shape, value)
  if (meant !== '') return meant
  const kind = kindOf(value)
  const type = shape.type ?? typeof choicesOf(shape)[0]
  const isOfType = type === 'undefined' || kind.endsWith(` ${type === 'integer' ? 'number' : type}`)
  return isOfType ? '' : `; ${kind} was sent`
}

export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  return `a ${typeof value}`
}

function unknownKey(name: string, { properties = {} }: Shape, key: string): string {
  const keys = Object.keys(properties)
  const meant = nearest(key, keys)
  const hint = meant === undefined ? `: its keys are ${keys.join(', ')}` : `; did you mean "${meant}"?`
  return `${name} has no key "${printable(key)}"${hint}`
}

function choicesOf({ enum: listed, anyOf }: Shape): readonly unknown[] {
  const choices = listed ?? anyOf?.map((each) => each.const) ?? []
  return choices.every((choice) => choice !== undefined) ? choices : []
}

/** The names in a JSON pointer. */
function pathOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** `rows[3].price` */
function placeOf(path: readonly string[]): string {
  return path
    .map((part, n) => (/^\d+$/.test(part) && n > 0 ? `[${part}]` : `${n === 0 ? '' : '.'}${printable(part)}`))
    .join('')
}

function stepInto(shape: Shape | undefined, part: string): Shape | undefined {
  return shape?.items ?? shape?.properties?.[part]
}

function exampleOf(shape: Shape): string {
  return JSON.stringify(constantsOf(shape))
}
