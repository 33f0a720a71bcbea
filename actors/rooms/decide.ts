/** Decisions over rooms: who belongs to one and as what, by what rules it is written into, and what is reported of it. */
import { act } from '../act.ts'
import type { Room } from '../board.ts'
import { none } from '../event-index.ts'
import { type Decider, type Decision, refuse, type Situation, type WriteLetter } from '../write.ts'
import type { Policy } from './policy.ts'
import { mayModerate, mayOwn, mayWrite, moderatorsMax, type Role, roleOf } from './roles.ts'

/** People a private room holds beside its owner. */
const privateMembersMax = 100
const invitesMax = 8

type RoomDecider = (room: Room, situation: Situation, letter: WriteLetter) => Decision

/** A room that is there for whoever asks. */
function inRoom(decide: RoomDecider): Decider {
  return (situation, letter) => {
    const room = situation.board.rooms.get(letter.to)
    if (room === undefined) return refuse('not_found', `there is no room ${letter.to}`, 'room')
    if (!mayWrite(room, letter.author))
      return refuse('private_room', 'this room is private: only an invite or its owner lets you in', 'room')
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
  'a conversation is of exactly its members: open another with those you want, or decline this one',
  'room',
)

/** The same, for its owner alone. */
function owned(decide: RoomDecider): Decider {
  return inRoom((room, situation, letter) => {
    if (mayOwn(room, letter.author, letter.operator)) return decide(room, situation, letter)
    const owner =
      room.owner === undefined ? 'the operator of this board, who owns this room,' : 'the owner of this room'
    return refuse('forbidden', `only ${owner} may do this`, 'room')
  })
}

/** A change of one person's role, as everybody who may read the room hears of it. */
function changed(
  room: Room,
  letter: WriteLetter,
  now: number,
  target: string,
  role: Role,
  more: object = {},
): Decision {
  return act(letter, now, { facts: { target, role, ...more }, isPublic: room.visibility === 'public' })
}

function isFull(room: Room): boolean {
  return room.visibility === 'private' && room.members.size >= privateMembersMax
}

const full = refuse('wrong_state', `a private room has at most ${privateMembersMax} members beside its owner`, 'room')

/** `field`: who it is said of; a command that names nobody speaks of its signer. */
function already(role: Role, field: 'target' | 'room' | 'data.code'): Decision {
  return refuse(
    'conflict',
    `${field === 'target' ? 'that identity is' : 'you are'} ${role} of this room already`,
    field,
  )
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
      'the owner took you out of this room: only an invite or the owner lets you in again',
      'room',
    )
  return changed(room, letter, now, letter.author, 'member')
})

const leave = inRoom((room, { now }, letter) => {
  const role = roleOf(room, letter.author)
  if (role === 'owner') return refuse('wrong_state', 'an owner does not leave: give the room to another first', 'room')
  if (role === 'none') return refuse('wrong_state', 'you are no member of this room', 'room')
  return changed(room, letter, now, letter.author, 'none')
})

const addMember = owned((room, { now }, letter) => {
  const target = letter.args.target as string
  const role = roleOf(room, target)
  if (role !== 'none') return already(role, 'target')
  return isFull(room) ? full : changed(room, letter, now, target, 'member')
})

const removeMember = owned((room, { state, now }, letter) => {
  const target = letter.args.target as string
  const role = roleOf(room, target)
  if (role === 'none') return refuse('not_found', 'that identity is no member of this room', 'target')
  if (role === 'owner') return refuse('wrong_state', 'an owner stays: give the room to another first', 'target')
  const work = room.visibility === 'private' ? state.bound.liveWorkOf(room.number, target) : undefined
  if (work !== undefined)
    return refuse('wrong_state', `that identity is a party of work ${work}, and stays until it is settled`, 'target')
  return changed(room, letter, now, target, 'none')
})

const addModerator = owned((room, { now }, letter) => {
  const target = letter.args.target as string
  const role = roleOf(room, target)
  if (role === 'owner' || role === 'moderator') return already(role, 'target')
  if (room.moderators.size >= moderatorsMax)
    return refuse('wrong_state', `a room has at most ${moderatorsMax} moderators: remove one first`, 'room')
  return role === 'none' && isFull(room) ? full : changed(room, letter, now, target, 'moderator')
})

