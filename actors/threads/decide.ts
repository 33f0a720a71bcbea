/** Decisions about threads: pinned to the top of their room's list, closed to replies, listed in another room. */

import { about, moderationRefusal } from '../posts/decide.ts'
import { act, type Deciders, type Refused, refuse, type WriteLetter } from '../records/write.ts'
import { mayTouchOthers } from '../rooms/policy.ts'
import type { MoveFacts } from '../rooms/rules.ts'
import { type LockFacts, type PinFacts, pinnedMax } from './flags.ts'

export type PinArgs = { readonly event: string; readonly pinned: boolean }
export type LockArgs = { readonly event: string; readonly locked: boolean }

/** A room that a thread is to be moved to, and the signer's rights there. */
export type Destination = {
  readonly isPublic: boolean
  readonly isClosed: boolean
  readonly moderates: boolean
  /** Why the signer may not write there; absent if they are not banned. */
  readonly ban?: string
}

/** Rooms by name. What other shards know was queried beforehand. */
export type MoveArgs = {
  readonly event: string
  readonly to: string
  readonly reason: string
  /** Absent if there is no such room. */
  readonly destination?: Destination
  /** The room that lists the thread, if the signer moderates it; or ''. */
  readonly moderatesList: string
}

const pin = about((subject, { state, board, now }, letter: WriteLetter<PinArgs>) => {
  const refused = moderationRefusal(subject, letter)
  if (refused !== undefined) return refused
  const { pinned } = letter.args
  const root = board.events.rootOf(subject.slot)
  const listing = state.threadFlags.moveOf(root)
  if (listing !== undefined)
    return refuse(
      'wrong_state',
      `this thread is listed in ${listing.to}: bring it back with thread.move before you pin it`,
      'event_id',
    )
  if (state.threadFlags.isPinned(root) === pinned)
    return refuse(
      'wrong_state',
      pinned
        ? 'this thread is already pinned: thread.pin with false takes it off'
        : 'this thread is not pinned: thread.pin with true pins it',
      'data.pinned',
    )
  if (pinned && state.threadFlags.pinnedIn(subject.room.number).length >= pinnedMax)
    return refuse(
      'wrong_state',
      `a room has at most ${pinnedMax} pinned threads: take one off with thread.pin and false`,
      'data.pinned',
    )
  const facts: PinFacts = { id: Buffer.from(board.events.id(root)), pinned }
  return act(letter, now, { facts, isPublic: subject.isPublic })
})

const lock = about((subject, { state, board, now }, letter: WriteLetter<LockArgs>) => {
  const refused = moderationRefusal(subject, letter)
  if (refused !== undefined) return refused
  const { locked } = letter.args
  const root = board.events.rootOf(subject.slot)
  if (state.threadFlags.isLocked(root) === locked)
    return refuse(
      'wrong_state',
      locked
        ? 'this thread is already locked: thread.lock with false opens it'
        : 'this thread is not locked: thread.lock with true closes it',
      'data.locked',
    )
  const facts: LockFacts = { id: Buffer.from(board.events.id(root)), locked }
  return act(letter, now, { facts, isPublic: subject.isPublic })
})

/**
 * What was signed stays the same: the posts, their room and page. The act says which room lists the thread. It is a single
 * record in its own room's journal, so there is no second half that could be lost.
 */
const move = about((subject, { state, board, now }, letter: WriteLetter<MoveArgs>) => {
  const { to, reason, moderatesList } = letter.args
  const own = subject.room.name
  const root = board.events.rootOf(subject.slot)
  const from = state.threadFlags.moveOf(root)?.to ?? own
  // A room need not keep a thread that was moved into it.
  const isSentBack = to === own && from !== own && moderatesList === from && mayTouchOthers(letter)
  const refused = isSentBack ? undefined : moderationRefusal(subject, letter)
  if (refused !== undefined) return refused
  if (!subject.isPublic)
    return refuse('private_room', 'a thread of a private room stays in it: it cannot be moved', 'event_id')
  if (to === from)
    return refuse(
      'wrong_state',
      `this thread is already listed in ${to}: name another room with thread.move`,
      'data.to',
    )
  const fault = to === own ? undefined : faultOf(letter)
  if (fault !== undefined) return fault
  const facts: MoveFacts = { id: Buffer.from(board.events.id(root)), from, to, reason }
  return act(letter, now, { facts, isPublic: true })
})

/** Why the signer may not move a thread into this room. */
function faultOf({ args: { to, destination }, operator }: WriteLetter<MoveArgs>): Refused | undefined {
  if (destination === undefined) return refuse('not_found', `there is no room ${to}`, 'data.to')
  const { isPublic, isClosed, moderates, ban } = destination
  if (!isPublic)
    return refuse('private_room', `a thread cannot be moved into a private room, and ${to} is one`, 'data.to')
  if (ban !== undefined) return refuse('room_write_restricted', ban, 'data.to')
  if (!moderates && !operator)
    return refuse('forbidden', `only moderators of both rooms can do this: you do not moderate ${to}`, 'data.to')
  if (!isClosed) return undefined
  return refuse('wrong_state', `the room ${to} is closed: its owner can open it with room.policy.set`, 'data.to')
}

export const threadsDeciders = { 'thread.pin': pin, 'thread.lock': lock, 'thread.move': move } satisfies Deciders
