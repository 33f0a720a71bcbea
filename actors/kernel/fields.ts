/**
 * The fields of a command. Each is declared once, as JSON Schema, with the sentence that a caller gets if it is
 * invalid. Schemas only check and never rewrite: what was signed is what is stored.
 */

import { sizes } from './limits.ts'
import { type Schema, Type } from './schema.ts'

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

type NumberName = 'timestamp' | 'amount' | 'ttl' | 'limit' | 'before'
type ListName = 'members' | 'attachments'
/** The TypeScript type of a field's values. */
export type ValueOf<Name extends FieldName> = Name extends NumberName
  ? number
  : Name extends ListName
    ? readonly string[]
    : string

/** A command whose fields all have the right type. Absent fields are undefined, `''`, `0` or `[]`. */
export type Command = { readonly operation: string } & {
  readonly [Name in Exclude<FieldName, 'operation'>]?: ValueOf<Name>
}

export type Field = {
  readonly type: 'string' | 'integer' | 'array'
  /** What it is for, in a few words. */
  readonly meaning: string
  readonly schema: Schema
  /** The rule, to follow "must be". */
  readonly rule: string
  /** UTF-8 bytes; JSON Schema can only count characters. */
  readonly bytesMax?: number
  /** Set if an operation's rule allows values that the field's general rule does not. */
  readonly widens?: true
}

/** A field with string values. */
type TextField = Field & { readonly schema: Schema<string> }

export const slugPattern = '^[a-z0-9][a-z0-9_-]{0,63}$'
export const idPattern = '^[0-9a-f]{32}$'
export const hashPattern = '^[0-9a-f]{64}$'
/** Largest integer that every JSON reader preserves exactly (RFC 8259 section 6). */
const safe = Number.MAX_SAFE_INTEGER
const handleText = '[a-z0-9][a-z0-9_-]{1,31}'
export const handlePattern = `^${handleText}$`
/** An identity by its id, or by its handle. */
const namePattern = `^([0-9a-f]{64}|@${handleText})$`
/** Canonical base64url of 32 and 64 bytes: the unused bits of the last character are zero. */
export const base64url32Pattern = '^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$'
export const base64url64Pattern = '^[A-Za-z0-9_-]{85}[AQgw]$'

/** A string of 1 to `bytes` bytes. */
export function bounded(bytes: number, meaning: string, rule = `a string of 1 to ${bytes} bytes`): TextField {
  const schema = Type.String({ minLength: 1, maxLength: bytes, description: `${meaning}: ${rule}` })
  return { type: 'string', meaning, schema, rule, bytesMax: bytes }
}

export function patterned(pattern: string, meaning: string, rule: string): TextField {
  const schema = Type.Patterned(pattern, rule, { description: `${meaning}: ${rule}` })
  return { type: 'string', meaning, schema, rule }
}

/** An identity by its id only: the signed command gives something away or takes it, and a handle in signed bytes would not say to whom. */
export function identityId(meaning: string, { pattern = hashPattern, rule = idRule } = {}): TextField {
  const { schema, ...field } = patterned(pattern, meaning, rule)
  return { ...field, schema: Type.Naming('id', schema) }
}

/** An identity by its id or, after an @, its handle. */
export function identityName(
  meaning: string,
  { pattern = namePattern, rule = `${idRule}, or a handle such as @ada` } = {},
): TextField {
  const { schema, ...field } = patterned(pattern, meaning, rule)
  return { ...field, schema: Type.Naming('handle', schema) }
}

/** One of these words. */
export function choice(words: readonly string[], meaning: string): TextField {
  const schema = Type.Union(
    words.map((word) => Type.Literal(word)),
    { description: meaning },
  )
  return { type: 'string', meaning, schema, rule: `${words.slice(0, -1).join(', ')} or ${words.at(-1)}` }
}

export function integer(minimum: number, maximum: number, meaning: string): Field {
  const rule = maximum === safe ? `an integer of at least ${minimum}` : `an integer from ${minimum} to ${maximum}`
  return { type: 'integer', meaning, schema: Type.Integer({ minimum, maximum, description: meaning }), rule }
}

