/** The JSON Schema of `/v1/export?stream=board`, at `/export/board-1.schema.json`: what each line may contain. */
import {
  base64url32Pattern,
  base64url64Pattern,
  hashPattern,
  idPattern,
  slugPattern,
} from '../../actors/kernel/fields.ts'
import { type Infer, Type } from '../../actors/kernel/schema.ts'
import type { Json } from './plain-schema.ts'

export const boardSchemaPath = '/export/board-1.schema.json'

const id = (description: string) => Type.Patterned(idPattern, '32 lowercase hex characters', { description })
const hash = (description: string) => Type.Patterned(hashPattern, '64 lowercase hex characters', { description })
const slug = (description: string) =>
  Type.Patterned(slugPattern, '1 to 64 of a-z 0-9 _ -, starting with a letter or digit', { description })
const key = (description: string) => Type.Patterned(base64url32Pattern, '43 characters of base64url', { description })
const signature = (description: string) =>
  Type.Patterned(base64url64Pattern, '86 characters of base64url', { description })
const count = (description: string, minimum = 0) =>
  Type.Integer({ minimum, maximum: Number.MAX_SAFE_INTEGER, description })
const time = (description: string) => count(`${description}, Unix seconds`)
const closed = { additionalProperties: false }

const delegation = Type.Object(
  {
    id: id('event id of the delegation.create'),
    public_key: key('the identity’s own key'),
    signature: signature('over signed_payload'),
    signed_payload: Type.String({ description: 'the signed bytes of the delegation.create' }),
  },
  closed,
)

const signed = Type.Object(
  {
    public_key: key('the key that signed'),
    command_sha256: hash('SHA-256 of the signed bytes; its first half is the id of the command'),
    signature: Type.Optional(signature('over signed_payload; absent if that is absent')),
    signed_payload: Type.Optional(
      Type.String({
        description: 'the signed bytes; absent if they were redacted, contain a secret, or are excluded from archives',
      }),
    ),
    file: Type.Optional(
      Type.Object(
        { at: count('where it begins in signed_payload, in bytes'), length: count('bytes of its base64url text') },
        { ...closed, description: 'of blob.put: the file inside signed_payload' },
      ),
    ),
    delegation: Type.Optional(delegation),
  },
  { ...closed, description: 'what was signed; absent if the board itself did it' },
)
export type SignedPart = Infer<typeof signed>

const entries = Type.Optional(
  Type.Array(Type.String({ maxLength: 4096 }), {
    maxItems: 4096,
    description: 'its entries in the public log, as the log hashes them',
  }),
)
const at = time('when it was accepted')
const author = hash('id of the identity that did it')

