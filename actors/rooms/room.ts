/**
 * Decides posts and new rooms: whether a post is accepted, and where it goes. Pure functions of the board's state; the signer
 * was verified earlier.
 */

import { internalLimits } from '../kernel/limits.ts'
import type { RefusalCode } from '../kernel/refusals.ts'
import type { SourceSchema } from '../kernel/results.ts'
import type { Infer, Schema } from '../kernel/schema.ts'
import type { Board, Room } from '../records/board.ts'
import { postEntry } from '../records/entry.ts'
import { none } from '../records/event-index.ts'
import {
  commandIn,
  conversationPrefix,
  dataIn,
  type PostRecord,
  postIn,
  RecordType,
  type RoomCreated,
} from '../records/record.ts'
import {
  accept,
  isOfBoard,
  type Planned,
  type Refused,
  refuse,
  type Situation,
  type WriteLetter,
} from '../records/write.ts'
import { isScreened, mayModerate, mayWrite, objection } from './policy.ts'

/** The placement that the command asks for; `''` and 0 mean not given. */
export type Wanted = {
  readonly page: string
  readonly kind: string
  /** 32 hex of the event replied to. */
  readonly replyTo: string
  /** 32 hex of the event, or of its newest version, that this replaces. */
  readonly supersedes: string
  /** Seconds; 0: forever. */
  readonly ttl: number
}

/** Where the post goes; `''` and 0 mean none. */
type Placed = {
  readonly page: string
  /** For a version, the kind of its original. */
  readonly kind: string
  /** 32 hex of the event replied to; if that is a version, of its original. */
  readonly replyTo: string
  /** 32 hex of the thread's root. */
  readonly root: string
  /** 32 hex of the event that this is a version of. */
  readonly original: string
  /** Unix seconds. */
  readonly expires: number
}

type Placing = { readonly placed: Placed } | { readonly refused: Refused }

/** The page of a thread that names none. */
export const pageDefault = 'main'

/**
 * Where a post goes: the thread it begins or joins, or the event that it is a later version of.
 *
 * `data.supersedes` names an event by its own id, whatever its newest version is, or by the id of its newest version. The
 * latter means "as I have read it": if the named version is not the newest, the edit is refused with `conflict`. A version has
 * its own place in the room (id, seq, leaf) and is shown in the place of its original, with its kind. It expires with its original.
 *
 * A reply that names no page goes to the page of the event it answers. Boards of older releases put such replies on `main`. The
 * page is decided when the post is written and stored in its record, so those stay where they are.
 */
export function placeOf(situation: Situation, letter: WriteLetter, room: Room | undefined, wanted: Wanted): Placing {
  if (wanted.supersedes !== '') return placeEdit(situation, letter, room, wanted)
  const { state, board, now } = situation
  const expires = wanted.ttl === 0 ? 0 : now + wanted.ttl
  const kind = wanted.kind || kindDefault
  if (wanted.replyTo === '')
    return { placed: { page: wanted.page || pageDefault, kind, replyTo: '', root: '', original: '', expires } }
  const target = slotIn(situation, room, wanted.replyTo)
  if (target === undefined)
    return { refused: refuse('not_found', `there is no event ${wanted.replyTo} in room ${letter.to}`, 'reply_to') }
  const slot = state.marks.original(target)
  const locked = deliversTo(situation, letter, slot, wanted.kind) ? undefined : lockOver(situation, letter, room, slot)
  if (locked !== undefined) return { refused: locked }
  const replyTo = board.events.idHex(slot)
  const page = wanted.page || board.page(slot)
  return { placed: { page, kind, replyTo, root: threadOf(situation, slot), original: '', expires } }
}

export type Format = 'text' | 'markdown'

/** The format to show a text in: `kept` from the previous version, else the one that `data` of the signed command names. */
export function formatOf(kept: Format | undefined, data: string | undefined): Format {
  return kept ?? shownIn(data).format ?? 'text'
}

export type Source = Infer<typeof SourceSchema>

/** Where a post was first published, according to `data` of the signed command. */
export function sourceOf(data: string | undefined): Source | undefined {
  return shownIn(data).source
}

/** The parts of a post's `data` that are shown with its event. */
export function shownIn(data: string | undefined): { readonly format?: Format; readonly source?: Source } {
  if (data === undefined || data === '') return {}
  return dataIn<{ readonly data: Schema<{ readonly format?: Format; readonly source?: Source }> }>({ data })
}

/** The format of the version that an edit replaces, for an edit that names none. */
function formatBefore({ state, board, record }: Situation, original: string): Format {
  const newest = state.marks.newest(board.events.find(Buffer.from(original, 'hex')))
  const { format, by } = postIn(record(board.events.place(newest)))
  const command = commandIn(by.signed)
  return formatOf(format, command.data)
}

