/**
 * Validates values against shapes: JSON Schema (2020-12), compiled by ajv on first use. A builder library with its own compiler was
 * rejected: it loads 683 modules and 26 MB in 275 ms of processor time at every start. ajv loads 74 modules and 11 MB in 45 ms, and only in
 * a thread that validates.
 */
import { createRequire } from 'node:module'
import type { Ajv2020 } from 'ajv/dist/2020.js'
import type { Field } from '../../actors/kernel/fields.ts'
import type { Schema } from '../../actors/kernel/schema.ts'

let ajv: Ajv2020 | undefined

/** A test validates the shapes against the meta-schema. Compiling that here would block the first caller for 100 ms. */
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
  /** For the last value refused: where it was wrong, as JSON pointers, in order. */
  readonly errors?:
    | readonly {
        readonly instancePath: string
        readonly message?: string | undefined
        readonly params?: { readonly additionalProperty?: string; readonly missingProperty?: string }
      }[]
    | null
    | undefined
}

/** The check for a shape. It modifies no value. */
export function compile(schema: Schema): Check {
  ajv ??= begin()
  return ajv.compile(schema)
}

type FieldCheck = (value: unknown) => boolean
const compiled = new Map<Field, FieldCheck>()

/**
 * A text never has fewer bytes than characters. So if bytes are limited, that limit covers the maximum length, and only the minimum length
 * is counted here. Counting the characters of a 1 MiB file would take 2,800,000 steps.
 */
function compileField({ bytesMax = Number.POSITIVE_INFINITY, schema }: Field): FieldCheck {
  const { minLength = 0, maxLength = 0, ...rest } = schema as { minLength?: number; maxLength?: number }
  if (bytesMax > maxLength) return compile(schema)
  const check = compile(rest)
  return (value) => check(value) && hasCharacters(value as string, minLength)
}

/** Counts code points, as JSON Schema does, and stops at `least`. */
function hasCharacters(text: string, least: number): boolean {
  let counted = 0
  for (const _ of text) if (++counted >= least) return true
  return counted >= least
}

/** The check for one field, compiled on first use and cached. */
export function checkOf(field: Field): FieldCheck {
  const known = compiled.get(field)
  if (known !== undefined) return known
  const made = compileField(field)
  compiled.set(field, made)
  return made
}
