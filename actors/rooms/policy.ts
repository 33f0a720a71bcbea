/**
 * Who may do what in a room, and its policy: what its owner can set, the defaults, and how they apply to a post.
 *
 * A room has one owner (if it has none, the operator of the board owns it), at most 16 moderators, and members; moderators are
 * members. The operator moderates every public room, and can see a private room only as a member. The board's own messages are
 * recognized by their interface, which outside callers cannot use.
 *
 * `write` applies to posts that begin a thread, `reply` to replies. An edit is not a new post: only the lifetime of its text
 * and its proof of work are checked, and it is refused if the room is closed.
 */

import { daySeconds } from '../kernel/day.ts'
import type { RefusalCode } from '../kernel/refusals.ts'
import type { Author } from '../records/authors.ts'
import type { Ban, Board, Room } from '../records/board.ts'
import { none } from '../records/event-index.ts'

export type Role = 'owner' | 'moderator' | 'member' | 'none'

export const moderatorsMax = 16

export function roleOf(room: Room, identity: string): Role {
  if (room.owner === identity) return 'owner'
  if (room.moderators.has(identity)) return 'moderator'
  return room.members.has(identity) ? 'member' : 'none'
}

/** A private room does not exist for non-members; the room's policy may require more of writers. */
export function mayWrite(room: Room, author: string): boolean {
  return room.visibility === 'public' || room.owner === author || room.members.has(author)
}

/** Whether the author may act as the owner of the room. */
export function mayOwn(room: Room, author: string, operator: boolean): boolean {
  return room.owner === undefined ? operator && room.visibility === 'public' : room.owner === author
}

/** A delegate may change what others made only if its delegation says so, whatever its identity may do. */
export function mayTouchOthers({ delegated }: { readonly delegated?: { readonly moderates: boolean } }): boolean {
  return delegated === undefined || delegated.moderates
}

export const delegationTouchesNone =
  'this key acts under a delegation without the scope board:moderate: it cannot change what others made'

/** Whether the author may hide, restore and redact what others wrote in the room. */
export function mayModerate(room: Room, author: string, operator: boolean): boolean {
  return room.owner === author || room.moderators.has(author) || (operator && room.visibility === 'public')
}

/**
 * Whether the author may permanently delete what others made in the room. An operator may, even in private rooms: their
 * commands get this far only if the author was erased, and an erased author leaves no texts or files behind.
 */
export function mayDelete(room: Room, author: string, operator: boolean): boolean {
  return operator || mayModerate(room, author, operator)
}

/** The ban that keeps this identity from writing in the room at `now`. */
export function banOf({ bans }: Room, identity: string, now: number): Ban | undefined {
  const ban = bans.get(identity)
  return ban === undefined || isOver(ban, now) ? undefined : ban
}

export function isOver({ until }: Ban, now: number): boolean {
  return until !== 0 && until <= now
}

/** The objection of a ban to anything this identity writes in the room, whatever the policy says. */
export function banObjection(room: Room, author: string, now: number, field: string): Objection | undefined {
  const ban = banOf(room, author, now)
  if (ban === undefined) return undefined
  const until = ban.until === 0 ? '' : ` until ${new Date(ban.until * 1000).toISOString().replace('.000Z', 'Z')}`
  const who = ban.isOperators ? 'the operator of this board' : 'its owner or a moderator'
  return ['room_write_restricted', `you are banned from this room${until}: ${who} can end that with room.unban`, field]
}

export const ownersAlone = 'a moderator cannot change what the owner of the room made'

/** Whether only the owner may change this: what the owner made is off limits to moderators other than the operator. */
export function isOwnersAlone(
  room: Room,
  maker: string,
  { author, operator }: { readonly author: string; readonly operator: boolean },
): boolean {
  const isPublicOperator = operator && room.visibility === 'public'
  return maker === room.owner && author !== room.owner && room.moderators.has(author) && !isPublicOperator
}

export type Policy = {
  readonly write: 'open' | 'members' | 'owner'
  readonly reply: 'anyone' | 'members' | 'none'
  /** Text for people to read. */
  readonly rules: string
  readonly promotion: 'allow' | 'moderate'
  /** The board may show the room on its front page. */
  readonly front_page: boolean
  /** Threads that one identity may begin in a UTC day; 0: unlimited. The same holds for the numbers below. */
  readonly top_level_per_day: number
  /** Posts by one identity in any 60 seconds. */
  readonly posts_per_minute: number
  readonly closed: boolean
  /** Unix seconds from which on the room is closed. */
  readonly closes_at: number
  /** Total posts in the room, not counting edits. */
  readonly max_events: number
  /** Bits of work that a post must prove. */
  readonly proof_bits: number
  /** Longest lifetime of a post in seconds. */
  readonly ttl_max: number
  /** Posts are included in the export. */
  readonly archive: boolean
  /** Posts may name where they were first published. */
  readonly imports: boolean
}

export const openPolicy: Policy = {
  write: 'open',
  reply: 'anyone',
  rules: '',
  promotion: 'allow',
  front_page: true,
  top_level_per_day: 0,
  posts_per_minute: 0,
  closed: false,
  closes_at: 0,
  max_events: 0,
  proof_bits: 0,
  ttl_max: 0,
  archive: true,
  imports: true,
}

/** Fixed values of any policy in a private room: nothing of it is public. */
export const unseen = { front_page: false, archive: false } as const
export const privatePolicy: Policy = { ...openPolicy, ...unseen }

export function isClosed({ closed, closes_at }: Policy, now: number): boolean {
  return closed || (closes_at !== 0 && closes_at <= now)
}

/** Whether this author's posts are screened for advertisements; posts by those who run the room never are. */
export function isScreened({ promotion }: Policy, room: Room, author: string, operator: boolean): boolean {
  return promotion === 'moderate' && room.visibility === 'public' && !mayModerate(room, author, operator)
}

