/** Every view of every room, as everybody with access sees it: lists, threads, events, histories, pages, members, tails. */
import { createHash } from 'node:crypto'
import type { EventJson } from '../client.ts'
import { blockIds, StreamReader } from '../stream-reader.ts'
import type { SentEvent } from './history.ts'
import { type Entry, type Model, shape } from './model.ts'
import { people, type Room, receiverRoom, rooms, stranger } from './people-and-rooms.ts'
import type { RestartingBoard } from './restarting-board.ts'
import { each, same, Views } from './views.ts'

export type Post = (posted: SentEvent) => unknown

/** Moderation logs come first: the state of each event follows from them. */
export async function takeLogs(restartingBoard: RestartingBoard, model: Model): Promise<void> {
  for (const room of rooms) {
    const [reader] = readersOf(restartingBoard, room)
    const entries = await reader!.list<Entry>('room.modlog', 'entries', { room: room.name })
    model.takeLog(room, entries.reverse())
  }
}

/** Everybody who reads a room: its members, or for a public one anybody, signed or not. */
function readersOf({ client }: RestartingBoard, { isPrivate, owner, core }: Room): Views[] {
  const who = isPrivate ? [owner!, core[0]!, core[2]!] : [undefined, stranger]
  return who.map((each) => new Views(client, each))
}

export async function checkRooms(restartingBoard: RestartingBoard, model: Model): Promise<void> {
  for (const room of rooms) {
    if (room === receiverRoom) continue
    for (const reader of readersOf(restartingBoard, room)) await checkLists(reader, model, room)
    await checkEvents(readersOf(restartingBoard, room)[0]!, model, room)
    await checkTail(restartingBoard, model, room)
  }
}

async function checkLists(reader: Views, model: Model, room: Room): Promise<void> {
  const { name, isPrivate } = room
  const what = (view: string) => `${view} of ${name} by ${reader.who ?? 'nobody'}`
  const visible = model.visible(name).map((posted) => model.item(posted))
  const rising = { room: name, data: '{"schema":1,"order":"asc"}' }
  const falling = await reader.list<EventJson>('events.list', 'events', {
    room: name,
    limit: 7 + (visible.length % 190),
  })
  same(what('events.list'), falling.reverse().map(shape), visible)
  same(what('events.list asc'), (await reader.list<EventJson>('events.list', 'events', rising)).map(shape), visible)
  if (!isPrivate) {
    const got = await reader.listByGet<EventJson>(`/api/events?room=${name}&order=asc`, 'events')
    same(what('GET /api/events'), got.map(shape), visible)
  }
  type Page = { name: string; count: number; threads: number; last_event_id: string }
  const pages = (await reader.list<Page>('room.pages', 'pages', { room: name })).map(
    ({ name: page, count, threads, last_event_id }) => ({ name: page, count, threads, last_event_id }),
  )
  same(what('room.pages'), pages, model.pages(name))
  const members = [...model.history.members.get(name)!].map((who) => people[who]!.id)
  const owner = room.owner === undefined ? [] : [people[room.owner]!.id]
  const { room: found } = await reader.ask('room.get', { room: name })
  same(
    what('room.get'),
    [roomShape(found as RoomView)],
    [
      {
        name,
        visibility: isPrivate ? 'private' : 'public',
        owner: owner[0] ?? '',
        members: members.length + owner.length,
        ...model.counts(name),
      },
    ],
  )
  const listed = await reader.list<{ id: string }>('room.members', 'members', { room: name })
  same(what('room.members'), listed.map(({ id }) => id).sort(), [...members, ...owner].sort())
}

type RoomView = {
  readonly name: string
  readonly visibility: string
  readonly owner?: string
  readonly members: number
  readonly count: number
  readonly threads: number
  readonly pages: number
}

export function roomShape({ name, visibility, owner = '', members, count, threads, pages }: RoomView): unknown {
  return { name, visibility, owner, members, count, threads, pages }
}

async function checkEvents(reader: Views, model: Model, room: Room): Promise<void> {
  const all = model.versions(room.name)
  const originals = model.originals(room.name)
  const threads = new Map<string, SentEvent[]>()
  for (const posted of originals) threads.set(posted.thread, [...(threads.get(posted.thread) ?? []), posted])
  await each([...threads], async ([root, list]) => {
    const any = list[list.length - 1]!
    const found = await reader.list<EventJson>('thread.get', 'events', { event_id: any.id })
    same(
      `thread ${root}`,
      found.map(shape),
      list.map((posted) => model.item(posted)),
    )
  })
  await each(all, async (posted) => {
    const { event } = await reader.ask('event.get', { event_id: posted.id })
    const expected = posted.original === undefined ? model.item(posted) : model.version(posted)
    // An original without versions is itself; with them it is shown as the newest.
    same(`event ${posted.id}`, [shape(event as EventJson)], [expected])
    checkPayload(model, posted.original === undefined ? model.history.newest(posted) : posted, event as EventJson)
  })
  await each(
    originals.filter(({ id }) => model.history.edits.has(id)),
    async (posted) => {
      const edits = all.filter(({ original }) => original === posted.id)
      const found = await reader.list<EventJson>('event.history', 'events', { event_id: edits.at(-1)!.id, limit: 2 })
      same(
        `history of ${posted.id}`,
        found.map(shape),
        [posted, ...edits].map((version) => model.version(version)),
      )
      found.forEach((event, n) => {
        checkPayload(model, [posted, ...edits][n]!, event)
      })
    },
  )
}

/** The signed bytes are those that were sent, or none. */
export function checkPayload(model: Model, posted: SentEvent, { signed_payload: payload, signature }: EventJson): void {
  const isGone = model.removalOf(posted) !== undefined
  if (isGone !== (payload === undefined) || isGone !== (signature === undefined))
    throw new Error(`${posted.id} is ${isGone ? 'gone' : 'there'}, its signed bytes are ${payload}`)
  if (payload === undefined) return
  if (createHash('sha256').update(payload).digest('hex') !== posted.sha256)
    throw new Error(`${posted.id}: these are not the bytes that were signed: ${payload}`)
}

/** What a tail begins with. */
async function checkTail(restartingBoard: RestartingBoard, model: Model, room: Room): Promise<void> {
  const [reader] = readersOf(restartingBoard, room)
  const token = room.isPrivate ? `&token=${(await reader!.ask('room.read_token', { room: room.name })).token}` : ''
  const newest = model.versions(room.name).slice(-200)
  const tail = new StreamReader(restartingBoard.board.address, `/tail/${room.name}?last=200${token}`)
  const text = await tail.until((all) => blockIds(all).length >= newest.length)
  tail.close()
  same(
    `tail of ${room.name}`,
    blockIds(text),
    newest.map(({ id }) => id),
  )
}
