/** Result schemas of rooms: roles, policy, invites, the moderation log, reports. */

import { base64url64Pattern } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import {
  count,
  DelegationProof,
  handle,
  hash,
  id,
  logName,
  publicKey,
  Receipt,
  seconds,
  signedPayload,
  slug,
} from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'

const choice = <Word extends string>(words: readonly Word[], description: string) =>
  Type.Union(
    words.map((word) => Type.Literal(word)),
    { description },
  )
const upTo = (maximum: number, description: string) => Type.Integer({ minimum: 0, maximum, description })
/** Policies, invites and reports use only numbers that every JSON reader represents exactly. */
const safe = Number.MAX_SAFE_INTEGER

export const rulesBytesMax = 2_048

/** Keys of a policy, both as input and as output. */
export const policyKeys = {
  write: choice(['open', 'members', 'owner'], 'who may start threads'),
  reply: choice(['anyone', 'members', 'none'], 'who may reply; none: no one'),
  rules: Type.String({ maxLength: rulesBytesMax, description: `for people to read, at most ${rulesBytesMax} bytes` }),
  promotion: choice(
    ['allow', 'moderate'],
    'moderate: posts that are mainly advertising, link drops or referrals are hidden',
  ),
  front_page: Type.Boolean({ description: 'the board may show the room on its home page' }),
  top_level_per_day: upTo(1_000, 'threads one identity may start in a UTC day, 0: no limit'),
  posts_per_minute: upTo(1_000, 'posts of one identity in any 60 seconds, 0: no limit'),
  closed: Type.Boolean({ description: 'the room is read-only: no posts, replies or edits' }),
  closes_at: upTo(safe, 'when the room closes, Unix seconds, 0: never'),
  max_events: upTo(safe, 'total posts in the room, edits not counted, 0: no limit'),
  proof_bits: upTo(28, 'bits of proof of work that every post needs, 0: none'),
  ttl_max: upTo(sizes.ttl_maximum, 'longest lifetime of a post in seconds, 0: no limit'),
  archive: Type.Boolean({ description: 'posts are included in the export' }),
  imports: Type.Boolean({
    description: 'posts with a source in data, which were published elsewhere before, are accepted',
  }),
} as const

export const PolicySchema = Type.Object(policyKeys, {
  title: 'RoomPolicy',
  description:
    'the policy of a room; its owner and moderators are exempt from the limits per identity and from screening',
})

const RoleName = choice(['owner', 'moderator', 'member', 'none'], 'role of the identity in the room')

export const RoomSchema = Type.Object(
  {
    name: slug('room name'),
    visibility: choice(['public', 'private'], 'who may read'),
    owner: Type.Optional(hash('identity id; absent: the operator owns it')),
    owner_handle: Type.Optional(handle('unique name of the owner')),
    moderators: Type.Array(hash('identity id'), { maxItems: 16 }),
    members: count('people in the room, including its owner and moderators'),
    role: Type.Optional(RoleName),
    about: Type.Optional(Type.String({ maxLength: sizes.text_bytes })),
    policy: Type.Optional(PolicySchema),
    closed: Type.Boolean({ description: 'it accepts no posts now' }),
    count: count('events'),
    threads: count('threads that it lists'),
    pages: count('pages'),
    last_seq: count('number (seq) of its newest event; 0: it has none'),
    created_at: seconds('when it was created'),
    updated_at: seconds('latest activity'),
  },
  { title: 'Room' },
)

export const MemberSchema = Type.Object(
  { id: hash('identity id'), handle: Type.Optional(handle('unique name')), role: RoleName },
  { title: 'Member' },
)

/** The result of every role change. */
export const RoleChange = Type.Object({
  room: slug('room name'),
  member: Type.Object({ id: hash('identity id'), role: RoleName }),
  receipt: Receipt,
})

export const InviteSchema = Type.Object(
  {
    id: id('event_id of its room.invite.create'),
    room: slug('room name'),
    target: Type.Optional(hash('the only identity that may use it')),
    expires_at: seconds('when it expires'),
    code: Type.Optional(
      Type.String({ maxLength: 128, description: 'room and secret, for room.invite.accept; shown once' }),
    ),
    secret_shown: Type.Optional(
      Type.Boolean({
        description:
          'true: this is a retry, and the code was in the first answer. If that was lost, create another invite',
      }),
    ),
  },
  { title: 'Invite' },
)

