/** What holds for every declaration of an operation. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Command, type FieldName, fields } from '../../../actors/kernel/fields.ts'
import { namesOf, type Operation, pathField } from '../../../actors/kernel/operation.ts'
import { type RefusalCode, statusOf } from '../../../actors/kernel/refusals.ts'
import { operationByName, operations } from '../../../actors/operations.ts'
import { checkOperation, checkShape } from '../../../src/command/check.ts'
import { refusalsOf } from '../../../src/docs/capabilities.ts'
import { titleOf } from '../../../src/docs/command-shapes.ts'
import { tags } from '../../../src/docs/tags.ts'
import { type Json, plainSchema } from '../../../src/format/plain-schema.ts'
import { FIELD_ORDER } from '../../../src/format/signing.ts'
import { ownTools } from '../../../src/own-tools/descriptors.ts'
import { hasShape } from '../../support/json-schema.ts'
import { anyCommand } from './commands.ts'

type Found = { readonly path: string; readonly schema: Json }

/** Every schema inside a schema, with its path. */
function schemasIn(schema: Json, path: string): Found[] {
  const {
    properties = {},
    items,
    anyOf = [],
  } = schema as {
    properties?: Record<string, Json>
    items?: Json
    anyOf?: Json[]
  }
  return [
    { path, schema },
    ...Object.entries(properties).flatMap(([key, each]) => schemasIn(each, `${path}.${key}`)),
    ...(items === undefined ? [] : schemasIn(items, `${path}[]`)),
    ...anyOf.flatMap((each) => schemasIn(each, path)),
  ]
}

/** Anchored, and without an unbounded quantifier. */
function isBoundedPattern(pattern: unknown): boolean {
  return (
    typeof pattern === 'string' && /^\^.*\$$/.test(pattern) && !/[*+]|\{\d+,\}/.test(pattern.replace(/\[[^\]]*\]/g, ''))
  )
}

function unbounded(found: readonly Found[]): string[] {
  return found
    .filter(({ schema }) => {
      if (schema.enum !== undefined || schema.const !== undefined) return false
      if (schema.type === 'string') return schema.maxLength === undefined && !isBoundedPattern(schema.pattern)
      return schema.type === 'array' && schema.maxItems === undefined
    })
    .map(({ path }) => path)
}

test('every shape is a schema that the metaschema accepts', () => {
  const ajv = new Ajv2020()
  const shapes = [
    ...Object.entries(fields).map(([name, { schema }]) => [name, schema] as const),
    ...operations.flatMap(({ name, data, result }) => [
      [`data of ${name}`, data ?? {}] as const,
      [`result of ${name}`, result] as const,
    ]),
    ...ownTools.flatMap(({ id, input, output }) => [[id, input] as const, [`output of ${id}`, output] as const]),
  ]
  expect(shapes.filter(([, schema]) => ajv.validateSchema(schema) !== true).map(([name]) => name)).toEqual([])
})

test('names are noun.verb except three well-known ones, and no two operations or aliases share one', () => {
  const names = operations.flatMap(({ name, aliases = [] }) => [name, ...aliases])
  expect(new Set(names).size).toBe(names.length)
  expect(
    names.filter((name) => !['post', 'vote', 'report'].includes(name) && !/^[a-z]+(\.[a-z]+)?\.[a-z_]+$/.test(name)),
  ).toEqual([])
  expect([...operationByName.keys()].sort()).toEqual([...names].sort())
  expect(new Set(operations.map(({ name }) => titleOf(name))).size).toBe(operations.length)
})

test('the fields of a command are the signed ones, the signature and the proof', () => {
  expect(Object.keys(fields).sort()).toEqual([...FIELD_ORDER, 'signature', 'proof'].sort())
})

test('every string and list in a request has a bound', () => {
  const inputs = Object.entries(fields).flatMap(([name, { schema }]) => schemasIn(plainSchema(schema), name))
  const narrowed = operations.flatMap((each) =>
    Object.entries(each.narrowed ?? {}).flatMap(([name, field]) =>
      schemasIn(plainSchema(field.schema), `${each.name} ${name}`),
    ),
  )
  const data = operations.flatMap((each) => (each.data ? schemasIn(plainSchema(each.data), `${each.name} data`) : []))
  expect(unbounded([...inputs, ...narrowed, ...data])).toEqual([])
  for (const { path, schema } of data.filter(({ schema: { type } }) => type === 'object')) {
    expect({ path, closed: schema.additionalProperties }).toEqual({ path, closed: false })
  }
})