const removeModerator = owned((room, { now }, letter) => {
  const target = letter.args.target as string
  if (!room.moderators.has(target)) return refuse('not_found', 'that identity is no moderator of this room', 'target')
  return changed(room, letter, now, target, 'member')
})

const transfer = owned((room, { now }, letter) => {
  const target = letter.args.target as string
  if (room.owner === target) return already('owner', 'target')
  // The owner of before stays as a member.
  if (!room.members.has(target) && isFull(room)) return full
  return changed(room, letter, now, target, 'owner')
})

const createInvite = owned((room, { state, now }, letter) => {
  if (state.rules.openInvites(room.name, now).length >= invitesMax)
    return refuse(
      'wrong_state',
      `a room has at most ${invitesMax} open invites: wait until one is used or expires`,
      'room',
    )
  const { hash, ttl, target } = letter.args as { hash: string; ttl: number; target: string }
  return act(letter, now, { facts: { id: idOf(letter), hash, expires: now + ttl, target }, isPublic: false })
})

/** One answer to every bad invite: whoever guesses learns nothing of rooms, invites or time. */
const badInvite = refuse(
  'forbidden',
  'this invite is not good: it was used, it or who made it has ended, it is for another, or it never was',
)

const acceptInvite: Decider = ({ state, board, now }, letter) => {
  const room = board.rooms.get(letter.to)
  const open = state.rules.openInvites(letter.to, now)
  const invite = open.find(
    ({ hash, target }) => hash === letter.args.hash && (target === '' || target === letter.author),
  )
  if (room === undefined || invite === undefined || letter.args.isOver === true) return badInvite
  const role = roleOf(room, letter.author)
  if (role !== 'none') return already(role, 'data.code')
  return isFull(room) ? full : changed(room, letter, now, letter.author, 'member', { invite: invite.id })
}

const setPolicy = inRoom((room, { state, now }, letter) => {
  const { author, operator } = letter
  const set = letter.args.set as Partial<Policy>
  if (!mayOwn(room, author, operator)) {
    if (!mayModerate(room, author, operator))
      return refuse('forbidden', 'only the owner of this room sets its policy', 'room')
    const beyond = Object.keys(set).find((key) => key !== 'front_page')
    if (set.front_page !== false || beyond !== undefined)
      return refuse(
        'forbidden',
        'a moderator sets {"front_page":false} and nothing else; the rest is the owner’s',
        `data.${beyond ?? 'front_page'}`,
      )
  }
  if (room.visibility === 'private' && (set.front_page === true || set.archive === true))
    return refuse(
      'invalid_field',
      'a private room is on no first page and in no archive: front_page and archive stay false',
      set.front_page === true ? 'data.front_page' : 'data.archive',
    )
  const policy: Policy = { ...state.rules.policyOf(room.name), ...set }
  return act(letter, now, { facts: { policy }, isPublic: room.visibility === 'public' })
})

const report = inRoom((room, { state, board, now }, letter) => {
  const event = letter.args.event as string
  const slot = board.events.find(Buffer.from(event, 'hex'))
  if (slot === none || board.events.room[slot] !== room.number)
    return refuse('not_found', `there is no event ${event}`, 'event_id')
  if (state.rules.hasReported(event, letter.author))
    return refuse('conflict', 'you have reported this event already', 'event_id')
  return act(letter, now, { facts: { id: idOf(letter), event }, isPublic: false })
})

const resolveReport: Decider = ({ state, now }, letter) => {
  if (!letter.operator) return refuse('forbidden', 'only the operator of this board resolves reports')
  const found = state.rules.report(letter.args.report as string)
  if (found === undefined) return refuse('not_found', `there is no report ${letter.args.report}`, 'target')
  if (found.settled !== undefined) return refuse('wrong_state', 'this report was resolved before', 'target')
  return act(letter, now, { facts: { report: found.id }, isPublic: false })
}

export const rulesDeciders: Readonly<Record<string, Decider>> = {
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
}
