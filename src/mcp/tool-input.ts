/**
 * What is wrong with the arguments of a tool, in the words of the tool: `data` is an object there, its version is the board's to
 * fill in, and what signs a command is no argument.
 */

import type { Operation } from '../../actors/kernel/operation.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { type DataShape, dataFault, dataShapeOf, kindOf, type Shape } from '../format/data-fault.ts'
import { nearest } from '../format/nearest.ts'
import { printable } from '../format/printable.ts'
import { type Check, compile } from '../format/schema-check.ts'
import { parseStrictText } from '../format/strict-json.ts'
import { isObject } from './brief.ts'
import { hasDataVersion, toolName } from './tool-list.ts'

type Given = Readonly<Record<string, unknown>>

/** `data` of a call as an object, whether it came as one or as JSON text; or what is wrong with the call. */
export function inputOf(operation: Operation, given: Given): { readonly data: Given | undefined } | Refusal {
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
  if (check(judged)) return { data: isVersioned ? { schema: 1, ...data } : data }
  const { message, field } = dataFault(described, judged, check.errors ?? [])
  return refusal('invalid_field', message, field)
}

function unknownArgument({ name, kind, required, optional }: Operation, given: Given): Refusal | undefined {
  const taken: string[] = [...required, ...optional, ...(kind === 'write' ? ['request_id'] : [])].filter(
    (each) => each !== 'proof',
  )
  // Null is what many a client sends for what it leaves out.
  const isOne = (each: string) => taken.includes(each) || each === 'request_id' || given[each] === null
  const strange = Object.keys(given).find((each) => !isOne(each))
  if (strange === undefined) return undefined
  const shown = printable(strange)
  const meant = nearest(strange, taken)
  const hint = meant === undefined ? `its arguments are ${taken.join(', ') || 'none'}` : `did you mean ${meant}?`
  return refusal('unknown_field', `${toolName(name)} has no argument "${shown}"; ${hint}`, shown)
}

type ToolData = { readonly described: DataShape; readonly check: Check }
const toolDatas = new Map<Operation, ToolData>()

/** `data` as the tool describes it: without `schema`, which has one value. */
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
