/** Decisions over rooms: who belongs to one and as what, by what rules it is written into, and what is reported of it. */

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
import { mayModerate, mayOwn, mayWrite, moderatorsMax, type Policy, type Role, roleOf } from './policy.ts'

/** People a private room holds beside its owner. */
const privateMembersMax = 100
const invitesMax = 8

type RoomDecider<Args extends object, Reply extends object> = (
  room: Room,
  situation: Situation,
  letter: WriteLetter<Args>,
) => Decision<Reply>
type Target = { readonly target: string }
/** `secret` is shown once, to the maker, and its hash is kept. */
type InviteArgs = Target & { readonly hash: string; readonly ttl: number; readonly secret?: string }

/** A room that the author of the message can see. */
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

/** What changes who is in a room: a conversation is of exactly the members it was opened for. */
const ofMembers: ReadonlySet<string> = new Set([
  'room.leave',
  'room.member.add',
  'room.member.remove',
  'room.moderator.add',
  'room.moderator.remove',
  'room.owner.transfer',
  'room.invite.create',
])

const conversationStays = refuse(
  'wrong_state',
  'the members of a conversation never change: open another with conversation.open, or decline this one with conversation.respond',
  'room',
)

/** The same, for its owner alone. */
function owned<Args extends object, Reply extends object>(decide: RoomDecider<Args, Reply>) {
  return inRoom((room, situation, letter: WriteLetter<Args>): Decision<Reply> => {
    if (mayOwn(room, letter.author, letter.operator)) return decide(room, situation, letter)
    const owner =
      room.owner === undefined ? 'the operator of this board, who owns this room,' : 'the owner of this room'
    return refuse('forbidden', `only ${owner} can do this`, 'room')
  })
}

/** A change of one person's role, as readers of the room see it. */
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

/** `field`: the field that names the subject; a command that names no subject is about its signer. */
function already(role: Role, field: 'target' | 'room' | 'data.code'): Refused {
  const who = field === 'target' ? 'that identity is' : 'you are'
  return refuse('conflict', `${who} already ${role === 'owner' ? 'the' : 'a'} ${role} of this room`, field)
}

/** Of what this command makes; the answer to a repetition shows the first one's. */
function idOf({ id }: WriteLetter): string {
  return Buffer.from(id).toString('hex')
}

const join = inRoom((room, { state, now }, letter) => {
  const role = roleOf(room, letter.author)
  if (role !== 'none') return already(role, 'room')
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

const addMember = owned((room, { now }, letter: WriteLetter<Target>) => {
  const target = letter.args.target
  const role = roleOf(room, target)
  if (role !== 'none') return already(role, 'target')
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
  const work = room.visibility === 'private' ? state.bound.liveWorkOf(room.number, target) : undefined
  if (work !== undefined)
    return refuse(
      'wrong_state',
      `that identity is a party to work ${work} and stays until it is settled: work.get shows its state`,
      'target',
    )
  return changed(room, letter, now, target, 'none')
})

const addModerator = owned((room, { now }, letter: WriteLetter<Target>) => {
  const target = letter.args.target
  const role = roleOf(room, target)
  if (role === 'owner' || role === 'moderator') return already(role, 'target')
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
  // The owner of before stays as a member.
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

/** One answer to every bad invite: guessing reveals nothing about rooms, invites or time. */
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
  if (slot === none || board.events.room[slot] !== room.number)
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
  'room.invite.create': createInvite,
  'room.invite.accept': acceptInvite,
  'room.policy.set': setPolicy,
  report,
  'report.resolve': resolveReport,
} satisfies Deciders
