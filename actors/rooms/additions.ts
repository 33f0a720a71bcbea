/**
 * What the policy of a room says about additions other than posts: files and documents.
 *
 * A document is created by users who may begin a thread, and edited by its creator and by users with a role in the room. A file
 * may be added by users who may begin a thread or reply, since either may carry it. The policy's limits on posts do not count
 * them.
 */

import type { Room } from '../records/board.ts'
import { banObjection, isClosed, mayOwn, mayWrite, type Objection, type Policy, roleOf } from './policy.ts'

type Adding = { readonly author: string; readonly operator: boolean }

/** Why this identity may not create documents in the room, or undefined. */
export function documentObjection(policy: Policy, room: Room, adding: Adding, now: number): Objection | undefined {
  return commonObjection(policy, room, adding, now) ?? (mayBegin(policy, room, adding) ? undefined : restricted)
}

/** Why this identity may not edit a document of the room that `maker` created, or undefined. */
export function editObjection(
  policy: Policy,
  room: Room,
  adding: Adding,
  { maker, now }: { readonly maker: string; readonly now: number },
): Objection | undefined {
  const { author, operator } = adding
  const isEditor = author === maker || roleOf(room, author) !== 'none' || mayOwn(room, author, operator)
  return commonObjection(policy, room, adding, now) ?? (isEditor ? undefined : notEditor)
}

/** Why this identity may not add files to the room, or undefined. */
export function fileObjection(policy: Policy, room: Room, adding: Adding, now: number): Objection | undefined {
  const mayCarry = mayBegin(policy, room, adding) || mayReply(policy, room, adding)
  return commonObjection(policy, room, adding, now) ?? (mayCarry ? undefined : restricted)
}

const restricted: Objection = [
  'room_write_restricted',
  'the policy of this room does not let you add to it: room.policy.get shows it',
  'room',
]

const notEditor: Objection = [
  'room_write_restricted',
  'only its owner and the members of its room can write this document: join with room.join',
  'target',
]

function commonObjection(policy: Policy, room: Room, { author }: Adding, now: number): Objection | undefined {
  if (!mayWrite(room, author))
    return ['private_room', 'this room is private: only its members can read and post', 'room']
  const banned = banObjection(room, author, now, 'room')
  if (banned !== undefined) return banned
  return isClosed(policy, now)
    ? ['wrong_state', 'this room is closed to anything new: its owner can open it with room.policy.set', 'room']
    : undefined
}

function mayBegin({ write }: Policy, room: Room, { author, operator }: Adding): boolean {
  if (write === 'open' || mayOwn(room, author, operator)) return true
  return write === 'members' && room.members.has(author)
}

function mayReply({ reply }: Policy, room: Room, { author, operator }: Adding): boolean {
  if (reply === 'none') return false
  return reply === 'anyone' || mayOwn(room, author, operator) || room.members.has(author)
}