function placeEdit(situation: Situation, letter: WriteLetter, room: Room | undefined, wanted: Wanted): Placing {
  const { state, board, now } = situation
  const { marks } = state
  const { events } = board
  const named = slotIn(situation, room, wanted.supersedes)
  if (named === undefined)
    return no(
      'not_found',
      `"supersedes" in data names no event of room ${letter.to}: ${wanted.supersedes}`,
      'data.supersedes',
    )
  const slot = marks.original(named)
  const newest = marks.newest(slot)
  if (board.authors.idOf(events.author(slot)) !== letter.author)
    return no('forbidden', 'only the author of an event can post a new version of it', 'data.supersedes')
  const gone = marks.gone(slot, now)
  if (gone !== undefined)
    return no(
      'wrong_state',
      `the text of this event is gone (${gone.reason}): it cannot have a new version`,
      'data.supersedes',
    )
  if (letter.op !== 'work.version' && state.bound.markedAt(slot) !== undefined)
    return no('wrong_state', 'this is the request of a work: change it with work.edit', 'data.supersedes')
  if (named !== slot && named !== newest)
    return no(
      'conflict',
      `this version was replaced: read the newest, ${events.idHex(newest)}, with event.get and name that`,
      'data.supersedes',
    )
  if (marks.edits(slot).length + 1 >= internalLimits.eventVersions)
    return no(
      'wrong_state',
      `this event has ${internalLimits.eventVersions} versions, which is the limit: post a new event`,
      'data.supersedes',
    )
  const page = board.page(slot)
  if (wanted.page !== '' && wanted.page !== page)
    return no('invalid_field', `a new version stays in its place: page must be ${page}, or left out`, 'page')
  const replyTo = parentOf(situation, slot)
  if (wanted.replyTo !== '' && wanted.replyTo !== replyTo) {
    const right = replyTo === '' ? 'left out, as the event is not a reply' : `${replyTo}, or left out`
    return no('invalid_field', `a new version stays in its place: reply_to must be ${right}`, 'reply_to')
  }
  const kind = board.kind(slot)
  if (wanted.kind !== '' && wanted.kind !== kind)
    return no('invalid_field', `a new version keeps its kind: kind must be ${kind}, or left out`, 'kind')
  if (wanted.ttl !== 0) return no('invalid_field', 'a new version expires with its original: leave ttl out', 'ttl')
  const original = events.idHex(slot)
  return { placed: { page, kind, replyTo, root: threadOf(situation, slot), original, expires: events.expires(slot) } }
}

function no(code: RefusalCode, message: string, field?: string): Placing {
  return { refused: refuse(code, message, field) }
}

/** Why this author may not reply in the thread of this slot. Locks do not stop works from posting in their own threads. */
function lockOver(
  { state, board }: Situation,
  letter: WriteLetter,
  room: Room | undefined,
  slot: number,
): Refused | undefined {
  if (letter.op !== 'post' || isOfBoard(letter) || !state.threadFlags.isLocked(board.events.rootOf(slot)))
    return undefined
  if (room !== undefined && mayModerate(room, letter.author, letter.operator)) return undefined
  return refuse(
    'wrong_state',
    'this thread is locked: a moderator of the room can open it with thread.lock',
    'reply_to',
  )
}

/** The slot of an event in this room. */
function slotIn({ board: { events } }: Situation, room: Room | undefined, id: string): number | undefined {
  const slot = events.find(Buffer.from(id, 'hex'))
  return slot === none || room === undefined || events.room(slot) !== room.number ? undefined : slot
}

function parentOf({ board: { events } }: Situation, slot: number): string {
  const parent = events.parent(slot)
  return parent === none ? '' : events.idHex(parent)
}

function threadOf({ board: { events } }: Situation, slot: number): string {
  return events.idHex(events.rootOf(slot))
}

/** Messages from the opener before any member has accepted, and the bytes of each. */
export const requestMessagesMax = 10
const requestBytesMax = 4_096

/** The parts of a conversation that the decision depends on. */
type Begun = {
  /** Identity id. */
  readonly opener: string
  /** A member other than the opener has accepted. */
  readonly accepted: boolean
  /** Messages from the opener before that. */
  readonly sent: number
}

/**
 * Why a post to a conversation is refused, or undefined. Until a member accepts, the opener may only send a little. The answer
 * is the same whether the other side blocked the opener or has not responded.
 */
function postRefusal(conversation: Begun | undefined, letter: WriteLetter): Refused | undefined {
  if (conversation === undefined || conversation.accepted) return undefined
  const command = commandIn(letter.by.signed)
  return messageRefusal(conversation, letter.author, Buffer.byteLength(command.text!))
}

