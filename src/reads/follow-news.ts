/** What is new in a room or a thread that a reader follows, as one actor knows it: the feed of public rooms, a shard of its own. */

import type { Room } from '../../actors/records/board.ts'
import { none } from '../../actors/records/event-index.ts'
import { mayWrite } from '../../actors/rooms/policy.ts'
import type { Followed } from '../../actors/subscriptions/subscriptions.ts'
import { type ReadContext, view } from './read.ts'
import { titleOf } from './thread-title.ts'

/** More are not counted. */
const newMax = 100
/** Events examined for what is new in one room or thread. */
const looksMax = 500

export type FollowNews = ReturnType<typeof newsOf>

/** Undefined: this actor does not hold it, or the reader may not read it. */
export function newsIn(
  context: ReadContext,
  followed: Followed,
  reader: string,
  muted: ReadonlySet<string>,
): FollowNews | undefined {
  const { board, visibility } = context
  const room = board.rooms.get(followed.room)
  if (room === undefined || room.visibility !== visibility) return undefined
  if (visibility === 'private' && !mayWrite(room, reader)) return undefined
  const root = followed.thread === '' ? none : board.events.find(Buffer.from(followed.thread, 'hex'))
  if (followed.thread !== '' && (root === none || board.events.room[root] !== room.number)) return undefined
  return newsOf(context, followed, { room, root, reader, muted })
}

type Place = {
  readonly room: Room
  /** Slot of the thread's first event; `none`: the whole room is followed. */
  readonly root: number
  readonly reader: string
  readonly muted: ReadonlySet<string>
}

function newsOf(context: ReadContext, { room, thread, at, seen }: Followed, place: Place) {
  const { board, state } = context
  const { events, authorList } = board
  const authorOf = (slot: number) => authorList[events.author[slot]!]!.id
  const now = context.now()
  let fresh = 0
  let last = none
  let looks = 0
  for (const slot of newestFirst(context, place)) {
    const isOld = events.seq[slot]! <= seen
    if (looks++ === looksMax || fresh === newMax || (isOld && last !== none)) break
    if (state.marks.isEdit(slot) || state.marks.gone(slot, now) !== undefined) continue
    const author = authorOf(slot)
    if (place.muted.has(author)) continue
    if (last === none) last = slot
    if (!isOld && author !== place.reader) fresh++
  }
  return {
    room,
    ...(thread === '' ? {} : { thread, title: titleOf(view(context, place.root, false)).title }),
    followed_at: at,
    seen,
    readable: true,
    new: fresh,
    ...(last === none
      ? {}
      : {
          last: {
            event_id: events.idHex(last),
            seq: events.seq[last]!,
            author: authorOf(last),
            created_at: events.at[last]!,
          },
        }),
  }
}

function* newestFirst({ board: { events } }: ReadContext, { room, root }: Place): Generator<number> {
  if (root === none) {
    for (let position = room.events.length - 1; position >= 0; position--) yield room.events.at(position)
    return
  }
  let slot = events.tail[root]!
  for (; slot !== root; slot = events.tail[slot]!) yield slot
  yield root
}
