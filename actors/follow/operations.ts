/** The operations for following a board: updates, corrections for copies, and the token that opens a private room's tail. */

import { internalLimits, sizes } from '../kernel/limits.ts'
import { declare, paged } from '../kernel/operation.ts'
import { EventSchema, Generation, id, RoomName } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import { changeKinds } from '../records/change-kinds.ts'

/** `reply` and `mention` go to the signed reader that they concern, in addition to the `event.posted` of the same event. */
export const updateKinds = [...changeKinds, 'reply', 'mention'] as const
export type UpdateKind = (typeof updateKinds)[number]

const closed = { additionalProperties: false }
const safe = Number.MAX_SAFE_INTEGER
/** RE2 limits repetition counts to 1,000, so the length is stated separately from the pattern. */
const sealed = (description: string) => Type.String({ pattern: '^[A-Za-z0-9_-]+$', maxLength: 1_024, description })

const Update = Type.Object(
  {
    type: Type.Union(
      updateKinds.map((kind) => Type.Literal(kind)),
      { description: 'what happened; reply and mention are sent only to the signed reader they are for' },
    ),
    at: Type.Integer({ minimum: 0, maximum: safe, description: 'when it happened, Unix seconds' }),
    room: Type.Optional(RoomName),
    event: Type.Optional(EventSchema),
    document: Type.Optional(id('the document written')),
    version: Type.Optional(
      Type.Integer({ minimum: 1, maximum: safe, description: 'the version of the document that was written' }),
    ),
    receiver: Type.Optional(id('the receive URL that received an item')),
    work: Type.Optional(id('the work whose state changed: see work.get')),
  },
  { title: 'Update', description: 'an update, with the current state of its subject' },
)

export const updatesGet = declare({
  name: 'updates.get',
  group: 'updates',
  summary:
    'Read updates after `cursor`. Returns immediately if there are any, otherwise waits up to `wait` seconds. Without a cursor, starts from now.',
  kind: 'read',
  isEveryday: true,
  answeredBy: 'main',
  scope: 'board:read',
  who: 'anyone for public updates; when signed, also for private rooms, replies and mentions of the signer',
  required: [],
  optional: ['cursor', 'limit', 'data'],
  narrowed: {
    cursor: {
      type: 'string',
      meaning: 'cursor of the previous answer',
      schema: sealed('cursor of the previous answer, exactly as updates.get returned it'),
      rule: 'a cursor that updates.get returned',
    },
  },
  data: Type.Object(
    {
      schema: Type.Literal(1),
      wait: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: sizes.updates_wait_seconds,
          description: 'how long to wait for updates, in seconds; 0 when absent',
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
    cursor: sealed('send it back to continue: nothing is lost or repeated'),
    has_more: Type.Boolean({ description: 'more is available now: ask again immediately' }),
    generation: Generation,
  }),
  example: { operation: 'updates.get', data: '{"schema":1,"wait":25,"rooms":["lobby"]}' },
  get: {
    path: '/api/updates',
    query: [
      { name: 'schema', field: 'data.schema' },
      { name: 'wait', field: 'data.wait' },
      { name: 'room', also: 'rooms', field: 'data.rooms' },
      { name: 'kinds', field: 'data.kinds' },
      ...paged,
    ],
  },
})

const Correction = Type.Object(
  {
    change: Type.Integer({ minimum: 1, maximum: safe, description: 'its number in the order of all public changes' }),
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
    event_id: id('id of the original event'),
    events: Type.Array(EventSchema, {
      maxItems: internalLimits.eventVersions,
      description: 'every current version of it, tombstones included, oldest first',
    }),
  },
  { title: 'Correction', description: 'an event that changed: replace your copy with `events`' },
)

const changesList = declare({
  name: 'changes.list',
  group: 'updates',
  summary:
    'Read the corrections to public events (edits, hides, restores, redactions) after the change `after`, so that copies stay current. -1: only the newest change number.',
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
          description: '`after` of the previous answer; -1, or absent, for the newest change number',
        }),
      ),
    },
    closed,
  ),
  refusals: ['expired'],
  result: Type.Object({
    changes: Type.Array(Correction, { maxItems: sizes.page_maximum }),
    after: Type.Integer({ minimum: 0, maximum: safe, description: 'send it back to continue' }),
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
  summary: 'Get a short-lived token that opens the live tail of a private room, for `ttl` seconds (600 when absent).',
  kind: 'read',
  scope: 'board:read',
  mustSign: true,
  who: 'members of the room',
  required: ['room'],
  optional: ['ttl'],
  narrowed: {
    ttl: {
      type: 'integer',
      meaning: 'how long the token opens the tail; a stream that is already open continues',
      schema: Type.Integer({
        minimum: 1,
        maximum: sizes.read_token_seconds,
        description: 'lifetime of the token, seconds',
      }),
      rule: `an integer from 1 to ${sizes.read_token_seconds}`,
    },
  },
  refusals: ['not_found', 'private_room', 'wrong_state'],
  result: Type.Object({
    room: RoomName,
    token: sealed('keep it secret: anyone who has it can read the room'),
    expires_at: Type.Integer({ minimum: 0, maximum: safe, description: 'Unix seconds' }),
    tail: Type.String({ maxLength: 2048, description: 'path of the tail with the token' }),
  }),
  example: { operation: 'room.read_token', room: 'workshop', ttl: 600 },
})

export const followOperations = [updatesGet, changesList, roomReadToken] as const
