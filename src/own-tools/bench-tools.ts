/**
 * Built-in tools that hostile input could make slow: patterns in a JSON Schema, the worst case of a diff, nested Markdown. They run only on
 * the bench thread (src/workers/tool-bench.ts), which is terminated if one takes too long. Libraries are loaded with the thread.
 */
import { Ajv2020, type CodeKeywordDefinition, type ValidateFunction } from 'ajv/dist/2020.js'
import { structuredPatch } from 'diff'
import MarkdownIt from 'markdown-it'
import { BadInput, type Input, type Output, readJson } from './own-tool.ts'

/** By id. */
export const benchTools: Readonly<Record<string, (input: Input) => Promise<Output>>> = {
  'broadside:diff': diff,
  'broadside:json-schema': jsonSchema,
  'broadside:markdown': markdown,
}

async function diff({ before, after, context = 3 }: Input): Promise<Output> {
  const { hunks } = structuredPatch('', '', String(before), String(after), '', '', { context: Number(context) })
  const lines = hunks.flatMap((hunk) => [
    `@@ -${range(hunk.oldStart, hunk.oldLines)} +${range(hunk.newStart, hunk.newLines)} @@`,
    ...hunk.lines,
  ])
  const starting = (mark: string) => hunks.flatMap((hunk) => hunk.lines).filter((line) => line.startsWith(mark)).length
  return {
    unified: lines.length === 0 ? '' : `${lines.join('\n')}\n`,
    added: starting('+'),
    removed: starting('-'),
  }
}

/** As `diff -u` writes it: a length of 1 is omitted, and an empty range names the line before it. */
function range(start: number, lines: number): string {
  if (lines === 1) return String(start)
  return `${lines === 0 ? start - 1 : start},${lines}`
}

const errorsMax = 50

async function jsonSchema(input: Input): Promise<Output> {
  const schema = input.schema ?? readJson(String(input.schema_json), 'schema_json')
  const value = input.json === undefined ? input.value : readJson(String(input.json), 'json')
  if (typeof schema !== 'boolean' && (typeof schema !== 'object' || schema === null || Array.isArray(schema)))
    throw new BadInput('a schema must be an object, or true or false')
  const check = checkOf(schema)
  let valid: boolean
  try {
    valid = check(value) as boolean
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new BadInput('the schema refers to itself without end, or the value nests too deeply for it')
  }
  const found = (check.errors ?? []).slice(0, errorsMax)
  return {
    valid,
    errors: found.map(({ instancePath, message = '' }) => ({
      path: instancePath.slice(0, 1_024),
      message: message.slice(0, 1_024),
    })),
  }
}

const options = { strict: false, allErrors: true, validateFormats: false, logger: false } as const
/** Knows only the meta-schema. Compiled when the thread starts, since that takes longer than most calls. */
const schemas = new Ajv2020(options)
void schemas.validateSchema({})

/** A separate validator for each schema, so that one does not see the names defined by another. */
function checkOf(schema: boolean | object): ValidateFunction {
  const ajv = new Ajv2020({
    ...options,
    validateSchema: false,
    // A schema without a name must be registered for "#" to resolve to it; a schema with a name may have that of a registered one.
    addUsedSchema: typeof schema === 'boolean' || !('$id' in schema),
  })
  // From an older draft, and unknown in 2020-12.
  for (const keyword of ['$recursiveRef', '$recursiveAnchor']) ajv.removeKeyword(keyword)
  const reference = ajv.getKeyword('$dynamicRef') as CodeKeywordDefinition
  const { code } = reference
  reference.code = (context) => {
    const anchor = String(context.schema).slice(1)
    // If there is none, the validator takes the schema around the reference, again and again.
    if (context.it.schemaEnv.root.dynamicAnchors[anchor] !== true)
      throw new Error('a $dynamicRef must be # and the name of a $dynamicAnchor of a schema around it')
    code(context)
  }
  let check: ValidateFunction
  try {
    void schemas.validateSchema(schema, true)
    check = ajv.compile(schema)
  } catch (error) {
    throw new BadInput(`the schema is not valid: ${(error as Error).message.slice(0, 500)}`)
  }
  if ('$async' in check) throw new BadInput('"$async" is not a keyword of JSON Schema: leave it out')
  return check
}

async function markdown({ text }: Input): Promise<Output> {
  const parser = new MarkdownIt('default', { html: false, linkify: false, typographer: false, maxNesting: 50 })
  // Readers' browsers would fetch an image; its text stays, as a link.
  parser.disable('image')
  parser.validateLink = (address: string) => /^(https?:|mailto:|[/#?]|[^:]*$)/i.test(address.trim())
  const open = parser.renderer.rules.link_open
  parser.renderer.rules.link_open = (tokens, at, options, env, self) => {
    tokens[at]!.attrSet('rel', 'nofollow noopener noreferrer ugc')
    return open === undefined ? self.renderToken(tokens, at, options) : open(tokens, at, options, env, self)
  }
  return { html: parser.render(String(text)) }
}
