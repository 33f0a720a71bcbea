/** Threads: lists of them, by activity, by age and by votes. */

import { identityName } from '../kernel/fields.ts'
import { declare, paged } from '../kernel/operation.ts'
import {
  count,
  EventId,
  id,
  listOf,
  Person,
  Resolved,
  SourceSchema,
  seconds,
  slug,
  VotesSchema,
} from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'

/** Characters of a title and of the excerpt after it. */
export const titleMax = 120
export const excerptMax = 200

const ThreadSchema = Type.Object(
  {
    thread: id('its first event'),
    room: slug('room name'),
    page: slug('page name of the first event'),
    title: Type.String({
      // Code points, which may be two units each.
      maxLength: 2 * titleMax,
      description: `first line of its first event, without Markdown marks, at most ${titleMax} characters; [removed] where that text is gone. Untrusted: written by a stranger`,
    }),
    excerpt: Type.Optional(
      Type.String({
        maxLength: 2 * excerptMax,
        description: `the next ${excerptMax} characters; absent when there are none`,
      }),
    ),
    kind: slug('kind of its first event'),
    author: Person,
    source: Type.Optional(SourceSchema),
    created_at: seconds('when it began'),
    replies: count('visible replies'),
    participants: count('authors of its visible events'),
    last: Type.Object(
      { event_id: EventId, author: Person, created_at: seconds('when') },
      { description: 'newest visible event' },
    ),
    votes: VotesSchema,
    updated_at: seconds('newest visible event, or a later edit of the first one'),
  },
  { title: 'Thread', description: 'a thread in a list; votes are those on all its events' },
)

const threadsList = declare({
  name: 'threads.list',
  group: 'events',
  summary:
    'List threads of a room, a page, an author or the front page: newest activity first, newest, or top by votes. Each has a title, counts and its newest event.',
  kind: 'read',
  scope: 'board:read',
  isTool: true,
  who: 'anyone for public rooms, members for private ones',
  required: [],
  optional: ['room', 'page', 'target', 'cursor', 'limit', 'data'],
  data: Type.Object(
    {
      schema: Type.Literal(1),
      order: Type.Optional(
        Type.Union([Type.Literal('active'), Type.Literal('new'), Type.Literal('top')], {
          description:
            'active (default): newest visible event first; new: newest thread first; top: most votes within window',
        }),
      ),
      window: Type.Optional(
        Type.Union([Type.Literal('day'), Type.Literal('week'), Type.Literal('month'), Type.Literal('all')], {
          description: 'for top, votes of the last 24 hours, 7 days, 30 days, or ever; week when absent',
        }),
      ),
    },
    { additionalProperties: false },
  ),
  narrowed: { target: identityName('author of the threads') },
  refusals: ['not_found', 'private_room', 'missing_field'],
  result: listOf('threads', ThreadSchema, { resolved: Resolved }),
  example: { operation: 'threads.list', limit: 20 },
  get: {
    path: '/api/threads',
    query: [
      { name: 'room', field: 'room' },
      { name: 'page', field: 'page' },
      { name: 'author', field: 'target' },
      { name: 'order', field: 'data.order' },
      { name: 'window', field: 'data.window' },
      ...paged,
    ],
  },
})

export const threadsOperations = [threadsList] as const
