/** Decisions about rooms: members and roles, the policy, and reports. */

import { sizes } from '../kernel/limits.ts'
import type { Room } from '../records/board.ts'
import { none } from '../records/event-index.ts'
import {
  act,
  type Deciders,
  type Decision,
  type Refused,
  refuse,
  type Situation,
  type WriteLetter,
} from '../records/write.ts'
import {
  banObjection,
  banOf,
  delegationTouchesNone,
  isOver,
  mayModerate,
  mayOwn,
  mayTouchOthers,
  mayWrite,
  moderatorsMax,
  type Policy,
  type Role,
  roleOf,
} from './policy.ts'
import type { BanFacts } from './rules.ts'

/** Members of a private room, not counting its owner. */
const privateMembersMax = 100
const invitesMax = 8

type RoomDecider<Args extends object, Reply extends object> = (
  room: Room,
  situation: Situation,
  letter: WriteLetter<Args>,
) => Decision<Reply>
type Target = { readonly target: string }
/** `secret` is shown once, to its creator; only its hash is stored. */
type InviteArgs = Target & { readonly hash: string; readonly ttl: number; readonly secret?: string }

/** Wraps a decider for a room that the author of the letter must be able to see. */
function inRoom<Args extends object, Reply extends object>(decide: RoomDecider<Args, Reply>) {
  return (situation: Situation, letter: WriteLetter<Args>): Decision<Reply> => {
    const room = situation.board.rooms.get(letter.to)
    if (room === undefined) return refuse('not_found', `there is no room ${letter.to}`, 'room')
    if (!mayWrite(room, letter.author))
      return refuse(
        'private_room',
        'this room is private: you need an invite (room.invite.accept), or its owner adds you (room.member.add)',
        'room',
      )
    if (ofMembers.has(letter.op) && situation.state.direct.conversation(letter.to) !== undefined)
      return conversationStays
    return decide(room, situation, letter)
  }
}

/** Operations that change who is in a room. A conversation always has exactly the members it was opened for. */
const ofMembers: ReadonlySet<string> = new Set([
  'room.leave',
  'room.member.add',
  'room.member.remove',
  'room.moderator.add',
  'room.moderator.remove',
  'room.owner.transfer',
  'room.invite.create',
  'room.ban',
])

const conversationStays = refuse(
  'wrong_state',
  'the members of a conversation never change: open another with conversation.open, or decline this one with conversation.respond',
  'room',
)

/** The same, for the owner only. */
function owned<Args extends object, Reply extends object>(decide: RoomDecider<Args, Reply>) {
  return inRoom((room, situation, letter: WriteLetter<Args>): Decision<Reply> => {
    if (mayOwn(room, letter.author, letter.operator)) return decide(room, situation, letter)
    const owner =
      room.owner === undefined ? 'the operator of this board, who owns this room,' : 'the owner of this room'
    return refuse('forbidden', `only ${owner} can do this`, 'room')
  })
}

/** A change of one identity's role, as readers of the room see it. */
function changed(room: Room, letter: WriteLetter, now: number, target: string, role: Role, more: object = {}) {
  return act(letter, now, { facts: { target, role, ...more }, isPublic: room.visibility === 'public' })
}

function isFull(room: Room): boolean {
  return room.visibility === 'private' && room.members.size >= privateMembersMax
}

const full = refuse(
  'wrong_state',
  `a private room can have ${privateMembersMax} members besides its owner: remove one with room.member.remove`,
  'room',
)

/** `field`: the field that names the subject. A command that names none is about its signer. */
function already(role: Role, field: 'target' | 'room' | 'data.code'): Refused {
  const who = field === 'target' ? 'that identity is' : 'you are'
  return refuse('conflict', `${who} already ${role === 'owner' ? 'the' : 'a'} ${role} of this room`, field)
}

/** Id of what this command creates; a repeated command gets the id of the first one. */
function idOf({ id }: WriteLetter): string {
  return Buffer.from(id).toString('hex')
}

const join = inRoom((room, { state, now }, letter) => {
  const role = roleOf(room, letter.author)
  if (role !== 'none') return already(role, 'room')
  const banned = banObjection(room, letter.author, now, 'room')
  if (banned !== undefined) return refuse('forbidden', banned[1], 'room')
  if (state.rules.isBarred(room.name, letter.author))
    return refuse(
      'forbidden',
      'the owner removed you from this room: only an invite or the owner can let you back in',
      'room',
    )
  return changed(room, letter, now, letter.author, 'member')
})

const leave = inRoom((room, { now }, letter) => {
  const role = roleOf(room, letter.author)
  if (role === 'owner')
    return refuse(
      'wrong_state',
      'the owner cannot leave: first give the room to someone else with room.owner.transfer',
      'room',
    )
  if (role === 'none') return refuse('wrong_state', 'you are not a member of this room', 'room')
  return changed(room, letter, now, letter.author, 'none')
})

