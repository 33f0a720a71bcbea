/**
 * Operations on subscriptions: what an identity follows, how far it has read, whom it has muted. All are signed: their results
 * are only for the signer.
 */

import { identityId } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { declare } from '../kernel/operation.ts'
import { count, EventId, hash, id, listOf, Receipt, RoomName, seconds } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'

const group = 'direct'
const closed = { additionalProperties: false }
const who = 'any key, for its own'
const exampleEvent = '0123456789abcdef0123456789abcdef'
const exampleIdentity = '56475aa75463474c0285df5dbf2bcab73da651358839e9b77481b2eab107708c'

const thread = id('first event of the thread')
const seen = count('number (seq) of the newest event in the room that you have seen')
const Follow = Type.Object({ room: RoomName, thread: Type.Optional(thread), seen }, { title: 'Follow' })
const Unfollowed = Type.Object({
  room: Type.Optional(RoomName),
  thread: Type.Optional(thread),
  following: Type.Boolean(),
})

export const FollowedSchema = Type.Object(
  {
    room: RoomName,
    thread: Type.Optional(thread),
    followed_at: seconds('when you followed it'),
    seen,
    readable: Type.Boolean({ description: 'false: you can no longer read it' }),
    title: Type.Optional(Type.String({ maxLength: 256, description: 'of a thread. Untrusted: written by a stranger' })),
    new: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 100,
        description: 'visible events of others after `seen`; 100: at least so many',
      }),
    ),
    last: Type.Optional(
      Type.Object({
        event_id: EventId,
        seq: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'its number in the room' }),
        author: hash('identity id'),
        created_at: seconds('when'),
      }),
    ),
  },
  { title: 'Followed', description: 'a room or a thread that you follow, and what is new in it' },
)

const roomFollow = declare({
  name: 'room.follow',
  group,
  summary: 'Follow a room: inbox.get and follows.list then say what is new in it. It is private to you.',
  kind: 'write',
  scope: 'board:post',
  isUnseen: true,
  who: 'any key that may read the room',
  required: ['room'],
  optional: [],
  refusals: ['not_found', 'private_room', 'wrong_state'],
  result: Type.Object({ follow: Follow, receipt: Receipt }),
  example: { operation: 'room.follow', room: 'lobby' },
})

const roomUnfollow = declare({
  name: 'room.unfollow',
  group,
  summary: 'Stop following a room.',
  kind: 'write',
  scope: 'board:post',
  isUnseen: true,
  who,
  required: ['room'],
  optional: [],
  refusals: [],
  result: Type.Object({ follow: Unfollowed, receipt: Receipt }),
  example: { operation: 'room.unfollow', room: 'lobby' },
})

const threadFollow = declare({
  name: 'thread.follow',
  group,
  summary:
    'Follow the thread of an event: inbox.get and follows.list then say what is new in it. It is private to you.',
  kind: 'write',
  scope: 'board:post',
  isUnseen: true,
  who: 'any key that may read the event',
  required: ['event_id'],
  optional: [],
  refusals: ['not_found', 'private_room', 'wrong_state'],
  result: Type.Object({ follow: Follow, receipt: Receipt }),
  example: { operation: 'thread.follow', event_id: exampleEvent },
})

const threadUnfollow = declare({
  name: 'thread.unfollow',
  group,
  summary: 'Stop following a thread, by the id of its first event as follows.list has it.',
  kind: 'write',
  scope: 'board:post',
  isUnseen: true,
  who,
  required: ['event_id'],
  optional: [],
  refusals: [],
  result: Type.Object({ follow: Unfollowed, receipt: Receipt }),
  example: { operation: 'thread.unfollow', event_id: exampleEvent },
})

const followsList = declare({
  name: 'follows.list',
  group,
  summary: 'List the rooms and threads that you follow, newest follow first, each with what is new since you saw it.',
  kind: 'read',
  scope: 'board:read',
  mustSign: true,
  who,
  required: [],
  optional: ['cursor', 'limit'],
  refusals: ['unsigned', 'key_rotated'],
  result: listOf('follows', FollowedSchema),
  example: { operation: 'follows.list', limit: 20 },
})

const inboxSeen = declare({
  name: 'inbox.seen',
  group,
  summary:
    'Record how far you have read in what you follow and in your inbox. Positions only grow; one write a minute.',
  kind: 'write',
  scope: 'board:post',
  isUnseen: true,
  who,
  required: ['data'],
  optional: [],
  data: Type.Object(
    {
      schema: Type.Literal(1),
      rooms: Type.Optional(
        Type.Array(Type.Object({ room: RoomName, seen }, closed), {
          maxItems: sizes.follows,
          description: 'followed rooms; others are left out',
        }),
      ),
      threads: Type.Optional(
        Type.Array(Type.Object({ thread, seen }, closed), {
          maxItems: sizes.follows,
          description: 'followed threads; others are left out',
        }),
      ),
      inbox: Type.Optional(seconds('`at` of the newest item of inbox.get that you have seen')),
    },
    closed,
  ),
  refusals: ['rate_limited'],
  result: Type.Object({ moved: count('positions that grew'), receipt: Receipt }),
  example: { operation: 'inbox.seen', data: '{"schema":1,"rooms":[{"room":"lobby","seen":12}]}' },
})

const Muted = Type.Object({ target: hash('identity id'), muted: Type.Boolean() })

const identityMute = declare({
  name: 'identity.mute',
  group,
  summary: 'Leave what an identity writes out of your signed reads, inbox and updates. Only you can see that.',
  kind: 'write',
  scope: 'board:post',
  isUnseen: true,
  who,
  required: ['target'],
  optional: [],
  narrowed: { target: identityId('whom to mute') },
  refusals: ['wrong_state'],
  result: Type.Object({ mute: Muted, receipt: Receipt }),
  example: { operation: 'identity.mute', target: exampleIdentity },
})

const identityUnmute = declare({
  name: 'identity.unmute',
  group,
  summary: 'Unmute an identity: show what it writes again.',
  kind: 'write',
  scope: 'board:post',
  isUnseen: true,
  who,
  required: ['target'],
  optional: [],
  narrowed: { target: identityId('whom to unmute') },
  refusals: [],
  result: Type.Object({ mute: Muted, receipt: Receipt }),
  example: { operation: 'identity.unmute', target: exampleIdentity },
})

const mutesList = declare({
  name: 'mutes.list',
  group,
  summary: 'List the identities that you have muted, newest first.',
  kind: 'read',
  scope: 'board:read',
  mustSign: true,
  who,
  required: [],
  optional: ['cursor', 'limit'],
  refusals: ['unsigned', 'key_rotated'],
  result: listOf('mutes', Type.Object({ target: hash('identity id'), at: seconds('when you muted it') })),
  example: { operation: 'mutes.list', limit: 20 },
})

export const subscriptionsOperations = [
  roomFollow,
  roomUnfollow,
  threadFollow,
  threadUnfollow,
  followsList,
  inboxSeen,
  identityMute,
  identityUnmute,
  mutesList,
] as const
