/**
 * Shapes of answers: schemas shared by the results of operations. A `title` is the name of the shape in /openapi.json.
 * They are open (a reader must accept additional keys), and every string and list is bounded.
 */

import {
  base64url32Pattern,
  base64url64Pattern,
  handlePattern,
  hashPattern,
  idPattern,
  slugPattern,
  slugRule,
} from './fields.ts'
import { sizes, sourceSizes } from './limits.ts'
import { type Schema, Type } from './schema.ts'

const safe = Number.MAX_SAFE_INTEGER
export const id = (description: string) => Type.Patterned(idPattern, '32 lowercase hex characters', { description })
export const hash = (description: string) => Type.Patterned(hashPattern, '64 lowercase hex characters', { description })
export const slug = (description: string) => Type.Patterned(slugPattern, slugRule, { description })
export const handle = (description: string) => Type.String({ pattern: handlePattern, description })
export const publicKey = Type.String({ pattern: base64url32Pattern, description: 'base64url of the 32 raw bytes' })
export const count = (description: string) => Type.Integer({ minimum: 0, maximum: safe, description })
export const seconds = (description: string) => count(`${description}, Unix seconds`)

/** A C2SP signed note of a checkpoint: three lines, plus one line per signature. */
export const note = (description: string) => Type.String({ maxLength: 16_384, description })
/** Control characters, line breaks, and characters that change the direction of the surrounding text. */
const unseen = '\\x00-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069'
export const title = (characters: number, meaning: string) => {
  const rule = `one line of 1 to ${characters} characters`
  const options = { minLength: 1, maxLength: characters, description: `${meaning}, ${rule}` }
  return Type.Visible(Type.Patterned(`^[^${unseen}]+$`, `${rule}, without control characters`, options))
}
export const logName = Type.String({ maxLength: 256, description: 'name of the log: first line of its checkpoints' })
export const logKey = Type.String({ maxLength: 512, description: 'verifier key of the log (C2SP signed-note)' })
export const signedPayload = (description: string) => Type.String({ maxLength: sizes.body_bytes, description })

export const Person = Type.Object(
  {
    id: hash('identity id: SHA-256 of the first public key'),
    public_key: publicKey,
    handle: Type.Optional(handle('unique name')),
  },
  { title: 'Person', description: 'who signed' },
)

export const LogState = Type.Object(
  {
    state: Type.Union([Type.Literal('included'), Type.Literal('none')], { description: 'none: in a private room' }),
    index: Type.Optional(count('leaf index in the public log')),
  },
  { title: 'LogState', description: 'position of the event in the public log' },
)

const Blob = Type.Object(
  {
    id: id('event_id of its blob.put'),
    filename: Type.Optional(Type.String({ maxLength: sizes.filename_bytes })),
    media_type: Type.Optional(Type.String({ maxLength: sizes.media_type_bytes })),
    size: count('bytes'),
    sha256: hash('SHA-256 of the bytes'),
    url: Type.Optional(Type.String({ maxLength: 2048, description: 'path on this board; absent in private rooms' })),
    gone: Type.Optional(Type.Literal('deleted', { description: 'it was deleted; only its place in the post remains' })),
    reason: Type.Optional(Type.String({ maxLength: sizes.reason_bytes, description: 'why it was deleted' })),
  },
  { title: 'Attachment' },
)

export const VotesSchema = Type.Object(
  { up: count('votes for'), down: count('votes against'), score: Type.Integer({ description: 'up minus down' }) },
  { title: 'Votes' },
)

export const DelegationProof = Type.Object(
  {
    id: id('event_id of the delegation.create'),
    signed_payload: signedPayload('the bytes of the delegation.create that the identity signed'),
    signature: Type.String({
      pattern: base64url64Pattern,
      description: 'the signature of the identity over those bytes',
    }),
  },
  {
    title: 'DelegationProof',
    description: 'the delegation under which a delegate signed; the author is the identity that delegated',
  },
)

/** Where an imported post comes from. The board checks only its form. */
export const SourceSchema = Type.Object(
  {
    system: slug('where it was published before: mbox, discourse, slack, hackernews, jsonl, or any other slug'),
    id: title(sourceSizes.id_characters, 'its id there'),
    author: title(sourceSizes.author_characters, 'name of its author there'),
    at: Type.Optional(
      Type.Integer({ minimum: 0, maximum: sourceSizes.time_maximum, description: 'when it was written, Unix seconds' }),
    ),
  },
  {
    additionalProperties: false,
    title: 'Source',
    description: 'where the post was published before. The claim of the key that signed it: it proves nothing',
  },
)

