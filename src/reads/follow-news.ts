/**
 * What is new in a room or thread that a reader follows, as known to one actor: the feed for public rooms, a shard for its private ones.
 */

import type { Room } from '../../actors/records/board.ts'
import { none } from '../../actors/records/event-index.ts'
import { mayWrite } from '../../actors/rooms/policy.ts'
import type { Followed } from '../../actors/subscriptions/subscriptions.ts'
import { listed, type ReadContext } from './read.ts'
import { titleOf } from './thread-title.ts'

/** The count stops here. */
const newMax = 100
/** Events examined to find what is new in one room or thread. */
const examinedMax = 500

export type FollowNews = ReturnType<typeof newsOf>

type Asking = {
  readonly reader: string
  readonly muted: ReadonlySet<string>
  /** If nothing is new, return nothing. */
  readonly onlyNew?: boolean
}

/** Undefined if this actor does not hold it, or if the reader may not read it. */
export function newsIn(context: ReadContext, followed: Followed, asking: Asking): FollowNews | undefined {
  const { board, visibility } = context
  const { reader } = asking
  const room = board.rooms.get(followed.room)
  if (room === undefined || room.visibility !== visibility) return undefined
  if (visibility === 'private' && !mayWrite(room, reader)) return undefined
  const root = followed.thread === '' ? none : board.events.find(Buffer.from(followed.thread, 'hex'))
  if (followed.thread !== '' && (root === none || board.events.room(root) !== room.number)) return undefined
  const place = { ...asking, room, root }
  const counted = countOf(context, followed, place)
  return asking.onlyNew === true && counted.fresh === 0 ? undefined : newsOf(context, followed, { place, ...counted })
}

type Place = Asking & {
  readonly room: Room
  /** Slot of the thread's first event; `none` if the whole room is followed. */
  readonly root: number
}
/** `last`: slot of the newest event that is shown, or `none`. */
type Counted = { readonly fresh: number; readonly last: number }

function countOf(context: ReadContext, { seen }: Followed, place: Place): Counted {
  const { board, state } = context
  const { events, authors } = board
  const now = context.now()
  let fresh = 0
  let last = none
  let examined = 0
  for (const slot of newestFirst(context, place)) {
    const isOld = events.seq(slot) <= seen
    if (examined++ === examinedMax || fresh === newMax || (isOld && last !== none)) break
    if (state.marks.isEdit(slot) || state.marks.gone(slot, now) !== undefined) continue
    // A followed room no longer lists threads that were moved out of it.
    if (place.root === none && state.threadFlags.moveOf(events.rootOf(slot)) !== undefined) continue
    const author = authors.idOf(events.author(slot))
    if (place.muted.has(author)) continue
    if (last === none) last = slot
    if (!isOld && author !== place.reader) fresh++
  }
  return { fresh, last }
}

function newsOf(
  context: ReadContext,
  { room, thread, at, seen }: Followed,
  { place, fresh, last }: Counted & { readonly place: Place },
) {
  const { events, authors } = context.board
  return {
    room,
    ...(thread === '' ? {} : { thread, title: titleOf(listed(context, place.root)).title }),
    followed_at: at,
    seen,
    readable: true,
    new: fresh,
    ...(last === none
      ? {}
      : {
          last: {
            event_id: events.idHex(last),
            seq: events.seq(last),
            author: authors.idOf(events.author(last)),
            created_at: events.at(last),
          },
        }),
  }
}

function* newestFirst({ board: { events } }: ReadContext, { room, root }: Place): Generator<number> {
  if (root === none) {
    for (let position = room.events.length - 1; position >= 0; position--) yield room.events.at(position)
    return
  }
  let slot = events.tail(root)
  for (; slot !== root; slot = events.tail(slot)) yield slot
  yield root
}
