/**
 * JSON Schema (2020-12) for the declarations, with the TypeScript type that each schema describes.
 *
 * Schemas are plain objects and are published unchanged. Their types are at the keys `~value` and `~optional`, which
 * exist only for the compiler: no schema has such a property at run time. A builder library with its own compiler
 * loaded 683 modules, 26 MB and 275 ms of processor time at every start. src/format/schema-check.ts turns a schema into
 * a check.
 */

type Keywords = { readonly [keyword: string]: unknown }

/** A schema, and the type of the values that it allows. */
export type Schema<Value = unknown> = { readonly [keyword: string]: unknown; readonly '~value'?: Value }

/** The values that a schema allows. */
export type Infer<Given extends Schema> = Given extends { readonly '~value'?: infer Value }
  ? Exclude<Value, undefined>
  : never

/** Marks a property as optional. A symbol, so that no document contains it. */
const mayBeAbsent = Symbol('may be absent')
/** A pattern's rule in words for people, because a schema can express it only as a pattern. */
const inWords = Symbol('in words')
/** The words that a text may consist of: one, or several separated by commas. */
const listedWords = Symbol('words')
/** Marks a text that must contain more than white space. */
const visible = Symbol('visible')

type Optional<Value = unknown> = Schema<Value> & { readonly '~optional': true }
type Properties = Readonly<Record<string, Schema>>
type OptionalNames<Given extends Properties> = {
  [Name in keyof Given]: Given[Name] extends { readonly '~optional': true } ? Name : never
}[keyof Given]
/** The object type that properties describe; optional ones may be absent. */
type Shaped<Given extends Properties> = {
  readonly [Name in Exclude<keyof Given, OptionalNames<Given>>]: Infer<Given[Name]>
} & { readonly [Name in OptionalNames<Given>]?: Infer<Given[Name]> }
type Flat<Value> = { readonly [Name in keyof Value]: Value[Name] }

/** A schema whose properties can be reused in others. */
type ObjectSchema<Given extends Properties = Properties> = Schema<Flat<Shaped<Given>>> & {
  readonly properties: Given
}

function object<const Given extends Properties>(properties: Given, options: Keywords = {}): ObjectSchema<Given> {
  const required = Object.keys(properties).filter((name) => !(mayBeAbsent in properties[name]!))
  return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...options }
}

function optional<Value>(schema: Schema<Value>): Optional<Value> {
  return { ...schema, [mayBeAbsent]: true } as unknown as Optional<Value>
}

type AllOptional<Given extends Properties> = { readonly [Name in keyof Given]: Optional<Infer<Given[Name]>> }

function partial<const Given extends Properties>(
  properties: Given,
  options: Keywords = {},
): ObjectSchema<AllOptional<Given>> {
  const all = Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, optional(schema)]))
  return object(all as AllOptional<Given>, options)
}

/** For a text that names an identity: whether a handle is allowed, or only its id. */
const naming = Symbol('naming')
type Naming = 'handle' | 'id'

/** A text that matches this pattern; `rule` states the pattern in words, to follow "must be". */
function patterned(pattern: string, rule: string, options: Keywords = {}): Schema<string> {
  return { type: 'string', pattern, ...options, [inWords]: rule } as Schema<string>
}

/** One of these words, or up to eight separated by commas, so that one URL parameter can give several. */
function words(choices: readonly string[], options: Keywords = {}): Schema<string> {
  const one = `(${choices.join('|')})`
  const rule = `one of ${choices.join(', ')}, or several separated by commas`
  return { ...patterned(`^${one}(,${one}){0,7}$`, rule, options), [listedWords]: choices } as Schema<string>
}

/** The words that a text may consist of; empty if any text is allowed. */
export function wordsOf(schema: Schema): readonly string[] {
  return (schema as { readonly [listedWords]?: readonly string[] })[listedWords] ?? []
}

/** The rule in words that a pattern was declared with. */
export function ruleOf(schema: Schema): string | undefined {
  return (schema as { readonly [inWords]?: string })[inWords]
}

/** How this text names an identity; undefined if it does not. */
export function namingOf(schema: Schema): Naming | undefined {
  return (schema as { readonly [naming]?: Naming })[naming]
}

/** Names of the properties of this shape that must contain more than white space. */
export function visibleTexts({ properties = {} }: Schema): readonly string[] {
  return Object.entries(properties as Properties).flatMap(([name, schema]) => (visible in schema ? [name] : []))
}

export const Type = {
  String: (options: Keywords = {}): Schema<string> => ({ type: 'string', ...options }),
  Patterned: patterned,
  Words: words,
  Naming: <Value>(kind: Naming, schema: Schema<Value>): Schema<Value> =>
    ({ ...schema, [naming]: kind }) as Schema<Value>,
  Visible: <Value>(schema: Schema<Value>): Schema<Value> => ({ ...schema, [visible]: true }) as Schema<Value>,
  Integer: (options: Keywords = {}): Schema<number> => ({ type: 'integer', ...options }),
  Number: (options: Keywords = {}): Schema<number> => ({ type: 'number', ...options }),
  Boolean: (options: Keywords = {}): Schema<boolean> => ({ type: 'boolean', ...options }),
  /** Any JSON value. */
  Unknown: (options: Keywords = {}): Schema<unknown> => ({ ...options }),
  Literal: <const Value extends string | number | boolean>(value: Value, options: Keywords = {}): Schema<Value> => ({
    type: typeof value,
    const: value,
    ...options,
  }),
  Array: <Item>(items: Schema<Item>, options: Keywords = {}): Schema<readonly Item[]> => ({
    type: 'array',
    items,
    ...options,
  }),
  Union: <const Given extends readonly Schema[]>(
    anyOf: Given,
    options: Keywords = {},
  ): Schema<Infer<Given[number]>> => ({
    anyOf,
    ...options,
  }),
  /** Keys that match this pattern, values of this shape. */
  Record: <Value>(
    key: Schema<string>,
    value: Schema<Value>,
    options: Keywords = {},
  ): Schema<Readonly<Record<string, Value>>> => ({
    type: 'object',
    patternProperties: { [typeof key.pattern === 'string' ? key.pattern : '']: value },
    ...options,
  }),
  Object: object,
  Optional: optional,
  /** An object whose properties are all optional. */
  Partial: partial,
} as const
