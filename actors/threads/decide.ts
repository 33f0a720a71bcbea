/** Decisions over threads: pinned to the top of the list of their room, and closed to replies. */

import { about, moderationRefusal } from '../posts/decide.ts'
import { act, type Deciders, refuse, type WriteLetter } from '../records/write.ts'
import { type LockFacts, type PinFacts, pinnedMax } from './flags.ts'

export type PinArgs = { readonly event: string; readonly pinned: boolean }
export type LockArgs = { readonly event: string; readonly locked: boolean }

const pin = about((subject, { state, board, now }, letter: WriteLetter<PinArgs>) => {
  const refused = moderationRefusal(subject, letter)
  if (refused !== undefined) return refused
  const { pinned } = letter.args
  const root = board.events.rootOf(subject.slot)
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

export const threadsDeciders = { 'thread.pin': pin, 'thread.lock': lock } satisfies Deciders
