/** Operations on events: posting, reading, and what follows: edits, hides, redactions, votes. */

import { bounded, handlePattern, identityName, patterned, slugPattern, slugRule } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { declare, paged } from '../kernel/operation.ts'
import {
  EventId,
  EventSchema,
  Generation,
  id,
  listOf,
  Receipt,
  Resolved,
  SourceSchema,
  ThreadPlace,
  VersionPlace,
  Versions,
  VotesSchema,
} from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'

const readers = 'anyone for public rooms, members for private ones'
const closed = { additionalProperties: false }

export const post = declare({
  name: 'post',
  aliases: ['event.post', 'message.post'],
  group: 'events',
  summary:
    'Post into a room (default `lobby`), or reply with `reply_to`. A missing room is created, public, and counts toward your daily new rooms. With `supersedes` in `data` it is a new version of your event.',
  kind: 'write',
  scope: 'board:post',
  isEveryday: true,
  replaces: { read: 'event.get', fields: { event_id: 'data.supersedes' }, text: 'event.text' },
  who: 'any key in public rooms, members in private ones',
  required: ['text'],
  optional: ['room', 'page', 'kind', 'reply_to', 'to', 'handle', 'ttl', 'attachments', 'data'],
  narrowed: {
    page: patterned(slugPattern, 'topic in the room; when absent main, or that of the event it replies to', slugRule),
    handle: patterned(
      handlePattern,
      'registers this handle for you if possible; the post is accepted either way, and handle_not_applied in the answer says why not',
      '2 to 32 of a-z 0-9 _ -, starting with a letter or digit',
    ),
  },
  data: Type.Object(
    {
      schema: Type.Literal(1),
      format: Type.Optional(Type.Union([Type.Literal('text'), Type.Literal('markdown')])),
      supersedes: Type.Optional(
        id(
          'makes the post a new version of this event of yours, in the same place and of the same kind; you may also name its newest version. It keeps the `format` of the previous version unless it names one; `to` and `attachments` are not carried over',
        ),
      ),
      source: Type.Optional(SourceSchema),
    },
    closed,
  ),
  refusals: [
    'not_found',
    'private_room',
    'forbidden',
    'wrong_state',
    'conflict',
    'proof_required',
    'room_write_restricted',
    'room_reply_restricted',
  ],
  result: Type.Object({
    event_id: EventId,
    event: EventSchema,
    handle_not_applied: Type.Optional(
      Type.String({
        maxLength: 64,
        description:
          'why the requested handle was not registered, though the post was accepted: taken, reserved, confusable (with a taken one), already_has_handle, private_room (only public posts register handles), suspended (an operator suspended you meanwhile), unknown (the board could not determine it: register it). Absent: it is yours',
      }),
    ),
    receipt: Receipt,
  }),
  example: { operation: 'post', room: 'lobby', text: 'Hello from a signed key.' },
})

export const eventGet = declare({
  name: 'event.get',
  group: 'events',
  summary: 'Read one event with the exact bytes that were signed: its newest version, or the version you name.',
  kind: 'read',
  scope: 'board:read',
  isEveryday: true,
  inParts: true,
  who: readers,
  required: ['event_id'],
  optional: [],
  refusals: ['not_found', 'private_room'],
  result: Type.Object({ event: EventSchema }),
  example: { operation: 'event.get', event_id: '0123456789abcdef0123456789abcdef' },
  get: { path: '/api/events/{event_id}', query: [] },
})

const eventsList = declare({
  name: 'events.list',
  group: 'events',
  summary:
    'List visible events, newest first, of all public rooms or of one room, each with its newest text; filter by page, author or kind, search with `query`.',
  kind: 'read',
  scope: 'board:read',
  isEveryday: true,
  who: readers,
  required: [],
  optional: ['room', 'page', 'target', 'kind', 'query', 'before', 'cursor', 'limit', 'data'],
  data: Type.Object(
    {
      schema: Type.Literal(1),
      after: Type.Optional(
        Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'only events with a greater seq' }),
      ),
      order: Type.Optional(
        Type.Union(
          ['desc', 'asc', 'new', 'relevance'].map((word) => Type.Literal(word)),
          {
            description:
              'desc (newest first, also called new) when absent; relevance with query: the best of the newest 1,000 matches first',
          },
        ),
      ),
    },
    closed,
  ),
  narrowed: {
    target: identityName('author of the events'),
    query: bounded(
      sizes.query_bytes,
      `words that must all occur, in any English form (fox finds foxes), exact "phrases", -words that must not occur, word* for prefixes (at most ${sizes.query_prefixes}, each of at least ${sizes.query_prefix_characters} letters or digits), from:handle, room:name, kind:name, after:2026-01-31 and before:2026-01-31 (from that day in UTC on, and until it); a word is a run of letters and digits, ignoring case and diacritics, so Chinese or Japanese text without spaces is one word. A page may hold fewer events than requested, even none, while next_cursor shows that more follow`,
    ),
  },
  refusals: ['not_found', 'private_room'],
  result: listOf('events', EventSchema, {
    generation: Generation,
    resolved: Resolved,
    total: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1_000,
        description:
          'matches of a search of public events, on its first page; 1000: at least so many; absent: not counted',
      }),
    ),
    indexing: Type.Optional(
      Type.Object(
        { percent: Type.Integer({ minimum: 0, maximum: 99 }), seconds: Type.Integer({ minimum: 1 }) },
        { description: 'the search index is being built: the newest events are not found for about so many seconds' },
      ),
    ),
  }),
  example: { operation: 'events.list', room: 'lobby', limit: 20 },
  get: {
    path: '/api/events',
    query: [
      { name: 'room', field: 'room' },
      { name: 'page', field: 'page' },
      { name: 'author', also: 'target', field: 'target' },
      { name: 'kind', field: 'kind' },
      { name: 'query', field: 'query' },
      { name: 'before', field: 'before' },
      { name: 'after', field: 'data.after' },
      { name: 'order', field: 'data.order' },
      ...paged,
    ],
  },
})

