/**
 * Checks commands: from the bytes of a request to a command whose every field has its type. First its shape, whatever the operation; then,
 * after the signature was verified, whether the operation takes these fields. Nothing is rewritten: absent, `""`, `0` and `[]` all mean
 * "not given".
 *
 * The cost of refusing a body is bounded by that of a valid command: few structural characters, no list longer than any field takes, and
 * more than half a megabyte only if it carries a file. The reason of a refusal is computed on demand, so clients over their limit do not
 * cost that.
 */

import { type Command, envelope, type Field, type FieldName, fields } from '../../actors/kernel/fields.ts'
import { sizes } from '../../actors/kernel/limits.ts'
import type { Operation } from '../../actors/kernel/operation.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { visibleTexts } from '../../actors/kernel/schema.ts'
import { type AnyOperation, operationByName } from '../../actors/operations.ts'
import {
  constantsOf,
  dataFault,
  dataNeeds,
  dataShapeOf,
  kindOf,
  meantBy,
  type Shape,
  shapeOf,
} from '../format/data-fault.ts'
import type { JsonLimits } from '../format/json-fault.ts'
import { stringAt } from '../format/json-head.ts'
import { nearest } from '../format/nearest.ts'
import { isBlank, printable } from '../format/printable.ts'
import { type Check, checkOf, compile } from '../format/schema-check.ts'
import { parseStrictJson, parseStrictText, type StrictJson } from '../format/strict-json.ts'
import { noteCause } from '../runtime/slow-turns.ts'

type Checked<Value> = { readonly ok: true; readonly value: Value } | { readonly ok: false; readonly refusal: Refusal }

const bad = (found: Refusal): { ok: false; refusal: Refusal } => ({ ok: false, refusal: found })

/** Every field is known and has its type; no rule of an operation is checked yet. */
export function checkShape(value: unknown): Checked<Command> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return bad(refusal('invalid_json', `a command must be one JSON object, but the body is ${kindOf(value)}`))
  }
  const command = value as Record<string, unknown>
  for (const name of Object.keys(command)) {
    if (!Object.hasOwn(fields, name)) return bad(unknownField(name, command))
    const field = fields[name as FieldName]
    if (!hasType(field, command[name])) {
      return bad(refusal('invalid_field', `${name} must be ${field.rule}; ${sentOf(command[name])}`, name))
    }
  }
  if (command.operation === undefined || command.operation === '') {
    return bad(
      refusal('missing_field', 'operation is required: name one of the operations at /capabilities', 'operation'),
    )
  }
  return { ok: true, value: command as unknown as Command }
}

export function isGiven<Value>(value: Value): value is Exclude<Value, undefined> {
  return value !== undefined && value !== '' && value !== 0 && !(Array.isArray(value) && value.length === 0)
}

/** The operation exists and takes these fields, and each field obeys its rules. `data` is parsed, `{}` if not given. */
export function checkOperation(
  command: Command,
): Checked<{ operation: AnyOperation; data: Readonly<Record<string, unknown>> }> {
  const operation = operationByName.get(command.operation)
  if (operation === undefined) return bad(unknownOperation(command.operation))
  noteCause(operation.name)
  const rules = rulesOf(operation)
  const given: Readonly<Record<string, unknown>> = command
  for (const name of Object.keys(command) as FieldName[]) {
    const value = given[name]
    if (!isGiven(value)) continue
    const rule = rules.get(name)
    if (rule === undefined) {
      const place = placeInData(operation, name, value)
      const taken = ownFields(operation).join(', ') || 'none'
      const message = place ?? `${operation.name} does not take the field ${name}; its own fields are: ${taken}`
      return bad(refusal('unknown_field', message, name))
    }
    const fault = faultOf(name, rule, value)
    if (fault !== undefined) return bad(fault)
  }
  for (const name of operation.required) {
    if (isGiven(given[name])) continue
    const { meaning, rule } = rules.get(name)!
    const keys = name === 'data' ? dataNeeds(dataShapeOf(operation)) : ''
    return bad(refusal('missing_field', `${operation.name} needs ${name}, ${meaning}: ${rule}${keys}`, name))
  }
  const data = checkData(operation, command.data)
  return data.ok ? { ok: true, value: { operation, data: data.value } } : data
}

const dataChecks = new Map<Operation, Check>()

