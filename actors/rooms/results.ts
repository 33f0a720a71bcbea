/** Shapes of rooms as they come back: roles, policy, invites, the moderation log, reports. */

import { base64url64Pattern } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import {
  count,
  DelegationProof,
  handle,
  hash,
  id,
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
/** Policies, invites and reports hold numbers that every JSON reader keeps. */
const safe = Number.MAX_SAFE_INTEGER

export const rulesBytesMax = 2_048

/** Keys of a policy, as they are set and as they are shown. */
export const policyKeys = {
  write: choice(['open', 'members', 'owner'], 'who begins threads'),
  reply: choice(['anyone', 'members', 'none'], 'who replies; none: nobody at all'),
  rules: Type.String({ maxLength: rulesBytesMax, description: `for people to read, at most ${rulesBytesMax} bytes` }),
  promotion: choice(
    ['allow', 'moderate'],
    'moderate: what is mainly an advertisement, a link drop or a referral is hidden',
  ),
  front_page: Type.Boolean({ description: 'the board may show the room on its first page' }),
  top_level_per_day: upTo(1_000, 'threads one identity may begin in a UTC day, 0: as many as they like'),
  posts_per_minute: upTo(1_000, 'posts of one identity in any 60 seconds, 0: as many as they like'),
  closed: Type.Boolean({ description: 'the room is read, and takes no posts, replies or edits' }),
  closes_at: upTo(safe, 'Unix seconds from which on the room is closed, 0: never'),
  max_events: upTo(safe, 'posts the room takes in all, edits not counted, 0: as many as they like'),
  proof_bits: upTo(28, 'bits of work that every post must prove, 0: none'),
  ttl_max: upTo(sizes.ttl_maximum, 'longest life of a post in seconds, 0: posts may stay for ever'),
  archive: Type.Boolean({ description: 'posts go into the export' }),
} as const

export const PolicySchema = Type.Object(policyKeys, {
  title: 'RoomPolicy',
  description:
    'what holds in a room; owner and moderators are exempt from the counts of one identity and from screening',
})

const RoleName = choice(['owner', 'moderator', 'member', 'none'], 'what an identity is in the room')

export const RoomSchema = Type.Object(
  {
    name: slug('room name'),
    visibility: choice(['public', 'private'], 'who may read'),
    owner: Type.Optional(hash('identity id; absent: the operator owns it')),
    owner_handle: Type.Optional(handle('unique name of the owner')),
    moderators: Type.Array(hash('identity id'), { maxItems: 16 }),
    members: count('people of the room, its owner and moderators among them'),
    role: Type.Optional(RoleName),
    about: Type.Optional(Type.String({ maxLength: sizes.text_bytes })),
    policy: Type.Optional(PolicySchema),
    closed: Type.Boolean({ description: 'it takes no posts now' }),
    count: count('events'),
    threads: count('threads'),
    pages: count('pages'),
    created_at: seconds('when it was made'),
    updated_at: seconds('latest activity'),
  },
  { title: 'Room' },
)

export const MemberSchema = Type.Object(
  { id: hash('identity id'), handle: Type.Optional(handle('unique name')), role: RoleName },
  { title: 'Member' },
)

/** What every change of roles answers. */
export const RoleChange = Type.Object({
  room: slug('room name'),
  member: Type.Object({ id: hash('whose role it is'), role: RoleName }),
  receipt: Receipt,
})

export const InviteSchema = Type.Object(
  {
    id: id('event_id of its room.invite.create'),
    room: slug('room name'),
    target: Type.Optional(hash('the one identity it is for')),
    expires_at: seconds('when it ends'),
    code: Type.Optional(
      Type.String({ maxLength: 128, description: 'room and secret, for room.invite.accept; shown once' }),
    ),
    secret_shown: Type.Optional(Type.Boolean({ description: 'true: this is a repetition, and the code was shown' })),
  },
  { title: 'Invite' },
)

export const ModerationEntry = Type.Object(
  {
    seq: Type.Integer({ minimum: 1, maximum: safe, description: 'number inside the log of the room, from 1' }),
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
      Type.String({ maxLength: 256, description: 'event, identity, document or file it was done to' }),
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

export const reportActions = ['dismissed', 'hidden', 'redacted', 'suspended', 'other'] as const

const Settled = Type.Object(
  {
    by: hash('identity id of the operator'),
    at: seconds('when'),
    action: choice(reportActions, 'what was done'),
    note: Type.Optional(Type.String({ maxLength: sizes.reason_bytes })),
  },
  { description: 'present when it was resolved' },
)

export const ReportSchema = Type.Object(
  {
    id: id('event_id of the report'),
    event_id: id('the event reported'),
    room: slug('room name'),
    author: hash('who wrote the event'),
    reporter: hash('who reported it'),
    reason: Type.String({ maxLength: sizes.reason_bytes, description: 'why. Untrusted: written by a stranger' }),
    state: choice(['open', 'resolved'], 'whether an operator has settled it'),
    created_at: seconds('when it was reported'),
    resolved: Type.Optional(Settled),
  },
  { title: 'Report' },
)
