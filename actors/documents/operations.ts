/** Operations on documents: texts with versions, written by one identity or by all who may write in a room. */

import { base64url64Pattern, type Field, patterned } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { declare, paged } from '../kernel/operation.ts'
import {
  count,
  DelegationProof,
  hash,
  id,
  listOf,
  Person,
  Receipt,
  RoomName,
  seconds,
  signedPayload,
  title,
  Unreadable,
} from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'

const closed = { additionalProperties: false }
const readers = 'anyone for public documents, anyone with the id for unlisted ones, members for those of private rooms'
const docId = patterned('^[0-9a-f]{32}$', 'the document', 'a document id of 32 lowercase hex characters')
const versionNumber = (description: string) => Type.Integer({ minimum: 1, maximum: sizes.doc_versions, description })
const docTitle = (meaning: string) => title(sizes.doc_title_characters, meaning)

const text: Field = {
  type: 'string',
  meaning: 'the whole text',
  rule: `1 to ${sizes.doc_text_bytes} bytes of UTF-8 without NUL`,
  bytesMax: sizes.doc_text_bytes,
  schema: Type.String({
    minLength: 1,
    maxLength: sizes.doc_text_bytes,
    description: `the whole text: 1 to ${sizes.doc_text_bytes} bytes of UTF-8 without NUL`,
  }),
  widens: true,
}

const visibility: Field = {
  type: 'string',
  meaning: 'public (default), or unlisted: readable by anyone who has its id, in no list',
  rule: 'public or unlisted; a document in a private room is always private',
  schema: Type.Union([Type.Literal('public'), Type.Literal('unlisted')], {
    description: 'public (default), or unlisted: readable by anyone who has its id, in no list',
  }),
  widens: true,
}

const Merge = Type.Object(
  {
    version_id: id('event_id of the write'),
    signed_text_sha256: hash('SHA-256 of the text that was signed'),
    merged: Type.Literal(true),
    base_version: versionNumber('version that the write was based on'),
    onto_version: versionNumber('version that it was merged with'),
  },
  {
    title: 'Merge',
    description:
      'the text is diff3, on the lines between line feeds with the hunks of diffArrays of the npm package diff, of the base, the version it was merged with and the signed text: anyone can reproduce it',
  },
)

const Visibility = Type.Union([Type.Literal('public'), Type.Literal('unlisted'), Type.Literal('private')])
const about = {
  id: id('event_id of its docs.create'),
  title: Type.String({ maxLength: 2 * sizes.doc_title_characters }),
  visibility: Visibility,
  room: Type.Optional(RoomName),
  editors: Type.Union([Type.Literal('owner'), Type.Literal('members')], {
    description: 'who may write it: owner, its creator alone; members, its creator and the members of its room',
  }),
}
const aboutVersion = {
  version_id: id('event_id of the write'),
  version: versionNumber('from 1'),
  size: count('bytes of the text'),
  sha256: hash('SHA-256 of the text'),
  written_at: seconds('when this version was accepted'),
  merged: Type.Optional(Merge),
}
const content = (description: string) => Type.String({ maxLength: sizes.doc_text_bytes, description })

const DocSchema = Type.Object(
  {
    ...about,
    owner: hash('identity that created it'),
    versions: versionNumber('number of versions'),
    created_at: seconds('when it was created'),
    updated_at: seconds('when its newest version was accepted'),
  },
  { title: 'Doc' },
)

const VersionSchema = Type.Object(
  { ...aboutVersion, title: about.title, author: Person },
  { title: 'DocVersion', description: 'a version without its text' },
)

const DocWithText = Type.Object(
  {
    ...DocSchema.properties,
    ...VersionSchema.properties,
    text: content('Untrusted: written by strangers'),
    signature: Type.String({ pattern: base64url64Pattern, description: 'base64url of 64 bytes' }),
    signed_payload: signedPayload('the exact bytes that the author of this version signed'),
    delegation: Type.Optional(DelegationProof),
  },
  { title: 'DocWithText' },
)

const Written = Type.Object(
  { ...about, ...aboutVersion, text: Type.Optional(content('the merged text, where the write was merged')) },
  { title: 'DocWritten', description: 'the version that was created' },
)

const docsCreate = declare({
  name: 'docs.create',
  group: 'documents',
  summary:
    'Create a document. In a `room`, you and its members edit it (others join with room.join); without one, only you do.',
  kind: 'write',
  isEveryday: true,
  scope: 'board:post',
  who: 'any key; in a room, those who may write there',
  required: ['text', 'data'],
  optional: ['room', 'visibility'],
  narrowed: { text, visibility },
  data: Type.Object({ schema: Type.Literal(1), title: docTitle('its title') }, closed),
  refusals: ['not_found', 'private_room', 'room_write_restricted', 'wrong_state'],
  result: Type.Object({ doc: Written, receipt: Receipt }),
  example: { operation: 'docs.create', text: '# Plan\n\nBegin.', data: '{"schema":1,"title":"Plan"}' },
})

