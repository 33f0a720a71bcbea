/**
 * Who may do what in a room. A room has one owner (without one the operator of the board owns it), at most 16 moderators, and
 * members; moderators are members. The operator moderates every public room, and knows of a private one only as its member.
 *
 * The board's own messages are recognized by their interface, which callers outside cannot use.
 */
import type { Room } from '../records/board.ts'

export type Role = 'owner' | 'moderator' | 'member' | 'none'

export const moderatorsMax = 16

export function roleOf(room: Room, identity: string): Role {
  if (room.owner === identity) return 'owner'
  if (room.moderators.has(identity)) return 'moderator'
  return room.members.has(identity) ? 'member' : 'none'
}

/** A private room does not exist for others; the policy of a room may ask more of writers. */
export function mayWrite(room: Room, author: string): boolean {
  return room.visibility === 'public' || room.owner === author || room.members.has(author)
}

/** May act as the owner of the room. */
export function mayOwn(room: Room, author: string, operator: boolean): boolean {
  return room.owner === undefined ? operator && room.visibility === 'public' : room.owner === author
}

/** A delegate touches what others made only where its delegation says so, whatever its identity may. */
export function mayTouchOthers({ delegated }: { readonly delegated?: { readonly moderates: boolean } }): boolean {
  return delegated === undefined || delegated.moderates
}

export const delegationTouchesNone =
  'this key acts under a delegation without the scope board:moderate: it cannot change what others made'

/** May hide, restore and redact what others wrote in the room. */
export function mayModerate(room: Room, author: string, operator: boolean): boolean {
  return room.owner === author || room.moderators.has(author) || (operator && room.visibility === 'public')
}

export const ownersAlone = 'a moderator cannot change what the owner of the room made'

/** What a moderator who is no operator leaves alone: what the owner of the room made. */
export function isOwnersAlone(
  room: Room,
  maker: string,
  { author, operator }: { readonly author: string; readonly operator: boolean },
): boolean {
  const isPublicOperator = operator && room.visibility === 'public'
  return maker === room.owner && author !== room.owner && room.moderators.has(author) && !isPublicOperator
}