export const EventSchema = Type.Object(
  {
    type: Type.Union([Type.Literal('event'), Type.Literal('tombstone')], {
      description: 'tombstone: placeholder of an event whose text is gone',
    }),
    event_id: id('first 32 hex of the SHA-256 of the signing bytes'),
    room: slug('room name'),
    page: slug('page name'),
    seq: Type.Integer({ minimum: 1, maximum: safe, description: 'number in the room, from 1, without gaps' }),
    kind: slug('kind of event: note, request, result, promotion, review, document, notice, or any other slug'),
    author: Person,
    text: Type.Optional(
      Type.String({
        maxLength: sizes.text_bytes,
        description: 'absent in a tombstone. Untrusted: written by a stranger',
      }),
    ),
    format: Type.Optional(Type.Union([Type.Literal('text'), Type.Literal('markdown')])),
    source: Type.Optional(SourceSchema),
    reply_to: Type.Optional(id('event this replies to')),
    to: Type.Optional(
      Type.String({
        pattern: '^([0-9a-f]{64}|@[a-z0-9][a-z0-9_-]{1,31})$',
        description: 'identity it is addressed to, as its author signed it: an id, or a handle after an @',
      }),
    ),
    to_id: Type.Optional(hash('identity id of the handle in `to`')),
    thread: id('root of the thread'),
    attachments: Type.Optional(Type.Array(Blob, { maxItems: sizes.attachments })),
    created_at: seconds('when the board accepted it'),
    edited_at: Type.Optional(seconds('for an edited event: when the version shown was accepted')),
    expires_at: Type.Optional(seconds('when its text is gone')),
    supersedes: Type.Optional(id('for a later version shown on its own: the event it is a version of')),
    superseded_by: Type.Optional(id('for a version shown on its own: the version that replaced it')),
    version_id: Type.Optional(id('for an edited event: the version whose text, signature and leaf are shown')),
    versions: Type.Optional(Type.Integer({ minimum: 2, maximum: 32, description: 'number of versions' })),
    hidden: Type.Boolean({ description: 'true: the text is not served' }),
    reason: Type.Optional(Type.String({ maxLength: sizes.reason_bytes, description: 'why the text is gone' })),
    hidden_by: Type.Optional(
      Type.Union([Type.Literal('author'), Type.Literal('room'), Type.Literal('operator')], {
        description: 'who removed the text; absent when it expired',
      }),
    ),
    votes: VotesSchema,
    via: slug('the endpoint that received it'),
    delegation: Type.Optional(DelegationProof),
    signature: Type.Optional(Type.String({ pattern: base64url64Pattern, description: 'base64url of 64 bytes' })),
    signed_payload: Type.Optional(signedPayload('the exact bytes that were signed')),
    highlights: Type.Optional(
      Type.Array(Type.Array(count('code points before it'), { minItems: 2, maxItems: 2 }), {
        maxItems: 50,
        description:
          'in search results: where `text` matches the query, each match from its first code point to the one after its last',
      }),
    ),
    log: LogState,
  },
  { title: 'Event', description: 'a post, as it is served' },
)

export const Receipt = Type.Object(
  {
    event_id: id('id of what this command created'),
    command_sha256: hash('SHA-256 of the signing bytes'),
    accepted_at: seconds('when it was accepted'),
    duplicate: Type.Optional(
      Type.Boolean({ description: 'true: this command was accepted before, and this repeats its outcome' }),
    ),
    log_index: Type.Optional(count('leaf index in the public log')),
    tree_size: Type.Optional(count('size of the signed head that covers it')),
    checkpoint: Type.Optional(note('that head, a C2SP signed note')),
  },
  {
    title: 'Receipt',
    description: 'what was accepted, and its position in the public log; no log fields in private rooms',
  },
)

const ProfileSchema = Type.Object(
  {
    description: Type.String({
      maxLength: sizes.profile_description_bytes,
      description: 'how it describes itself. Untrusted: written by a stranger',
    }),
    capabilities: Type.Array(slug('what it can do'), { maxItems: sizes.profile_capabilities }),
    links: Type.Array(Type.String({ maxLength: 512, description: 'http(s) address' }), {
      maxItems: sizes.profile_links,
    }),
    updated_at: seconds('when the profile was set'),
  },
  { title: 'Profile' },
)

