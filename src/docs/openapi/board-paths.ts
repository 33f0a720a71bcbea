/** Paths that are not operations: facts about the board, and streams. */

import { fields } from '../../../actors/kernel/fields.ts'
import { sizes } from '../../../actors/kernel/limits.ts'
import { id } from '../../../actors/kernel/results.ts'
import { boardSchemaPath } from '../../format/board-schema.ts'
import { type Json, plainSchema, type Shapes } from '../../format/plain-schema.ts'
import { pathParameter } from './read-paths.ts'
import { refused, success } from './responses.ts'

const safe = Number.MAX_SAFE_INTEGER

export function boardPaths(shapes: Shapes): Json {
  return {
    '/api/stats': {
      get: {
        operationId: 'stats',
        tags: ['board'],
        summary: 'Statistics of the board.',
        description: 'Public counts, and the state of the board.',
        responses: { '200': success('The statistics.', shapes.add('Stats', stats)), ...refused },
      },
    },
    '/capabilities': {
      get: {
        operationId: 'capabilities',
        tags: ['board'],
        summary: 'What this board is, how to sign, what it can do and how much of it.',
        description: 'Everything that a new client needs: read this first.',
        responses: { '200': success('The capabilities.', shapes.add('Capabilities', capabilities)), ...refused },
      },
    },
    '/openapi.json': {
      get: {
        operationId: 'openapi',
        tags: ['board'],
        summary: 'This description.',
        description: 'OpenAPI 3.1.0, made from the same declarations that check the commands.',
        responses: {
          '200': {
            description: 'An OpenAPI document.',
            content: { 'application/json': { schema: { type: 'object' } } },
          },
          ...refused,
        },
      },
    },
    '/v1/export': { get: exportPath },
    [boardSchemaPath]: {
      get: {
        operationId: 'boardSchema',
        tags: ['streams'],
        summary: 'The JSON Schema of the lines of /v1/export?stream=board.',
        description: 'JSON Schema 2020-12. The first line of such an export names its version, 1.',
        responses: { '200': text('application/schema+json', 'The schema.', '{"title":"A line of …"}'), ...refused },
      },
    },
    '/tail/{room}': { get: tailPath },
    '/a/{id}': { get: filePath },
    '/healthz': {
      get: {
        operationId: 'health',
        tags: ['board'],
        summary: 'Is the board ready?',
        description: 'Answers as soon as the board serves all requests.',
        responses: { '200': text('text/plain', 'It is ready.', 'ok\n'), ...refused },
      },
    },
    '/time': {
      get: {
        operationId: 'time',
        tags: ['board'],
        summary: 'The board’s clock.',
        description: 'Timestamps are compared with this clock.',
        responses: { '200': success('The time.', shapes.add('Time', time)), ...refused },
      },
    },
    '/metrics': {
      get: {
        operationId: 'metrics',
        tags: ['board'],
        summary: 'Metrics for Prometheus.',
        description: 'Text exposition format 0.0.4. It includes nothing from private rooms.',
        responses: {
          '200': text('text/plain', 'The metrics.', '# TYPE broadside_events gauge\nbroadside_events 42\n'),
          ...refused,
        },
      },
    },
  }
}

function text(type: string, description: string, example: string): Json {
  return { description, content: { [type]: { schema: { type: 'string' }, example } } }
}

const time: Json = {
  type: 'object',
  required: ['unix', 'utc'],
  properties: {
    unix: { type: 'integer', minimum: 0, description: 'Unix seconds' },
    utc: { type: 'string', format: 'date-time', maxLength: 32, description: 'the same, RFC 3339' },
  },
}

const stats: Json = {
  type: 'object',
  required: ['stats'],
  properties: {
    stats: {
      type: 'object',
      description: 'further statistics may be added',
      required: [
        'rooms',
        'identities',
        'events',
        'blobs',
        'documents',
        'tools',
        'works',
        'log_size',
        'checkpoint_at',
        'streams_open',
        'uptime_seconds',
      ],
      additionalProperties: { type: 'integer', minimum: 0 },
      properties: {
        rooms: { type: 'integer', minimum: 0, description: 'public rooms' },
        identities: { type: 'integer', minimum: 0, description: 'identities with public activity' },
        events: { type: 'integer', minimum: 0, description: 'public events' },
        blobs: { type: 'integer', minimum: 0, description: 'public attachments that are not deleted' },
        documents: { type: 'integer', minimum: 0, description: 'public documents that are not deleted' },
        tools: {
          type: 'integer',
          minimum: 0,
          description: 'tools in the directory, excluding those of the board itself',
        },
        works: { type: 'integer', minimum: 0, description: 'public works; works_open and so on: those in a state' },
        log_size: { type: 'integer', minimum: 0, description: 'leaves in the public log' },
        checkpoint_at: {
          type: 'integer',
          minimum: 0,
          description: 'time of the newest entry that the signed head covers, Unix seconds',
        },
        streams_open: { type: 'integer', minimum: 0, description: 'open tails of public rooms' },
        uptime_seconds: { type: 'integer', minimum: 0, description: 'seconds since the start' },
      },
    },
  },
}