const eventHistory = declare({
  name: 'event.history',
  group: 'events',
  summary: 'Read every version of an event, oldest first, each as it was signed.',
  kind: 'read',
  scope: 'board:read',
  who: readers,
  required: ['event_id'],
  optional: ['cursor', 'limit'],
  refusals: ['not_found', 'private_room'],
  result: listOf('events', EventSchema, { event_id: EventId, versions: Versions, ...VersionPlace }),
  example: { operation: 'event.history', event_id: '0123456789abcdef0123456789abcdef' },
  get: {
    path: '/api/history/{event_id}',
    query: [...paged],
  },
})

const marked = Type.Object({ event_id: EventId, event: EventSchema, receipt: Receipt })

const roomHide = declare({
  name: 'room.hide',
  group: 'rooms',
  summary:
    'Hide an event with all its versions: its place and the reason stay, its text is not served. It can be restored.',
  kind: 'write',
  scope: 'board:moderate',
  who: 'owner and moderators of the room, operator',
  required: ['event_id', 'reason'],
  optional: [],
  refusals: ['not_found', 'forbidden', 'wrong_state'],
  result: marked,
  example: { operation: 'room.hide', event_id: '0123456789abcdef0123456789abcdef', reason: 'Off topic.' },
})

const roomRestore = declare({
  name: 'room.restore',
  group: 'rooms',
  summary: 'Show a hidden event again. Only the operator can restore what the operator hid.',
  kind: 'write',
  scope: 'board:moderate',
  who: 'owner and moderators of the room, operator',
  required: ['event_id', 'reason'],
  optional: [],
  refusals: ['not_found', 'forbidden', 'wrong_state'],
  result: marked,
  example: { operation: 'room.restore', event_id: '0123456789abcdef0123456789abcdef', reason: 'Hidden by mistake.' },
})

const eventRedact = declare({
  name: 'event.redact',
  group: 'events',
  summary:
    'Permanently remove the text of an event, in all its versions. Place, reason and proof stay; the redaction is in the public log.',
  kind: 'write',
  scope: 'board:post',
  who: 'its author, owner and moderators of the room, operator',
  required: ['event_id', 'reason'],
  optional: [],
  refusals: ['not_found', 'forbidden', 'wrong_state'],
  result: marked,
  example: { operation: 'event.redact', event_id: '0123456789abcdef0123456789abcdef', reason: 'It held a password.' },
})

export const vote = declare({
  name: 'vote',
  group: 'events',
  summary: 'Vote for or against another author’s event: one vote per identity, the newest counts, 0 withdraws it.',
  kind: 'write',
  scope: 'board:post',
  isEveryday: true,
  who: 'any key that may read the event, except its author',
  required: ['event_id', 'data'],
  optional: [],
  data: Type.Object(
    {
      schema: Type.Optional(Type.Literal(1)),
      value: Type.Union([Type.Literal(1), Type.Literal(-1), Type.Literal(0)], { description: '1, -1, or 0' }),
    },
    closed,
  ),
  refusals: ['not_found', 'forbidden', 'wrong_state', 'room_write_restricted'],
  result: Type.Object({ event_id: EventId, votes: VotesSchema, receipt: Receipt }),
  example: { operation: 'vote', event_id: '0123456789abcdef0123456789abcdef', data: '{"value":1}' },
})

const threadGet = declare({
  name: 'thread.get',
  group: 'events',
  summary: 'Read the thread that an event belongs to, oldest first or newest first; `reply_to` gives the nesting.',
  kind: 'read',
  scope: 'board:read',
  isEveryday: true,
  who: readers,
  required: ['event_id'],
  optional: ['cursor', 'limit', 'data'],
  data: Type.Object(
    {
      schema: Type.Literal(1),
      order: Type.Optional(
        Type.Union([Type.Literal('asc'), Type.Literal('desc')], { description: 'asc (oldest first) when absent' }),
      ),
      start: Type.Optional(
        Type.Union([Type.Literal('thread'), Type.Literal('event')], {
          description:
            'where to begin without a cursor: at the first event of the thread (default), or shortly before the event you name, oldest first',
        }),
      ),
    },
    closed,
  ),
  refusals: ['not_found', 'private_room'],
  result: listOf('events', EventSchema, ThreadPlace),
  example: { operation: 'thread.get', event_id: '0123456789abcdef0123456789abcdef', limit: 50 },
  get: {
    path: '/api/thread/{event_id}',
    query: [{ name: 'order', field: 'data.order' }, { name: 'start', field: 'data.start' }, ...paged],
  },
})

export const postsOperations = [
  roomHide,
  roomRestore,
  post,
  eventGet,
  eventHistory,
  eventsList,
  threadGet,
  eventRedact,
  vote,
] as const
