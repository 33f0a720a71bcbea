/** Operations on moderation: the log of moderation in a room, and reports to the operator of the board. */

import { choice, patterned } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { declare, paged } from '../kernel/operation.ts'
import { listOf, Receipt, RoomName, Unreadable } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import { ModerationActSchema, ModerationEntry, ReportedSchema, ReportSchema, reportActions } from '../rooms/results.ts'

const roomModlog = declare({
  name: 'room.modlog',
  group: 'moderation',
  summary: 'List the moderation of a room, newest first: who did what, to whom and why, each with its signature.',
  kind: 'read',
  scope: 'board:read',
  who: 'anyone for public rooms, members for private ones',
  required: ['room'],
  optional: ['cursor', 'limit'],
  refusals: ['not_found', 'private_room'],
  result: listOf('entries', ModerationEntry, { room: RoomName, unreadable: Unreadable }),
  example: { operation: 'room.modlog', room: 'lobby' },
  get: {
    path: '/api/modlog',
    query: [{ name: 'room', field: 'room' }, ...paged],
  },
})

const moderationLog = declare({
  name: 'moderation.log',
  group: 'moderation',
  summary:
    'List the public moderation of the whole board, newest first: who did what, to whom and why, in rooms and as its operators, each with its signature and its place in the public log.',
  kind: 'read',
  scope: 'board:read',
  who: 'anyone',
  required: [],
  optional: ['cursor', 'limit'],
  refusals: [],
  result: listOf('acts', ModerationActSchema, { unreadable: Unreadable }),
  example: { operation: 'moderation.log', limit: 20 },
  get: { path: '/api/moderation', query: [...paged] },
})

export const report = declare({
  name: 'report',
  group: 'moderation',
  summary: 'Report an event to the operator of the board, confidentially and once. Reporting hides nothing.',
  kind: 'write',
  isUnseen: true,
  scope: 'board:post',
  who: 'any key that may read the event',
  required: ['event_id', 'reason'],
  optional: [],
  refusals: ['not_found', 'conflict'],
  result: Type.Object({
    report: Type.Object({
      id: ReportSchema.properties.id,
      event_id: ReportSchema.properties.event_id,
      state: Type.Literal('open'),
    }),
    receipt: Receipt,
  }),
  example: { operation: 'report', event_id: '0123456789abcdef0123456789abcdef', reason: 'spam' },
})

const reportsList = declare({
  name: 'reports.list',
  group: 'moderation',
  summary: 'List reports, newest first; `kind` selects open or resolved ones.',
  kind: 'read',
  scope: 'board:operate',
  mustSign: true,
  who: 'the operator of the board',
  required: [],
  optional: ['kind', 'cursor', 'limit'],
  narrowed: { kind: choice(['open', 'resolved'], 'which reports') },
  refusals: ['forbidden'],
  result: listOf('reports', ReportSchema),
  example: { operation: 'reports.list', kind: 'open' },
})

const reportsSummary = declare({
  name: 'reports.summary',
  group: 'moderation',
  summary:
    'List the events with open reports, the most recently reported first: how many reported each, and since when.',
  kind: 'read',
  scope: 'board:operate',
  mustSign: true,
  who: 'the operator of the board',
  required: [],
  optional: ['cursor', 'limit'],
  refusals: ['forbidden'],
  result: listOf('reported', ReportedSchema),
  example: { operation: 'reports.summary' },
})

export const reportResolve = declare({
  name: 'report.resolve',
  group: 'moderation',
  summary:
    'Record how a report was resolved. The action itself, such as a hide or a suspension, is a separate command.',
  kind: 'write',
  scope: 'board:operate',
  who: 'the operator of the board',
  required: ['target', 'data'],
  optional: [],
  narrowed: { target: patterned('^[0-9a-f]{32}$', 'the report', 'a report id of 32 lowercase hex characters') },
  data: Type.Object(
    {
      schema: Type.Literal(1),
      action: Type.Union(
        reportActions.map((action) => Type.Literal(action)),
        { description: 'what was done' },
      ),
      note: Type.Optional(Type.String({ maxLength: sizes.reason_bytes, description: 'for operators to read' })),
    },
    { additionalProperties: false },
  ),
  refusals: ['not_found', 'forbidden', 'wrong_state'],
  result: Type.Object({
    report: Type.Object({ id: ReportSchema.properties.id, state: Type.Literal('resolved') }),
    receipt: Receipt,
  }),
  example: {
    operation: 'report.resolve',
    target: '0123456789abcdef0123456789abcdef',
    data: '{"schema":1,"action":"hidden"}',
  },
})

export const moderationOperations = [
  roomModlog,
  moderationLog,
  report,
  reportsList,
  reportsSummary,
  reportResolve,
] as const
