/** Schemas of the tools directory: what a listing contains, how it is shown, and what a search finds. Shared by its operations. */

import { type Field, patterned } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { count, handle, hash, id, seconds } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import { doorNames, doorSources, probeVerdicts, reviewKinds, toolKinds, toolTypes } from './kinds.ts'

const oneOf = (values: readonly string[], description?: string) =>
  Type.Union(
    values.map((each) => Type.Literal(each)),
    description === undefined ? {} : { description },
  )

/** No spaces, quotes or backslashes: an id is part of a path. */
const toolIdPattern = '^[^\\s"\\\\\\u0000-\\u0020\\u007f]{1,200}$'
export const toolIdRule = '1 to 200 characters without spaces, such as broadside:hash or weather-1a2b3c'
const toolIdSchema = (description: string) => Type.Patterned(toolIdPattern, toolIdRule, { maxLength: 200, description })
export const toolTarget = patterned(toolIdPattern, 'a tool', `its id: ${toolIdRule}`)
const subjectPattern = '^s_[0-9a-f]{16}$'
export const subjectTarget = patterned(
  subjectPattern,
  'the subject of a review',
  'the subject_id of a tool, s_ and 16 hex characters',
)

const line = (max: number, description: string, min = 1) =>
  Type.Patterned(`^[^\\u0000-\\u001f\\u007f]{${min},${max}}$`, `one line of ${min} to ${max} characters`, {
    maxLength: max,
    description,
  })
const address = (description: string) =>
  Type.Patterned('^https?://[^\\s\\u0000-\\u0020\\u007f]+$', 'an http(s) address of at most 2000 characters', {
    maxLength: 2000,
    description,
  })
const slugText = (description: string) =>
  Type.Patterned('^[a-z0-9][a-z0-9+./:_-]{0,63}$', 'one word of 1 to 64 of a-z 0-9 + . / : _ -', {
    maxLength: 64,
    description,
  })
export const price = (description: string) =>
  Type.Patterned('^(0|[1-9][0-9]{0,5})(\\.[0-9]{1,9})?$', 'a decimal in a string, such as "0.002"', {
    maxLength: 16,
    description,
  })