function checkData(operation: Operation, text: string | undefined): Checked<Readonly<Record<string, unknown>>> {
  if (operation.data === undefined || text === undefined || text === '') return { ok: true, value: {} }
  const parsed = parseStrictText(text)
  if (!parsed.ok) return bad(refusal('invalid_field', `data must contain JSON text: ${parsed.message}`, 'data'))
  // In JSON, NUL can only be written as an escape, so most data need no search.
  const holder = text.includes('\\u0000') ? Object.entries(Object(parsed.value)).find(holdsNul) : undefined
  if (holder !== undefined) {
    const field = `data.${printable(holder[0])}`
    return bad(refusal('invalid_field', 'no string in data may contain a NUL character', field))
  }
  for (const [key, most] of Object.entries(operation.dataBytes ?? {})) {
    const sent = bytesOf(parsed.value, key)
    if (sent > most) return bad(refusal('too_large', `"${key}" has ${sent} bytes, ${most} are allowed`, `data.${key}`))
  }
  let check = dataChecks.get(operation)
  if (check === undefined) {
    check = compile(operation.data)
    dataChecks.set(operation, check)
  }
  if (!check(parsed.value)) {
    const { message, field } = dataFault(dataShapeOf(operation), parsed.value, check.errors ?? [])
    return bad(refusal('invalid_field', message, field))
  }
  const data = parsed.value as Record<string, unknown>
  const blank = visibleTexts(operation.data).find((key) => typeof data[key] === 'string' && isBlank(data[key]))
  if (blank !== undefined)
    return bad(refusal('invalid_field', `"${blank}" in data of ${operation.name} ${showsNothing}`, `data.${blank}`))
  return { ok: true, value: data }
}

function holdsNul(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0')
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([key, each]) => key.includes('\0') || holdsNul(each))
}

/** UTF-8 bytes of the string at this key; 0 if there is none. */
function bytesOf(value: unknown, key: string): number {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return 0
  const text = (value as Readonly<Record<string, unknown>>)[key]
  return typeof text === 'string' ? Buffer.byteLength(text) : 0
}

const ruleTables = new Map<Operation, ReadonlyMap<FieldName, Field>>()

function rulesOf(operation: Operation): ReadonlyMap<FieldName, Field> {
  const known = ruleTables.get(operation)
  if (known !== undefined) return known
  const names = [...envelope, ...operation.required, ...operation.optional]
  const rules = new Map(names.map((name): [FieldName, Field] => [name, operation.narrowed?.[name] ?? fields[name]]))
  ruleTables.set(operation, rules)
  return rules
}

const showsNothing = 'must contain a visible character: it contains only white space or invisible characters'
const textsForPeople: ReadonlySet<string> = new Set<FieldName>(['text', 'reason'])

/** What is wrong with one given field; undefined if nothing is. */
export function faultOf(name: string, field: Field, value: unknown): Refusal | undefined {
  if (field.bytesMax !== undefined && typeof value === 'string' && value.length * 3 > field.bytesMax) {
    const sent = Buffer.byteLength(value)
    if (sent > field.bytesMax)
      return refusal('too_large', `${name} has ${sent} bytes, ${field.bytesMax} are allowed`, name)
  }
  const check = checkOf(field)
  if (!check(value)) {
    // In a list, find the offending item.
    const shape = field.schema as Shape
    const items: readonly unknown[] = Array.isArray(value) ? value : []
    const at = items.findIndex((item) => !check([item]))
    const instead =
      at < 0 ? meantBy(shape, value) : `; ${name}[${at}] is not one${meantBy(shape.items ?? {}, items[at])}`
    return refusal('invalid_field', `${name} must be ${field.rule}${instead}`, name)
  }
  if (typeof value === 'string' && value.includes('\0'))
    return refusal('invalid_field', `${name} must not contain a NUL character`, name)
  if (textsForPeople.has(name) && isBlank(String(value)))
    return refusal('invalid_field', `${name} ${showsNothing}`, name)
  return undefined
}

/** The longest list in any command; a longer one is refused without reading further. */
export const listItemsMax = 2 * sizes.members

function hasType(field: Field, value: unknown): boolean {
  if (field.type === 'string') return typeof value === 'string'
  if (field.type === 'integer') return Number.isSafeInteger(value)
  return Array.isArray(value) && value.length <= listItemsMax && value.every((item) => typeof item === 'string')
}

/** Members of the signing envelope, which clients send by mistake. */
const signingWords: ReadonlySet<string> = new Set(['version', 'service', 'command'])

