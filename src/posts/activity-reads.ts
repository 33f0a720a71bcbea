/**
 * How busy the board, or one public room, was: counts of posts by hour or day, edits and what is not shown left out, as every
 * count of posts does. The board's own read, for the pictures on pages. Slots are in order of acceptance, so each border of the
 * plot is one binary search; only what is left out is examined one by one. Where a clock was set back, a post may stand in the
 * bar beside its own.
 */

import type { State } from '../../actors/state.ts'
import { type KnownAnswer, known, type ReadContext, type ReadRequest, type Reads, withRoom } from '../reads/read.ts'

export const activityReads = {
  'board.activity': (context, request) => {
    if (request.args.room === undefined) {
      const { events } = context.board
      return activity(context, request, { length: events.count, at: (position) => position })
    }
    return withRoom(context, request, (room) => activity(context, request, room.events, room.number))
  },
} satisfies Reads

type Slots = { readonly length: number; at(position: number): number }

function activity(
  { state, board, now }: ReadContext,
  { args }: ReadRequest,
  slots: Slots,
  room?: number,
): KnownAnswer<{ readonly from: number; readonly step: number; readonly counts: readonly number[] }> {
  const { events } = board
  const step = Number(args.step)
  const bars = Number(args.bars)
  const from = (Math.floor(now() / step) + 1 - bars) * step
  const firstFrom = (seconds: number): number => {
    let [low, high] = [0, slots.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (events.at[slots.at(middle)]! < seconds) low = middle + 1
      else high = middle
    }
    return low
  }
  const borders = Array.from({ length: bars + 1 }, (_, n) => firstFrom(from + n * step))
  const counts = borders.slice(1).map((border, n) => border - borders[n]!)
  for (const slot of leftOut(state, now(), room)) {
    const bar = Math.floor((events.at[slot]! - from) / step)
    if (counts[bar] !== undefined) counts[bar] = Math.max(0, counts[bar] - 1)
  }
  const found = { from, step, counts }
  return known(found, { ...(room === undefined ? {} : { room: String(args.room) }), until: from + bars * step })
}

/** What counts as no post: edits, what was hidden or redacted, what has expired. */
function leftOut({ board: { events }, marks }: State, now: number, room: number | undefined): ReadonlySet<number> {
  const found = new Set<number>()
  const add = (slot: number): void => {
    if (room === undefined || events.room[slot] === room) found.add(slot)
  }
  for (const slot of marks.marked()) add(slot)
  for (const slot of marks.takenBack(now)) add(slot)
  return found
}
