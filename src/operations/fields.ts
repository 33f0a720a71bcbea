/**
 * The fields of a command: each declared once, as JSON Schema, with the sentence that a caller reads when it is wrong.
 * Schemas check and never rewrite: what was signed is what is stored.
 */
import { type TSchema, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { sizes } from '../limits.ts'

export type FieldName =
  | 'operation'
  | 'room'
  | 'page'
  | 'text'
  | 'kind'
  | 'reply_to'
  | 'to'
  | 'request_id'
  | 'public_key'
  | 'timestamp'
  | 'nonce'
  | 'handle'
  | 'visibility'
  | 'members'
  | 'target'
  | 'amount'
  | 'ttl'
  | 'event_id'
  | 'cursor'
  | 'limit'
  | 'query'
  | 'before'
  | 'reason'
  | 'data'
  | 'filename'
  | 'media_type'
  | 'attachments'
  | 'signature'
  | 'proof'

export type Field = {
  readonly type: 'string' | 'integer' | 'array'
  readonly schema: TSchema
  /** What is right, to follow "must be". */
  readonly rule: string
  /** UTF-8 bytes; JSON Schema can only count characters. */
  readonly bytesMax?: number
}

const slugPattern = '^[a-z0-9][a-z0-9_-]{0,63}$'
const idPattern = '^[0-9a-f]{32}$'
const identityPattern = '^[0-9a-f]{64}$'
/** Largest integer that every JSON reader keeps as it was written (RFC 8259 section 6). */
const safe = Number.MAX_SAFE_INTEGER
export const handlePattern = '^[a-z0-9][a-z0-9_-]{1,31}$'

function text(schema: TSchema, rule: string, bytesMax?: number): Field {
  return { type: 'string', schema, rule, ...(bytesMax === undefined ? {} : { bytesMax }) }
}

function bounded(bytes: number, rule: string): Field {
  return text(Type.String({ minLength: 1, maxLength: bytes, description: `${rule}` }), rule, bytes)
}

function patterned(pattern: string, rule: string): Field {
  return text(Type.String({ pattern, description: rule }), rule)
}

function integer(minimum: number, maximum: number, meaning: string): Field {
  const range = maximum === safe ? `an integer of at least ${minimum}` : `an integer from ${minimum} to ${maximum}`
  const rule = meaning === '' ? range : `${range}, ${meaning}`
  return { type: 'integer', schema: Type.Integer({ minimum, maximum, description: rule }), rule }
}

export const fields: Readonly<Record<FieldName, Field>> = {
  operation: bounded(64, 'the name of an operation'),
  room: patterned(slugPattern, 'a room name: 1 to 64 of a-z 0-9 _ -, starting with a letter or digit'),
  page: patterned(slugPattern, 'a page name: 1 to 64 of a-z 0-9 _ -, starting with a letter or digit'),
  text: bounded(sizes.text_bytes, `1 to ${sizes.text_bytes} bytes of UTF-8 without NUL`),
  kind: patterned(slugPattern, 'a slug: 1 to 64 of a-z 0-9 _ -, starting with a letter or digit'),
  reply_to: patterned(idPattern, 'an event id of 32 lowercase hex characters'),
  to: patterned(identityPattern, 'an identity id of 64 lowercase hex characters'),
  request_id: bounded(sizes.request_id_bytes, `1 to ${sizes.request_id_bytes} bytes`),
  public_key: text(
    Type.String({ pattern: '^[A-Za-z0-9_-]{43}$', description: 'base64url of the 32 raw bytes' }),
    '43 characters of base64url, an Ed25519 public key',
  ),
  timestamp: integer(1, safe, 'Unix seconds (not milliseconds)'),
  nonce: bounded(
    sizes.nonce_bytes,
    `1 to ${sizes.nonce_bytes} bytes, fresh for every command (use 16 random bytes or more)`,
  ),
  handle: patterned(handlePattern, 'a handle: 2 to 32 of a-z 0-9 _ -, starting with a letter or digit'),
  visibility: text(
    Type.Union([Type.Literal('public'), Type.Literal('private')], { description: 'public or private' }),
    'public or private',
  ),
  members: {
    type: 'array',
    schema: Type.Array(Type.String({ pattern: identityPattern }), {
      maxItems: sizes.members,
      description: 'identity ids',
    }),
    rule: `an array of at most ${sizes.members} identity ids of 64 lowercase hex characters`,
  },
  target: bounded(256, '1 to 256 bytes'),
  amount: integer(1, safe, ''),
  ttl: integer(1, sizes.ttl_maximum, 'in seconds'),
  event_id: patterned(idPattern, 'an event id of 32 lowercase hex characters'),
  cursor: text(
    Type.String({ pattern: '^[A-Za-z0-9_-]{1,512}$', description: 'next_cursor of the page before' }),
    'a cursor as this list gave it',
  ),
  limit: integer(1, sizes.page_maximum, ''),
  query: bounded(sizes.query_bytes, `1 to ${sizes.query_bytes} bytes`),
  before: integer(1, safe, 'a seq of the room'),
  reason: bounded(sizes.reason_bytes, `1 to ${sizes.reason_bytes} bytes`),
  data: bounded(sizes.data_bytes, `a string that holds JSON text, at most ${sizes.data_bytes} bytes`),
  filename: bounded(sizes.filename_bytes, `1 to ${sizes.filename_bytes} bytes`),
  media_type: bounded(sizes.media_type_bytes, `1 to ${sizes.media_type_bytes} bytes`),
  attachments: {
    type: 'array',
    schema: Type.Array(Type.String({ pattern: idPattern }), { maxItems: sizes.attachments, description: 'blob ids' }),
    rule: `an array of at most ${sizes.attachments} blob ids of 32 lowercase hex characters`,
  },
  signature: text(
    Type.String({ pattern: '^[A-Za-z0-9_-]{86}$', description: 'base64url of the 64 raw bytes' }),
    '86 characters of base64url, an Ed25519 signature',
  ),
  proof: bounded(256, '1 to 256 bytes'),
}

/** Allowed on every command, whatever the operation. */
export const envelope: ReadonlySet<FieldName> = new Set([
  'operation',
  'public_key',
  'signature',
  'timestamp',
  'nonce',
  'request_id',
  'proof',
])

export const identityIdPattern = new RegExp(identityPattern)
export const eventIdPattern = new RegExp(idPattern)

type Compiled = { check(value: unknown): boolean; readonly field: Field }
const compiled = new Map<Field, Compiled>()

/** A compiled check of one field, compiled on first use and kept. */
export function checkOf(field: Field): Compiled {
  const known = compiled.get(field)
  if (known !== undefined) return known
  const validator = Compile(field.schema)
  const made = { field, check: (value: unknown) => validator.Check(value) }
  compiled.set(field, made)
  return made
}
