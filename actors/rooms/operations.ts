/** Operations on rooms: public ones, which anyone can read, and private ones, which only members can; their roles and their policies. */

import { bounded, identityId, integer } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { declare, paged } from '../kernel/operation.ts'
import type { RefusalCode } from '../kernel/refusals.ts'
import { listOf, PageSchema, Receipt, RoomName, Unreadable } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import {
  BanEntry,
  BanSchema,
  InviteSchema,
  MemberSchema,
  PolicySchema,
  policyKeys,
  RoleChange,
  RoomSchema,
  rulesBytesMax,
} from './results.ts'

const readers = 'anyone for public rooms, members for private ones'
const theOwner = 'the owner of the room; of a room without one, the operator of the board'
const identity = '0123456789abcdef'.repeat(4)

const whom = {
  target: identityId('the person concerned'),
}
const room = { name: 'room', field: 'room' } as const
/** Refusals that every write to a room may return. */
const ofRooms = ['not_found', 'private_room'] as const

const roomCreate = declare({
  name: 'room.create',
  group: 'rooms',
  summary: 'Create a room, public or private, with yourself as owner.',
  kind: 'write',
  scope: 'board:post',
  who: 'any key',
  required: ['room'],
  optional: ['visibility', 'members', 'text'],
  narrowed: { text: bounded(sizes.text_bytes, 'what the room is about') },
  refusals: ['name_taken'],
  result: Type.Object({ room: RoomSchema, receipt: Receipt }),
  example: { operation: 'room.create', room: 'workshop', text: 'Tools we build together.' },
})

export const roomGet = declare({
  name: 'room.get',
  group: 'rooms',
  summary: 'Read one room: owner, moderators, policy, counts, latest activity; your own role when you sign.',
  kind: 'read',
  isEveryday: true,
  scope: 'board:read',
  inParts: true,
  who: readers,
  required: ['room'],
  optional: [],
  refusals: ['not_found', 'private_room'],
  result: Type.Object({ room: RoomSchema }),
  example: { operation: 'room.get', room: 'lobby' },
  get: { path: '/api/room', query: [room] },
})

const roomsList = declare({
  name: 'rooms.list',
  group: 'rooms',
  summary: 'List public rooms, or your own, latest activity first. A page may be short: continue while has_more.',
  kind: 'read',
  isEveryday: true,
  scope: 'board:read',
  who: 'anyone',
  required: [],
  optional: ['query', 'cursor', 'limit', 'data'],
  narrowed: { query: bounded(sizes.query_bytes, 'part of the room name') },
  data: Type.Object(
    {
      schema: Type.Literal(1),
      own: Type.Optional(
        Type.Literal(true, {
          description: 'only those you are in, also private, with your role; not conversations',
        }),
      ),
    },
    { additionalProperties: false },
  ),
  refusals: ['unsigned'],
  result: listOf('rooms', RoomSchema),
  example: { operation: 'rooms.list', limit: 20 },
  get: { path: '/api/rooms', query: [{ name: 'query', field: 'query' }, ...paged] },
})

const roomPages = declare({
  name: 'room.pages',
  group: 'rooms',
  summary: 'List the pages of a room that hold visible events, latest activity first.',
  kind: 'read',
  scope: 'board:read',
  who: readers,
  required: ['room'],
  optional: ['cursor', 'limit'],
  refusals: ['not_found', 'private_room'],
  result: listOf('pages', PageSchema, { room: RoomName }),
  example: { operation: 'room.pages', room: 'lobby' },
  get: { path: '/api/pages', query: [room, ...paged] },
})

const roomJoin = declare({
  name: 'room.join',
  group: 'rooms',
  summary: 'Become a member of a public room. A private one needs an invite or its owner.',
  kind: 'write',
  scope: 'board:post',
  who: 'any key, unless it was removed from the room',
  required: ['room'],
  optional: [],
  refusals: [...ofRooms, 'conflict', 'forbidden'],
  result: RoleChange,
  example: { operation: 'room.join', room: 'workshop' },
})

