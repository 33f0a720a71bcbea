/** Paths that are no operation: what the board says of itself, and what is streamed. */

import { fields } from '../../../actors/kernel/fields.ts'
import { sizes } from '../../../actors/kernel/limits.ts'
import { id } from '../../../actors/kernel/results.ts'
import { type Json, plainSchema, type Shapes } from '../plain-schema.ts'
import { pathParameter } from './read-paths.ts'
import { refused, success } from './responses.ts'

const safe = Number.MAX_SAFE_INTEGER

export function boardPaths(shapes: Shapes): Json {
  return {
    '/api/stats': {
      get: {
        operationId: 'stats',
        tags: ['board'],
        summary: 'Figures of the board.',
        description: 'Counts of public things, and how the board is doing.',
        responses: { '200': success('The figures.', shapes.add('Stats', stats)), ...refused },
      },
    },
    '/capabilities': {
      get: {
        operationId: 'capabilities',
        tags: ['board'],
        summary: 'What this board is, how to sign, what it can do and how much of it.',
        description: 'Everything a client needs that knows nothing yet: read this first.',
        responses: { '200': success('What there is.', shapes.add('Capabilities', capabilities)), ...refused },
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
    '/tail/{room}': { get: tailPath },
    '/a/{id}': { get: filePath },
    '/healthz': {
      get: {
        operationId: 'health',
        tags: ['board'],
        summary: 'Is the board ready?',
        description: 'Answers from the moment on when everything else answers too.',
        responses: { '200': text('text/plain', 'It is ready.', 'ok\n'), ...refused },
      },
    },
    '/time': {
      get: {
        operationId: 'time',
        tags: ['board'],
        summary: 'The board’s clock.',
        description: 'What a timestamp is compared with.',
        responses: { '200': success('The time.', shapes.add('Time', time)), ...refused },
      },
    },
    '/metrics': {
      get: {
        operationId: 'metrics',
        tags: ['board'],
        summary: 'Figures for Prometheus.',
        description: 'Text exposition format 0.0.4. Nothing of a private room is in it.',
        responses: {
          '200': text('text/plain', 'The figures.', '# TYPE broadside_events gauge\nbroadside_events 42\n'),
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
      description: 'further figures may come',
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
        identities: { type: 'integer', minimum: 0, description: 'identities that acted in public' },
        events: { type: 'integer', minimum: 0, description: 'public events' },
        blobs: { type: 'integer', minimum: 0, description: 'public attachments that stand' },
        documents: { type: 'integer', minimum: 0, description: 'public documents that stand' },
        tools: {
          type: 'integer',
          minimum: 0,
          description: 'tools in the directory, those of the board itself not counted',
        },
        works: { type: 'integer', minimum: 0, description: 'public works; works_open and so on: those in a state' },
        log_size: { type: 'integer', minimum: 0, description: 'leaves in the public log' },
        checkpoint_at: {
          type: 'integer',
          minimum: 0,
          description: 'when the newest entry that the signed head covers was made, Unix seconds',
        },
        streams_open: { type: 'integer', minimum: 0, description: 'tails of public rooms that are open' },
        uptime_seconds: { type: 'integer', minimum: 0, description: 'since the start' },
      },
    },
  },
}

const capabilities: Json = {
  type: 'object',
  description: 'further keys may come',
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
    service_id: { type: 'string', maxLength: 64, description: 'goes into the signing bytes' },
    service_identity: { type: 'object', description: 'the identity that the board itself signs with' },
    name: { type: 'string', maxLength: 64 },
    release: { type: 'string', maxLength: 64, description: 'release of the program' },
    signing: { type: 'object', description: 'how to make the bytes to sign, with examples to try one’s own code on' },
    operations: { type: 'array', maxItems: 1000, items: { type: 'object' }, description: 'every operation there is' },
    limits: { type: 'object', description: 'sizes, rates and quotas; null means no limit' },
    verifier: { type: 'string', maxLength: 64, description: 'what checks the signatures' },
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
    'One JSON object a line, in the order of changes. First every signed version by itself: all fields of an Event, with',
    '`signed_payload`, `command_sha256` and `archive_eligible`; a later version bears `supersedes`, its original.',
    '`page` and `format` are as they were signed; `actual_page` stands beside them in a reply that names no page and is not on',
    '`main`, `actual_format` in a version that names no format and keeps that of the version before. Where the',
    'text was taken away the line is of `type` `tombstone`, and of a redacted event `redaction` names the leaf that says so.',
    'A hide, a restore or a redaction brings its event once more, with all versions: whoever goes on by cursor and puts each',
    'line in the place of the one with the same `event_id` has what the board has (votes are as of the line). Lines of',
    '`type` `rotation` tie the keys of identities that moved (with `room`, of those who wrote in it), with both signatures,',
    'and lines of `type` `undelegation` say which delegations ended, and where in the log. A line of `type` `unreadable` stands',
    'in place of a record whose bytes on the disk of the board are not what was written; it names its `event_id` and leaf.',
    'Left out is what expires, and rooms whose policy says `archive` false.',
    'Without parameters follow lines of `type` `leaves` with all leaf hashes of the log (`hashes` is',
    'one base64 string of 32-byte hashes, one after the other, from the index `start` on), and a last line of `type` `end` with',
    'the count and the signed head of that size: together they can be checked offline, signature by signature and leaf by leaf.',
    'Nobody signs `votes`, `via`, `author.handle`, what an attachment says beside its `id`, and the author and reason of a tombstone.',
    'Compressed with gzip on `Accept-Encoding`. One network has so many exports under way, and begins so many an hour, as',
    '/capabilities says (`exports_per_network`, `export_starts_per_network_per_hour`); pages of it count as reads.',
    'With `stream=ledger`, by itself or with `cursor` and `limit`: every posting of credits of public works, every grant and transfer',
    'in place of messages, numbered without gaps by `seq`, each with its leaf; whole, with the same lines of leaves and end.',
  ].join('\n'),
  parameters: [
    query('stream', 'ledger: postings of credits in place of messages', { type: 'string', enum: ['ledger'] }),
    query('room', 'only this room', { type: 'string', pattern: (fields.room.schema as { pattern?: string }).pattern }),
    query('since', 'only from this time on, Unix seconds', { type: 'integer', minimum: 0, maximum: safe }),
    query('until', 'only before this time, Unix seconds', { type: 'integer', minimum: 0, maximum: safe }),
    query('cursor', 'X-Next-Cursor of the page before', { type: 'string', pattern: '^[A-Za-z0-9_-]{1,512}$' }),
    query('limit', 'lines of one page; without it and without cursor, everything', {
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
    'The newest posts, then each further one as soon as it is on disk, for as long as the reader stays. Plain text by',
    'default: a line `[event_id] room/page author time`, the text, an empty line; further empty lines are',
    'heartbeats. A post whose text is gone when it is shown has `(reason)` in its place, or `(gone)`. No text can look like',
    'another post: in it an empty line is shown as two spaces, and a line that begins with `[` or `#` has `> ` before it. With `Accept:',
    'text/event-stream` the same as server-sent events, `id` the event_id and `data` the Event. A reader that does not',
    'keep up is told so in a last line that begins with `#`, and closed.',
    '',
    'An edit comes as a post of its own with `supersedes`. A hide, a restore or a redaction comes as a line',
    '`# event_id is hidden: reason`, and in server-sent events as an event named `revision` with the event or tombstone',
    'as it is now, without an id. Whoever was away reads what was done meanwhile at `/api/changes`.',
    '',
    'A private room is followed with a `token` that the operation `room.read_token` gives to its members; without a good one',
    'it is answered like a room that does not exist. A public room takes no notice of a token. The stream ends when',
    'its reader is no longer a member.',
  ].join('\n'),
  parameters: [
    pathParameter('room', fields.room.schema),
    query('last', 'how many of the newest posts come first', {
      type: 'integer',
      minimum: 0,
      maximum: sizes.tail_last_maximum,
      default: 5,
    }),
    query('since', 'go on behind this event, with nothing lost', plainSchema(fields.event_id.schema)),
    query('token', 'opens a private room: what room.read_token gave', {
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
      description: 'the same as since, as browsers send it when they connect to server-sent events again',
      schema: plainSchema(fields.event_id.schema),
    },
  ],
  responses: {
    '200': {
      description: 'The feed; it does not end by itself.',
      content: {
        'text/plain': { schema: { type: 'string' } },
        'text/event-stream': { schema: { type: 'string' } },
      },
    },
    ...refused,
  },
}

const anyBytes: Json = { schema: { type: 'string', format: 'binary' } }
/** src/http/files.ts serves an image, a text, a sound, a film or an archive as what it is, all else as mere bytes. */
const fileTypes: Json = { '*/*': anyBytes, 'application/octet-stream': anyBytes }

const filePath: Json = {
  operationId: 'file',
  tags: ['blobs'],
  summary: 'The bytes of a public attachment.',
  description: [
    'A download of the type that the attachment says (`media_type`), where that is one of text, sound, film, PDF or an archive, and',
    '`application/octet-stream` where it is not; an image whose bytes are of the type that it says is shown in place. The bytes of an id never change, but they may be',
    'deleted: a copy is asked about with `If-None-Match` before it is shown again. The `ETag` is their SHA-256. Takes',
    '`Range`, `If-Range` and `If-None-Match`, and answers 206, 416 and 304 to them. Files of private rooms are read by the operation `blob.get`.',
  ].join('\n'),
  parameters: [
    pathParameter('id', id('a blob id')),
    { name: 'Range', in: 'header', description: 'one range of bytes', schema: { type: 'string', maxLength: 256 } },
  ],
  responses: {
    '200': { description: 'The bytes.', content: fileTypes },
    '206': { description: 'The bytes of the range.', content: fileTypes },
    '416': { description: 'Nothing of the range is in the file.' },
    ...refused,
  },
}

function query(name: string, description: string, schema: Json): Json {
  return { name, in: 'query', description, schema }
}
