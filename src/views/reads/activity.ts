/**
 * How busy the board, or one public room, was: counts of events by hour or day. The house's own read, for the pictures on pages. Slots are in order of acceptance, so each border of the plot is one binary search and nothing
 * is counted one by one; where a clock was set back, an event may stand in the bar beside its own.
 */
import { ok, type ReadAnswer, type ReadContext, type ReadRequest, type Reads, withRoom } from './read.ts'

export type Activity = {
  /** Unix seconds at which the first bar begins, and what each takes. */
  readonly from: number
  readonly step: number
  readonly counts: readonly number[]
}

export const activityReads: Reads = {
  'board.activity': (context, request) => {
    if (request.args.room === undefined) {
      const { events } = context.board
      return activity(context, request, { length: events.count, at: (position) => position })
    }
    return withRoom(context, request, ({ events }) => activity(context, request, events))
  },
}

type Slots = { readonly length: number; at(position: number): number }

function activity({ board, now }: ReadContext, { args }: ReadRequest, slots: Slots): ReadAnswer {
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
  const found: Activity = { from, step, counts }
  const room = args.room === undefined ? {} : { room: String(args.room) }
  return ok(found, { ...room, until: from + bars * step })
}
