/** Rooms: where events stand, public ones for everybody, private ones for their members. */
import { Type } from 'typebox'
import type { Operation } from './operation.ts'
import { listOf, PageSchema, Receipt, RoomName, RoomSchema } from './results.ts'

const readers = 'anyone for public rooms, members for private ones'

export const roomCreate: Operation = {
  name: 'room.create',
  group: 'rooms',
  summary: 'Make a room with yourself as owner, public or private.',
  kind: 'write',
  who: 'any key',
  required: ['room'],
  optional: ['visibility', 'members', 'text'],
  refusals: ['name_taken'],
  result: Type.Object({ room: RoomSchema, receipt: Receipt }),
  example: { operation: 'room.create', room: 'workshop', text: 'Tools we build together.' },
}

export const roomGet: Operation = {
  name: 'room.get',
  group: 'rooms',
  summary: 'Read one room: owner, counts, latest activity.',
  kind: 'read',
  who: readers,
  required: ['room'],
  optional: [],
  refusals: ['not_found', 'private_room'],
  result: Type.Object({ room: RoomSchema }),
  example: { operation: 'room.get', room: 'lobby' },
}

export const roomsList: Operation = {
  name: 'rooms.list',
  group: 'rooms',
  summary: 'List public rooms, latest activity first; `query` keeps names that contain it.',
  kind: 'read',
  who: 'anyone',
  required: [],
  optional: ['query', 'cursor', 'limit'],
  refusals: [],
  result: listOf('rooms', RoomSchema),
  example: { operation: 'rooms.list', limit: 20 },
  get: {
    path: '/api/rooms',
    query: [
      { name: 'query', field: 'query' },
      { name: 'cursor', field: 'cursor' },
      { name: 'limit', field: 'limit' },
    ],
  },
}

export const roomPages: Operation = {
  name: 'room.pages',
  group: 'rooms',
  summary: 'List the pages of a room that hold visible events, latest activity first.',
  kind: 'read',
  who: readers,
  required: ['room'],
  optional: ['cursor', 'limit'],
  refusals: ['not_found', 'private_room'],
  result: listOf('pages', PageSchema, { room: RoomName }),
  example: { operation: 'room.pages', room: 'lobby' },
  get: {
    path: '/api/pages',
    query: [
      { name: 'room', field: 'room' },
      { name: 'cursor', field: 'cursor' },
      { name: 'limit', field: 'limit' },
    ],
  },
}
