/**
 * JSON Schema (2020-12) as the declarations write it: plain objects that can be shown as they are. `src/format/schema-check.ts`
 * turns one into a check when it is first needed.
 */
export type Schema = { readonly [keyword: string]: unknown }

/** Marks a property that may be absent. A symbol, so that it stands in no document. */
const mayBeAbsent = Symbol('may be absent')
/** What a text must be, in words for people, where a schema can only say it as a pattern. */
const inWords = Symbol('in words')
/** Words of which a text is one, or several with commas between them. */
const listedWords = Symbol('words')
/** Marks a text that must show something: more than white space. */
const visible = Symbol('visible')

type Properties = Readonly<Record<string, Schema>>

/** A shape whose properties may be used again in others. */
export type ObjectSchema<Names extends string = string> = Schema & {
  readonly properties: Readonly<Record<Names, Schema>>
}

function object<const Given extends Properties>(
  properties: Given,
  options: Schema = {},
): ObjectSchema<keyof Given & string> {
  const required = Object.keys(properties).filter((name) => !(mayBeAbsent in properties[name]!))
  return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...options }
}

function optional(schema: Schema): Schema {
  return { ...schema, [mayBeAbsent]: true }
}

/** Says of a text that names an identity whether a handle does, or its id alone. */
const naming = Symbol('naming')
type Naming = 'handle' | 'id'

/** A text of this pattern; `rule` says in words what the pattern asks for, to follow "must be". */
function patterned(pattern: string, rule: string, options: Schema = {}): Schema {
  return { type: 'string', pattern, ...options, [inWords]: rule }
}

/** One of these words, or up to eight with commas between them, as a parameter of a URL can give several. */
function words(choices: readonly string[], options: Schema = {}): Schema {
  const one = `(${choices.join('|')})`
  const rule = `one of ${choices.join(', ')}, or several with commas between them`
  return { ...patterned(`^${one}(,${one}){0,7}$`, rule, options), [listedWords]: choices }
}

/** The words that a text is made of; none: any text. */
export function wordsOf(schema: Schema): readonly string[] {
  return (schema as { readonly [listedWords]?: readonly string[] })[listedWords] ?? []
}

/** The words that a pattern was declared with. */
export function ruleOf(schema: Schema): string | undefined {
  return (schema as { readonly [inWords]?: string })[inWords]
}

/** How this text names an identity; undefined: it names none. */
export function namingOf(schema: Schema): Naming | undefined {
  return (schema as { readonly [naming]?: Naming })[naming]
}

/** Names of the properties of this shape that must hold more than white space. */
export function visibleTexts({ properties = {} }: Schema): readonly string[] {
  return Object.entries(properties as Properties).flatMap(([name, schema]) => (visible in schema ? [name] : []))
}

export const Type = {
  String: (options: Schema = {}): Schema => ({ type: 'string', ...options }),
  Patterned: patterned,
  Words: words,
  Naming: (kind: Naming, schema: Schema): Schema => ({ ...schema, [naming]: kind }),
  Visible: (schema: Schema): Schema => ({ ...schema, [visible]: true }),
  Integer: (options: Schema = {}): Schema => ({ type: 'integer', ...options }),
  Number: (options: Schema = {}): Schema => ({ type: 'number', ...options }),
  Boolean: (options: Schema = {}): Schema => ({ type: 'boolean', ...options }),
  /** Any JSON value. */
  Unknown: (options: Schema = {}): Schema => ({ ...options }),
  Literal: (value: string | number | boolean, options: Schema = {}): Schema => ({
    type: typeof value,
    const: value,
    ...options,
  }),
  Array: (items: Schema, options: Schema = {}): Schema => ({ type: 'array', items, ...options }),
  Union: (anyOf: readonly Schema[], options: Schema = {}): Schema => ({ anyOf, ...options }),
  /** Keys of this pattern, values of this shape. */
  Record: (key: Schema, value: Schema, options: Schema = {}): Schema => ({
    type: 'object',
    patternProperties: { [typeof key.pattern === 'string' ? key.pattern : '']: value },
    ...options,
  }),
  Object: object,
  Optional: optional,
  /** An object all of whose properties may be absent. */
  Partial: (properties: Properties, options: Schema = {}): ObjectSchema =>
    object(Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, optional(schema)])), options),
} as const
