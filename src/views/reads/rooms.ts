/** Reads on rooms: one, its pages, the list. */
import type { Room } from '../../../actors/board.ts'
import { byActivity, pagesOf } from '../../../actors/reading.ts'
import {
  badCursor,
  limitOf,
  ok,
  opened,
  paging,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  withRoom,
} from './read.ts'

export const roomsReads: Reads = {
  'room.get': (context, request) => withRoom(context, request, (room) => ok({ room: roomView(room) })),
  'room.pages': (context, request) => withRoom(context, request, (room) => pages(context, request, room)),
  'rooms.list': listRooms,
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