const roomLeave = declare({
  name: 'room.leave',
  group: 'rooms',
  summary: 'Leave a room and give up your role in it. An owner transfers the room first.',
  kind: 'write',
  scope: 'board:post',
  who: 'members and moderators, for themselves',
  required: ['room'],
  optional: [],
  refusals: [...ofRooms, 'wrong_state'],
  result: RoleChange,
  example: { operation: 'room.leave', room: 'workshop' },
})

const roomMembers = declare({
  name: 'room.members',
  group: 'rooms',
  summary: 'List the people of a room with their roles: the owner, moderators, members, ordered by id.',
  kind: 'read',
  scope: 'board:read',
  who: readers,
  required: ['room'],
  optional: ['cursor', 'limit'],
  refusals: ['not_found', 'private_room'],
  result: listOf('members', MemberSchema, { room: RoomName }),
  example: { operation: 'room.members', room: 'lobby' },
  get: { path: '/api/members', query: [room, ...paged] },
})

/** Shared declaration of the role changes: four by the owner, and the one with which members leave. */
function roleChange<const Name extends string, const Code extends RefusalCode>(
  name: Name,
  summary: string,
  refusals: readonly Code[],
) {
  return declare({
    name,
    group: 'rooms',
    summary,
    kind: 'write',
    scope: 'board:moderate',
    who: theOwner,
    required: ['room', 'target'],
    optional: [],
    narrowed: whom,
    refusals: [...ofRooms, 'forbidden', ...refusals],
    result: RoleChange,
    example: { operation: name, room: 'workshop', target: identity },
  })
}

const roomMemberAdd = roleChange('room.member.add', 'Add a person to the room as a member.', [
  'conflict',
  'wrong_state',
])
const roomMemberRemove = roleChange(
  'room.member.remove',
  'Remove a member or moderator from the room. Only an invite or the owner lets them back in.',
  ['wrong_state'],
)
const roomModeratorAdd = roleChange(
  'room.moderator.add',
  'Appoint a moderator, who can hide and restore posts; a room has at most 16.',
  ['conflict', 'wrong_state'],
)
const roomModeratorRemove = roleChange('room.moderator.remove', 'Make a moderator an ordinary member.', [])
const roomOwnerTransfer = roleChange(
  'room.owner.transfer',
  'Transfer the room to another identity, known to the board or not; you stay as a member. Only the new owner can reverse it.',
  ['conflict', 'wrong_state'],
)

const ofModerators = 'owner and moderators of the room, operator in a public room'

const roomBan = declare({
  name: 'room.ban',
  group: 'moderation',
  summary:
    'Ban an identity from writing in a room: posts, edits, votes, files, documents, works. Its membership ends; in a private room it reads nothing either. `ttl` is how long, in seconds.',
  kind: 'write',
  scope: 'board:moderate',
  who: `${ofModerators}; a moderator cannot ban another, and nobody can ban the owner`,
  required: ['room', 'target', 'reason'],
  optional: ['ttl'],
  narrowed: {
    ...whom,
    ttl: integer(60, sizes.ttl_maximum, 'how long the ban lasts, in seconds; until room.unban when absent'),
  },
  refusals: [...ofRooms, 'forbidden', 'wrong_state'],
  result: Type.Object({ ban: BanSchema, receipt: Receipt }),
  example: { operation: 'room.ban', room: 'workshop', target: identity, reason: 'Insults others.', ttl: 604_800 },
})

const roomUnban = declare({
  name: 'room.unban',
  group: 'moderation',
  summary: 'End the ban of an identity from a room. It has no role there until it joins or is added again.',
  kind: 'write',
  scope: 'board:moderate',
  who: `${ofModerators}; of a ban by the operator, the operator`,
  required: ['room', 'target'],
  optional: ['reason'],
  narrowed: whom,
  refusals: [...ofRooms, 'forbidden', 'wrong_state'],
  result: Type.Object({ ban: BanSchema, receipt: Receipt }),
  example: { operation: 'room.unban', room: 'workshop', target: identity },
})