function unknownField(name: string, command: Readonly<Record<string, unknown>>): Refusal {
  const shown = printable(name)
  const operation = typeof command.operation === 'string' ? operationByName.get(command.operation) : undefined
  const place = operation === undefined ? undefined : placeInData(operation, name, command[name])
  if (place !== undefined) return refusal('unknown_field', place, shown)
  const hint = signingWords.has(name)
    ? ': send the command itself, with its signature, not the bytes that were signed'
    : `; ${operation === undefined ? hintOfAll(name) : hintOf(operation, name)}`
  return refusal('unknown_field', `a command has no field "${shown}"${hint}`, shown)
}

function hintOfAll(name: string): string {
  const all = Object.keys(fields)
  const meant = nearest(name, all)
  return meant === undefined ? `the fields are: ${all.join(', ')}` : `did you mean ${meant}?`
}

function hintOf(operation: AnyOperation, name: string): string {
  const [own, common] = [ownFields(operation), [...envelope]]
  const keys = Object.keys(shapeOf(operation.data).properties ?? {})
  const meant = nearest(name, [...own, ...common, ...keys])
  if (meant === undefined)
    return `the fields of ${operation.name} are: ${own.join(', ') || 'none'}; those of every command: ${common.join(', ')}`
  return keys.includes(meant) ? `did you mean "${meant}" inside data?` : `did you mean ${meant}?`
}

function ownFields({ required, optional }: AnyOperation): readonly FieldName[] {
  return [...required, ...optional]
}

/** For a key of `data` that was sent as a field: how to send it; undefined for any other name. */
function placeInData(operation: AnyOperation, name: string, value: unknown): string | undefined {
  const { shape, example } = dataShapeOf(operation)
  if (!Object.hasOwn(shape.properties ?? {}, name)) return undefined
  const text = isShort(value) ? JSON.stringify({ ...constantsOf(shape), [name]: value }) : example
  return `${operation.name} takes "${name}" inside data, which is a string of JSON: ${text}`
}

/** It can be repeated in a sentence. */
function isShort(value: unknown): boolean {
  if (typeof value === 'string') return value.length <= 64 && printable(value) === value
  return typeof value === 'number' || typeof value === 'boolean'
}

function unknownOperation(name: string): Refusal {
  const meant = nearest(name, operationByName.keys())
  const hint = meant === undefined ? '' : `did you mean ${meant}? `
  const message = `there is no operation "${printable(name)}"; ${hint}/capabilities lists all`
  return refusal('unknown_operation', message, 'operation')
}

/** Describes what was sent instead, to end a sentence. */
function sentOf(value: unknown): string {
  const at = Array.isArray(value) ? value.findIndex((item) => typeof item !== 'string') : -1
  return at < 0 ? `${kindOf(value)} was sent` : `item ${at} is ${kindOf((value as readonly unknown[])[at])}`
}

type Read = { readonly ok: true; readonly value: Command } | { readonly ok: false; readonly fault: () => Refusal }

/** A command has a few hundred structural characters at most; a body with more cannot be a command. */
const limits: JsonLimits = { marksMax: 4_096, itemsMax: listItemsMax }

/** Every command passes here, so anything that only a refusal needs is computed only for a refusal. */
export function readCommand(body: Buffer): Read {
  if (body.length > sizes.command_bytes && !carriesFile(body, ['operation'])) return tooLarge(body.length)
  const parsed = parseStrictJson(body, limits)
  if (!parsed.ok) return notStrict(parsed)
  const shaped = checkShape(parsed.value)
  return shaped.ok ? shaped : misshapen(shaped.refusal)
}

/** A command with this operation at this path carries a file, and may be as large as the largest body. */
export function carriesFile(body: Buffer, path: readonly string[]): boolean {
  return operationByName.get(stringAt(body, path) ?? '')?.name === 'blob.put'
}

function tooLarge(bytes: number): Read {
  const message = `a command other than blob.put may have ${sizes.command_bytes} bytes, and this has ${bytes}`
  return { ok: false, fault: () => refusal('too_large', message) }
}

function notStrict(parsed: Extract<StrictJson, { ok: false }>): Read {
  return {
    ok: false,
    fault: () => {
      const field = Object.entries(fields).find(([name]) => name === parsed.member)
      if (field === undefined) return refusal('invalid_json', `the body must be one JSON object: ${parsed.message}`)
      const [name, { rule }] = field
      return refusal('invalid_field', `${name} must be ${rule}; more than ${listItemsMax} items were sent`, name)
    },
  }
}

function misshapen(found: Refusal): Read {
  return { ok: false, fault: () => found }
}