const stillBanned = refuse('wrong_state', 'that identity is banned from this room: end that with room.unban', 'target')

const addMember = owned((room, { now }, letter: WriteLetter<Target>) => {
  const target = letter.args.target
  const role = roleOf(room, target)
  if (role !== 'none') return already(role, 'target')
  if (banOf(room, target, now) !== undefined) return stillBanned
  return isFull(room) ? full : changed(room, letter, now, target, 'member')
})

const removeMember = owned((room, { state, now }, letter: WriteLetter<Target>) => {
  const target = letter.args.target
  const role = roleOf(room, target)
  if (role === 'none')
    return refuse('not_found', 'that identity is not a member of this room: room.members lists them', 'target')
  if (role === 'owner')
    return refuse(
      'wrong_state',
      'the owner cannot be removed: first give the room to someone else with room.owner.transfer',
      'target',
    )
  return partyStays(state, room, target) ?? changed(room, letter, now, target, 'none')
})

/** Parties to a work in a private room must stay able to read it. */
function partyStays({ bound }: Situation['state'], room: Room, target: string): Refused | undefined {
  const work = room.visibility === 'private' ? bound.liveWorkOf(room.number, target) : undefined
  if (work === undefined) return undefined
  const message = `that identity is a party to work ${work} and stays until it is settled: work.get shows its state`
  return refuse('wrong_state', message, 'target')
}

type BanArgs = Target & {
  /** Seconds; 0: until it is lifted. */
  readonly ttl: number
  /** The target is an operator of this board, or the board itself. */
  readonly isOperators: boolean
}

/** Why the signer may not ban this identity, or undefined. They cannot ban anyone above them, or ban where it makes no sense. */
function banRefusal(room: Room, letter: WriteLetter<BanArgs>): Refused | undefined {
  const { target, isOperators } = letter.args
  const isPublic = room.visibility === 'public'
  const isAbove = room.owner === letter.author || (letter.operator && isPublic)
  if (target === letter.author)
    return refuse('invalid_field', 'you cannot ban yourself: name another identity', 'target')
  if (target === room.owner)
    return refuse(
      'wrong_state',
      'the owner of a room cannot be banned from it, until it has another with room.owner.transfer',
      'target',
    )
  if (isOperators && isPublic)
    return refuse('forbidden', 'the board and its operators cannot be banned from a public room', 'target')
  if (room.moderators.has(target) && !isAbove)
    return refuse(
      'forbidden',
      'a moderator cannot ban another: only the owner of this room or the operator can',
      'target',
    )
  return undefined
}

function notModerator(room: Room, letter: WriteLetter): Refused | undefined {
  if (!mayModerate(room, letter.author, letter.operator))
    return refuse('forbidden', 'only the owner and the moderators of the room and the operator can do this', 'room')
  return mayTouchOthers(letter) ? undefined : refuse('forbidden', delegationTouchesNone, 'room')
}

const ban = inRoom((room, { state, now }, letter: WriteLetter<BanArgs>) => {
  const { target, ttl } = letter.args
  const refused = notModerator(room, letter) ?? banRefusal(room, letter)
  if (refused !== undefined) return refused
  if (banOf(room, target, now) !== undefined)
    return refuse('wrong_state', 'this identity is already banned from this room: room.unban ends that', 'target')
  if ([...room.bans.values()].filter((each) => !isOver(each, now)).length >= sizes.room_bans)
    return refuse('wrong_state', `a room can have ${sizes.room_bans} bans: end one with room.unban`, 'room')
  const stays = partyStays(state, room, target)
  if (stays !== undefined) return stays
  const isRooms = room.owner === letter.author || room.moderators.has(letter.author)
  const facts: BanFacts = { target, until: ttl === 0 ? 0 : now + ttl, by: isRooms ? 'room' : 'operator' }
  return act(letter, now, { facts, isPublic: room.visibility === 'public' })
})

const unban = inRoom((room, { now }, letter: WriteLetter<Target>) => {
  const { target } = letter.args
  const refused = notModerator(room, letter)
  if (refused !== undefined) return refused
  const found = banOf(room, target, now)
  if (found === undefined)
    return refuse('wrong_state', 'this identity is not banned from this room: room.bans lists bans', 'target')
  if (found.isOperators && !letter.operator)
    return refuse(
      'forbidden',
      'the operator of this board banned this identity: only the operator can end that',
      'target',
    )
  return act(letter, now, { facts: { target }, isPublic: room.visibility === 'public' })
})

const addModerator = owned((room, { now }, letter: WriteLetter<Target>) => {
  const target = letter.args.target
  const role = roleOf(room, target)
  if (role === 'owner' || role === 'moderator') return already(role, 'target')
  if (banOf(room, target, now) !== undefined) return stillBanned
  if (room.moderators.size >= moderatorsMax)
    return refuse(
      'wrong_state',
      `a room can have ${moderatorsMax} moderators: remove one with room.moderator.remove`,
      'room',
    )
  return role === 'none' && isFull(room) ? full : changed(room, letter, now, target, 'moderator')
})