describe.each(operations.map((operation) => [operation.name, operation] as const))('%s', (_name, operation) => {
  test('belongs to a group that is described, and has a description', () => {
    expect(Object.keys(tags)).toContain(operation.group)
    expect(operation.summary).toMatch(/^[A-Z].{10,200}\.$/)
  })

  test('lists only refusals that exist, at a documented status', () => {
    const codes = refusalsOf(operation) as RefusalCode[]
    expect(codes.filter((code) => ![400, 403, 429].includes(statusOf[code]))).toEqual([])
  })

  test('lists each field once', () => {
    const taken = [...operation.required, ...operation.optional]
    expect(new Set(taken).size).toBe(taken.length)
    // The data of most operations is JSON; that of the others has its own rule.
    expect(taken.includes('data')).toBe(operation.data !== undefined || operation.narrowed?.data !== undefined)
    expect(Object.keys(operation.narrowed ?? {}).filter((name) => !taken.includes(name as FieldName))).toEqual([])
  })

  test('has an example that it accepts', () => {
    const shaped = checkShape(operation.example)
    expect(shaped.ok).toBe(true)
    expect(checkOperation(operation.example as Command)).toMatchObject({ ok: true })
  })

  test('answers with bounded strings and lists', () => {
    expect(unbounded(schemasIn(plainSchema(operation.result), operation.name))).toEqual([])
  })

  test('has a GET whose parameters stand for its own fields, and cover what it requires', () => {
    if (operation.get === undefined) return
    expect(operation.kind).toBe('read')
    const { query } = operation.get
    const inPath = pathField(operation)
    const data = operation.data === undefined ? {} : (plainSchema(operation.data).properties as Json)
    const known = [...operation.required, ...operation.optional, ...Object.keys(data).map((key) => `data.${key}`)]
    expect(query.filter(({ field }) => !known.includes(field))).toEqual([])
    const names = query.flatMap(namesOf)
    expect(new Set(names).size).toBe(names.length)
    // Whoever knows the operation can write the GET.
    const strange = query.filter((each) => !namesOf(each).includes(each.field.replace('data.', '')))
    expect(strange).toEqual([])
    const covered: string[] = [...query.map(({ field }) => field), ...(inPath === undefined ? [] : [inPath.name])]
    const inData = ((operation.data === undefined ? {} : plainSchema(operation.data)).required ?? []) as string[]
    const needed = [
      ...operation.required.filter((name) => name !== 'data'),
      ...inData.filter((key) => key !== 'schema').map((key) => `data.${key}`),
    ]
    expect(needed.filter((name) => !covered.includes(name))).toEqual([])
  })

  test('accepts exactly the commands that match its described shape', () => {
    fc.assert(
      fc.property(anyCommand(operation), (command) => {
        const refusal = refusalOf(command)
        const described = isDescribed(operation, command)
        if (refusal === undefined) {
          expect(described).toBe(true)
          expect(hasShape('Command', withoutEmpty(command))).toBe(true)
        }
        // JSON Schema counts characters, not bytes, and cannot express NUL or a text that shows nothing.
        else if (described) expect(refusal).toMatch(/^too_large|NUL|must contain a visible character/)
      }),
      { numRuns: 400 },
    )
  })
})

/** Code and message of the refusal, or undefined. */
function refusalOf(command: Json): string | undefined {
  const shaped = checkShape(command)
  const checked = shaped.ok ? checkOperation(shaped.value) : shaped
  return checked.ok ? undefined : `${checked.refusal.code} ${checked.refusal.message}`
}

function isDescribed(operation: Operation, command: Json): boolean {
  const given = withoutEmpty(command)
  if (!hasShape(`${titleOf(operation.name)}Request`, given)) return false
  if (given.data === undefined || operation.data === undefined) return true
  try {
    return hasShape(`${titleOf(operation.name)}Data`, JSON.parse(given.data as string))
  } catch {
    return false
  }
}

/** A command as the description has it: `""`, `0` and `[]` of a field's own type mean that it is left out. */
function withoutEmpty(command: Json): Json {
  const empty = { string: '""', integer: '0', array: '[]' }
  const isEmpty = (name: string, value: unknown) =>
    Object.hasOwn(fields, name) && JSON.stringify(value) === empty[fields[name as FieldName].type]
  return Object.fromEntries(Object.entries(command).filter(([name, value]) => !isEmpty(name, value)))
}