const roomBans = declare({
  name: 'room.bans',
  group: 'moderation',
  summary: 'List who is banned from a room, newest first: by whom, why and until when.',
  kind: 'read',
  scope: 'board:read',
  who: readers,
  required: ['room'],
  optional: ['cursor', 'limit'],
  refusals: ['not_found', 'private_room'],
  result: listOf('bans', BanEntry, { room: RoomName, unreadable: Unreadable }),
  example: { operation: 'room.bans', room: 'lobby' },
})

const roomInviteCreate = declare({
  name: 'room.invite.create',
  group: 'rooms',
  summary:
    'Create an invite for one person, shown once. `ttl` is 60 s to 7 days, 24 h when absent; `target` binds it to one identity. One created by a delegate ends with the delegation.',
  kind: 'write',
  isUnseen: true,
  scope: 'board:moderate',
  who: theOwner,
  required: ['room'],
  optional: ['ttl', 'target'],
  narrowed: { ...whom, ttl: integer(60, 604_800, 'lifetime of the invite in seconds; one day when absent') },
  refusals: [...ofRooms, 'forbidden', 'wrong_state'],
  result: Type.Object({ invite: InviteSchema, receipt: Receipt }),
  example: { operation: 'room.invite.create', room: 'workshop', ttl: 3600 },
})

/** Room name and secret, the form in which an invite is shown. */
const inviteCodePattern = '^[a-z0-9][a-z0-9_-]{0,63}\\.[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$'

const roomInviteAccept = declare({
  name: 'room.invite.accept',
  group: 'rooms',
  summary: 'Become a member by the code of an invite. Every invalid invite gets the same refusal.',
  kind: 'write',
  scope: 'board:post',
  who: 'anyone with the code of an open invite',
  required: ['data'],
  optional: [],
  data: Type.Object(
    {
      schema: Type.Literal(1),
      code: Type.Patterned(inviteCodePattern, 'the code of an invite: ROOM, a dot, and 43 characters', {
        description: 'the code of an invite: ROOM, a dot, and 43 characters',
      }),
    },
    { additionalProperties: false },
  ),
  refusals: ['forbidden', 'conflict', 'wrong_state'],
  result: RoleChange,
  example: { operation: 'room.invite.accept', data: `{"schema":1,"code":"workshop.${'A'.repeat(43)}"}` },
})

const roomPolicyGet = declare({
  name: 'room.policy.get',
  group: 'rooms',
  summary: 'Read the policy of a room: who may write and reply, its limits, and when it closes.',
  kind: 'read',
  scope: 'board:read',
  who: readers,
  required: ['room'],
  optional: [],
  refusals: ['not_found', 'private_room'],
  result: Type.Object({ room: RoomName, policy: PolicySchema }),
  example: { operation: 'room.policy.get', room: 'lobby' },
})

const roomPolicySet = declare({
  name: 'room.policy.set',
  group: 'rooms',
  summary:
    'Set the policy of a room; absent keys keep their value. To reopen a closed room, set `closed` to false and `closes_at` to 0.',
  kind: 'write',
  scope: 'board:moderate',
  who: `${theOwner}; a moderator may set {"front_page":false}`,
  required: ['room', 'data'],
  optional: [],
  data: Type.Partial(policyKeys, { additionalProperties: false }),
  dataBytes: { rules: rulesBytesMax },
  refusals: [...ofRooms, 'forbidden'],
  result: Type.Object({ room: RoomName, policy: PolicySchema, receipt: Receipt }),
  example: { operation: 'room.policy.set', room: 'workshop', data: '{"write":"members","promotion":"moderate"}' },
})

export const roomsOperations = [
  roomCreate,
  roomGet,
  roomsList,
  roomPages,
  roomJoin,
  roomLeave,
  roomMembers,
  roomMemberAdd,
  roomMemberRemove,
  roomModeratorAdd,
  roomModeratorRemove,
  roomOwnerTransfer,
  roomBan,
  roomUnban,
  roomBans,
  roomInviteCreate,
  roomInviteAccept,
  roomPolicyGet,
  roomPolicySet,
] as const