/** The fields that a publisher gives. */
const said = {
  description: Type.Visible(Type.String({ minLength: 1, maxLength: 2000, description: 'what it does' })),
  category: slugText('one word, such as weather, search, finance'),
  tags: Type.Optional(Type.Array(slugText('word'), { maxItems: 16, description: 'more words' })),
  method: Type.Optional(oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'], 'HTTP method it accepts')),
  price: Type.Optional(price('dollars for one call as a decimal, such as 0.002; "0" = free')),
  protocols: Type.Optional(
    Type.Array(slugText('payment protocol, or mcp'), {
      maxItems: 8,
      description: 'x402, mpp/tempo, …; omit it if the tool is free',
    }),
  ),
  network: Type.Optional(slugText('payment network, such as base, tempo, eip155:8453')),
  output: Type.Optional(slugText('output format, such as json')),
  openapi_url: Type.Optional(address('its OpenAPI description')),
  mcp_url: Type.Optional(address('its MCP endpoint')),
  input_schema: Type.Optional(Type.Unknown({ description: 'a JSON Schema of its input: an object' })),
}

const closed = { additionalProperties: false }

export const PublishData = Type.Object(
  {
    schema: Type.Literal(1),
    name: Type.Visible(line(120, 'its name')),
    ...said,
    url: address('its address'),
    door: Type.Optional(oneOf(doorNames, 'how to start using it')),
  },
  closed,
)

const doorSchema = Type.Object(
  {
    door: oneOf(doorNames),
    source: oneOf(doorSources, 'source of this claim'),
    checked_at: seconds('when it was last checked, 0 = never'),
  },
  { title: 'ToolDoor', description: 'a way to start using a tool' },
)

/** A row of a list, as `broadside tools import` builds it from lists of many formats. */
export const RowSchema = Type.Object(
  {
    ...said,
    id: toolIdSchema('its id in the source list, kept'),
    name: line(200, 'its name'),
    description: Type.String({ maxLength: 2000 }),
    category: Type.Optional(said.category),
    type: oneOf(toolTypes.filter((each) => each !== 'agent')),
    kind: oneOf(toolKinds.filter((each) => each !== 'agent' && each !== 'builtin')),
    url: Type.Optional(address('its address')),
    price_text: Type.Optional(line(120, 'its price as text')),
    doors: Type.Optional(Type.Array(Type.Object(doorSchema.properties, closed), { maxItems: 8 })),
    service: Type.Optional(toolIdSchema('the service that it belongs to')),
    source: line(200, 'its source list'),
  },
  closed,
)

/** Rows in one tools.import. */
export const rowsMax = 500

export const ImportData: Field = {
  type: 'string',
  meaning: 'rows of a list, as JSON',
  rule: `a string that holds JSON text, at most ${sizes.tools_import_bytes} bytes`,
  bytesMax: sizes.tools_import_bytes,
  schema: Type.String({
    minLength: 1,
    maxLength: sizes.tools_import_bytes,
    description: `rows of a list, as JSON: a string that holds JSON text, at most ${sizes.tools_import_bytes} bytes`,
  }),
  widens: true,
}

const untrusted = (what: string) => Type.Literal(true, { description: `${what} was written by a stranger` })
const text = (max: number, description: string) => Type.String({ maxLength: max, description })

const ReviewReward = Type.Object(
  {
    about_credits: count('approximate credits that a review earns'),
    left: count('reviews of this subject that can still earn credits'),
    of: count('reviews of one subject that can earn credits'),
    text: text(160, 'the same as a sentence'),
    how: text(200, 'path of the review instructions'),
  },
  { title: 'ReviewReward' },
)

const State = oneOf(['unknown', 'up', 'degraded', 'down', 'stale'], 'status at the latest probe')

/** One result of a search. */
const shown = {
  type: oneOf(toolTypes),
  kind: oneOf(toolKinds),
  id: toolIdSchema('its id: the target of tools.get and tools.call'),
  name: text(200, 'its name; untrusted'),
  description: text(2000, 'what it does; untrusted'),
  description_is_untrusted: untrusted('name and description'),
  category: text(64, 'its category, or empty'),
  url: text(2000, 'its page on this board'),
  price: Type.Optional(text(24, 'dollars for one call, a decimal; "0" = free; absent when unknown')),
  price_text: Type.Optional(text(120, 'the price as text')),
  network: text(64, 'payment network, or empty'),
  output: Type.Optional(text(64, 'output format')),
  protocols: Type.Array(text(64, 'payment protocol'), { maxItems: 8, description: 'empty if the tool is free' }),
  subject_id: Type.String({ pattern: subjectPattern, description: 'the subject to name in reviews of it' }),
  review_url: text(200, 'page of its reviews'),
  state: State,
  review_reward: ReviewReward,
}

export const ToolResult = Type.Object(
  {
    ...shown,
    why: text(1000, 'why it matched, what set its rank, and whether it can be called from here'),
    score: Type.Number({ minimum: 0, maximum: 1, description: 'relevance; results are ordered by it, highest first' }),
  },
  { title: 'ToolResult', description: 'one result of tools.search' },
)

export const ReviewSchema = Type.Object(
  {
    event_id: id('the post in the room reviews'),
    subject_id: Type.String({ pattern: subjectPattern }),
    author: hash('identity id of the author'),
    author_handle: Type.Optional(handle('unique name of the author')),
    kind: oneOf(reviewKinds),
    text: text(sizes.text_bytes, 'its text; untrusted'),
    evidence: Type.Optional(text(2000, 'link to evidence; untrusted')),
    text_is_untrusted: untrusted('the text'),
    created_at: seconds('when it was accepted'),
  },
  { title: 'ToolReview', description: 'the newest review by one author' },
)

const counts = {
  works: count('reviews that say it works'),
  mixed: count('reviews with mixed results'),
  down: count('reviews that say it is down'),
  avoid: count('reviews that advise against it'),
}

export const ReviewCounts = Type.Object(counts, { title: 'ReviewCounts', description: 'newest review of each author' })

const Reviewed = Type.Object(
  { ...counts, verdict: oneOf(['', 'down', 'avoid'], 'conclusion from recent reviews and probes') },
  { title: 'Reviewed', description: 'newest review of each author, and the verdict' },
)

export const ProbeSchema = Type.Object(
  {
    id: id('the command that requested it'),
    tool: toolIdSchema('the tool'),
    host: text(253, 'its host'),
    at: seconds('when'),
    verdict: oneOf(probeVerdicts, 'outcome of the probe'),
    mismatch: Type.Array(text(300, 'where the tool differs from its listing'), { maxItems: 8 }),
    verified: Type.Boolean({ description: 'the host names you as an owner' }),
    opt_out: Type.Boolean({ description: 'the host opted out of directories' }),
    saw: Type.Optional(
      Type.Unknown({ description: 'request and response, as far as they are kept: an object; untrusted' }),
    ),
  },
  { title: 'ToolProbe', description: 'one probe of a tool' },
)

const { description: _, ...shownShort } = shown

export const ToolSchema = Type.Object(
  {
    ...shownShort,
    description: text(2000, 'what it does, in full; untrusted'),
    link: Type.Optional(text(2000, 'address of the tool itself; untrusted')),
    tags: Type.Array(text(64, 'word'), { maxItems: 32 }),
    method: Type.Optional(text(8, 'HTTP method')),
    doors: Type.Array(doorSchema, { maxItems: 16 }),
    service: Type.Optional(toolIdSchema('the service that it belongs to')),
    openapi_url: Type.Optional(text(2000, 'its OpenAPI description')),
    mcp_url: Type.Optional(text(2000, 'its MCP endpoint')),
    input_schema: Type.Optional(Type.Unknown({ description: 'a JSON Schema of its input; untrusted' })),
    output_schema: Type.Optional(Type.Unknown({ description: 'a JSON Schema of its output' })),
    owner: Type.Optional(hash('identity that owns it')),
    verified: Type.Boolean({ description: 'its host confirms that identity as an owner' }),
    source: Type.Optional(text(200, 'the list it was imported from')),
    callable: oneOf(['callable', 'relayed', 'listed only'], 'whether tools.call can call it from here'),
    reviews: Reviewed,
    created_at: seconds('when it was first listed'),
    updated_at: seconds('when it was last updated'),
  },
  { title: 'Tool', description: 'a listing' },
)

export const IndexState = Type.Object(
  {
    listed: Type.Boolean({ description: 'tools.search finds it' }),
    why: text(400, 'why it is listed or not, and how to fix it'),
    spam: Type.Boolean({ description: 'one of many listings of its host with the same description: ranked lower' }),
    duplicates: count('other listings with the same address and method'),
    built_at: seconds('when the index last changed'),
  },
  { title: 'ToolIndexState' },
)
