/** JSON Schema 2020-12 in tests, with a validator that the product does not use. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { openapi } from '../../src/board/openapi.ts'
import type { Json } from '../../src/format/plain-schema.ts'

export const serviceId = 'bs-0123456789abcdef'
export const document = openapi({ address: 'https://board.example.org', serviceId })

const components = document.components as { readonly schemas: Readonly<Record<string, Json>> }
/** Shapes by name: the components, and those of single commands and their answers. */
export const shapes: Readonly<Record<string, Json>> = {
  ...components.schemas,
  ...(document['x-shapes'] as Readonly<Record<string, Json>>),
}

const ajv = new Ajv2020({ strict: true, allErrors: true })
ajv.addSchema({ $id: 'board', $defs: referringTo('board#/$defs/', shapes) })

/** The shapes of the description, with references that this validator resolves. */
function referringTo(prefix: string, value: unknown): unknown {
  const places = /"#\/(?:components\/schemas|x-shapes)\//g
  return JSON.parse(JSON.stringify(value).replaceAll(places, `"${prefix}`))
}

/** Every object closed: for answers of a real board, so that anything not described is found. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, each]) => [key, closed(each)])
  const copy = Object.fromEntries(entries) as Record<string, unknown>
  return copy.type === 'object' && copy.properties !== undefined && copy.additionalProperties === undefined
    ? { ...copy, additionalProperties: false }
    : copy
}

ajv.addSchema({ $id: 'closed', $defs: closed(referringTo('closed#/$defs/', shapes)) })

const compiled = new Map<string, ValidateFunction>()

function validatorOf(schema: string, name: string): ValidateFunction {
  const reference = `${schema}#/$defs/${name}`
  const made = compiled.get(reference) ?? ajv.compile({ $ref: reference })
  compiled.set(reference, made)
  return made
}

/** Whether a value has the shape that the description calls `name`. */
export function hasShape(name: string, value: unknown): boolean {
  return validatorOf('board', name)(value) as boolean
}

type Delivery = {
  readonly post: { readonly requestBody: { readonly content: { readonly [type: string]: { schema: Json } } } }
}

/** What keeps the body of a request to a webhook from being what the description says; [] = nothing. Undescribed keys count. */
export function deliveryErrors(name: string, body: unknown): string[] {
  const { post } = (document.webhooks as Readonly<Record<string, Delivery>>)[name]!
  const validate = ajv.compile(closed(post.requestBody.content['application/json']!.schema) as Json)
  if (validate(body)) return []
  return (validate.errors ?? []).map(({ instancePath, message }) => `${name}${instancePath} ${message}`)
}

/** What keeps a value from having exactly this shape, as readable lines; [] = nothing. Undescribed keys count. */
export function schemaErrors(name: string, value: unknown): string[] {
  const validate = validatorOf('closed', name)
  if (validate(value)) return []
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${name}${instancePath} ${message} ${JSON.stringify(params)}`,
  )
}