/** The same for a message of this many bytes; `found` is undefined if it opens the conversation. */
export function messageRefusal(found: Begun | undefined, author: string, bytes: number): Refused | undefined {
  if (found?.accepted === true || (found !== undefined && found.opener !== author)) return undefined
  if (bytes > requestBytesMax) {
    const until = 'until another member accepts this conversation (conversation.respond)'
    return refuse('too_large', `text has ${bytes} bytes; ${requestBytesMax} are allowed ${until}`, 'text')
  }
  if (found === undefined || found.sent < requestMessagesMax) return undefined
  const message = `no other member has accepted this conversation yet (conversation.respond): until then its opener can send ${requestMessagesMax} messages`
  return refuse('wrong_state', message, 'room')
}

export type PostArgs = Wanted & {
  /** '': not given. */
  readonly kind: string
  /** Absent if the command names none. */
  readonly format?: Format
  /** It names where it was first published. */
  readonly isImported?: true
  /** Identity id (64 hex) of the addressee, if the command names a handle. */
  readonly to?: string
  /** The attachments of the post, by their 32-hex ids. */
  readonly attachments: readonly string[]
  /** Bits of work that its proof shows, checked by the main thread. */
  readonly proofBits: number
  /** Seconds until its author may create a room again; 0 or absent: now. */
  readonly roomWait?: number
}

export const kindDefault = 'note'

/** What the main thread needs to compose the answer to a post. */
export type PostReply = {
  readonly page: string
  readonly kind: string
  readonly seq: number
  readonly at: number
  /** 32 hex of the thread's root. */
  readonly thread: string
  /** 32 hex of the event replied to, or ''. */
  readonly replyTo: string
  readonly isPublic: boolean
  /** The room wants it screened for advertisements. */
  readonly screen?: true
  /** This post created the room. */
  readonly madeRoom?: true
}

export const decidePost = (situation: Situation, letter: WriteLetter<PostArgs>) => {
  const { state, board, now } = situation
  const args = letter.args
  const room = board.rooms.get(letter.to)
  if (room !== undefined && !mayWrite(room, letter.author) && !isOfBoard(letter)) {
    return refuse('private_room', 'this room is private: only its members can read and post', 'room')
  }
  if (room === undefined && isReserved(letter.to)) return reserved
  const { roomWait = 0 } = args
  if (room === undefined && roomWait > 0) return noRoomLeft(roomWait)
  const early = postRefusal(state.direct.conversation(letter.to), letter)
  if (early !== undefined) return early
  const placing = placeOf(situation, letter, room, args)
  if ('refused' in placing) return placing.refused
  const { placed } = placing
  const isEdit = placed.original !== ''
  const fault = state.blobs.attachable(letter.to, letter.author, args.attachments, now)
  if (fault !== undefined) return refuse(fault.code, fault.message, 'attachments')
  const policy = state.rules.policyOf(letter.to)
  const { author, operator } = letter
  const delivers = isDelivery(situation, letter, placed)
  if (room !== undefined && !isOfBoard(letter) && !delivers) {
    const { proofBits } = args
    // A version expires with its original, whose lifetime was checked when it was posted.
    const ttl = isEdit ? policy.ttl_max : args.ttl
    const isImported = args.isImported === true
    const candidate = { author, operator, isReply: placed.replyTo !== '', isEdit, isImported, ttl, proofBits }
    const found = objection(policy, candidate, { board, room, now })
    if (found !== undefined) return refuse(...found)
  }
  const crowded = crowdedObjection(board, room, placed)
  if (crowded !== undefined) return crowded
  const seq = (room?.events.length ?? 0) + 1
  const made = eventOf(letter, placed, seq, now)
  const keepsMarkdown = isEdit && args.format === undefined && formatBefore(situation, placed.original) === 'markdown'
  const event: PostRecord = keepsMarkdown ? { ...made, format: 'markdown' } : made
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
    ...(isPublic ? { entries: [postEntry({ room: letter.to, seq, time: now, sha: letter.sha })] } : {}),
  })
  const toScreen = room !== undefined && !isOfBoard(letter) && !delivers && isScreened(policy, room, author, operator)
  const reply: PostReply = {
    page: placed.page,
    kind: placed.kind,
    seq,
    at: now,
    thread: placed.root === '' ? hexId : placed.root,
    replyTo: placed.replyTo,
    isPublic,
    ...(toScreen ? { screen: true } : {}),
    ...(room === undefined ? { madeRoom: true } : {}),
  }
  return accept(planned, reply)
}

