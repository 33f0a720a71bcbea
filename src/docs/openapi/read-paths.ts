/** The GET paths that are operations too: each parameter has the schema of the field that it sets. */

import { type FieldName, fields } from '../../../actors/kernel/fields.ts'
import { sizes } from '../../../actors/kernel/limits.ts'
import { type Operation, pathField, type QueryName } from '../../../actors/kernel/operation.ts'
import { operations } from '../../../actors/operations.ts'
import { type Json, plainSchema, type Shapes } from '../../format/plain-schema.ts'
import { titleOf } from '../command-shapes.ts'
import { refused, success } from './responses.ts'

export function readPaths(shapes: Shapes): Json {
  const read = operations.filter(({ get }) => get !== undefined)
  return Object.fromEntries(read.map((operation) => [operation.get!.path, { get: readOf(operation, shapes) }]))
}

function readOf(operation: Operation, shapes: Shapes): Json {
  const { name, group, summary } = operation
  const { query } = operation.get!
  const found = pathField(operation)
  const inPath = found === undefined ? [] : [pathParameter(found.name, found.rule.schema)]
  return {
    operationId: titleOf(name).replace(/^./, (first) => first.toLowerCase()),
    tags: [group],
    summary,
    description: `Public data only. The same as the operation \`${name}\`, which also reads private rooms when signed.`,
    parameters: [...inPath, ...query.flatMap((each) => queryParameters(operation, each))],
    responses: { '200': success('The result.', plainSchema(operation.result, shapes)), ...refused },
  }
}

export function pathParameter(name: string, schema: Parameters<typeof plainSchema>[0]): Json {
  const { description, ...rest } = plainSchema(schema)
  return { name, in: 'path', required: true, description, schema: rest }
}

/** A parameter by its name, and by its other name if it has one. A required one may then be given by either. */
function queryParameters(operation: Operation, { name, also, field }: QueryName): Json[] {
  const own = queryParameter(operation, { name, field })
  if (also === undefined) return [own]
  const { required, ...either } = own
  const words = String(own.description)
  return [
    { ...either, description: required === true ? `${words}. Required, by this name or as ${also}` : words },
    { ...either, name: also, description: `another name of ${name}: give only one of them` },
  ]
}

function queryParameter(operation: Operation, { name, field }: QueryName): Json {
  const { description, ...schema } = schemaOf(operation, field)
  const inData = operation.data === undefined ? [] : ((plainSchema(operation.data).required ?? []) as readonly string[])
  const isRequired =
    operation.required.some((each) => each === field) ||
    inData.some((key) => key !== 'schema' && `data.${key}` === field)
  return {
    name,
    in: 'query',
    ...(isRequired ? { required: true } : {}),
    description: description ?? `${field} of the operation`,
    // A list is one parameter, with its items separated by commas.
    ...(schema.type === 'array' ? { style: 'form', explode: false } : {}),
    schema: name === 'limit' ? { ...schema, default: sizes.page_default } : schema,
  }
}

function schemaOf(operation: Operation, field: QueryName['field']): Json {
  if (!field.startsWith('data.')) {
    const name = field as FieldName
    return plainSchema((operation.narrowed?.[name] ?? fields[name]).schema)
  }
  const { properties } = plainSchema(operation.data!) as { readonly properties: Readonly<Record<string, Json>> }
  return properties[field.slice('data.'.length)]!
}
