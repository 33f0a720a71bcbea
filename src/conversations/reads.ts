/**
 * Reads of the reader's own lists: conversations and the inbox. The feed answers for everything public, each shard for its private rooms.
 * Each returns its share of the list, and the main thread merges them (src/reads/gather.ts).
 */

import type { Conversation } from '../../actors/conversations/conversations.ts'
import type { Room } from '../../actors/records/board.ts'
import { type EventIndex, none } from '../../actors/records/event-index.ts'
import type { Slots } from '../../actors/records/slot-lists.ts'
import { mayWrite } from '../../actors/rooms/policy.ts'
import { requestMessagesMax } from '../../actors/rooms/room.ts'
import type { OwnSubscription } from '../../actors/subscriptions/subscriptions.ts'
import { addressee, names } from '../reads/event-view.ts'
import { type FollowNews, newsIn } from '../reads/follow-news.ts'
import { type Found, type Item, share } from '../reads/gather.ts'
import {
  AnswerSize,
  type KnownAnswer,
  known,
  listed,
  ok,
  placeInList,
  type ReadContext,
  type ReadRequest,
  type Reads,
  type Share,
  withRoom,
} from '../reads/read.ts'
import { answerOf, blockedBy, hasLeft, type Standing } from './blocks.ts'

export const directReads = {
  'conversations.list': conversations,
  'inbox.get': inbox,
  /** Queried before an inbox is. */
  'inbox.blocked': ({ state }, { reader }) => known({ blocked: blockedBy(state, reader) }),
  /** The answer to a write on a conversation. */
  'conversation.show': (context, request) =>
    withRoom(context, request, (room) => {
      const conversation = context.state.direct.conversation(room.name)!
      return ok({ conversation: conversationView(conversation, room, request.reader) })
    }),
} satisfies Reads

/** Times of shards may differ by the length of a turn and by a jump of the clock. An older slot cannot be newer by more than this. */
const disorderSeconds = 86_400

/** The name of a list, for its cursors. */
function listOf({ op, args, reader }: ReadRequest): string {
  return `${op}:${reader}:${args.kind ?? ''}`
}

function conversations(context: ReadContext, request: ReadRequest): KnownAnswer<Share> {
  const { reader, args } = request
  const { state, board } = context
  return share(context, request, listOf(request), (below, count) => {
    if (context.visibility === 'public') return { items: [] }
    const items = state.direct
      .conversationsOf(reader)
      .filter((each) => isWanted(args.kind, answerOf(each, reader)))
      .map((each) => ({ each, room: board.rooms.get(each.room)! }))
      .filter(({ room }) => mayWrite(room, reader))
      .map(({ each, room }) => ({ each, room, place: placeInList(room.updatedAt, room.version, room.name) }))
      .filter(({ place }) => place < below)
      .sort((a, b) => (a.place < b.place ? 1 : -1))
      .slice(0, count)
      .map(({ each, room, place }) => ({ place, item: conversationView(each, room, reader) }))
    return { items }
  })
}

/** Without a kind: all conversations that the reader has not left. */
function isWanted(kind: unknown, answer: Standing): boolean {
  const hasLeft = answer === 'decline' || answer === 'block'
  if (kind === 'left') return hasLeft
  if (kind === 'requests') return answer === 'pending'
  if (kind === 'active') return answer === 'opened' || answer === 'accept'
  return kind === 'all' || !hasLeft
}

function conversationView(conversation: Conversation, room: Room, reader: string) {
  const { kind, opener, accepted, sent, openedAt } = conversation
  const members = [...(room.owner === undefined ? [] : [room.owner]), ...room.members]
  return {
    room: room.name,
    kind,
    members: [...new Set(members)],
    opener,
    answer: answerOf(conversation, reader),
    accepted,
    ...(accepted || reader !== opener ? {} : { messages_left: Math.max(0, requestMessagesMax - sent) }),
    count: room.events.length,
    created_at: openedAt,
    updated_at: room.updatedAt,
  }
}

/** Follows examined for one inbox, newest first. */
const followsMax = 200

type InboxShare = Share & {
  /** Unix seconds: the newest item that the reader has seen. */
  readonly seen: number
  /** What is new in the things that the reader follows; only on the first page. */
  readonly follows?: readonly FollowNews[]
}

function inbox(context: ReadContext, request: ReadRequest): KnownAnswer<InboxShare> {
  const items = inboxItems(context, request)
  if (!items.ok) return items
  const { reader, args, found } = request
  const { follows, muted, inboxSeen } = (found ?? noSubscription) as OwnSubscription
  const share = { ...items.value, seen: inboxSeen }
  if (args.cursor !== undefined || args.kind !== undefined) return known(share, { until: items.until })
  const asking = { reader, muted: new Set(muted), onlyNew: true }
  const news = follows.slice(0, followsMax).flatMap((each) => newsIn(context, each, asking) ?? [])
  return known({ ...share, follows: news }, { until: items.until })
}

const noSubscription: OwnSubscription = { follows: [], muted: [], inboxSeen: 0 }

function inboxItems(context: ReadContext, request: ReadRequest): KnownAnswer<Share> {
  const { reader, args } = request
  const own = context.visibility === 'private' ? context.state.direct.conversationsOf(reader) : []
  const isWantedType = (type: string) => args.kind === undefined || args.kind === type
  const blocked = new Set(String(args.blocked ?? '').split(','))
  const find = (below: string, count: number): Found => {
    const requests = isWantedType('request') ? own.flatMap((each) => requestItem(context, each, reader)) : []
    const events = args.kind === 'request' ? { items: [] } : eventItems(context, request, blocked, below, count)
    const items = [...requests.filter(({ place, from }) => place < below && !blocked.has(from)), ...events.items]
      .sort((a, b) => (a.place < b.place ? 1 : -1))
      .slice(0, count)
    return { ...events, items }
  }
  return share(context, request, listOf(request), find)
}

