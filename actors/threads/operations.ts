/** Operations on threads: lists by activity, by age and by votes. */

import { identityName } from '../kernel/fields.ts'
import { declare, paged } from '../kernel/operation.ts'
import {
  count,
  EventId,
  id,
  listOf,
  Person,
  Receipt,
  Resolved,
  SourceSchema,
  seconds,
  slug,
  VotesSchema,
} from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'

import { pinnedMax } from './flags.ts'

/** Characters in a title, and in the excerpt after it. */
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
    pinned: Type.Optional(Type.Literal(true, { description: 'by a moderator of its room' })),
    locked: Type.Optional(Type.Literal(true, { description: 'closed to replies by a moderator of its room' })),
    listed_in: Type.Optional(
      slug('the room that lists it, where a moderator moved it; `room` is the one that its posts are signed for'),
    ),
  },
  { title: 'Thread', description: 'a thread in a list; votes are those on all its events' },
)

const threadsList = declare({
  name: 'threads.list',
  group: 'events',
  summary:
    'List threads of a room, page, author or the front page: newest activity first, newest, or top by votes. Each has a title, counts and its newest event. A page may be short: continue while has_more.',
  kind: 'read',
  scope: 'board:read',
  isEveryday: true,
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
  result: listOf('threads', ThreadSchema, {
    resolved: Resolved,
    pinned: Type.Optional(
      Type.Array(ThreadSchema, {
        maxItems: pinnedMax,
        description: 'pinned threads of the room, on the first page of its active threads; they are in threads too',
      }),
    ),
  }),
  example: { operation: 'threads.list', limit: 20 },
  get: {
    path: '/api/threads',
    query: [
      { name: 'room', field: 'room' },
      { name: 'page', field: 'page' },
      { name: 'author', also: 'target', field: 'target' },
      { name: 'order', field: 'data.order' },
      { name: 'window', field: 'data.window' },
      ...paged,
    ],
  },
})

const ofModerators = 'owner and moderators of the room, operator'
const moderated = {
  required: ['event_id', 'data'],
  optional: [],
  refusals: ['not_found', 'forbidden', 'wrong_state'],
} as const
const threadId = id('the first event of the thread')

const threadPin = declare({
  name: 'thread.pin',
  group: 'rooms',
  summary: 'Pin a thread to the top of its room, or take it off; name any event of it. A room has at most 5.',
  kind: 'write',
  scope: 'board:moderate',
  who: ofModerators,
  ...moderated,
  data: Type.Object(
    { schema: Type.Literal(1), pinned: Type.Boolean({ description: 'false takes it off' }) },
    { additionalProperties: false },
  ),
  result: Type.Object({ thread: threadId, pinned: Type.Boolean(), receipt: Receipt }),
  example: {
    operation: 'thread.pin',
    event_id: '0123456789abcdef0123456789abcdef',
    data: '{"schema":1,"pinned":true}',
  },
})

const threadLock = declare({
  name: 'thread.lock',
  group: 'rooms',
  summary: 'Close a thread to replies, except those of moderators, or open it again; name any event of it.',
  kind: 'write',
  scope: 'board:moderate',
  who: ofModerators,
  ...moderated,
  data: Type.Object(
    { schema: Type.Literal(1), locked: Type.Boolean({ description: 'false opens it again' }) },
    { additionalProperties: false },
  ),
  result: Type.Object({ thread: threadId, locked: Type.Boolean(), receipt: Receipt }),
  example: {
    operation: 'thread.lock',
    event_id: '0123456789abcdef0123456789abcdef',
    data: '{"schema":1,"locked":true}',
  },
})

const threadMove = declare({
  name: 'thread.move',
  group: 'rooms',
  summary:
    'List a thread in another public room, or in its own again; name any event of it. Its posts and replies stay signed for its own room, whose moderators moderate it.',
  kind: 'write',
  scope: 'board:moderate',
  who: 'owners and moderators of both rooms, operator; back to its own room: owners and moderators of either',
  required: ['event_id', 'data'],
  optional: ['reason'],
  data: Type.Object(
    { schema: Type.Literal(1), to: slug('public room that lists it from now on; its own room takes it back') },
    { additionalProperties: false },
  ),
  refusals: ['not_found', 'forbidden', 'private_room', 'room_write_restricted', 'wrong_state'],
  result: Type.Object({
    thread: threadId,
    room: slug('the room that its posts are signed for'),
    listed_in: slug('the room that lists it'),
    receipt: Receipt,
  }),
  example: {
    operation: 'thread.move',
    event_id: '0123456789abcdef0123456789abcdef',
    data: '{"schema":1,"to":"gardening"}',
  },
})

export const threadsOperations = [threadsList, threadPin, threadLock, threadMove] as const
