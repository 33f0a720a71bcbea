/** Reads on rooms: one room, its pages, its people, its policy, and the list. */

import { refusal } from '../../actors/kernel/refusals.ts'
import { byActivity, countsOf, pagesOf } from '../../actors/reading.ts'
import type { Room } from '../../actors/records/board.ts'
import { isClosed, type Role, roleOf } from '../../actors/rooms/policy.ts'
import { firstInOrder } from '../reads/first-in-order.ts'
import { share } from '../reads/gather.ts'
import {
  badCursor,
  type KnownAnswer,
  known,
  limitOf,
  listScope,
  ok,
  opened,
  paging,
  placeInList,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  refused,
  type Share,
  soonest,
  unending,
  withinPage,
  withRoom,
} from '../reads/read.ts'

export const roomsReads = {
  'room.get': (context, request) => withRoom(context, request, (room) => one(context, request, room)),
  'room.pages': (context, request) => withRoom(context, request, (room) => pages(context, request, room)),
  'room.members': (context, request) => withRoom(context, request, (room) => members(context, request, room)),
  'room.policy.get': (context, request) =>
    withRoom(context, request, ({ name }) => ok({ room: name, policy: context.state.rules.policyOf(name) })),
  'rooms.list': listRooms,
  'room.invite.maker': inviteMaker,
} satisfies Reads

/** Used by the board before an invite is accepted: the delegation by which it was made; '' if there is none, or no such invite. */
function inviteMaker({ state, now }: ReadContext, { args }: ReadRequest): KnownAnswer<{ delegation: string }> {
  const open = state.rules.openInvites(String(args.room), now())
  return known({ delegation: open.find(({ hash }) => hash === args.hash)?.delegation ?? '' })
}

function one(context: ReadContext, { reader }: ReadRequest, room: Room) {
  const policy = context.state.rules.policyOf(room.name)
  const role = reader === '' ? {} : { role: roleOf(room, reader) }
  return ok(
    { room: { ...roomView(context, room), ...role, policy } },
    { ...listScope(context, room), until: untilStale(context, [room]) },
  )
}

function pages(context: ReadContext, { args }: ReadRequest, room: Room): ReadAnswer {
  const list = `pages:${room.name}`
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const below = cursor.from ?? Number.POSITIVE_INFINITY
  const all = pagesOf(context.state, room, context.now())
  const found = all.filter(({ order }) => order < below)
  const shown = found.slice(0, limitOf(args))
  const next = found.length > shown.length ? shown.at(-1)?.order : undefined
  const data = {
    room: room.name,
    pages: shown.map(({ name, count, threads, last, updatedAt }) => ({
      name,
      count,
      threads,
      last_event_id: context.board.events.idHex(last),
      updated_at: updatedAt,
    })),
    ...paging(context, list, next),
  }
  return ok(data, { room: room.name, until: soonest(all.map(({ until }) => until)) })
}

const ranks: readonly Role[] = ['owner', 'moderator', 'member']

/** By role, then by id: an order that is stable while people come and go. */
function members(context: ReadContext, { args }: ReadRequest, room: Room): ReadAnswer {
  const list = `members:${room.name}`
  const after = args.cursor === undefined ? '' : context.cursors.open(list, String(args.cursor))
  if (typeof after !== 'string') return badCursor
  const everybody = room.owner === undefined ? [...room.members] : [room.owner, ...room.members]
  const limit = limitOf(args)
  const places = everybody.map((id) => `${ranks.indexOf(roleOf(room, id))}${id}`).filter((each) => each > after)
  const found = firstInOrder(places, limit + 1, (a, b) => (a < b ? -1 : 1))
  const shown = found.slice(0, limit)
  const last = found.length > limit ? shown.at(-1) : undefined
  return ok(
    {
      room: room.name,
      members: shown.map((each) => {
        const id = each.slice(1)
        const handle = context.handleOf(id)
        return { id, ...(handle === undefined ? {} : { handle }), role: ranks[Number(each[0])] }
      }),
      ...(last === undefined ? { has_more: false } : { next_cursor: context.cursors.seal(list, last), has_more: true }),
    },
    { room: room.name, until: unending },
  )
}

function listRooms(context: ReadContext, request: ReadRequest): ReadAnswer {
  const { args, reader } = request
  if (args.own !== undefined) return reader === '' ? refused(unsigned) : own(context, request)
  const list = `rooms:${args.query ?? ''}`
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const { entries, next } = byActivity<Room>(context.board.roomsByActivity, {
    limit: limitOf(args),
    below: cursor.from ?? Number.POSITIVE_INFINITY,
    accept: (room) => room.visibility === 'public' && isNamed(room, args),
  })
  const { views: rooms, cut } = withinPage(context, entries, (room) => roomView(context, room))
  return ok({ rooms, ...paging(context, list, cut?.version ?? next) }, { until: untilStale(context, entries) })
}

const unsigned = refusal('unsigned', 'sign the command to list your own rooms')

/**
 * This actor's share of the rooms in which the reader has a role (src/reads/gather.ts merges the shares): the feed returns the public ones, a
 * shard its private ones. Conversations have a list of their own.
 */
function own(context: ReadContext, request: ReadRequest): KnownAnswer<Share> {
  const { args, reader } = request
  const { board, state } = context
  return share(context, request, `rooms.list own:${reader}:${args.query ?? ''}`, (below, count) => {
    const rooms = board
      .roomsOf(reader)
      .filter((room) => isNamed(room, args) && state.direct.conversation(room.name) === undefined)
      .filter((room) => below === '~' || placeOf(room) < below)
    const items = firstInOrder(rooms, count, newestRoom).map((room) => ({
      place: placeOf(room),
      item: { ...roomView(context, room), role: roleOf(room, reader) },
    }))
    return { items }
  })
}

function isNamed({ name }: Room, { query }: ReadRequest['args']): boolean {
  return query === undefined || name.includes(String(query))
}

function placeOf({ updatedAt, version, name }: Room): string {
  return placeInList(updatedAt, version, name)
}

/** Orders rooms as their places do, without making these. */
function newestRoom(a: Room, b: Room): number {
  return b.updatedAt - a.updatedAt || b.version - a.version || (a.name < b.name ? 1 : -1)
}

/** When a room closes or an event expires, the answer becomes outdated. */
function untilStale({ state, now }: ReadContext, rooms: readonly Room[]): number {
  const ends = rooms
    .flatMap((room) => [state.rules.policyOf(room.name).closes_at, countsOf(state, room, now()).until])
    .filter((at) => at > now())
  return soonest(ends)
}

function roomView({ state, now, handleOf }: ReadContext, room: Room) {
  const { count, threads, pages } = countsOf(state, room, now())
  const handle = room.owner === undefined ? undefined : handleOf(room.owner)
  return {
    name: room.name,
    visibility: room.visibility,
    ...(room.owner === undefined ? {} : { owner: room.owner }),
    ...(handle === undefined ? {} : { owner_handle: handle }),
    moderators: [...room.moderators],
    members: room.members.size + (room.owner === undefined ? 0 : 1),
    ...(room.about === undefined ? {} : { about: room.about }),
    closed: isClosed(state.rules.policyOf(room.name), now()),
    count,
    threads,
    pages,
    last_seq: room.events.length,
    created_at: room.createdAt,
    updated_at: room.updatedAt,
  }
}
