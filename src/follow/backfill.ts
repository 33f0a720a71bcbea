/**
 * The first two phases of following a room: backfill from the index, then the cutover to live updates. Pages are bounded in events and
 * bytes, so that a follower who was away for long can be served without a burst of memory.
 */

import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { none } from '../../actors/records/event-index.ts'
import { mayWrite } from '../../actors/rooms/policy.ts'
import type { ReadContext } from '../reads/read.ts'
import { versionOf } from './live.ts'
import { type TailFormat, tailText } from './stream.ts'

export type BackfillRequest = {
  readonly room: string
  readonly format: TailFormat
  /** Number of newest events to begin with, if nothing is resumed. */
  readonly last: number
  /** Event id after which to continue; '' to begin with the newest. */
  readonly since: string
  /** Continue after this number in the room (from the previous page); 0 on the first page. */
  readonly after: number
  /** Identity id of the member for whom a private room is opened; '' for a public room. */
  readonly reader: string
}

export type Backfill =
  | {
      readonly ok: true
      readonly bytes: Uint8Array
      /** Number in the room of the newest event shown or skipped. */
      readonly after: number
      readonly more: boolean
      /** Events up to this change are in `bytes` when `more` is false. */
      readonly change: number
    }
  | { readonly ok: false; readonly refusal: Refusal }

const pageEventsMax = 200
const pageBytesMax = 128 * 1024

/** The single answer for a room whose tail the reader may not read, whether it exists or not. */
function noSuchRoom(room: string): Refusal {
  return refusal('not_found', `there is no public room ${room}`, 'room')
}

export function backfill(context: ReadContext, request: BackfillRequest): Backfill {
  const { board } = context
  const room = board.rooms.get(request.room)
  if (room?.visibility !== context.visibility || !(room.visibility === 'public' || mayWrite(room, request.reader)))
    return { ok: false, refusal: noSuchRoom(request.room) }
  let after = request.after
  if (after === 0 && request.since !== '') {
    const slot = board.events.find(Buffer.from(request.since, 'hex'))
    if (slot === none || board.events.room(slot) !== room.number) {
      return {
        ok: false,
        refusal: refusal('not_found', `there is no event ${request.since} in room ${request.room}`, 'since'),
      }
    }
    after = board.events.seq(slot)
  } else if (after === 0) {
    after = Math.max(0, room.events.length - request.last)
  }
  const texts: string[] = []
  let bytes = 0
  while (after < room.events.length && texts.length < pageEventsMax && bytes < pageBytesMax) {
    const slot = room.events.at(after++)
    const text = tailText(versionOf(context, slot), request.format)
    texts.push(text)
    bytes += text.length
  }
  return { ok: true, bytes: Buffer.from(texts.join('')), after, more: after < room.events.length, change: board.change }
}