const removeModerator = owned((room, { now }, letter: WriteLetter<Target>) => {
  const target = letter.args.target
  if (!room.moderators.has(target))
    return refuse('not_found', 'that identity is not a moderator of this room: room.members lists them', 'target')
  return changed(room, letter, now, target, 'member')
})

const transfer = owned((room, { now }, letter: WriteLetter<Target>) => {
  const target = letter.args.target
  if (room.owner === target) return already('owner', 'target')
  // The previous owner stays as a member.
  if (!room.members.has(target) && isFull(room)) return full
  return changed(room, letter, now, target, 'owner')
})

const createInvite = owned((room, { state, now }, letter: WriteLetter<InviteArgs>) => {
  if (state.rules.openInvites(room.name, now).length >= invitesMax)
    return refuse(
      'wrong_state',
      `a room can have ${invitesMax} open invites: wait until one is used or expires`,
      'room',
    )
  const { hash, ttl, target } = letter.args
  return act(letter, now, { facts: { id: idOf(letter), hash, expires: now + ttl, target }, isPublic: false })
})

/** The same answer for every bad invite, so that guessing reveals nothing about rooms, invites or times. */
const badInvite = refuse(
  'forbidden',
  'this invite is not valid: it was used, has expired or been ended, is for someone else, or never existed',
)

const acceptInvite = (
  { state, board, now }: Situation,
  letter: WriteLetter<{ readonly hash: string; readonly isOver: boolean }>,
) => {
  const room = board.rooms.get(letter.to)
  const open = state.rules.openInvites(letter.to, now)
  const invite = open.find(
    ({ hash, target }) => hash === letter.args.hash && (target === '' || target === letter.author),
  )
  if (room === undefined || invite === undefined || letter.args.isOver) return badInvite
  if (banOf(room, letter.author, now) !== undefined) return badInvite
  const role = roleOf(room, letter.author)
  if (role !== 'none') return already(role, 'data.code')
  return isFull(room) ? full : changed(room, letter, now, letter.author, 'member', { invite: invite.id })
}

const setPolicy = inRoom((room, { state, now }, letter: WriteLetter<{ readonly set: Partial<Policy> }>) => {
  const { author, operator } = letter
  const { set } = letter.args
  if (!mayOwn(room, author, operator)) {
    if (!mayModerate(room, author, operator))
      return refuse('forbidden', 'only the owner of this room can set its policy', 'room')
    const beyond = Object.keys(set).find((key) => key !== 'front_page')
    if (set.front_page !== false || beyond !== undefined)
      return refuse(
        'forbidden',
        'a moderator can set {"front_page":false} and nothing else; the owner sets the rest',
        `data.${beyond ?? 'front_page'}`,
      )
  }
  if (room.visibility === 'private' && (set.front_page === true || set.archive === true))
    return refuse(
      'invalid_field',
      'a private room is never on the front page or in the archive: front_page and archive stay false',
      set.front_page === true ? 'data.front_page' : 'data.archive',
    )
  const policy: Policy = { ...state.rules.policyOf(room.name), ...set }
  return act(letter, now, { facts: { policy }, isPublic: room.visibility === 'public' })
})

const report = inRoom((room, { state, board, now }, letter: WriteLetter<{ readonly event: string }>) => {
  const { event } = letter.args
  const slot = board.events.find(Buffer.from(event, 'hex'))
  if (slot === none || board.events.room(slot) !== room.number)
    return refuse('not_found', `there is no event ${event}`, 'event_id')
  if (state.rules.hasReported(event, letter.author))
    return refuse('conflict', 'you have already reported this event', 'event_id')
  return act(letter, now, { facts: { id: idOf(letter), event }, isPublic: false })
})

const resolveReport = ({ state, now }: Situation, letter: WriteLetter<{ readonly report: string }>) => {
  if (!letter.operator) return refuse('forbidden', 'only the operator of this board can resolve reports')
  const found = state.rules.report(letter.args.report)
  if (found === undefined)
    return refuse('not_found', `there is no report ${letter.args.report}: reports.list lists them`, 'target')
  if (found.settled !== undefined) return refuse('wrong_state', 'this report is already resolved', 'target')
  return act(letter, now, { facts: { report: found.id }, isPublic: false })
}

export const rulesDeciders = {
  'room.join': join,
  'room.leave': leave,
  'room.member.add': addMember,
  'room.member.remove': removeMember,
  'room.moderator.add': addModerator,
  'room.moderator.remove': removeModerator,
  'room.owner.transfer': transfer,
  'room.ban': ban,
  'room.unban': unban,
  'room.invite.create': createInvite,
  'room.invite.accept': acceptInvite,
  'room.policy.set': setPolicy,
  report,
  'report.resolve': resolveReport,
} satisfies Deciders
