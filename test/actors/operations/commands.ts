/** Commands of one operation for property tests: mostly valid, and invalid in every way that a client can get them wrong. */
import fc from 'fast-check'
import { envelope, type FieldName, fields } from '../../../actors/kernel/fields.ts'
import { isSigned, type Operation } from '../../../actors/kernel/operation.ts'
import { type Json, plainSchema } from '../../../src/format/plain-schema.ts'

type Shape = {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly pattern?: string
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly items?: Shape
  readonly maxItems?: number
  readonly properties?: Readonly<Record<string, Shape>>
}

const wrong = fc.oneof(
  fc.constantFrom<unknown>(null, true, '', 0, -1, 201, 1.5, 2 ** 60, [], {}, ['x'], 'Wrong Case', 'a\0b', 'ä', '🌍'),
  fc.string({ maxLength: 300, unit: 'binary' }).filter((text) => text.isWellFormed()),
  fc.integer(),
)

/** Values of this shape, including its edge cases. */
function right(shape: Shape): fc.Arbitrary<unknown> {
  if (shape.const !== undefined) return fc.constant(shape.const)
  if (shape.enum !== undefined) return fc.constantFrom(...shape.enum)
  if (shape.pattern !== undefined) return fc.stringMatching(new RegExp(shape.pattern))
  if (shape.type === 'integer') {
    const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER } = shape
    return fc.oneof(
      fc.constantFrom(minimum, maximum),
      fc.integer({ min: minimum, max: Math.min(maximum, 2 ** 31 - 1) }),
    )
  }
  if (shape.type === 'array') {
    const { items = {}, maxItems = 8 } = shape
    return fc.oneof(
      fc.array(right(items), { maxLength: Math.min(maxItems, 3) }),
      right(items).chain((item) => fc.constantFrom(Array(maxItems).fill(item), Array(maxItems + 1).fill(item))),
    )
  }
  const { maxLength = 64 } = shape
  return fc.oneof(
    { arbitrary: fc.string({ minLength: 1, maxLength: 40 }), weight: 4 },
    { arbitrary: fc.constantFrom('x'.repeat(maxLength), 'x'.repeat(maxLength + 1), 'ä'.repeat(maxLength)), weight: 1 },
  )
}

function mostly(shape: Shape): fc.Arbitrary<unknown> {
  return fc.oneof({ arbitrary: right(shape), weight: 12 }, { arbitrary: wrong, weight: 1 })
}

function dataOf(operation: Operation): fc.Arbitrary<unknown> {
  const { properties = {} } = plainSchema(operation.data!) as Shape
  const { schema, ...others } = Object.fromEntries(Object.entries(properties).map(([key, each]) => [key, mostly(each)]))
  const object = fc.record(
    { ...(schema === undefined ? {} : { schema }), ...others, other: fc.constant(1) },
    { requiredKeys: schema === undefined ? [] : ['schema'] },
  )
  const fewer = object.chain((value) => fc.constantFrom(value, value, withoutKey(value, 'other')))
  return fc.oneof(
    { arbitrary: fewer.filter(isStrict).map((value) => JSON.stringify(value)), weight: 8 },
    { arbitrary: fc.constantFrom('', 'text', '[]', '{}', 'null', '{"schema":1}', '{"schema":2}'), weight: 1 },
  )
}

/** What the strict reader refuses before any shape is checked is not tested here. */
function isStrict(value: unknown): boolean {
  return !/[0-9]\.[0-9]|e\+/.test(JSON.stringify(value)) && !JSON.stringify(value).includes('1152921504606847000')
}

function withoutKey(value: Record<string, unknown>, key: string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([each]) => each !== key))
}

/** With all signature fields where a signature is required, though not a valid one; for other reads all or none of them. */
export function anyCommand(operation: Operation): fc.Arbitrary<Json> {
  const { name, aliases = [], required, optional, narrowed } = operation
  const shapeOf = (field: FieldName) => plainSchema((narrowed?.[field] ?? fields[field]).schema) as Shape
  const anyOf = (field: FieldName) =>
    field === 'data' && operation.data !== undefined ? dataOf(operation) : mostly(shapeOf(field))
  const own = fc.record(
    {
      ...Object.fromEntries([...required, ...optional].map((field) => [field, anyOf(field)])),
      request_id: mostly(shapeOf('request_id')),
      proof: mostly(shapeOf('proof')),
    },
    { requiredKeys: [] },
  )
  const whole = fc.record(Object.fromEntries(required.map((field) => [field, right(shapeOf(field))])))
  const outside = (Object.keys(fields) as FieldName[]).filter(
    (field) => !envelope.has(field) && !required.includes(field) && !optional.includes(field),
  )
  const stranger = fc.oneof(
    { arbitrary: fc.constant({}), weight: 10 },
    {
      arbitrary: fc
        .constantFrom(...outside, 'unknown')
        .chain((field) => fc.oneof(fc.constantFrom<unknown>('', 0, []), wrong).map((value) => ({ [field]: value }))),
      weight: 1,
    },
  )
  const signature = fc.record({
    public_key: right(shapeOf('public_key')),
    signature: right(shapeOf('signature')),
    timestamp: right(shapeOf('timestamp')),
    nonce: right(shapeOf('nonce')),
  })
  return fc
    .tuple(
      fc.constantFrom(name, ...aliases),
      fc.oneof(fc.constant({}), whole),
      own,
      stranger,
      isSigned(operation) ? signature : fc.oneof(fc.constant({}), signature),
    )
    .map(([operationName, full, fieldsGiven, other, signing]) => ({
      ...full,
      ...fieldsGiven,
      ...other,
      ...signing,
      operation: operationName,
    }))
}
