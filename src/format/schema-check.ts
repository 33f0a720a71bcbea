/**
 * Checks of shapes: JSON Schema (2020-12), compiled by ajv when first needed. A builder library with a compiler of its own
 * stood here before: it loaded 683 modules and 26 MB in 275 ms of processor time at every start; ajv loads 74 and 11 MB in 45 ms, and only
 * in a thread that checks a shape.
 */
import { createRequire } from 'node:module'
import type { Ajv2020 } from 'ajv/dist/2020.js'
import type { Field } from '../../actors/kernel/fields.ts'
import type { Schema } from '../../actors/kernel/schema.ts'

let ajv: Ajv2020 | undefined

/** Shapes are held against the schema of schemas by a test, not here: compiling that one held the first asker for 100 ms. */
function begin(): Ajv2020 {
  const library: typeof import('ajv/dist/2020.js') = createRequire(import.meta.url)('ajv/dist/2020.js')
  return new library.Ajv2020({
    strict: true,
    strictTypes: false,
    validateFormats: false,
    validateSchema: false,
    meta: false,
  })
}

export type Check = {
  (value: unknown): boolean
  /** Of the last value refused: where it was wrong, as JSON pointers, first things first. */
  readonly errors?:
    | readonly {
        readonly instancePath: string
        readonly message?: string | undefined
        readonly params?: { readonly additionalProperty?: string; readonly missingProperty?: string }
      }[]
    | null
    | undefined
}

/** The check of a shape. It changes no value. */
export function compile(schema: Schema): Check {
  ajv ??= begin()
  return ajv.compile(schema)
}

type FieldCheck = (value: unknown) => boolean
const compiled = new Map<Field, FieldCheck>()

/**
 * Bytes are never fewer than characters: where bytes are counted, the greatest length is settled by them, and only the least length
 * is counted here. To count the characters of a file of 1 MiB would be 2,800,000 steps.
 */
function compileField({ bytesMax = Number.POSITIVE_INFINITY, schema }: Field): FieldCheck {
  const { minLength = 0, maxLength = 0, ...rest } = schema as { minLength?: number; maxLength?: number }
  if (bytesMax > maxLength) return compile(schema)
  const check = compile(rest)
  return (value) => check(value) && hasCharacters(value as string, minLength)
}

/** Code points, as JSON Schema counts them; no more of them than `least` are looked at. */
function hasCharacters(text: string, least: number): boolean {
  let counted = 0
  for (const _ of text) if (++counted >= least) return true
  return counted >= least
}

/** The check of one field, compiled on first use and kept. */
export function checkOf(field: Field): FieldCheck {
  const known = compiled.get(field)
  if (known !== undefined) return known
  const made = compileField(field)
  compiled.set(field, made)
  return made
}