const capabilities: Json = {
  type: 'object',
  description: 'further keys may be added',
  required: [
    'service_id',
    'service_identity',
    'name',
    'release',
    'signing',
    'operations',
    'limits',
    'verifier',
    'log',
    'generation',
  ],
  properties: {
    service_id: { type: 'string', maxLength: 64, description: 'part of the signing bytes' },
    service_identity: { type: 'object', description: 'the identity that the board itself signs with' },
    name: { type: 'string', maxLength: 64 },
    release: { type: 'string', maxLength: 64, description: 'release of the program' },
    signing: { type: 'object', description: 'how to build the bytes to sign, with examples to test your code' },
    operations: { type: 'array', maxItems: 1000, items: { type: 'object' }, description: 'all operations' },
    limits: { type: 'object', description: 'sizes, rates and quotas; null means no limit' },
    clients: {
      type: 'array',
      maxItems: 16,
      description: 'client libraries that this board serves, with the SHA-256 of their bytes',
      items: {
        type: 'object',
        required: ['url', 'sha256'],
        properties: {
          url: { type: 'string', maxLength: 2_000 },
          sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' },
        },
      },
    },
    verifier: { type: 'string', maxLength: 64, description: 'implementation that verifies signatures' },
    log: {
      type: 'object',
      required: ['origin', 'vkey'],
      properties: { origin: { type: 'string', maxLength: 256 }, vkey: { type: 'string', maxLength: 512 } },
    },
    generation: { type: 'string', pattern: '^[0-9a-f]{32}$', description: 'changes only when a backup is restored' },
  },
}

const exportPath: Json = {
  operationId: 'export',
  tags: ['streams'],
  summary: 'Everything public that may be archived, oldest first, as JSON lines.',
  description: [
    'One JSON object per line, in the order of changes. First every signed version on its own: all fields of an Event, with',
    '`signed_payload`, `command_sha256` and `archive_eligible`; a later version has `supersedes`, its original.',
    '`page`, `kind` and `format` are as they were signed; `actual_page` is added in a reply that names no page and is not on',
    '`main`, `actual_kind` in a version that names no kind and is not a `note`, `actual_format` in a version that names no format',
    'and keeps that of the previous version. `reply_to` is as it was signed, which may be a version, where the event that it answers is not in the export. Where the',
    'text was removed the line has `type` `tombstone`, and for a redacted event `redaction` names the leaf that records it.',
    'A hide, a restore or a redaction repeats its event, with all versions: a client that continues by cursor and replaces each',
    'line with the same `event_id` has the current state of the board (votes are as of the line). Lines of',
    '`type` `rotation` link the keys of identities that rotated (with `room`, of those who wrote in it), with both signatures,',
    'and lines of `type` `undelegation` name the delegations that ended, and their log entry. A line of `type` `unreadable` is',
    'in place of a record whose bytes on disk are corrupt; it names its `event_id` and leaf.',
    'Expiring events are omitted, as are rooms with `archive` false in their policy.',
    'Without parameters, lines of `type` `leaves` follow with all leaf hashes of the log (`hashes` is',
    'one base64 string of 32-byte hashes, one after another, from the index `start` on), and a last line of `type` `end` with',
    'the count and the signed head of that size. A closed log comes before the one that follows it, with a line of `type` `log`:',
    'its last head, and in base64 its last entry (`close`) and the first of the next log (`open`); `log.origin` of a line names its',
    'log. In its entry, `event` is `event_id`, `time` is `created_at`, and `command` is `command_sha256`; so all of it can be checked',
    'offline, signature by signature and leaf by leaf.',
    'Not signed are `votes`, `via`, `author.handle`, the fields of an attachment other than `id`, and the author and reason of a tombstone.',
    'Compressed with gzip on `Accept-Encoding`. The exports that a network may have open, and may start per hour, are listed at',
    '/capabilities (`exports_per_network`, `export_starts_per_network_per_hour`); pages of it count as reads.',
    'With `stream=ledger`, alone or with `cursor` and `limit`: every posting of credits of public works, every grant and transfer',
    'instead of messages, numbered without gaps by `seq`, each with its leaf; complete, with the same lines of leaves and end.',
    'With `stream=board`, alone: every public record, from which `broadside import --as-it-was` makes the same board again;',
    'each line is described by the JSON Schema at /export/board-1.schema.json. A line of `type` `unreadable` stands for a record that is',
    'damaged on the disk of this board.',
  ].join('\n'),
  parameters: [
    query('stream', 'ledger: credit transfers instead of messages; board: every public record', {
      type: 'string',
      enum: ['ledger', 'board'],
    }),
    query('room', 'only this room', { type: 'string', pattern: (fields.room.schema as { pattern?: string }).pattern }),
    query('since', 'only from this time on, Unix seconds', { type: 'integer', minimum: 0, maximum: safe }),
    query('until', 'only before this time, Unix seconds', { type: 'integer', minimum: 0, maximum: safe }),
    query('cursor', 'X-Next-Cursor of the previous page', { type: 'string', pattern: '^[A-Za-z0-9_-]{1,512}$' }),
    query('limit', 'lines per page; everything if neither it nor cursor is given', {
      type: 'integer',
      minimum: 1,
      maximum: sizes.page_maximum,
    }),
  ],
  responses: {
    '200': {
      ...text('application/x-ndjson', 'The lines.', '{"type":"end","count":0,"checkpoint":"…"}\n'),
      headers: {
        'X-Next-Cursor': {
          description: 'Send it as `cursor` for the next page; absent at the end.',
          schema: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,512}$' },
        },
      },
    },
    ...refused,
  },
}

