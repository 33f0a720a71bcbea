/**
 * A room decides here: what becomes of a post, and of the wish to make a room.
 * Pure functions of the board's state; who signed was settled before.
 */
import type { Board } from '../board.ts'
import { formatEntry } from '../entry.ts'
import { none } from '../event-index.ts'
import { type Event, RecordType, type RoomCreated } from '../record.ts'
import { type Decider, type Planned, refuse, type WriteLetter } from '../write.ts'
import { mayWrite } from './roles.ts'

export { mayWrite }

export type PostArgs = {
  readonly page: string
  readonly kind: string
  /** 32 hex of the event replied to, or ''. */
  readonly replyTo: string
  /** Seconds, 0 = for ever. */
  readonly ttl: number
}

/** What the front needs to compose the answer to a post. */
export type PostReply = {
  readonly seq: number
  readonly at: number
  /** 32 hex of the thread's root. */
  readonly thread: string
  readonly isPublic: boolean
}

export const decidePost: Decider = ({ board, now }, letter) => {
  const args = letter.args as unknown as PostArgs
  const room = board.rooms.get(letter.to)
  if (room !== undefined && !mayWrite(room, letter.author)) {
    return refuse('private_room', 'this room is private: only its members read and write', 'room')
  }
  let root = ''
  if (args.replyTo !== '') {
    const slot = board.events.find(Buffer.from(args.replyTo, 'hex'))
    if (slot === none || room === undefined || board.events.room[slot] !== room.number) {
      return refuse('not_found', `no event ${args.replyTo} in room ${letter.to}`, 'reply_to')
    }
    const rootSlot = board.events.root[slot]!
    root = board.events.idHex(rootSlot === none ? slot : rootSlot)
  }
  const seq = (room?.events.length ?? 0) + 1
  const event = eventOf(letter, args, seq, now, root)
  const isPublic = room?.visibility !== 'private'
  const hexId = Buffer.from(letter.id).toString('hex')
  const planned: Planned[] = []
  if (room === undefined)
    planned.push({
      record: { type: RecordType.roomCreated, room: letter.to, at: now, visibility: 'public' },
      key: letter.id,
      isPublic: true,
    })
  planned.push({
    record: event,
    key: letter.id,
    isPublic,
    ...(isPublic ? { entry: entryOf(letter, hexId, seq, now) } : {}),
  })
  const reply: PostReply = { seq, at: now, thread: root === '' ? hexId : root, isPublic }
  return { ok: true, records: planned, reply }
}

export const decideRoomCreate: Decider = ({ board, now }, letter) => {
  if (board.rooms.has(letter.to)) return refuse('name_taken', `there is a room ${letter.to} already`, 'room')
  const visibility = letter.args.visibility === 'private' ? 'private' : 'public'
  const members = (letter.args.members as readonly string[]).filter((member) => member !== letter.author)
  const about = letter.args.text as string
  const record: RoomCreated = {
    type: RecordType.roomCreated,
    room: letter.to,
    at: now,
    visibility,
    owner: Buffer.from(letter.author, 'hex'),
    ...(members.length === 0 ? {} : { members: [...new Set(members)].map((member) => Buffer.from(member, 'hex')) }),
    ...(about === '' ? {} : { about }),
    by: letter.by,
  }
  return {
    ok: true,
    records: [{ record, key: letter.id, isPublic: visibility === 'public' }],
    reply: { at: now, isPublic: visibility === 'public' },
  }
}

/** The reply to a retry of an accepted post, from what the index holds. */
export function postReplyAgain(board: Board, id: Uint8Array): PostReply | undefined {
  const slot = board.events.find(id)
  if (slot === none) return undefined
  const root = board.events.root[slot]!
  const room = board.roomList[board.events.room[slot]!]!
  return {
    seq: board.events.seq[slot]!,
    at: board.events.at[slot]!,
    thread: board.events.idHex(root === none ? slot : root),
    isPublic: room.visibility === 'public',
  }
}

function eventOf(letter: WriteLetter, args: PostArgs, seq: number, now: number, root: string): Event {
  return {
    type: RecordType.event,
    room: letter.to,
    page: args.page,
    kind: args.kind,
    seq,
    at: now,
    author: Buffer.from(letter.author, 'hex'),
    by: letter.by,
    via: letter.via,
    ...(args.replyTo === '' ? {} : { reply: Buffer.from(args.replyTo, 'hex') }),
    ...(root === '' ? {} : { root: Buffer.from(root, 'hex') }),
    ...(args.ttl === 0 ? {} : { expires: now + args.ttl }),
  }
}

function entryOf(letter: WriteLetter, event: string, seq: number, time: number): Buffer {
  const command = Buffer.from(letter.sha).toString('hex')
  return formatEntry({ kind: 'post', event, room: letter.to, seq, time, command })
}
