/** Shapes of what comes back: schemas shared by the results of operations. */
import { Type } from 'typebox'

const id = (description: string) => Type.String({ pattern: '^[0-9a-f]{32}$', description })
const seconds = (description: string) => Type.Integer({ minimum: 0, description: `${description}, Unix seconds` })
const count = (description: string) => Type.Integer({ minimum: 0, description })

export const Person = Type.Object(
  {
    id: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    public_key: Type.String({ minLength: 43, maxLength: 43 }),
    handle: Type.Optional(Type.String()),
  },
  { description: 'who signed' },
)

export const LogState = Type.Object({
  state: Type.Union([Type.Literal('included'), Type.Literal('none')]),
  index: Type.Optional(count('leaf index in the public log')),
})

export const EventSchema = Type.Object({
  type: Type.Union([Type.Literal('event'), Type.Literal('tombstone')]),
  event_id: id('first 32 hex of the SHA-256 of the signing bytes'),
  room: Type.String(),
  page: Type.String(),
  seq: count('number inside the room, from 1, without gaps'),
  kind: Type.String(),
  author: Person,
  text: Type.Optional(Type.String()),
  format: Type.Optional(Type.Union([Type.Literal('text'), Type.Literal('markdown')])),
  reply_to: Type.Optional(id('event replied to')),
  to: Type.Optional(Type.String()),
  thread: id('root of the thread'),
  attachments: Type.Optional(Type.Array(Type.Object({}))),
  created_at: seconds('when the board accepted it'),
  expires_at: Type.Optional(seconds('when its text is gone')),
  hidden: Type.Boolean(),
  reason: Type.Optional(Type.String()),
  votes: Type.Object({ up: count('votes for'), down: count('votes against'), score: Type.Integer() }),
  via: Type.String({ description: 'the door it came by' }),
  signature: Type.Optional(Type.String({ description: 'base64url of 64 bytes' })),
  signed_payload: Type.Optional(Type.String({ description: 'the exact bytes that were signed' })),
  log: LogState,
})

export const Receipt = Type.Object({
  event_id: id('id of what this command made'),
  command_sha256: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of the signing bytes' }),
  accepted_at: seconds('when it was accepted'),
  duplicate: Type.Optional(
    Type.Boolean({ description: 'true: this command was accepted before, and this is its outcome again' }),
  ),
  log_index: Type.Optional(count('leaf index in the public log')),
  tree_size: Type.Optional(count('size of the signed head that covers it')),
  checkpoint: Type.Optional(Type.String({ description: 'that head, a C2SP signed note' })),
})

export const RoomSchema = Type.Object({
  name: Type.String(),
  visibility: Type.Union([Type.Literal('public'), Type.Literal('private')]),
  owner: Type.Optional(Type.String({ description: 'identity id; absent: the operator owns it' })),
  about: Type.Optional(Type.String()),
  count: count('events'),
  threads: count('threads'),
  pages: count('pages'),
  members: Type.Optional(count('members, in private rooms')),
  created_at: seconds('when it was made'),
  updated_at: seconds('latest activity'),
})

export const IdentitySchema = Type.Object({
  id: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  public_key: Type.String(),
  handle: Type.Optional(Type.String()),
  events: count('public events'),
  created_at: seconds('first public act'),
  last_seen: seconds('latest public act'),
})

export const PageSchema = Type.Object({
  name: Type.String(),
  count: count('visible events'),
  threads: count('threads'),
  last_event_id: id('newest event'),
  updated_at: seconds('latest activity'),
})

const paging = {
  next_cursor: Type.Optional(Type.String({ description: 'absent at the end' })),
  has_more: Type.Boolean(),
}

export const listOf = (
  name: string,
  item: Parameters<typeof Type.Array>[0],
  more: Record<string, ReturnType<typeof Type.String>> = {},
) => Type.Object({ ...more, [name]: Type.Array(item), ...paging })

export const Checkpoint = Type.Object({
  origin: Type.String(),
  vkey: Type.String(),
  tree_size: count('leaves'),
  root_hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  checkpoint: Type.String({ description: 'C2SP signed note' }),
})

export const Proof = Type.Object({
  log: Type.Object({ origin: Type.String(), vkey: Type.String() }),
  event_id: id('the event proved'),
  leaf_index: count('0-based'),
  leaf_hash: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256(0x00 || entry), RFC 9162 2.1.1' }),
  entry: Type.String({ description: 'base64 of the bytes that are hashed' }),
  tree_size: count('size of the head'),
  root_hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  inclusion_path: Type.Array(Type.String({ pattern: '^[0-9a-f]{64}$' }), {
    description: 'from the leaf up, RFC 9162 2.1.3',
  }),
  checkpoint: Type.String({ description: 'C2SP signed note' }),
  signed_payload: Type.Optional(
    Type.String({ description: 'the exact bytes that the author signed, while they exist' }),
  ),
})
