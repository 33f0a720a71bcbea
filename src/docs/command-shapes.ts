/**
 * Shapes of commands: a general one, and a narrower one for each operation. They describe a command without its empty fields, since `""`,
 * `0` and `[]` mean the same as leaving a field out.
 */
import { envelope, type FieldName, fields } from '../../actors/kernel/fields.ts'
import { isSigned, type Operation } from '../../actors/kernel/operation.ts'
import { operationByName, operations } from '../../actors/operations.ts'
import { type Json, plainSchema, type Shapes } from '../format/plain-schema.ts'

/** The fields without which no signature can be checked. */
const signatureFields = ['public_key', 'signature', 'timestamp', 'nonce']

/** `room.create` -> `RoomCreate`. */
export function titleOf(name: string): string {
  return name.replace(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** Where the shapes of single commands and their answers are in the description (a JSON pointer, RFC 6901). */
export const ownShapes = '#/x-shapes/'

/** The shape of any command: closed, and only `operation` is required. */
export function anyCommand(shapes: Shapes): Json {
  const names = Object.keys(fields) as FieldName[]
  return shapes.add('Command', {
    type: 'object',
    description:
      'One command. The fields of an operation are in its own shape, such as PostRequest. ' +
      'An empty string, 0 and an empty array mean the same as leaving the field out.',
    additionalProperties: false,
    required: ['operation'],
    properties: {
      ...Object.fromEntries(names.map((name) => [name, widest(name)])),
      operation: { type: 'string', enum: [...operationByName.keys()], description: 'the name of an operation' },
    },
  })
}

/** The schema of a field for any operation: the general one, widened for operations that accept more. */
function widest(name: FieldName): Json {
  const wider = operations.flatMap(({ narrowed }) => {
    const field = narrowed?.[name]
    return field?.widens === true ? [plainSchema(field.schema)] : []
  })
  return wider.reduce(either, plainSchema(fields[name].schema))
}

/** A string that matches either shape: constraints of only one of them are dropped. */
function either(one: Json, other: Json): Json {
  const { pattern, ...rest } = one as StringShape
  const { minLength = 0, maxLength = 0, enum: choices } = other as StringShape
  if (rest.enum !== undefined) return { ...rest, enum: [...new Set([...rest.enum, ...(choices ?? [])])] }
  return {
    ...rest,
    minLength: Math.min(rest.minLength ?? 0, minLength),
    maxLength: Math.max(rest.maxLength ?? 0, maxLength),
  }
}

type StringShape = {
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly enum?: readonly string[]
}

/** The shape of the commands of one operation. */
export function commandOf(operation: Operation, shapes: Shapes): Json {
  const { name, aliases = [], required, optional, summary } = operation
  const needsSignature = isSigned(operation)
  const own = [...required, ...optional]
  const rest = [...envelope].filter((each) => each !== 'operation' && !own.includes(each))
  const properties = Object.fromEntries(own.map((each) => [each, fieldOf(operation, each, shapes)]))
  return shapes.add(`${titleOf(name)}Request`, {
    type: 'object',
    description: summary,
    additionalProperties: false,
    required: ['operation', ...required, ...(needsSignature ? signatureFields : [])],
    // A read may be unsigned; half a signature is refused.
    ...(needsSignature ? {} : { dependentRequired: { public_key: signatureFields, signature: signatureFields } }),
    properties: {
      operation: { type: 'string', enum: [name, ...aliases] },
      ...properties,
      ...Object.fromEntries(rest.map((each) => [each, plainSchema(fields[each].schema)])),
    },
  })
}

/** The shape of the operation's answer, `data`. */
export function resultOf(operation: Operation, shapes: Shapes): Json {
  return shapes.add(`${titleOf(operation.name)}Result`, plainSchema(operation.result, shapes))
}

function fieldOf(operation: Operation, name: FieldName, shapes: Shapes): Json {
  const schema = plainSchema((operation.narrowed?.[name] ?? fields[name]).schema)
  if (name !== 'data' || operation.data === undefined) return schema
  const inside = shapes.add(`${titleOf(operation.name)}Data`, plainSchema(operation.data))
  return { ...schema, contentMediaType: 'application/json', contentSchema: inside }
}