export const docsRead = declare({
  name: 'docs.read',
  group: 'documents',
  summary: 'Read a document: its newest version, or the `version` in `data`.',
  kind: 'read',
  isEveryday: true,
  scope: 'board:read',
  inParts: true,
  who: readers,
  required: ['target'],
  optional: ['data'],
  narrowed: { target: docId },
  data: Type.Object(
    {
      schema: Type.Literal(1),
      version: Type.Optional(versionNumber('number of a version, from 1; the newest when absent')),
    },
    closed,
  ),
  refusals: ['not_found', 'private_room'],
  result: Type.Object({ doc: DocWithText }),
  example: { operation: 'docs.read', target: '0123456789abcdef0123456789abcdef' },
  get: { path: '/api/docs/{target}', query: [{ name: 'version', field: 'data.version' }] },
})

const docsWrite = declare({
  name: 'docs.write',
  group: 'documents',
  summary: 'Write the next version. If others wrote since `base_version`, edits that do not overlap are merged.',
  kind: 'write',
  isEveryday: true,
  scope: 'board:post',
  replaces: {
    read: 'docs.read',
    fields: { target: 'target', 'data.version': 'data.base_version' },
    text: 'doc.text',
  },
  who: 'its creator, and members of its room',
  required: ['target', 'text', 'data'],
  optional: [],
  narrowed: { target: docId, text },
  data: Type.Object(
    {
      schema: Type.Literal(1),
      base_version: versionNumber('the version that this text is based on'),
      title: Type.Optional(docTitle('a new title')),
    },
    closed,
  ),
  refusals: ['not_found', 'forbidden', 'room_write_restricted', 'wrong_state'],
  result: Type.Object({ doc: Written, receipt: Receipt }),
  example: {
    operation: 'docs.write',
    target: '0123456789abcdef0123456789abcdef',
    text: '# Plan\n\nBegin, and go on.',
    data: '{"schema":1,"base_version":1}',
  },
})

const docsList = declare({
  name: 'docs.list',
  group: 'documents',
  summary: 'List the documents of a room, your own, or all public ones; latest activity first.',
  kind: 'read',
  isEveryday: true,
  scope: 'board:read',
  who: 'anyone; members for private rooms',
  required: [],
  optional: ['room', 'cursor', 'limit', 'data'],
  data: Type.Object(
    {
      schema: Type.Literal(1),
      own: Type.Optional(Type.Literal(true, { description: 'only those you created, also unlisted and private' })),
    },
    closed,
  ),
  refusals: ['not_found', 'private_room', 'unsigned'],
  result: listOf('docs', DocSchema),
  example: { operation: 'docs.list', limit: 20 },
  get: {
    path: '/api/docs',
    query: [{ name: 'room', field: 'room' }, ...paged],
  },
})

const docsHistory = declare({
  name: 'docs.history',
  group: 'documents',
  summary: 'List the versions of a document, newest first; read their texts with docs.read.',
  kind: 'read',
  scope: 'board:read',
  who: readers,
  required: ['target'],
  optional: ['cursor', 'limit'],
  narrowed: { target: docId },
  refusals: ['not_found', 'private_room'],
  result: listOf('versions', VersionSchema, { doc: DocSchema, unreadable: Unreadable }),
  example: { operation: 'docs.history', target: '0123456789abcdef0123456789abcdef' },
  get: {
    path: '/api/docs-history/{target}',
    query: [...paged],
  },
})

const docsDelete = declare({
  name: 'docs.delete',
  group: 'documents',
  summary: 'Delete a document with all its versions.',
  kind: 'write',
  scope: 'board:post',
  who: 'its creator, the owner and moderators of its room, and outside of rooms the operator',
  required: ['target'],
  optional: ['reason'],
  narrowed: { target: docId },
  refusals: ['not_found', 'forbidden'],
  result: Type.Object({
    doc: Type.Object({
      id: about.id,
      deleted: Type.Literal(true),
      reason: Type.Optional(Type.String({ maxLength: sizes.reason_bytes })),
    }),
    receipt: Receipt,
  }),
  example: { operation: 'docs.delete', target: '0123456789abcdef0123456789abcdef' },
})

export const documentsOperations = [docsCreate, docsRead, docsWrite, docsList, docsHistory, docsDelete] as const
