/** A JSON Schema of the declarations as a table for people: each key, its type, its meaning; nested shapes expand in place. */

import type { Json } from '../../format/plain-schema.ts'
import { spellUnseen } from '../../format/printable.ts'
import { type Html, html } from './html.ts'
import { table } from './table.ts'
import { withCode } from './text.ts'

type Shape = {
  readonly type?: string
  readonly title?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, Shape>>
  readonly required?: readonly string[]
  readonly items?: Shape
  readonly enum?: readonly (string | number)[]
  readonly const?: string | number | boolean
  readonly anyOf?: readonly Shape[]
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly maxItems?: number
}

/** Nested shapes are expanded to this depth; deeper ones are only named. */
const depthMax = 3

export function schemaTable(schema: Json, caption: string, depth = 0): Html {
  const { properties = {}, required = [] } = schema as Shape
  const rows = Object.entries(properties).map(([name, shape]) => {
    const inner = innerOf(shape)
    const more =
      inner?.properties !== undefined &&
      depth < depthMax &&
      html`<details><summary>${inner.title ?? 'its keys'}</summary>${schemaTable(inner as Json, `keys of ${name}, ${caption.replace(/^keys of /, 'of ')}`, depth + 1)}</details>`
    const named = html`<code>${name}</code>${!required.includes(name) && html`<br><small>optional</small>`}`
    return [named, typeOf(shape), html`${withCode(shape.description ?? inner?.description ?? '')}${more}`]
  })
  if (rows.length === 0) return html`<p class="quiet">No keys.</p>`
  return table(caption, [{ name: 'key' }, { name: 'is' }, { name: 'means' }], rows)
}

function innerOf(shape: Shape): Shape | undefined {
  return shape.type === 'array' ? shape.items : shape
}

/** `string, 1 to 64 characters`, `integer from 0`, `one of a, b`, `list of Event`. */
function typeOf(shape: Shape): Html {
  const {
    type,
    enum: choices,
    const: only,
    anyOf,
    items,
    title,
    pattern,
    minimum,
    maximum,
    minLength,
    maxLength,
    maxItems,
  } = shape
  if (choices !== undefined)
    return html`${choices.map((each, n) => html`${n > 0 && ' | '}<code>${String(each)}</code>`)}`
  if (only !== undefined) return html`<code>${String(only)}</code>`
  if (anyOf !== undefined) return html`${anyOf.map((each, n) => html`${n > 0 && ' or '}${typeOf(each)}`)}`
  if (type === 'array')
    return html`list of ${items === undefined ? 'values' : typeOf(items)}${maxItems !== undefined && html`, at most ${maxItems}`}`
  if (type === 'object') return html`${title ?? 'object'}`
  const bounds = [
    minimum !== undefined && maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER
      ? `${minimum} to ${maximum}`
      : undefined,
    minimum !== undefined && (maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER) && minimum > 0
      ? `at least ${minimum}`
      : undefined,
    maxLength !== undefined
      ? `${minLength === undefined ? 'at most' : `${minLength} to`} ${maxLength} characters`
      : undefined,
  ].filter((each) => each !== undefined)
  return html`${type ?? 'any value'}${bounds.length > 0 && `, ${bounds.join(', ')}`}${pattern !== undefined && html`<br><code>${spellUnseen(pattern)}</code>`}`
}