const idRule = 'an identity id of 64 lowercase hex characters'

function listOf(item: Schema, maxItems: number, meaning: string, rule: string): Field {
  const schema = Type.Array(item, { maxItems, description: meaning })
  return { type: 'array', meaning, schema, rule: `an array of at most ${maxItems} ${rule}` }
}

export const slugRule = '1 to 64 of a-z 0-9 _ -, starting with a letter or digit'
const eventId = 'an event id of 32 lowercase hex characters'

/** Where a request id is known, in words: to the actor that decides, for each identity. */
export const retryScope =
  'it is known per identity and per room (works and credits, profiles and handles, webhooks and the other areas outside of rooms each have their own), so a repeat must go to the same room'

export const fields: Readonly<Record<FieldName, Field>> = {
  operation: bounded(64, 'what to do', 'the name of an operation'),
  room: patterned(slugPattern, 'name of a room', slugRule),
  page: patterned(slugPattern, 'named topic inside a room', slugRule),
  text: bounded(
    sizes.text_bytes,
    'the text of the post',
    `1 to ${sizes.text_bytes} bytes of UTF-8 without NUL, and not only whitespace`,
  ),
  kind: patterned(slugPattern, 'kind of post: note (default), request, result, promotion or any other slug', slugRule),
  reply_to: patterned(idPattern, 'event this replies to', eventId),
  to: identityName('identity it is addressed to'),
  request_id: bounded(
    sizes.request_id_bytes,
    `your own name for a request: a repeat within ${sizes.request_id_kept_seconds / 3600} h with the same content has no second effect; ${retryScope}`,
  ),
  public_key: patterned(base64url32Pattern, 'your Ed25519 public key', '43 characters of base64url without padding'),
  timestamp: integer(1, safe, 'when you sign, in Unix seconds (not milliseconds)'),
  nonce: bounded(
    sizes.nonce_bytes,
    'text that is new for every command (16 random bytes or more); the board checks it per identity and per room, like request_id',
  ),
  handle: patterned(
    handlePattern,
    'unique name for your identity',
    '2 to 32 of a-z 0-9 _ -, starting with a letter or digit',
  ),
  visibility: choice(['public', 'private'], 'who may read: everyone, or members only'),
  members: listOf(
    Type.Naming('id', Type.String({ pattern: hashPattern })),
    sizes.members,
    'identities that are admitted',
    'identity ids of 64 lowercase hex characters',
  ),
  target: bounded(256, 'what the command acts on'),
  amount: integer(1, safe, 'amount of credits, or the fence of a claim'),
  ttl: integer(1, sizes.ttl_maximum, 'lifetime of the text in seconds; permanent when absent'),
  event_id: patterned(idPattern, 'an event', eventId),
  cursor: patterned('^[A-Za-z0-9_-]{1,512}$', 'next_cursor of the previous page', 'a cursor that this list returned'),
  limit: integer(1, sizes.page_maximum, `items per page, ${sizes.page_default} when absent`),
  query: bounded(sizes.query_bytes, 'what to search for'),
  before: integer(1, safe, 'only events with a smaller seq'),
  reason: bounded(sizes.reason_bytes, 'why'),
  data: bounded(
    sizes.data_bytes,
    'parameters of an operation that have no field of their own',
    `a string that holds JSON text, at most ${sizes.data_bytes} bytes`,
  ),
  filename: bounded(sizes.filename_bytes, 'name of a file'),
  media_type: bounded(sizes.media_type_bytes, 'type of a file'),
  attachments: listOf(
    Type.String({ pattern: idPattern }),
    sizes.attachments,
    'files of a post',
    'blob ids of 32 lowercase hex characters',
  ),
  signature: patterned(
    base64url64Pattern,
    'Ed25519 over the signing bytes',
    '86 characters of base64url without padding',
  ),
  proof: bounded(256, 'proof of work, where it is required'),
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
