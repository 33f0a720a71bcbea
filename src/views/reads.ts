/**
 * Reads: every read operation, answered from a board in memory and the bodies on disk, as the JSON text of `data`.
 * The feed thread answers for everything public with it, a shard for its private rooms.
 */
import type { Author, Board, Room, Visibility } from '../../actors/board.ts'
import { none } from '../../actors/event-index.ts'
import { byActivity, findEvents, pagesOf, readThread } from '../../actors/reading.ts'
import { mayWrite } from '../../actors/room.ts'
import type { Frame } from '../../storage/journal.ts'
import type { CursorSealer } from '../format/cursor.ts'
import { identityId } from '../format/encoding.ts'
import { type Refusal, refusal } from '../refusals.ts'
import { type EventView, slotView } from './event.ts'

/** A read on its way: fields already checked against the operation's declaration. */
export type ReadRequest = {
  readonly op: string
  readonly args: Readonly<Record<string, string | number>>
  /** Identity id of a signed reader, else ''. */
  readonly reader: string
}

export type ReadAnswer =
  | {
      readonly ok: true
      readonly json: string
      /** The room it depends on alone; absent: on the whole board. */
      readonly room?: string
      /** Unix seconds from which on a text shown here is gone; absent: never. */
      readonly until?: number
    }
  | { readonly ok: false; readonly refusal: Refusal }
  /** Not on this board; another may hold it. */
  | { readonly ok: false; readonly absent: Refusal }

export type ReadContext = {
  readonly board: Board
  readonly body: (slot: number) => Frame
  readonly cursors: CursorSealer
  readonly generation: string
  /** Unix seconds. */
  readonly now: () => number
  /** Which rooms this board answers for; all others are absent here. */
  readonly visibility: Visibility
}

type Read = (context: ReadContext, request: ReadRequest) => ReadAnswer

const pageDefault = 50

export function answerRead(context: ReadContext, request: ReadRequest): ReadAnswer {
  const read = reads[request.op]
  if (read === undefined) throw new Error(`no read for ${request.op}`)
  return read(context, request)
}

const reads: Readonly<Record<string, Read>> = {
  'event.get': (context, request) =>
    withEvent(context, request, (slot) => {
      const event = view(context, slot, true)
      return ok({ event }, scopeOf([event]))
    }),
  'events.list': listEvents,
  'thread.get': (context, request) => withEvent(context, request, (slot) => thread(context, request, slot)),
  'room.get': (context, request) => withRoom(context, request, (room) => ok({ room: roomView(room) })),
  'room.pages': (context, request) => withRoom(context, request, (room) => pages(context, request, room)),
  'rooms.list': listRooms,
  'identity.get': identity,
  'identities.list': listIdentities,
}

function ok(data: unknown, scope: { room?: string; until?: number } = {}): ReadAnswer {
  return { ok: true, json: JSON.stringify(data), ...scope }
}

/** What an answer of these events depends on, when they are all of one room. */
function scopeOf(events: readonly EventView[]): { room?: string; until?: number } {
  const [first] = events
  if (first === undefined) return {}
  const ends = events
    .filter(({ hidden, expires_at }) => !hidden && expires_at !== undefined)
    .map((event) => event.expires_at!)
  return { room: first.room, ...(ends.length === 0 ? {} : { until: Math.min(...ends) }) }
}

function refused(refused: Refusal): ReadAnswer {
  return { ok: false, refusal: refused }
}

const privateRoom = refusal('private_room', 'this room is private: only its members read it, by signed commands')

function withRoom(context: ReadContext, { args, reader }: ReadRequest, read: (room: Room) => ReadAnswer): ReadAnswer {
  const room = context.board.rooms.get(String(args.room))
  if (room?.visibility !== context.visibility)
    return { ok: false, absent: refusal('not_found', `there is no room ${args.room}`, 'room') }
  if (room.visibility === 'private' && !mayWrite(room, reader)) return refused(privateRoom)
  return read(room)
}

function withEvent(
  context: ReadContext,
  { args, reader }: ReadRequest,
  read: (slot: number) => ReadAnswer,
): ReadAnswer {
  const { events, roomList } = context.board
  const slot = events.find(Buffer.from(String(args.event_id), 'hex'))
  const room = slot === none ? undefined : roomList[events.room[slot]!]
  if (room?.visibility !== context.visibility)
    return { ok: false, absent: refusal('not_found', `there is no event ${args.event_id}`, 'event_id') }
  if (room.visibility === 'private' && !mayWrite(room, reader)) return refused(privateRoom)
  return read(slot)
}

function view(context: ReadContext, slot: number, payload: boolean): EventView {
  return slotView(context.board, slot, context.body(slot), { payload, now: context.now() })
}

function limitOf(args: ReadRequest['args']): number {
  return args.limit === undefined ? pageDefault : Number(args.limit)
}

/** What a cursor of this list holds: a number, or undefined when it is not ours. */
function opened(
  context: ReadContext,
  list: string,
  args: ReadRequest['args'],
): { from: number | undefined } | undefined {
  if (args.cursor === undefined) return { from: undefined }
  const from = context.cursors.open(list, String(args.cursor))
  return typeof from === 'number' ? { from } : undefined
}

const badCursor = refused(
  refusal('invalid_field', 'this cursor was not given by this list: start again without one', 'cursor'),
)

function paging(context: ReadContext, list: string, next: number | undefined) {
  return next === undefined ? { has_more: false } : { next_cursor: context.cursors.seal(list, next), has_more: true }
}