/** The holder of a live fence delivers a result, or a new version of it: neither the room's policy nor a lock can prevent that. */
function isDelivery(situation: Situation, letter: WriteLetter, placed: Placed): boolean {
  const { state, board } = situation
  const slotOf = (id: string) => (id === '' ? none : board.events.find(Buffer.from(id, 'hex')))
  const original = slotOf(placed.original)
  if (original !== none) return state.bound.liveResultAt(original)?.lastTell?.worker === letter.author
  return deliversTo(situation, letter, slotOf(placed.replyTo), placed.kind)
}

/** A result from the holder of the fence of the work whose request is in this slot. */
function deliversTo({ state }: Situation, { author }: WriteLetter, slot: number, kind: string): boolean {
  return kind === 'result' && state.bound.holdsFence(slot, author)
}

/** Limits on the distinct kinds in one journal and the pages of one room: all of them stay in memory permanently. */
const kindsMax = 65_000
const pagesMax = 20_000
/** Kinds with a meaning are accepted beyond the limit. */
const meaningful: ReadonlySet<string> = new Set([
  'note',
  'request',
  'result',
  'promotion',
  'review',
  'document',
  'notice',
])

function crowdedObjection(board: Board, room: Room | undefined, { kind, page }: Placed): Refused | undefined {
  if (board.kinds.count >= kindsMax && board.kinds.find(kind) === undefined && !meaningful.has(kind))
    return refuse('invalid_field', 'this board has reached its limit of distinct kinds: use an existing one', 'kind')
  if (room !== undefined && room.pages.size >= pagesMax && !room.pages.has(page) && page !== 'main')
    return refuse('invalid_field', `this room has ${pagesMax} pages, which is the limit: use an existing one`, 'page')
  return undefined
}

type RoomArgs = {
  readonly visibility: 'public' | 'private'
  /** Identity ids. */
  readonly members: readonly string[]
  readonly text: string
  /** Seconds until its author may create a room again; absent: now. */
  readonly roomWait?: number
}

export const decideRoomCreate = ({ board, now }: Situation, letter: WriteLetter<RoomArgs>) => {
  if (board.rooms.has(letter.to)) return refuse('name_taken', `there is already a room ${letter.to}`, 'room')
  if (isReserved(letter.to)) return reserved
  const { roomWait = 0 } = letter.args
  if (roomWait > 0) return noRoomLeft(roomWait)
  const visibility = letter.args.visibility
  const members = letter.args.members.filter((member) => member !== letter.author)
  const about = letter.args.text
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
  return accept([{ record, key: letter.id, isPublic: visibility === 'public' }], {
    at: now,
    isPublic: visibility === 'public',
    madeRoom: true,
  })
}

export const noRoomLeftMessage = 'this identity has reached its limit of new rooms for today: wait retry_after seconds'

function noRoomLeft(wait: number): Refused {
  return refuse('quota_exhausted', noRoomLeftMessage, undefined, wait)
}

/** A user cannot create a room that looks like a conversation. */
function isReserved(room: string): boolean {
  return room.startsWith(conversationPrefix)
}

const reserved = refuse(
  'invalid_field',
  `names that begin with ${conversationPrefix} are reserved for conversations: choose another, or use conversation.open`,
  'room',
)

/** The reply to a retry of an accepted post, from the index. */
export function postReplyAgain(board: Board, id: Uint8Array): PostReply | undefined {
  const slot = board.events.find(id)
  if (slot === none) return undefined
  const parent = board.events.parent(slot)
  const room = board.roomList[board.events.room(slot)]!
  return {
    page: board.page(slot),
    kind: board.kind(slot),
    seq: board.events.seq(slot),
    at: board.events.at(slot),
    thread: board.events.idHex(board.events.rootOf(slot)),
    replyTo: parent === none ? '' : board.events.idHex(parent),
    isPublic: room.visibility === 'public',
  }
}

/** The parts of a letter's arguments that its event shows. */
type Shown = Partial<Pick<PostArgs, 'attachments' | 'to'>> & object

export function eventOf(letter: WriteLetter<Shown>, placed: Placed, seq: number, now: number): PostRecord {
  const { page, kind, replyTo, root, original, expires } = placed
  const { attachments = [], to } = letter.args
  return {
    type: RecordType.event,
    room: letter.to,
    page,
    kind,
    seq,
    at: now,
    author: Buffer.from(letter.author, 'hex'),
    by: letter.by,
    via: letter.via,
    ...(replyTo === '' ? {} : { reply: Buffer.from(replyTo, 'hex') }),
    ...(root === '' ? {} : { root: Buffer.from(root, 'hex') }),
    ...(original === '' ? {} : { original: Buffer.from(original, 'hex') }),
    ...(expires === 0 ? {} : { expires }),
    ...(to === undefined ? {} : { to: Buffer.from(to, 'hex') }),
    ...(attachments.length === 0 ? {} : { blobs: attachments.map((id) => Buffer.from(id, 'hex')) }),
  }
}
