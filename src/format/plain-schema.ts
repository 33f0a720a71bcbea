/**
 * Converts the declared schemas to plain JSON Schema (2020-12), for documents that people and programs read: choices become `enum`, titled
 * shapes are written once and referenced, and patterns are written so that RE2 (Go, Rust and others) also compiles them.
 */
import type { Schema } from '../../actors/kernel/schema.ts'

export type Json = { readonly [key: string]: unknown }

/** Shapes by name, filled by `plainSchema`. Each is at `prefix` + name, unless `outer` already has it. */
export class Shapes {
  readonly prefix: string
  readonly #outer: Shapes | undefined
  readonly #found = new Map<string, Json>()
  /** Cached results for declarations seen before: most shapes occur in many answers. */
  readonly #known = new Map<unknown, Json>()

  constructor(prefix: string, outer?: Shapes) {
    this.prefix = prefix
    this.#outer = outer
  }

  /** Adds a shape under its name and returns a reference to it. The same name must always mean the same shape. */
  add(name: string, shape: Json): Json {
    if (this.#outer?.has(name)) return this.#outer.add(name, shape)
    const before = this.#found.get(name)
    if (before !== undefined && JSON.stringify(before) !== JSON.stringify(shape)) {
      throw new Error(`two shapes are called ${name}`)
    }
    this.#found.set(name, shape)
    return { $ref: this.prefix + name }
  }

  has(name: string): boolean {
    return this.#found.has(name) || this.#outer?.has(name) === true
  }

  /** Runs `make` once per declaration. */
  once(declaration: unknown, make: () => Json): Json {
    const known = this.#known.get(declaration) ?? make()
    this.#known.set(declaration, known)
    return known
  }

  get all(): Json {
    return Object.fromEntries(this.#found)
  }
}

/** `shapes`: where titled shapes go; if omitted, they are written in place. */
export function plainSchema(schema: Schema, shapes?: Shapes): Json {
  return plain(schema as unknown as Json, shapes) as Json
}

function plain(value: unknown, shapes: Shapes | undefined): unknown {
  if (Array.isArray(value)) return value.map((each) => plain(each, shapes))
  if (typeof value !== 'object' || value === null) return value
  const { title, ...untitled } = value as Json
  // Among the properties of a shape, `title` is an ordinary name.
  if (typeof title !== 'string') return plainKeys(value as Json, shapes)
  if (shapes === undefined) return { title, ...plainKeys(untitled, shapes) }
  return shapes.once(value, () => shapes.add(title, plainKeys(untitled, shapes)))
}

function plainKeys(schema: Json, shapes: Shapes | undefined): Json {
  const simple = portable(choices(schema) ?? wholeNumber(schema))
  return Object.fromEntries(Object.entries(simple).map(([key, each]) => [key, plain(each, shapes)]))
}

function portable(schema: Json): Json {
  const { pattern, patternProperties } = schema
  return {
    ...schema,
    ...(typeof pattern === 'string' ? { pattern: inRe2(pattern) } : {}),
    ...(typeof patternProperties === 'object' && patternProperties !== null
      ? {
          patternProperties: Object.fromEntries(
            Object.entries(patternProperties).map(([key, each]) => [inRe2(key), each]),
          ),
        }
      : {}),
  }
}

/** RE2 does not support `\uXXXX`: ASCII is written as `\xXX`, which both support, and anything else as the character itself. */
function inRe2(pattern: string): string {
  return pattern.replace(/\\u([0-9a-f]{4})/g, (_, hex: string) =>
    hex < '0080' ? `\\x${hex.slice(2)}` : String.fromCharCode(Number.parseInt(hex, 16)),
  )
}

/** `anyOf` with only constants is `enum` in JSON Schema. */
function choices(schema: Json): Json | undefined {
  const { anyOf, ...rest } = schema
  if (!Array.isArray(anyOf)) return undefined
  const constants = (anyOf as readonly Json[]).map((each) => each.const)
  if (constants.some((each) => each === undefined)) return undefined
  return { type: typeof constants[0], enum: constants, ...rest }
}

/** A constant that is a whole number has type integer. */
function wholeNumber(schema: Json): Json {
  return schema.type === 'number' && Number.isInteger(schema.const) ? { ...schema, type: 'integer' } : schema
}