export const lineSchemas = {
  board: Type.Object(
    {
      type: Type.Literal('board'),
      version: Type.Literal(1),
      service_id: Type.Patterned('^[a-z0-9][a-z0-9._-]{0,63}$', 'a service id', {
        description: 'the name that is part of every signature for this board',
      }),
      release: Type.String({ maxLength: 64, description: 'of the board that wrote this' }),
      exported_at: time('when it was started'),
      log: Type.Object(
        {
          origin: Type.String({ minLength: 1, maxLength: 256 }),
          size: count('entries'),
          root: hash('root of its tree'),
          checkpoint: Type.String({ maxLength: 8192, description: 'the signed note of this head' }),
        },
        { ...closed, description: 'the newest head of the public log' },
      ),
    },
    { ...closed, title: 'BoardLine', description: 'the first line' },
  ),
  room: Type.Object(
    {
      type: Type.Literal('room'),
      id: id('of the command'),
      room: slug('its name'),
      at,
      visibility: Type.Literal('public'),
      owner: Type.Optional(hash('identity id; absent: the operator owns it')),
      members: Type.Optional(Type.Array(hash('identity id'), { maxItems: 1024 })),
      about: Type.Optional(Type.String()),
      signed: Type.Optional(signed),
    },
    { ...closed, title: 'RoomLine' },
  ),
  event: Type.Object(
    {
      type: Type.Literal('event'),
      id: id('event id'),
      room: slug('its room'),
      page: slug('its page'),
      kind: slug('its kind'),
      seq: count('number in the room, from 1, without gaps', 1),
      at,
      author,
      reply: Type.Optional(id('event that it answers')),
      root: Type.Optional(id('first event of its thread; absent: itself')),
      original: Type.Optional(id('event that it is a version of')),
      expires: Type.Optional(time('when its text is gone, or why it is not here')),
      to: Type.Optional(hash('identity that it is addressed to')),
      blobs: Type.Optional(Type.Array(id('attachment'), { maxItems: 64 })),
      format: Type.Optional(Type.Literal('markdown', { description: 'that of the previous version' })),
      isRequest: Type.Optional(Type.Literal(true, { description: 'the same command created a work from it' })),
      via: Type.String({ maxLength: 64, description: 'the interface that it came through' }),
      entries,
      signed,
    },
    { ...closed, title: 'EventLine', description: 'a post, or a version of one; its text is in signed_payload' },
  ),
  handle: Type.Object(
    {
      type: Type.Literal('handle'),
      id: id('of the command'),
      room: Type.Literal('@registry'),
      at,
      author,
      key: hash('the public key of its identity, hex'),
      handle: Type.String({ minLength: 1, maxLength: 64 }),
      entries,
      signed: Type.Optional(signed),
    },
    { ...closed, title: 'HandleLine' },
  ),
  act: Type.Object(
    {
      type: Type.Literal('act'),
      id: id('of the command, or made from what it is about'),
      room: Type.Patterned('^@?[a-z0-9][a-z0-9_-]{0,80}$', 'a room, or the name of an actor', {
        description: 'who decided it: a room, or an actor whose name begins with @',
      }),
      at,
      author,
      op: Type.Patterned('^[a-z_]+(\\.[a-z_]+){0,3}$', 'the name of an act', {
        description: 'what was done; storage/README.md lists all',
      }),
      facts: Type.Record(Type.String(), Type.Unknown(), {
        description: 'what was decided; bytes are {"hex": "…"}',
      }),
      entries,
      signed: Type.Optional(signed),
      reserved: Type.Optional(
        Type.Unknown({ type: 'object', description: 'of work.open: the line of its signed work.create' }),
      ),
    },
    {
      ...closed,
      title: 'ActLine',
      description:
        'what creates no event: roles, policies, bans, profiles, key moves, documents, attachments, moderation, works, credits, tools',
    },
  ),
  unreadable: Type.Object(
    {
      type: Type.Literal('unreadable'),
      id: Type.Optional(id('of the command; absent if the board does not know it')),
      room: Type.Optional(slug('its room, if it is known')),
      seq: Type.Optional(count('of an event: its number in the room', 1)),
      file: Type.Optional(
        Type.Literal(true, { description: 'only the file of an attachment is lost: its record is on the line before' }),
      ),
      error: Type.String({ description: 'why' }),
    },
    {
      ...closed,
      title: 'UnreadableLine',
      description: 'a record that is damaged on the disk of the board; no board can be made from a file without it',
    },
  ),
  votes: Type.Object(
    { type: Type.Literal('votes'), event: id('the event'), up: count('for it'), down: count('against it') },
    { ...closed, title: 'VotesLine', description: 'the current votes of an event; voters are not listed' },
  ),
  end: Type.Object(
    { type: Type.Literal('end'), lines: count('lines before this one', 1) },
    { ...closed, title: 'EndLine', description: 'the last line; a file without it is truncated' },
  ),
} as const

export type BoardHead = Infer<typeof lineSchemas.board>
export type EndLine = Infer<typeof lineSchemas.end>
export type UnreadableLine = Infer<typeof lineSchemas.unreadable>
export type VotesLine = Infer<typeof lineSchemas.votes>
/** `reserved` of an act is also one of these. */
export type RecordLine = Infer<
  typeof lineSchemas.room | typeof lineSchemas.event | typeof lineSchemas.handle | typeof lineSchemas.act
>

/** The document that boards publish. */
export function boardSchema(address: string): Json {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `${address}${boardSchemaPath}`,
    title: 'A line of /v1/export?stream=board, version 1',
    oneOf: Object.values(lineSchemas),
  }
}
