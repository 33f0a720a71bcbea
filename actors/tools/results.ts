/** Shapes of the tools directory: what a listing says, how it is shown, and what a search finds. Shared by its operations. */

import { type Field, patterned } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { count, handle, hash, id, seconds } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import { doorNames, doorSources, toolKinds, toolTypes } from './listing.ts'
import { reviewKinds } from './reviews.ts'
import { probeVerdicts } from './tools.ts'

const oneOf = (values: readonly string[], description?: string) =>
  Type.Union(
    values.map((each) => Type.Literal(each)),
    description === undefined ? {} : { description },
  )

/** No blanks, quotes or backslashes: an id is a part of a path. */
const toolIdPattern = '^[^\\s"\\\\\\u0000-\\u0020\\u007f]{1,200}$'
export const toolIdRule = '1 to 200 characters without blanks, such as broadside:hash or weather-1a2b3c'
const toolIdSchema = (description: string) => Type.Patterned(toolIdPattern, toolIdRule, { maxLength: 200, description })
export const toolTarget = patterned(toolIdPattern, 'a tool', `its id: ${toolIdRule}`)
const subjectPattern = '^s_[0-9a-f]{16}$'
export const subjectTarget = patterned(
  subjectPattern,
  'what is reviewed',
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

/** What a publisher says. */
const said = {
  description: Type.Visible(Type.String({ minLength: 1, maxLength: 2000, description: 'what it does' })),
  category: slugText('one word, such as weather, search, finance'),
  tags: Type.Optional(Type.Array(slugText('word'), { maxItems: 16, description: 'more words' })),
  method: Type.Optional(oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'], 'HTTP method it takes')),
  price: Type.Optional(price('dollars for one call as a decimal, such as 0.002; "0" = free')),
  protocols: Type.Optional(
    Type.Array(slugText('payment protocol, or mcp'), {
      maxItems: 8,
      description: 'x402, mpp/tempo, …; leave it out where nothing is paid',
    }),
  ),
  network: Type.Optional(slugText('where it is paid, such as base, tempo, eip155:8453')),
  output: Type.Optional(slugText('what it answers, such as json')),
  openapi_url: Type.Optional(address('its OpenAPI description')),
  mcp_url: Type.Optional(address('its MCP endpoint')),
  input_schema: Type.Optional(Type.Unknown({ description: 'a JSON Schema of what it takes: an object' })),
}

const closed = { additionalProperties: false }

export const PublishData = Type.Object(
  {
    schema: Type.Literal(1),
    name: Type.Visible(line(120, 'what it is called')),
    ...said,
    url: address('where it is called'),
    door: Type.Optional(oneOf(doorNames, 'how one begins to use it')),
  },
  closed,
)

const doorSchema = Type.Object(
  {
    door: oneOf(doorNames),
    source: oneOf(doorSources, 'who says so'),
    checked_at: seconds('when somebody looked, 0 = nobody has'),
  },
  { title: 'ToolDoor', description: 'a way to begin using a tool' },
)

/** A row of a list, as `broadside tools import` makes it of lists of many shapes. */
export const RowSchema = Type.Object(
  {
    ...said,
    id: toolIdSchema('its id in the list, kept'),
    name: line(200, 'what it is called'),
    description: Type.String({ maxLength: 2000 }),
    category: Type.Optional(said.category),
    type: oneOf(toolTypes.filter((each) => each !== 'agent')),
    kind: oneOf(toolKinds.filter((each) => each !== 'agent' && each !== 'builtin')),
    url: Type.Optional(address('where it is')),
    price_text: Type.Optional(line(120, 'its price for people')),
    doors: Type.Optional(Type.Array(Type.Object(doorSchema.properties, closed), { maxItems: 8 })),
    service: Type.Optional(toolIdSchema('the service that it is an offering of')),
    source: line(200, 'the list it comes from'),
  },
  closed,
)

/** Rows of one tools.import. */
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
    about_credits: count('credits that a review earns, about'),
    left: count('reviews of this subject that still earn them'),
    of: count('reviews of one subject that earn them'),
    text: text(160, 'the same for people'),
    how: text(200, 'path of how to review'),
  },
  { title: 'ReviewReward' },
)

const State = oneOf(['unknown', 'up', 'degraded', 'down', 'stale'], 'what the lab last saw of it')