/** A post to check. */
type Candidate = {
  readonly author: string
  readonly operator: boolean
  readonly isReply: boolean
  readonly isEdit: boolean
  /** It names where it was first published. */
  readonly isImported?: boolean
  /** Seconds; 0: forever. */
  readonly ttl: number
  /** Bits of work that its proof shows. */
  readonly proofBits: number
}

/** The state that the policy is checked against. */
type Standing = {
  readonly board: Board
  readonly room: Room
  /** Unix seconds. */
  readonly now: number
}

/** Code, message, field and seconds to wait, as in a refusal. */
export type Objection = readonly [code: RefusalCode, message: string, field?: string | undefined, retryAfter?: number]

const minuteSeconds = 60

/** The message to an author whose proof of work is missing or too small. */
export function proofWanted(asker: string, bits: number): string {
  const work = `"<bits>.<counter>" such that SHA-256 of "broadside-proof-v1\\n<command_sha256>\\n<counter>" begins with as many zero bits`
  return `${asker} requires a proof of ${bits} bits of work: ${work}`
}

/** The policy's objection to a post, or undefined. */
export function objection(policy: Policy, candidate: Candidate, standing: Standing): Objection | undefined {
  const { now } = standing
  const banned = banObjection(standing.room, candidate.author, now, 'room')
  if (banned !== undefined) return banned
  if (isClosed(policy, now))
    return ['wrong_state', 'this room is closed to new posts: its owner can open it with room.policy.set', 'room']
  if (policy.ttl_max > 0 && (candidate.ttl === 0 || candidate.ttl > policy.ttl_max))
    return [
      'invalid_field',
      `posts in this room expire after ${policy.ttl_max} s at most: set ttl to 1 to ${policy.ttl_max}`,
      'ttl',
    ]
  if (candidate.isImported === true && !policy.imports)
    return [
      'room_write_restricted',
      'this room does not accept imported posts: post without source in data, or its owner sets "imports" to true with room.policy.set',
      'data.source',
    ]
  // Check rights first: authors should not have to do work for a post that they may not write.
  const barred = candidate.isEdit ? undefined : rightObjection(policy, candidate, standing.room)
  if (barred !== undefined) return barred
  if (candidate.proofBits < policy.proof_bits)
    return ['proof_required', proofWanted('this room', policy.proof_bits), 'proof']
  return candidate.isEdit ? undefined : countObjection(policy, candidate, standing)
}

function rightObjection(policy: Policy, candidate: Candidate, room: Room): Objection | undefined {
  return (candidate.isReply ? replyObjection : threadObjection)(policy, candidate, room)
}

function threadObjection(policy: Policy, { author, operator }: Candidate, room: Room): Objection | undefined {
  const isOwner = mayOwn(room, author, operator)
  if (policy.write === 'owner' && !isOwner)
    return ['room_write_restricted', 'only the owner of this room can start threads in it', 'room']
  if (policy.write === 'members' && !isOwner && !room.members.has(author))
    return ['room_write_restricted', 'only members can start threads in this room: join it with room.join', 'room']
  return undefined
}

function replyObjection(policy: Policy, { author, operator }: Candidate, room: Room): Objection | undefined {
  if (policy.reply === 'none') return ['room_reply_restricted', 'this room does not accept replies', 'reply_to']
  if (policy.reply === 'members' && !mayOwn(room, author, operator) && !room.members.has(author))
    return ['room_reply_restricted', 'only members can reply in this room: join it with room.join', 'reply_to']
  return undefined
}

function countObjection(policy: Policy, candidate: Candidate, standing: Standing): Objection | undefined {
  const { room, now, board } = standing
  const { author: id, operator, isReply } = candidate
  if (policy.max_events > 0 && originals(room) >= policy.max_events)
    return ['wrong_state', `this room is full: its policy allows ${policy.max_events} posts`, 'room']
  const author = board.authors.get(id)
  if (author === undefined || mayModerate(room, id, operator)) return undefined
  if (policy.posts_per_minute > 0) {
    const oldest = nthNewest(author, policy.posts_per_minute, now - minuteSeconds + 1, standing, false)
    if (oldest !== undefined) {
      const wait = oldest + minuteSeconds - now
      return [
        'rate_limited',
        `this room accepts ${policy.posts_per_minute} posts a minute from one identity: wait ${wait} s`,
        undefined,
        wait,
      ]
    }
  }
  if (policy.top_level_per_day > 0 && !isReply) {
    const day = now - (now % daySeconds)
    if (nthNewest(author, policy.top_level_per_day, day, standing, true) !== undefined) {
      const wait = day + daySeconds - now
      return [
        'quota_exhausted',
        `this room accepts ${policy.top_level_per_day} new threads a UTC day from one identity: reply to one, or wait ${wait} s`,
        undefined,
        wait,
      ]
    }
  }
  return undefined
}

/** Posts of the room; the counts of its pages exclude edits. */
function originals({ pages }: Room): number {
  let sum = 0
  for (const { count } of pages.values()) sum += count
  return sum
}

/** Time of the author's nth newest post in this room since `since`, or undefined if there are fewer. */
function nthNewest(
  { events: own }: Author,
  n: number,
  since: number,
  { board: { events }, room }: Standing,
  onlyThreads: boolean,
): number | undefined {
  let found = 0
  for (let position = own.length - 1; position >= 0; position--) {
    const slot = own.at(position)
    const at = events.at(slot)
    if (at < since) return undefined
    if (events.room(slot) !== room.number) continue
    if (onlyThreads && events.root(slot) !== none) continue
    if (++found === n) return at
  }
  return undefined
}