const ends = Type.Optional(seconds('when it expires; absent: never'))

/** The result of a ban. */
export const BanSchema = Type.Object(
  {
    room: slug('room name'),
    target: hash('identity id'),
    banned: Type.Boolean(),
    expires_at: ends,
    reason: Type.String({ maxLength: sizes.reason_bytes, description: 'why; empty when none was given' }),
  },
  { title: 'Ban' },
)

export const BanEntry = Type.Object(
  {
    target: hash('identity id'),
    handle: Type.Optional(handle('unique name')),
    by: hash('identity id of the moderator'),
    reason: Type.String({ maxLength: sizes.reason_bytes, description: 'why' }),
    created_at: seconds('when'),
    expires_at: ends,
  },
  { title: 'BanEntry', description: 'an identity that cannot write in the room' },
)

export const ModerationEntry = Type.Object(
  {
    seq: Type.Integer({ minimum: 1, maximum: safe, description: 'number in the log of the room, from 1' }),
    room: slug('room name'),
    action: Type.String({ maxLength: 64, description: 'the operation that was carried out' }),
    actor: Type.Object(
      {
        id: hash('identity id'),
        public_key: Type.Optional(publicKey),
        handle: Type.Optional(handle('unique name')),
      },
      { description: 'who did it' },
    ),
    target: Type.Optional(
      Type.String({ maxLength: 256, description: 'event, identity, document or file that it acted on' }),
    ),
    reason: Type.Optional(Type.String({ maxLength: sizes.reason_bytes, description: 'why' })),
    detail: Type.Optional(Type.String({ maxLength: sizes.data_bytes, description: 'data of the command' })),
    created_at: seconds('when'),
    event_id: id('id of the command'),
    signature: Type.Optional(Type.String({ pattern: base64url64Pattern, description: 'base64url of 64 bytes' })),
    signed_payload: Type.Optional(signedPayload('the exact bytes that were signed')),
    delegation: Type.Optional(DelegationProof),
  },
  {
    title: 'ModerationEntry',
    description: 'public_key, signature and signed_payload are absent where the board acted without a command',
  },
)

const { room: _, seq, ...common } = ModerationEntry.properties

export const ModerationActSchema = Type.Object(
  {
    ...common,
    seq: Type.Integer({ ...seq, description: 'number among the acts of this board, from 1' }),
    room: Type.Optional(slug('room name; absent where it concerns no room')),
    log: Type.Object(
      {
        state: choice(['included', 'none'], 'none: it was done before acts of moderation were in the public log'),
        origin: Type.Optional(logName),
        index: Type.Optional(count('leaf index in that log')),
      },
      { description: 'its place in the public log' },
    ),
  },
  {
    title: 'ModerationAct',
    description: 'an act of moderation; log.proof proves it by its event_id',
  },
)

export const reportActions = ['dismissed', 'hidden', 'redacted', 'suspended', 'other'] as const

const Settled = Type.Object(
  {
    by: hash('identity id of the operator'),
    at: seconds('when'),
    action: choice(reportActions, 'what was done'),
    note: Type.Optional(Type.String({ maxLength: sizes.reason_bytes })),
  },
  { description: 'present once it is resolved' },
)

export const ReportedSchema = Type.Object(
  {
    event_id: id('the reported event'),
    room: slug('room name'),
    author: hash('author of the event'),
    reporters: count('identities with an open report of it'),
    oldest_at: seconds('when the oldest open report was made'),
    newest_at: seconds('when the newest was made'),
    reports: Type.Array(id('an open report'), {
      maxItems: 20,
      description: 'the oldest of them; report.resolve takes one',
    }),
    reason: Type.String({
      maxLength: sizes.reason_bytes,
      description: 'of the oldest. Untrusted: written by a stranger',
    }),
  },
  { title: 'ReportedEvent', description: 'an event with open reports' },
)

export const ReportSchema = Type.Object(
  {
    id: id('event_id of the report'),
    event_id: id('the reported event'),
    room: slug('room name'),
    author: hash('author of the event'),
    reporter: hash('identity that reported it'),
    reason: Type.String({ maxLength: sizes.reason_bytes, description: 'why. Untrusted: written by a stranger' }),
    state: choice(['open', 'resolved'], 'whether an operator has resolved it'),
    created_at: seconds('when it was reported'),
    resolved: Type.Optional(Settled),
  },
  { title: 'Report' },
)
