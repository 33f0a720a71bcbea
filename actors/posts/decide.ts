/** Decisions about existing events: hide, restore, redact, vote. Pure functions of the state. */

import type { Room } from '../records/board.ts'
import { formatEntry } from '../records/entry.ts'
import { none } from '../records/event-index.ts'
import { type FactRecord, RecordType } from '../records/record.ts'
import {
  accept,
  act,
  type Deciders,
  type Decision,
  isOfBoard,
  type Planned,
  type Refused,
  refuse,
  type Situation,
  type WriteLetter,
} from '../records/write.ts'
import {
  banObjection,
  delegationTouchesNone,
  isOwnersAlone,
  isScreened,
  mayDelete,
  mayModerate,
  mayTouchOthers,
  mayWrite,
  ownersAlone,
} from '../rooms/policy.ts'
import type { AuthorFacts, HideFacts, RedactFacts, RestoreFacts, VoteFacts } from './marks.ts'
import type { Value } from './votes.ts'

/** The event that a command is about; if that is a version, its original. */
type Subject = {
  readonly slot: number
  readonly id: Uint8Array
  readonly room: Room
  readonly isPublic: boolean
  /** Identity id of its author. */
  readonly author: string
}
export type AboutArgs = { readonly event: string; readonly reason: string }
export type VoteArgs = { readonly event: string; readonly value: Value }

/** Wraps a decider for an event that the author of the letter must be able to see. */
export function about<Args extends { readonly event: string }, Reply extends object>(
  decide: (subject: Subject, situation: Situation, letter: WriteLetter<Args>) => Decision<Reply>,
  mayAct: (room: Room, letter: WriteLetter) => boolean = (room, { author }) => mayWrite(room, author),
) {
  return (situation: Situation, letter: WriteLetter<Args>): Decision<Reply> => {
    const { state, board } = situation
    const named = board.events.find(Buffer.from(letter.args.event, 'hex'))
    const room = named === none ? undefined : board.roomList[board.events.room(named)]
    if (room?.name !== letter.to || !mayAct(room, letter))
      return refuse('not_found', `there is no event ${letter.args.event}`, 'event_id')
    const slot = state.marks.original(named)
    const id = Buffer.from(board.events.id(slot))
    const author = board.authors.idOf(board.events.author(slot))
    return decide({ slot, id, room, isPublic: room.visibility === 'public', author }, situation, letter)
  }
}

/** Why the signer may not moderate this room, or undefined if they may. `who` names those who may. */
export function moderationRefusal(
  { room }: Pick<Subject, 'room'>,
  letter: WriteLetter,
  who = 'the owner and the moderators of the room and the operator',
  may = mayModerate,
): Refused | undefined {
  if (!may(room, letter.author, letter.operator)) return refuse('forbidden', `only ${who} can do this`, 'event_id')
  return mayTouchOthers(letter) ? undefined : refuse('forbidden', delegationTouchesNone, 'event_id')
}

/** In which role the signer may remove a text in this room, or why not. */
function powerOver(
  { room, author }: Subject,
  letter: WriteLetter,
  who?: string,
  may = mayModerate,
): 'room' | 'operator' | Refused {
  if (isOfBoard(letter)) return 'room'
  const refused = moderationRefusal({ room }, letter, who, may)
  if (refused !== undefined) return refused
  if (room.owner === letter.author) return 'room'
  if (!room.moderators.has(letter.author)) return 'operator'
  if (isOwnersAlone(room, author, letter)) return refuse('forbidden', ownersAlone, 'event_id')
  return author === room.owner ? 'operator' : 'room'
}

/** An operator may delete what they cannot see: they know its id from the host's own files. */
function maySeeOrErase(room: Room, { author, operator }: WriteLetter): boolean {
  return mayWrite(room, author) || operator
}

const hide = about((subject, { state, now }, letter: WriteLetter<AboutArgs>) => {
  const { slot, id, isPublic, room, author } = subject
  const by = powerOver(subject, letter)
  if (typeof by !== 'string') return by
  // The board hides what it screened; the room may have decided otherwise meanwhile.
  if (isOfBoard(letter) && !isScreened(state.rules.policyOf(room.name), room, author, false))
    return refuse('wrong_state', 'this room no longer screens its author')
  if (isOfBoard(letter) && state.bound.liveResultAt(slot) !== undefined)
    return refuse('wrong_state', 'the result of a worker is not screened')
  // What a suspension hides reappears when the suspension ends, so a room may want to hide it too.
  const gone = state.marks.goneWithoutSuspension(slot, now)
  if (gone !== undefined) {
    const why =
      state.marks.roomHideOf(slot) === undefined
        ? `its text is gone (${gone.reason})`
        : 'it is already hidden (room.restore shows it again)'
    return refuse('wrong_state', `this event cannot be hidden: ${why}`, 'event_id')
  }
  const facts: HideFacts = { id, reason: letter.args.reason, by }
  return act(letter, now, { facts, isPublic })
})

