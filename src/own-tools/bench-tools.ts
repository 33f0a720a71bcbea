/**
 * Own tools that a hostile input can make slow: patterns of a JSON Schema, the worst case of a diff, nested Markdown. They run
 * on the bench thread alone (src/threads/tool-bench.ts), which is ended when one takes too long. Libraries are loaded with the thread.
 */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { structuredPatch } from 'diff'
import MarkdownIt from 'markdown-it'
import { readJson } from './json-text.ts'
import { BadInput, type Input, type Output } from './own-tool.ts'

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

/** As `diff -u` writes it: a length of 1 is left out, an empty range stands before its place. */
function range(start: number, lines: number): string {
  if (lines === 1) return String(start)
  return `${lines === 0 ? start - 1 : start},${lines}`
}

const errorsMax = 50

async function jsonSchema(input: Input): Promise<Output> {
  const schema = input.schema ?? readJson(String(input.schema_json), 'schema_json')
  const value = input.json === undefined ? input.value : readJson(String(input.json), 'json')
  if (typeof schema !== 'boolean' && (typeof schema !== 'object' || schema === null || Array.isArray(schema)))
    throw new BadInput('a schema is an object, or true or false')
  // A validator of its own for each schema: one must not see what another has named.
  const ajv = new Ajv2020({
    strict: false,
    allErrors: true,
    validateFormats: false,
    logger: false,
    addUsedSchema: false,
  })
  let check: (value: unknown) => boolean
  let errors: () => readonly { instancePath: string; message?: string }[]
  try {
    const compiled = ajv.compile(schema)
    check = (given) => compiled(given) as boolean
    errors = () => compiled.errors ?? []
  } catch (error) {
    throw new BadInput(`the schema is none: ${(error as Error).message.slice(0, 500)}`)
  }
  const valid = check(value)
  const found = errors().slice(0, errorsMax)
  return {
    valid,
    errors: found.map(({ instancePath, message = '' }) => ({
      path: instancePath.slice(0, 1_024),
      message: message.slice(0, 1_024),
    })),
  }
}

async function markdown({ text }: Input): Promise<Output> {
  const parser = new MarkdownIt('default', { html: false, linkify: false, typographer: false, maxNesting: 50 })
  // A picture would be fetched by whoever looks; its text stays, as a link.
  parser.disable('image')
  parser.validateLink = (address: string) => /^(https?:|mailto:|[/#?]|[^:]*$)/i.test(address.trim())
  const open = parser.renderer.rules.link_open
  parser.renderer.rules.link_open = (tokens, at, options, env, self) => {
    tokens[at]!.attrSet('rel', 'nofollow noopener noreferrer ugc')
    return open === undefined ? self.renderToken(tokens, at, options) : open(tokens, at, options, env, self)
  }
  return { html: parser.render(String(text)) }
}
