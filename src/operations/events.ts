/** Events: posts, and how they are read. */
import { Type } from 'typebox'
import { patterned } from './fields.ts'
import type { Operation } from './operation.ts'
import { EventId, EventSchema, Generation, listOf, Receipt, ThreadPlace } from './results.ts'

const readers = 'anyone for public rooms, members for private ones'
const closed = { additionalProperties: false }

export const post: Operation = {
  name: 'post',
  aliases: ['event.post', 'message.post'],
  group: 'events',
  summary:
    'Post into a room (default `lobby`), or reply with `reply_to`. A public room that is missing is made by its first post.',
  kind: 'write',
  who: 'any key in public rooms, members in private ones',
  required: ['text'],
  optional: ['room', 'page', 'kind', 'reply_to', 'to', 'handle', 'ttl', 'attachments', 'data'],
  data: Type.Object(
    { schema: Type.Literal(1), format: Type.Optional(Type.Union([Type.Literal('text'), Type.Literal('markdown')])) },
    closed,
  ),
  refusals: ['not_found', 'private_room'],
  result: Type.Object({
    event_id: EventId,
    event: EventSchema,
    handle_not_applied: Type.Optional(
      Type.String({
        maxLength: 64,
        description: 'why the handle asked for was not given; the post stands all the same',
      }),
    ),
    receipt: Receipt,
  }),
  example: { operation: 'post', room: 'lobby', text: 'Hello from a signed key.' },
}

export const eventGet: Operation = {
  name: 'event.get',
  group: 'events',
  summary: 'Read one event with the exact bytes that were signed.',
  kind: 'read',
  who: readers,
  required: ['event_id'],
  optional: [],
  refusals: ['not_found', 'private_room'],
  result: Type.Object({ event: EventSchema }),
  example: { operation: 'event.get', event_id: '0123456789abcdef0123456789abcdef' },
  get: { path: '/api/events/{event_id}', query: [] },
}

export const eventsList: Operation = {
  name: 'events.list',
  group: 'events',
  summary: 'List events, newest first, of everything public or of one room; filter by page, author or kind.',
  kind: 'read',
  who: readers,
  required: [],
  optional: ['room', 'page', 'target', 'kind', 'before', 'cursor', 'limit', 'data'],
  data: Type.Object(
    {
      schema: Type.Literal(1),
      after: Type.Optional(
        Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'only events with a greater seq' }),
      ),
      order: Type.Optional(
        Type.Union([Type.Literal('desc'), Type.Literal('asc')], { description: 'desc (newest first) when absent' }),
      ),
    },
    closed,
  ),
  narrowed: {
    target: patterned('^[0-9a-f]{64}$', 'author of the events', 'an identity id of 64 lowercase hex characters'),
  },
  refusals: ['not_found', 'private_room'],
  result: listOf('events', EventSchema, { generation: Generation }),
  example: { operation: 'events.list', room: 'lobby', limit: 20 },
  get: {
    path: '/api/events',
    query: [
      { name: 'room', field: 'room' },
      { name: 'page', field: 'page' },
      { name: 'author', field: 'target' },
      { name: 'kind', field: 'kind' },
      { name: 'before', field: 'before' },
      { name: 'after', field: 'data.after' },
      { name: 'order', field: 'data.order' },
      { name: 'cursor', field: 'cursor' },
      { name: 'limit', field: 'limit' },
    ],
  },
}

export const threadGet: Operation = {
  name: 'thread.get',
  group: 'events',
  summary: 'Read the thread of any of its events, oldest first; `reply_to` gives the nesting.',
  kind: 'read',
  who: readers,
  required: ['event_id'],
  optional: ['cursor', 'limit'],
  refusals: ['not_found', 'private_room'],
  result: listOf('events', EventSchema, ThreadPlace),
  example: { operation: 'thread.get', event_id: '0123456789abcdef0123456789abcdef', limit: 50 },
  get: {
    path: '/api/thread/{event_id}',
    query: [
      { name: 'cursor', field: 'cursor' },
      { name: 'limit', field: 'limit' },
    ],
  },
}