function listEvents(context: ReadContext, request: ReadRequest): ReadAnswer {
  const { args } = request
  const list = (room: string): ReadAnswer => {
    const name = `events:${room}:${args.page ?? ''}:${args.target ?? ''}:${args.kind ?? ''}:${args.order ?? 'desc'}`
    const cursor = opened(context, name, args)
    if (cursor === undefined) return badCursor
    const { slots, next } = findEvents(context.board, {
      ...(room === '' ? {} : { room }),
      ...(args.page === undefined ? {} : { page: String(args.page) }),
      ...(args.target === undefined ? {} : { author: String(args.target) }),
      ...(args.kind === undefined ? {} : { kind: String(args.kind) }),
      ...(args.before === undefined ? {} : { before: Number(args.before) }),
      ...(args.after === undefined ? {} : { after: Number(args.after) }),
      order: args.order === 'asc' ? 'asc' : 'desc',
      limit: limitOf(args),
      ...(cursor.from === undefined ? {} : { from: cursor.from }),
    })
    const events = slots.map((slot) => view(context, slot, false))
    const { until } = scopeOf(events)
    const scope = { ...(room === '' ? {} : { room }), ...(until === undefined ? {} : { until }) }
    return ok({ events, ...paging(context, name, next), generation: context.generation }, scope)
  }
  if (args.room !== undefined) return withRoom(context, request, (room) => list(room.name))
  if (args.before !== undefined || args.after !== undefined) {
    return refused(refusal('missing_field', 'before and after count inside a room: name the room too', 'room'))
  }
  return list('')
}

function thread(context: ReadContext, { args }: ReadRequest, slot: number): ReadAnswer {
  const { board } = context
  const list = `thread:${board.events.idHex(slot)}`
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const found = readThread(board, slot, limitOf(args), cursor.from)
  const events = found.slots.map((each) => view(context, each, false))
  const data = {
    root_id: board.events.idHex(found.root),
    requested_event_id: board.events.idHex(slot),
    room: board.roomList[board.events.room[slot]!]!.name,
    page: board.page(found.root),
    events,
    ...paging(context, list, found.next),
  }
  return ok(data, scopeOf(events))
}

function pages(context: ReadContext, { args }: ReadRequest, room: Room): ReadAnswer {
  const list = `pages:${room.name}`
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const below = cursor.from ?? Number.POSITIVE_INFINITY
  const found = pagesOf(room).filter(({ last }) => last < below)
  const shown = found.slice(0, limitOf(args))
  const next = found.length > shown.length ? shown.at(-1)?.last : undefined
  return ok({
    room: room.name,
    pages: shown.map(({ name, count, threads, last, updatedAt }) => ({
      name,
      count,
      threads,
      last_event_id: context.board.events.idHex(last),
      updated_at: updatedAt,
    })),
    ...paging(context, list, next),
  })
}

function listRooms(context: ReadContext, { args }: ReadRequest): ReadAnswer {
  const list = `rooms:${args.query ?? ''}`
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const query = args.query === undefined ? undefined : String(args.query)
  const { entries, next } = byActivity<Room>(context.board.roomsByActivity.newest, {
    limit: limitOf(args),
    below: cursor.from ?? Number.POSITIVE_INFINITY,
    accept: (room) => room.visibility === 'public' && (query === undefined || room.name.includes(query)),
  })
  return ok({ rooms: entries.map(roomView), ...paging(context, list, next) })
}

function listIdentities(context: ReadContext, { args }: ReadRequest): ReadAnswer {
  const list = `identities:${args.query ?? ''}`
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const query = args.query === undefined ? undefined : String(args.query)
  const { entries, next } = byActivity<Author>(context.board.authorsByActivity.newest, {
    limit: limitOf(args),
    below: cursor.from ?? Number.POSITIVE_INFINITY,
    accept: (author) => query === undefined || (author.handle?.startsWith(query) ?? false),
  })
  return ok({ identities: entries.map(identityView), ...paging(context, list, next) })
}

function identity({ board }: ReadContext, { args, reader }: ReadRequest): ReadAnswer {
  const target = args.target === undefined ? reader : String(args.target)
  if (target === '')
    return refused(refusal('missing_field', 'name a target, or sign the command to read your own', 'target'))
  const author = board.authors.get(target) ?? board.authors.get(board.handles.get(target) ?? '') ?? byKey(board, target)
  if (author === undefined)
    return refused(refusal('not_found', 'no identity with this id, handle or key has acted in public', 'target'))
  return ok({ identity: identityView(author) })
}

function byKey(board: Board, key: string): Author | undefined {
  return key.length === 43 ? board.authors.get(identityId(Buffer.from(key, 'base64url'))) : undefined
}

export function roomView(room: Room) {
  return {
    name: room.name,
    visibility: room.visibility,
    ...(room.owner === undefined ? {} : { owner: room.owner }),
    ...(room.about === undefined ? {} : { about: room.about }),
    count: room.events.length,
    threads: room.threads,
    pages: room.pages.size,
    ...(room.visibility === 'private' ? { members: room.members.size + 1 } : {}),
    created_at: room.createdAt,
    updated_at: room.updatedAt,
  }
}

export function identityView(author: Author) {
  return {
    id: author.id,
    public_key: author.key,
    ...(author.handle === undefined ? {} : { handle: author.handle }),
    events: author.events.length,
    created_at: author.createdAt,
    last_seen: author.lastSeen,
  }
}