function requestItem({ board }: ReadContext, each: Conversation, reader: string): (Item & { from: string })[] {
  if (answerOf(each, reader) !== 'pending') return []
  const room = board.rooms.get(each.room)!
  const conversation = conversationView(each, room, reader)
  const item = { type: 'request', at: each.openedAt, from: each.opener, conversation }
  return [{ place: placeInList(each.openedAt, each.order, each.room), item, from: each.opener }]
}

/** The newest events below a place that address the reader. */
function eventItems(
  context: ReadContext,
  request: ReadRequest,
  blocked: ReadonlySet<string>,
  below: string,
  count: number,
): Found {
  const { state } = context
  const { reader, handle } = request
  const lists = [state.direct.inbox(reader)]
  if (context.visibility === 'private' && handle !== undefined) lists.push(state.direct.privateMentions(handle))
  const found: Item[] = []
  const size = new AnswerSize()
  let examined = 0
  let from = below
  const walk: Walk = { left: slotsMax, reached: '' }
  while (found.length < count && examined < examinedMax && walk.reached === '') {
    const batch = new Map<string, number>()
    for (const list of lists) if (list !== undefined) collect(context, reader, { list, below: from, batch, walk })
    const places = [...batch.keys()]
      .filter((place) => place >= walk.reached)
      .sort()
      .reverse()
      .slice(0, batchMax)
    if (places.length === 0) return walk.reached === '' ? { items: found } : { items: found, reached: walk.reached }
    for (const place of places) {
      const item = found.length < count ? eventItem(context, request, blocked, batch.get(place)!) : undefined
      if (item === undefined) continue
      found.push({ place, item })
      size.add(item)
      if (size.isFull) return { items: found, reached: place }
    }
    examined += places.length
    // Nothing more is above the place where the walk ended, once all that it found has been handled.
    from = walk.reached !== '' && places.length < batchMax ? walk.reached : places.at(-1)!
  }
  return found.length < count ? { items: found, reached: from } : { items: found }
}

/** Events read per batch, and in total, to find those that are wanted and not hidden. */
const batchMax = 256
const examinedMax = 8_192

/** Slots that one answer walks over, whether or not the reader may read them. */
const slotsMax = 20_000

/** `reached`: the walk reached its limit, and has nothing below this place; '' if it did not. */
type Walk = { left: number; reached: string }

type Collecting = {
  readonly list: Slots
  readonly below: string
  readonly batch: Map<string, number>
  readonly walk: Walk
}

/** The newest slots of a list below a place; lists are ordered, except for clock differences. */
function collect(
  { board, visibility, state }: ReadContext,
  reader: string,
  { list, below, batch, walk }: Collecting,
): void {
  const { events, roomList } = board
  const newest = newestBelow(below)
  let oldest = Number.POSITIVE_INFINITY
  let taken = 0
  for (let position = positionAfter(events, list, newest) - 1; position >= 0; position--) {
    const slot = list.at(position)
    const at = events.at(slot)
    if (taken >= batchMax && at < oldest - disorderSeconds) return
    if (at > newest) continue
    // In the order of everything public, or of this shard's journal.
    const order = visibility === 'public' ? events.change(slot) : events.place(slot)
    const place = placeInList(at, order, events.idHex(slot))
    if (place >= below) continue
    walk.left--
    if (walk.left <= 0 && place > walk.reached) walk.reached = place
    const room = roomList[events.room(slot)]!
    const isRead = room.visibility === visibility && mayWrite(room, reader)
    if (isRead && !(visibility === 'private' && hasLeft(state, room.name, reader))) {
      batch.set(place, slot)
      if (++taken === batchMax) oldest = at
    }
    if (walk.left <= 0) return
  }
}

/** Unix seconds; nothing below this place is later. */
function newestBelow(place: string): number {
  return place === '~' ? Number.POSITIVE_INFINITY : Number(place.slice(0, place.indexOf(':')))
}

/** A position from which on everything is later than this time. */
function positionAfter(events: EventIndex, list: Slots, time: number): number {
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (events.at(list.at(middle)) <= time + disorderSeconds) low = middle + 1
    else high = middle
  }
  return low
}

function eventItem(context: ReadContext, request: ReadRequest, blocked: ReadonlySet<string>, slot: number) {
  const { board, state } = context
  const { reader, args, handle = '' } = request
  const author = board.authors.idOf(board.events.author(slot))
  if (author === reader || blocked.has(author)) return undefined
  const event = listed(context, state.marks.original(slot))
  if (event.hidden || event.type === 'tombstone') return undefined
  const target = event.reply_to === undefined ? none : board.events.find(Buffer.from(event.reply_to, 'hex'))
  const isReply = target !== none && board.authors.idOf(board.events.author(target)) === reader
  const type = isReply ? 'reply' : addressee(event) === reader ? 'addressed' : 'mention'
  if (args.kind !== undefined && args.kind !== type) return undefined
  // An edited event is here because of its newest version.
  if (type === 'mention' && event.version_id !== undefined && !names(event, reader, handle)) return undefined
  return { type, at: board.events.at(slot), from: author, event }
}
