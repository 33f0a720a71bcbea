/** Operations on attachments (blobs): files that posts carry. A file is uploaded first, then named by posts in the same room. */

import { type Field, patterned } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { declare } from '../kernel/operation.ts'
import { count, hash, id, Receipt, RoomName, seconds } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'

const token = "[A-Za-z0-9!#$&^_.+'*|~-]{1,64}"
const blobId = patterned('^[0-9a-f]{32}$', 'the blob', 'a blob id of 32 lowercase hex characters')

/** Base64url of a file: the only `data` that is not JSON, and the only one that may be this long. */
const fileData: Field = {
  type: 'string',
  meaning: 'the bytes of the file',
  rule: `base64url without padding, at most ${sizes.blob_bytes} bytes when decoded`,
  bytesMax: sizes.blob_data_bytes,
  schema: Type.String({
    minLength: 2,
    maxLength: sizes.blob_data_bytes,
    pattern: '^[A-Za-z0-9_-]*$',
    description: `the bytes of the file: base64url without padding, at most ${sizes.blob_bytes} bytes when decoded`,
  }),
  widens: true,
}

/**
 * No path separators, no control characters, and nothing that is invisible or changes the direction of text (UTS 39 warns of
 * such disguises).
 */
const filename: Field = {
  type: 'string',
  meaning: 'name of the file, attachment.bin when absent',
  rule: `1 to ${sizes.filename_bytes} bytes without / \\, control characters or invisible characters`,
  bytesMax: sizes.filename_bytes,
  schema: Type.String({
    minLength: 1,
    maxLength: sizes.filename_bytes,
    pattern:
      '^[^/\\\\\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]*$',
    description: 'name of the file, attachment.bin when absent',
  }),
}

const BlobRecord = Type.Object(
  {
    id: id('event_id of its blob.put'),
    filename: Type.Optional(Type.String({ maxLength: sizes.filename_bytes })),
    media_type: Type.Optional(Type.String({ maxLength: sizes.media_type_bytes })),
    size: Type.Optional(count('bytes')),
    sha256: Type.Optional(hash('SHA-256 of the bytes')),
    url: Type.Optional(Type.String({ maxLength: 2048, description: 'path on this board; absent in private rooms' })),
    room: Type.Optional(RoomName),
    author: Type.Optional(hash('identity that uploaded it')),
    created_at: Type.Optional(seconds('when it was uploaded')),
    gone: Type.Optional(Type.Literal('deleted', { description: 'it was deleted; only its place in the post remains' })),
    reason: Type.Optional(Type.String({ maxLength: sizes.reason_bytes, description: 'why it was deleted' })),
  },
  { title: 'BlobRecord', description: 'a file in a room' },
)

const blobPut = declare({
  name: 'blob.put',
  group: 'blobs',
  summary: 'Upload a file to a room (default `lobby`). Posts there can name it in `attachments`.',
  kind: 'write',
  isUnseen: true,
  scope: 'board:post',
  who: 'any key in public rooms, members in private ones',
  required: ['data'],
  optional: ['room', 'filename', 'media_type'],
  narrowed: {
    data: fileData,
    filename,
    media_type: patterned(
      `^${token}/${token}(; ?${token}=${token}){0,4}$`,
      'type of the file, application/octet-stream when absent',
      'a media type such as image/png or text/plain; charset=utf-8',
    ),
  },
  refusals: ['not_found', 'forbidden', 'private_room', 'room_write_restricted', 'wrong_state'],
  result: Type.Object({ blob: BlobRecord, receipt: Receipt }),
  example: { operation: 'blob.put', filename: 'hello.txt', media_type: 'text/plain', data: 'SGVsbG8K' },
})

const blobGet = declare({
  name: 'blob.get',
  group: 'blobs',
  summary: 'Read a file with its bytes. A file in a public room is also served at `/a/{id}`.',
  kind: 'read',
  scope: 'board:read',
  who: 'anyone for public rooms, members for private ones',
  required: ['target'],
  optional: [],
  narrowed: { target: blobId },
  refusals: ['not_found', 'private_room'],
  result: Type.Object({
    blob: BlobRecord,
    data: Type.String({ maxLength: sizes.blob_data_bytes, description: 'base64url of the bytes, without padding' }),
  }),
  example: { operation: 'blob.get', target: '0123456789abcdef0123456789abcdef' },
})

const blobDelete = declare({
  name: 'blob.delete',
  group: 'blobs',
  summary: 'Delete a file permanently. Posts that name it show that it is gone.',
  kind: 'write',
  scope: 'board:post',
  who: 'the uploader, and the owner and moderators of its room',
  required: ['target'],
  optional: ['reason'],
  narrowed: { target: blobId },
  refusals: ['not_found', 'forbidden'],
  result: Type.Object({ blob: BlobRecord, receipt: Receipt }),
  example: { operation: 'blob.delete', target: '0123456789abcdef0123456789abcdef', reason: 'the wrong file' },
})

export const blobTakedown = declare({
  name: 'blob.takedown',
  group: 'operator',
  summary:
    'Take a file down everywhere by the SHA-256 of its bytes: no room serves it any more, private ones neither, and it cannot be uploaded again. This is public.',
  kind: 'write',
  scope: 'board:operate',
  who: 'operators of this board',
  required: ['target', 'reason'],
  optional: ['data'],
  narrowed: { target: patterned('^[0-9a-f]{64}$', 'the bytes', 'a SHA-256 of 64 lowercase hex characters') },
  data: Type.Object(
    {
      schema: Type.Literal(1),
      ended: Type.Optional(
        Type.Boolean({
          description: 'it may be uploaded again; what was removed stays removed. false when absent',
        }),
      ),
    },
    { additionalProperties: false },
  ),
  refusals: ['forbidden', 'wrong_state', 'key_rotated', 'suspended'],
  result: Type.Object({
    takedown: Type.Object({
      sha256: hash('SHA-256 of the bytes'),
      reason: Type.String({ maxLength: sizes.reason_bytes }),
      ended: Type.Optional(Type.Boolean()),
    }),
    receipt: Receipt,
  }),
  example: {
    operation: 'blob.takedown',
    target: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    reason: 'Malware.',
  },
})

export const attachmentsOperations = [blobPut, blobGet, blobDelete, blobTakedown] as const
