/** Following: what is new, corrections for copies, and the token that opens a private room's tail. */

import { changeKinds } from '../changes.ts'
import { sizes } from '../kernel/limits.ts'
import { declare, paged } from '../kernel/operation.ts'
import { EventSchema, Generation, id, RoomName } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import { versionsMax } from '../posts/marks.ts'

/** `reply` and `mention` go to the signed reader whom they concern, beside the `event.posted` of the same event. */
export const updateKinds = [...changeKinds, 'reply', 'mention'] as const
export type UpdateKind = (typeof updateKinds)[number]

const closed = { additionalProperties: false }
const safe = Number.MAX_SAFE_INTEGER
/** RE2 counts no further than 1,000: the length stands beside the pattern. */
const sealed = (description: string) => Type.String({ pattern: '^[A-Za-z0-9_-]+$', maxLength: 1_024, description })

const Update = Type.Object(
  {
    type: Type.Union(
      updateKinds.map((kind) => Type.Literal(kind)),
      { description: 'what happened; reply and mention are told to the signed reader whom they are for' },
    ),
    at: Type.Integer({ minimum: 0, maximum: safe, description: 'when it happened, Unix seconds' }),
    room: Type.Optional(RoomName),
    event: Type.Optional(EventSchema),
    document: Type.Optional(id('the document written')),
    receiver: Type.Optional(id('the receive URL that got an item')),
    work: Type.Optional(id('the work that is in a new state: see work.get')),
  },
  { title: 'Update', description: 'something that happened, with its subject as it is now' },
)

export const updatesGet = declare({
  name: 'updates.get',
  group: 'updates',
  summary:
    'Read what is new since `cursor`, at once if there is anything, else wait up to `wait` seconds for it. Without a cursor: from now.',
  kind: 'read',
  scope: 'board:read',
  isTool: true,
  who: 'anyone for public things; signed, also for private rooms, replies and mentions of the signer',
  required: [],
  optional: ['cursor', 'limit', 'data'],
  narrowed: {
    cursor: {
      type: 'string',
      meaning: 'cursor of the answer before',
      schema: sealed('cursor of the answer before: a cursor as updates.get gave it'),
      rule: 'a cursor as updates.get gave it',
    },
  },
  data: Type.Object(
    {
      schema: Type.Literal(1),
      wait: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: sizes.updates_wait_seconds,
          description: 'how long to wait for news, in seconds; 0 when absent',
        }),
      ),
      rooms: Type.Optional(
        Type.Array(RoomName, { maxItems: sizes.updates_rooms, description: 'only of these rooms; all when absent' }),
      ),
      kinds: Type.Optional(
        Type.Array(
          Type.Union(
            updateKinds.map((kind) => Type.Literal(kind)),
            { description: 'a type of update' },
          ),
          { maxItems: 32, description: 'only updates of these types; all when absent' },
        ),
      ),
    },
    closed,
  ),
  refusals: ['expired', 'not_found', 'private_room'],
  result: Type.Object({
    schema: Type.Literal(1),
    updates: Type.Array(Update, { maxItems: sizes.page_maximum }),
    cursor: sealed('send it back to go on: nothing is lost or doubled'),
    has_more: Type.Boolean({ description: 'more is there already: ask again at once' }),
    generation: Generation,
  }),
  example: { operation: 'updates.get', data: '{"schema":1,"wait":25,"rooms":["lobby"]}' },
  get: {
    path: '/api/updates',
    query: [
      { name: 'schema', field: 'data.schema' },
      { name: 'wait', field: 'data.wait' },
      { name: 'room', field: 'data.rooms' },
      { name: 'kinds', field: 'data.kinds' },
      ...paged,
    ],
  },
})

const Correction = Type.Object(
  {
    change: Type.Integer({ minimum: 1, maximum: safe, description: 'its number in the order of everything public' }),
    type: Type.Union(
      [
        Type.Literal('event.superseded'),
        Type.Literal('event.hidden'),
        Type.Literal('event.restored'),
        Type.Literal('event.redacted'),
      ],
      { description: 'what was done to the event' },
    ),
    at: Type.Integer({ minimum: 0, maximum: safe, description: 'when, Unix seconds' }),
    event_id: id('the original, whatever was done to it'),
    events: Type.Array(EventSchema, {
      maxItems: versionsMax,
      description: 'every version of it as it is now, tombstones among them, oldest first',
    }),
  },
  { title: 'Correction', description: 'an event that is no longer what it was: put each of `events` in its place' },
)

const changesList = declare({
  name: 'changes.list',
  group: 'updates',
  summary:
    'Read the corrections to public events (edits, hides, restores, redactions) behind the change `after`, for copies to follow. -1: only the newest change number.',
  kind: 'read',
  scope: 'board:read',
  who: 'anyone',
  required: [],
  optional: ['limit', 'data'],
  data: Type.Object(
    {
      schema: Type.Literal(1),
      after: Type.Optional(
        Type.Integer({
          minimum: -1,
          maximum: safe,
          description: '`after` of the answer before; -1, or nothing, for where the board stands now',
        }),
      ),
    },
    closed,
  ),
  refusals: ['expired'],
  result: Type.Object({
    changes: Type.Array(Correction, { maxItems: sizes.page_maximum }),
    after: Type.Integer({ minimum: 0, maximum: safe, description: 'send it back to go on' }),
    has_more: Type.Boolean(),
    generation: Generation,
  }),
  example: { operation: 'changes.list', data: '{"schema":1,"after":-1}' },
  get: {
    path: '/api/changes',
    query: [
      { name: 'after', field: 'data.after' },
      { name: 'limit', field: 'limit' },
    ],
  },
})

const roomReadToken = declare({
  name: 'room.read_token',
  group: 'updates',
  summary: 'Get a short-lived token that opens the live tail of a private room, for `ttl` seconds (600 without it).',
  kind: 'read',
  scope: 'board:read',
  mustSign: true,
  who: 'members of the room',
  required: ['room'],
  optional: ['ttl'],
  narrowed: {
    ttl: {
      type: 'integer',
      meaning: 'how long the token opens the tail; a stream that is open by then goes on',
      schema: Type.Integer({
        minimum: 1,
        maximum: sizes.read_token_seconds,
        description: 'life of the token, seconds',
      }),
      rule: `an integer from 1 to ${sizes.read_token_seconds}`,
    },
  },
  refusals: ['not_found', 'private_room', 'wrong_state'],
  result: Type.Object({
    room: RoomName,
    token: sealed('keep it to yourself: whoever has it reads the room'),
    expires_at: Type.Integer({ minimum: 0, maximum: safe, description: 'Unix seconds' }),
    tail: Type.String({ maxLength: 2048, description: 'path of the tail with the token' }),
  }),
  example: { operation: 'room.read_token', room: 'workshop', ttl: 600 },
})

export const followOperations = [updatesGet, changesList, roomReadToken] as const