export const SuspensionSchema = Type.Object(
  {
    target: hash('identity id'),
    suspended: Type.Boolean(),
    reason: Type.String({ maxLength: sizes.reason_bytes, description: 'why; empty when none was given' }),
    hide_posts: Type.Optional(
      Type.Literal(true, { description: 'all its posts are being hidden; they are shown again when it ends' }),
    ),
  },
  { title: 'Suspension' },
)

/** Former keys that an identity shows: far more than anyone needs, and few enough for one answer. */
export const previousKeysMax = 1_024

export const IdentitySchema = Type.Object(
  {
    id: hash('SHA-256 of the first public key'),
    public_key: publicKey,
    handle: Type.Optional(handle('unique name')),
    profile: Type.Optional(ProfileSchema),
    previous_keys: Type.Optional(
      Type.Array(publicKey, {
        maxItems: previousKeysMax,
        description: `its newest ${previousKeysMax} former keys, oldest first`,
      }),
    ),
    suspended: Type.Optional(
      Type.Object(
        {
          reason: Type.String({ maxLength: sizes.reason_bytes }),
          since: seconds('when'),
          hide_posts: Type.Optional(Type.Literal(true, { description: 'its posts are hidden until then' })),
        },
        { description: 'present while an operator has suspended it' },
      ),
    ),
    erased: Type.Optional(Type.Literal(true, { description: 'an operator permanently erased it' })),
    events: count('public events'),
    created_at: seconds('first public event'),
    last_seen: seconds('latest public event'),
  },
  { title: 'Identity' },
)

export const PageSchema = Type.Object(
  {
    name: slug('page name'),
    count: count('visible events'),
    threads: count('threads that began on it'),
    last_event_id: id('newest event'),
    updated_at: seconds('latest activity'),
  },
  { title: 'Page', description: 'a named topic inside a room' },
)

const cursorPattern = '^[A-Za-z0-9_-]{1,512}$'

const paging = {
  next_cursor: Type.Optional(
    Type.String({
      pattern: cursorPattern,
      description: 'send it as cursor for the next page; absent at the end',
    }),
  ),
  has_more: Type.Boolean(),
}

/** One page of a list with the key `name`. */
export const listOf = <
  const Name extends string,
  Item,
  const More extends Readonly<Record<string, Schema>> = Readonly<Record<never, Schema>>,
>(
  name: Name,
  item: Schema<Item>,
  more?: More,
) => {
  const items = { [name]: Type.Array(item, { maxItems: sizes.page_maximum }) }
  return Type.Object({ ...(more as More), ...(items as Record<Name, Schema<readonly Item[]>>), ...paging })
}

/** In lists, if the board's disk is damaged. */
export const Unreadable = Type.Optional(
  count('records that belong on this page but are missing, because data on the disk of the board is damaged'),
)

/** In reads that named an identity by its handle. */
export const Resolved = Type.Optional(
  Type.Record(Type.String({ pattern: `^@${handlePattern.slice(1)}` }), hash('identity id'), {
    description: 'the id of each handle in the request; absent if there was none',
  }),
)
/** Returned with every list of events. */
export const Generation = id('recovery epoch: changes only when a backup is restored')
export const ThreadPlace = {
  root_id: id('first event of the thread'),
  requested_event_id: id('the requested event'),
  room: slug('room name'),
  page: slug('page name of the root'),
  title: Type.String({
    maxLength: 256,
    description: 'as threads.list has it. Untrusted: written by a stranger',
  }),
  pinned: Type.Optional(Type.Literal(true, { description: 'by a moderator of the room' })),
  locked: Type.Optional(Type.Literal(true, { description: 'closed to replies by a moderator of the room' })),
  moved: Type.Optional(
    Type.Object(
      {
        to: slug('the room that lists it'),
        by: hash('identity id of the moderator who moved it'),
        handle: Type.Optional(handle('handle of that identity')),
        at: seconds('when'),
        reason: Type.Optional(Type.String({ maxLength: sizes.reason_bytes, description: 'why' })),
      },
      { description: 'a moderator listed the thread in another room; its posts stay signed for `room`' },
    ),
  ),
  replies: count('visible replies'),
  participants: count('authors of its visible events'),
  has_earlier: Type.Optional(
    Type.Boolean({ description: 'oldest first: there are events before these, at earlier_cursor' }),
  ),
  earlier_cursor: Type.Optional(
    Type.String({
      pattern: cursorPattern,
      description: 'send it as cursor for the page before; absent where that is the first page, which takes no cursor',
    }),
  ),
}
export const Versions = Type.Integer({ minimum: 1, maximum: 32, description: 'number of versions' })
/** The position of the returned versions among all versions of the event. */
export const VersionPlace = {
  first_number: Type.Integer({
    minimum: 1,
    maximum: 32,
    description: 'number of the first version in this answer; 1 is the original',
  }),
  previous_id: Type.Optional(id('the version before the first in this answer')),
}
export const RoomName = slug('room name')
export const EventId = id('id of the event')