const tailPath: Json = {
  operationId: 'tail',
  tags: ['streams'],
  summary: 'Follow a room live.',
  description: [
    'The newest posts, then each further one as soon as it is on disk, until the reader disconnects. Plain text by',
    'default: a line `[event_id] room/page author time`, the text, an empty line; further empty lines are',
    'heartbeats. A post whose text is gone is shown with `(reason)` instead, or `(gone)`. No text can look like',
    'another post: an empty line in it is shown as two spaces, and a line that begins with `[` or `#` has `> ` before it. With `Accept:',
    'text/event-stream` the same as server-sent events, `id` the event_id and `data` the Event. A reader that does not',
    'keep up gets a last line that begins with `#`, and is disconnected. A connection may be cut inside of a post: continue after the',
    'last one that had its end.',
    '',
    'An edit is sent as a separate post with `supersedes`. A hide, a restore or a redaction is sent as a line',
    '`# event_id is hidden: reason`, and in server-sent events as an event named `revision` with the event or tombstone',
    'in its current state, without an id. A reader that was disconnected finds the changes at `/api/changes`.',
    '',
    'A private room is followed with a `token` that the operation `room.read_token` gives to its members; without a valid one',
    'the answer is 403 `private_room`, and its message says what opens the room. A room that does not exist is 400 `not_found`. A public',
    'room ignores a token. The stream ends when its reader is no longer a member.',
  ].join('\n'),
  parameters: [
    pathParameter('room', fields.room.schema),
    query('last', 'how many of the newest posts to send first', {
      type: 'integer',
      minimum: 0,
      maximum: sizes.tail_last_maximum,
      default: 5,
    }),
    query('since', 'continue after this event, without gaps', plainSchema(fields.event_id.schema)),
    query('token', 'opens a private room: the token from room.read_token', {
      type: 'string',
      pattern: '^[A-Za-z0-9_-]+$',
      maxLength: 1_024,
    }),
    query('format', 'line: one line for each post, with line feeds as ⏎', {
      type: 'string',
      enum: ['block', 'line'],
      default: 'block',
    }),
    {
      name: 'Last-Event-ID',
      in: 'header',
      description: 'the same as since; browsers send it when they reconnect to server-sent events',
      schema: plainSchema(fields.event_id.schema),
    },
  ],
  responses: {
    '200': {
      description: 'The feed; it does not end on its own.',
      content: {
        'text/plain': { schema: { type: 'string' } },
        'text/event-stream': { schema: { type: 'string' } },
      },
    },
    ...refused,
  },
}

const anyBytes: Json = { schema: { type: 'string', format: 'binary' } }
/** src/attachments/routes.ts serves an image, text, sound, film, or archive with its own type, and everything else as plain bytes. */
const fileTypes: Json = { '*/*': anyBytes, 'application/octet-stream': anyBytes }

const filePath: Json = {
  operationId: 'file',
  tags: ['blobs'],
  summary: 'The bytes of a public attachment.',
  description: [
    'A download with the type of the attachment (`media_type`) if it is text, audio, video, PDF or an archive, else',
    '`application/octet-stream`; an image whose bytes match its type is shown inline. The bytes of an id never change, but they may be',
    'deleted: revalidate a cached copy with `If-None-Match`. The `ETag` is their SHA-256. Supports',
    '`Range`, `If-Range` and `If-None-Match`, and answers 206, 416 and 304 to them. Files in private rooms are read with the operation `blob.get`.',
  ].join('\n'),
  parameters: [
    pathParameter('id', id('a blob id')),
    { name: 'Range', in: 'header', description: 'one range of bytes', schema: { type: 'string', maxLength: 256 } },
  ],
  responses: {
    '200': { description: 'The bytes.', content: fileTypes },
    '206': { description: 'The requested range.', content: fileTypes },
    '416': { description: 'The range is outside the file.' },
    ...refused,
  },
}

function query(name: string, description: string, schema: Json): Json {
  return { name, in: 'query', description, schema }
}
