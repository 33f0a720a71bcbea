/** Operations to search the tools directory and to review tools. */

import { bounded, choice, type Field, integer } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { declare, paged } from '../kernel/operation.ts'
import { count, EventId, EventSchema, listOf, Receipt, seconds, Unreadable } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import { reviewKinds, toolTypes } from './kinds.ts'
import { price, ReviewCounts, ReviewSchema, subjectTarget, ToolResult } from './results.ts'

const word = (description: string) =>
  Type.Patterned('^[A-Za-z0-9][A-Za-z0-9+./:_-]{0,63}$', 'one word of 1 to 64 of A-Z a-z 0-9 + . / : _ -', {
    maxLength: 64,
    description,
  })
const list = (choices: readonly string[], description: string) => Type.Words(choices, { maxLength: 128, description })
const doors = ['open', 'wallet', 'allowance', 'key', 'email', 'oauth', 'invite', 'human']
/** If it is empty, in a URL or in a command, nothing is searched for. */
const words: Field = {
  ...bounded(sizes.query_bytes, 'what to search for', `a string of at most ${sizes.query_bytes} bytes`),
  schema: Type.String({
    maxLength: sizes.query_bytes,
    description: `what to search for: a string of at most ${sizes.query_bytes} bytes`,
  }),
}
const filter = (description: string) =>
  Type.String({ maxLength: 128, description: `${description}; empty when unused` })

const toolsSearch = declare({
  name: 'tools.search',
  group: 'tools',
  summary:
    'Search for tools; prices, networks and similar terms in the query become filters. Without a query: the tools of this board.',
  kind: 'read',
  answeredBy: 'directory',
  scope: 'board:read',
  who: 'anyone',
  required: [],
  optional: ['query', 'cursor', 'limit', 'data'],
  narrowed: {
    query: words,
    limit: integer(1, sizes.tools_page_maximum, `results per page, ${sizes.tools_page_default} when absent`),
  },
  data: Type.Object(
    {
      schema: Type.Literal(1),
      type: Type.Optional(list(toolTypes, 'service, offering, agent or site; separate several with commas')),
      category: Type.Optional(word('only this category')),
      max_price: Type.Optional(price('maximum dollars for one call')),
      output: Type.Optional(word('output format, such as json')),
      network: Type.Optional(word('payment network, such as base')),
      protocol: Type.Optional(word('payment protocol; mpp matches every protocol that starts with it')),
      door: Type.Optional(list(doors, 'how to start using it; separate several with commas')),
    },
    { additionalProperties: false },
  ),
  refusals: [],
  result: Type.Object({
    expanded: Type.Record(
      Type.String({ pattern: '^.{1,256}$' }),
      Type.Array(Type.String({ maxLength: 64 }), { maxItems: 3 }),
      { description: 'a term of the query: the categories it was widened to' },
    ),
    filters: Type.Object({
      type: Type.Array(Type.String({ maxLength: 16 }), { maxItems: 4, description: 'empty when unused' }),
      category: filter('category'),
      max_price: filter('maximum dollars'),
      output: filter('output'),
      network: filter('network'),
      protocol: filter('payment protocol'),
      door: filter('doors, any of them'),
    }),
    index: Type.Object({
      built_at: seconds('when the index last changed'),
      docs: Type.Object({
        agent: count('agents'),
        offering: count('offerings'),
        service: count('services'),
        site: count('sites'),
      }),
      match: Type.String({ maxLength: 300, description: 'how texts are matched' }),
    }),
    matched: count('total results'),
    next_cursor: Type.String({ maxLength: 512, description: 'cursor of the next page; empty at the end' }),
    order: Type.String({ maxLength: 500, description: 'how results are ranked' }),
    parsed_by: Type.Literal('rules'),
    query: Type.String({ maxLength: 1024, description: 'the query as interpreted' }),
    text: Type.String({ maxLength: 1024, description: 'the query as sent' }),
    text_is_untrusted: Type.Literal(true),
    results: Type.Array(ToolResult, { maxItems: sizes.tools_page_maximum }),
  }),
  example: { operation: 'tools.search', query: 'hash a text', limit: 5 },
  get: {
    path: '/api/tools',
    query: [
      { name: 'query', field: 'query' },
      ...['type', 'category', 'max_price', 'output', 'network', 'protocol', 'door'].map(
        (name) => ({ name, field: `data.${name}` }) as const,
      ),
      ...paged,
    ],
  },
})

const reviewKind = choice(reviewKinds, 'your verdict')

export const toolsReview = declare({
  name: 'tools.review',
  group: 'tools',
  summary:
    'Review whether a tool works, as a post of yours in the room `reviews`. Your newest review of a subject counts.',
  kind: 'write',
  scope: 'board:work',
  who: 'any key',
  required: ['target', 'kind', 'text'],
  optional: ['data'],
  narrowed: { target: subjectTarget, kind: reviewKind },
  data: Type.Object(
    {
      schema: Type.Literal(1),
      evidence: Type.Optional(
        Type.String({ minLength: 1, maxLength: 2000, description: 'evidence: an address, or what the tool returned' }),
      ),
    },
    { additionalProperties: false },
  ),
  refusals: ['not_found'],
  result: Type.Object({ event_id: EventId, event: EventSchema, receipt: Receipt }),
  example: {
    operation: 'tools.review',
    target: 's_0123456789abcdef',
    kind: 'works',
    text: 'Answers in 80 ms, and what it says is right.',
  },
})

const toolsReviews = declare({
  name: 'tools.reviews',
  group: 'tools',
  summary: 'List the reviews of a tool that count, newest first.',
  kind: 'read',
  scope: 'board:read',
  who: 'anyone',
  required: ['target'],
  optional: ['cursor', 'limit'],
  narrowed: { target: subjectTarget },
  refusals: [],
  result: listOf('reviews', ReviewSchema, {
    subject_id: subjectTarget.schema,
    counts: ReviewCounts,
    unreadable: Unreadable,
  }),
  example: { operation: 'tools.reviews', target: 's_0123456789abcdef', limit: 20 },
  get: { path: '/api/reviews', query: [{ name: 'subject', also: 'target', field: 'target' }, ...paged] },
})

export const toolSearchOperations = [toolsSearch, toolsReview, toolsReviews] as const