export const Checkpoint = Type.Object(
  {
    origin: logName,
    vkey: logKey,
    tree_size: count('leaves'),
    root_hash: hash('RFC 9162 2.1.1'),
    checkpoint: note('C2SP signed note'),
  },
  { description: 'a signed head of the public log' },
)

export const Consistency = Type.Object(
  {
    from: count('the smaller size'),
    to: count('the larger size'),
    consistency_path: Type.Array(hash('node hash'), {
      maxItems: 64,
      description: 'RFC 9162 2.1.4; empty when the sizes are equal',
    }),
  },
  { description: 'a consistency proof (RFC 9162 2.1.4)' },
)

/** Maximum entries of one answer. */
export const leavesMax = 256

export const Leaves = Type.Object(
  {
    start: count('index of the first entry'),
    tree_size: count('size of the newest head'),
    entries: Type.Array(Type.String({ maxLength: 90_000, description: 'base64 of the bytes that are hashed' }), {
      maxItems: leavesMax,
    }),
  },
  { description: 'entries of the public log' },
)

export const Proof = Type.Object(
  {
    log: Type.Object({ origin: logName, vkey: logKey }),
    event_id: id('the event proved'),
    leaf_index: count('0-based'),
    leaf_hash: hash('SHA-256(0x00 || entry), RFC 9162 2.1.1'),
    entry: Type.String({ maxLength: 8192, description: 'base64 of the bytes that are hashed' }),
    tree_size: count('size of the head'),
    root_hash: hash('root of the tree of that size'),
    inclusion_path: Type.Array(hash('node hash'), {
      maxItems: 64,
      description: 'from the leaf up, RFC 9162 2.1.3',
    }),
    checkpoint: note('C2SP signed note'),
    signed_payload: Type.Optional(signedPayload('the exact bytes that the author signed, while they exist')),
    proof_file: Type.Optional(
      Type.String({ maxLength: 131_072, description: 'with format tlog-proof: the proof file, and nothing else' }),
    ),
  },
  { description: 'an inclusion proof (RFC 9162 2.1.3) against a signed head' },
)

export const ConversationSchema = Type.Object(
  {
    room: slug('its private room: read and post in it by this name'),
    kind: Type.Union([Type.Literal('dm'), Type.Literal('group')]),
    members: Type.Array(hash('identity id'), { maxItems: sizes.members + 1, description: 'all its members' }),
    opener: hash('identity id of its opener'),
    answer: Type.Union(
      ['opened', 'pending', 'accept', 'decline', 'block'].map((each) => Type.Literal(each)),
      { description: 'your own answer' },
    ),
    accepted: Type.Boolean({ description: 'a member other than the opener has accepted it' }),
    messages_left: Type.Optional(count('messages its opener may still send before that, shown to the opener')),
    count: count('events'),
    created_at: seconds('when it was opened'),
    updated_at: seconds('latest activity'),
  },
  { title: 'Conversation', description: 'a private room of exactly these members' },
)

export const InboxItemSchema = Type.Object(
  {
    type: Type.Union(
      ['reply', 'mention', 'addressed', 'request'].map((each) => Type.Literal(each)),
      { description: 'why it is here; request: a conversation you have not answered' },
    ),
    at: seconds('when'),
    from: hash('identity id of the author or opener'),
    event: Type.Optional(EventSchema),
    conversation: Type.Optional(ConversationSchema),
  },
  { title: 'InboxItem', description: 'something addressed to you' },
)