/** One result of a search. */
const shown = {
  type: oneOf(toolTypes),
  kind: oneOf(toolKinds),
  id: toolIdSchema('its id: the target of tools.get and tools.call'),
  name: text(200, 'what it is called; untrusted'),
  description: text(2000, 'what it does; untrusted'),
  description_is_untrusted: untrusted('name and description'),
  category: text(64, 'its category, or empty'),
  url: text(2000, 'its page on this board'),
  price: Type.Optional(text(24, 'dollars for one call, a decimal; "0" = free; absent when unknown')),
  price_text: Type.Optional(text(120, 'the price for people')),
  network: text(64, 'where it is paid, or empty'),
  output: Type.Optional(text(64, 'what it answers')),
  protocols: Type.Array(text(64, 'how it is paid'), { maxItems: 8, description: 'empty where nothing is paid' }),
  subject_id: Type.String({ pattern: subjectPattern, description: 'what a review of it is about' }),
  review_url: text(200, 'page of its reviews'),
  state: State,
  review_reward: ReviewReward,
}

export const ToolResult = Type.Object(
  {
    ...shown,
    why: text(1000, 'why it was found and stands where it stands, and whether it can be called from here'),
    score: Type.Number({ minimum: 0, maximum: 1, description: 'never rises from one result to the next' }),
  },
  { title: 'ToolResult', description: 'one result of tools.search' },
)

export const ReviewSchema = Type.Object(
  {
    event_id: id('the post in the room reviews'),
    subject_id: Type.String({ pattern: subjectPattern }),
    author: hash('identity id of who wrote it'),
    author_handle: Type.Optional(handle('unique name of the author')),
    kind: oneOf(reviewKinds),
    text: text(sizes.text_bytes, 'what it says; untrusted'),
    evidence: Type.Optional(text(2000, 'where to see it; untrusted')),
    text_is_untrusted: untrusted('the text'),
    created_at: seconds('when it was accepted'),
  },
  { title: 'ToolReview', description: 'the newest review of one author' },
)

const counts = {
  works: count('it works'),
  mixed: count('so and so'),
  down: count('it is down'),
  avoid: count('keep away'),
}

export const ReviewCounts = Type.Object(counts, { title: 'ReviewCounts', description: 'newest review of each author' })

const Reviewed = Type.Object(
  { ...counts, verdict: oneOf(['', 'down', 'avoid'], 'what fresh reviews and the lab come to') },
  { title: 'Reviewed', description: 'newest review of each author, and the verdict' },
)

export const ProbeSchema = Type.Object(
  {
    id: id('the command that asked for it'),
    tool: toolIdSchema('the tool'),
    host: text(253, 'its machine'),
    at: seconds('when'),
    verdict: oneOf(probeVerdicts, 'what it came to'),
    mismatch: Type.Array(text(300, 'what the tool says otherwise than its listing'), { maxItems: 8 }),
    verified: Type.Boolean({ description: 'the host names you as an owner' }),
    opt_out: Type.Boolean({ description: 'the host wants to be in no directory' }),
    saw: Type.Optional(
      Type.Unknown({ description: 'what was sent and what came back, as far as it is kept: an object; untrusted' }),
    ),
  },
  { title: 'ToolProbe', description: 'one look of the lab' },
)

const { description: _, ...shownShort } = shown

export const ToolSchema = Type.Object(
  {
    ...shownShort,
    description: text(2000, 'what it does, whole; untrusted'),
    link: Type.Optional(text(2000, 'where the tool itself is; untrusted')),
    tags: Type.Array(text(64, 'word'), { maxItems: 32 }),
    method: Type.Optional(text(8, 'HTTP method')),
    doors: Type.Array(doorSchema, { maxItems: 16 }),
    service: Type.Optional(toolIdSchema('the service that it is an offering of')),
    openapi_url: Type.Optional(text(2000, 'its OpenAPI description')),
    mcp_url: Type.Optional(text(2000, 'its MCP endpoint')),
    input_schema: Type.Optional(Type.Unknown({ description: 'a JSON Schema of what it takes; untrusted' })),
    output_schema: Type.Optional(Type.Unknown({ description: 'a JSON Schema of what it gives' })),
    owner: Type.Optional(hash('identity that speaks for it')),
    verified: Type.Boolean({ description: 'its host names that identity as an owner' }),
    source: Type.Optional(text(200, 'the list that it was imported from')),
    callable: oneOf(['callable', 'relayed', 'listed only'], 'whether tools.call can call it from here'),
    reviews: Reviewed,
    created_at: seconds('when it was listed first'),
    updated_at: seconds('when it was said last'),
  },
  { title: 'Tool', description: 'a listing' },
)

export const IndexState = Type.Object(
  {
    listed: Type.Boolean({ description: 'tools.search finds it' }),
    why: text(400, 'why it is found or not, and what would be right'),
    spam: Type.Boolean({ description: 'one of many of its host with the same description: lowered' }),
    duplicates: count('other listings with the same address and method'),
    built_at: seconds('newest change of the index'),
  },
  { title: 'ToolIndexState' },
)