const restore = about((subject, { state, now }, letter: WriteLetter<AboutArgs>) => {
  const { slot, id, isPublic } = subject
  const by = powerOver(subject, letter)
  if (typeof by !== 'string') return by
  if (state.marks.redactionOf(slot) !== undefined)
    return refuse('wrong_state', 'this event was redacted: its text is permanently gone', 'event_id')
  const hidden = state.marks.roomHideOf(slot)
  if (hidden === undefined)
    return refuse(
      'wrong_state',
      state.marks.isHiddenWithAuthor(slot)
        ? 'this event is hidden because its author is suspended: identity.unsuspend shows it again'
        : 'this event is not hidden',
      'event_id',
    )
  if (hidden.by === 'operator' && !letter.operator)
    return refuse(
      'forbidden',
      'the operator of this board hid this event: only the operator can restore it',
      'event_id',
    )
  const facts: RestoreFacts = { id, reason: letter.args.reason }
  return act(letter, now, { facts, isPublic })
})

const redact = about((subject, { state, board, now }, letter: WriteLetter<AboutArgs>) => {
  const { slot, id, room, isPublic, author } = subject
  const who = 'its author, the owner and the moderators of the room and the operator'
  const by = author === letter.author ? 'author' : powerOver(subject, letter, who, mayDelete)
  if (typeof by !== 'string') return by
  if (state.marks.redactionOf(slot) !== undefined)
    return refuse('wrong_state', 'this event is already redacted', 'event_id')
  const lastTell = state.bound.markedAt(slot)?.lastTell
  if (by === 'author' && lastTell !== undefined && lastTell.live && lastTell.state !== 'open')
    return refuse(
      'wrong_state',
      'this is the request of a work that someone has claimed: it stays until the work is settled (work.get shows its state)',
      'event_id',
    )
  const facts: RedactFacts = { id, reason: letter.args.reason, by }
  if (!isPublic) return act(letter, now, { facts, isPublic })
  const entry = formatEntry({
    kind: 'redact',
    event: Buffer.from(letter.id).toString('hex'),
    room: room.name,
    seq: board.events.seq(slot),
    time: now,
    command: Buffer.from(letter.sha).toString('hex'),
    target: board.events.idHex(slot),
  })
  return act(letter, now, { facts, isPublic, entry })
}, maySeeOrErase)

const vote = about(({ slot, id, room, isPublic, author }, { state, now }, letter: WriteLetter<VoteArgs>) => {
  const { value } = letter.args
  const banned = banObjection(room, letter.author, now, 'event_id')
  if (banned !== undefined) return refuse(...banned)
  if (author === letter.author) return refuse('forbidden', 'you cannot vote on an event of your own', 'event_id')
  const gone = state.marks.gone(slot, now)
  if (gone !== undefined)
    return refuse('wrong_state', `the text of this event is gone (${gone.reason}): it cannot be voted on`, 'event_id')
  const { up, down } = state.marks.votesAfter(slot, letter.author, value)
  const facts: VoteFacts = { id, value, up, down }
  return act(letter, now, { facts, isPublic })
})

/** Posts marked in one turn: this takes a few milliseconds in each thread that follows, and other writes wait for it. */
const markedMax = 100
/** Posts of an author examined in one turn. */
const looksMax = 20_000

/** `target`: identity id of the author. `from`: the slot to start at. */
export type AuthorPostsArgs = { readonly target: string; readonly from: number }

/**
 * Slots of posts that a suspension of their author has yet to hide (`isHidden`), or that its end has yet to show again. `room`:
 * only in this room, by number. `next`: the slot to continue at; 0 if there are no more.
 */
export function postsLeft(
  { board, marks }: Pick<Situation['state'], 'board' | 'marks'>,
  { target, from, isHidden, room }: AuthorPostsArgs & { readonly isHidden: boolean; readonly room?: number },
): { readonly slots: readonly number[]; readonly next: number } {
  const own = board.authors.get(target)?.events
  const slots: number[] = []
  if (own === undefined) return { slots, next: 0 }
  const begin = own.lowerBound(from)
  for (let position = begin; position < own.length; position++) {
    const slot = own.at(position)
    if (slots.length === markedMax || position - begin === looksMax) return { slots, next: slot }
    if (marks.isHiddenWithAuthor(slot) === isHidden) continue
    if (room === undefined || board.events.room(slot) === room) slots.push(slot)
  }
  return { slots, next: 0 }
}

/** A batch of what a suspension hides in a room, or what its end shows again: one record per post, so that each has its own change. */
function markPosts(isHidden: boolean) {
  return ({ state, board, now }: Situation, letter: WriteLetter<AuthorPostsArgs>) => {
    const room = board.rooms.get(letter.to)
    if (room === undefined) return refuse('not_found', `there is no room ${letter.to}`, 'room')
    const { slots, next } = postsLeft(state, { ...letter.args, isHidden, room: room.number })
    const isPublic = room.visibility === 'public'
    const planned = slots.map((slot): Planned => {
      const facts: AuthorFacts = { id: Buffer.from(board.events.id(slot)) }
      const author = Buffer.from(letter.author, 'hex')
      const record: FactRecord = { type: RecordType.act, room: room.name, at: now, author, op: letter.op, facts }
      return { record, key: letter.id, isPublic }
    })
    return accept(planned, { next })
  }
}

export const marksDeciders = {
  'room.hide': hide,
  'room.restore': restore,
  'event.redact': redact,
  'author.hide': markPosts(true),
  'author.show': markPosts(false),
  vote,
} satisfies Deciders
