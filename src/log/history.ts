/** How the logs of this board grew: what log.history and /api/log/history answer. Pure reading of what is in memory. */

import type { BookedLog, LogBook } from '../../actors/log/book.ts'
import { noLeaf } from '../../actors/log/public-records.ts'
import { historyLogsMax, historyPointsMax } from '../../actors/log/results.ts'
import type { EventIndex } from '../../actors/records/event-index.ts'
import { ok, type ReadAnswer } from '../reads/read.ts'

type HistoryContext = {
  readonly state: { readonly book: LogBook; readonly board: { readonly events: EventIndex } }
  readonly vkeyOf: (log: BookedLog) => string
}

export function historyAnswer(context: HistoryContext): ReadAnswer {
  const { book, board } = context.state
  const logs = book.logs.slice(-historyLogsMax).map((log) => ({
    log: log.name,
    origin: log.origin,
    vkey: context.vkeyOf(log),
    state: log === book.newest ? 'open' : 'closed',
    tree_size: log.head.size,
    root_hash: Buffer.from(log.head.checkpoint.split('\n')[2]!, 'base64').toString('hex'),
    checkpoint: log.head.checkpoint,
    tiles: `/log/${log.name}/`,
  }))
  return ok({ logs, points: pointsOf(book, board.events) })
}

type Point = { readonly log: string; readonly at: number; readonly tree_size: number }

/** Events evenly spread over all there are: each says when the log had its leaf. */
function pointsOf(book: LogBook, { count, at, leaf }: EventIndex): Point[] {
  const points: Point[] = []
  const wanted = Math.min(historyPointsMax, count)
  for (let n = 0; n < wanted; n++) {
    const slot = wanted === 1 ? 0 : Math.round((n * (count - 1)) / (wanted - 1))
    if (leaf[slot] === noLeaf) continue
    const log = book.holding(leaf[slot]!)
    const point = { log: log.name, at: at[slot]!, tree_size: leaf[slot]! - log.base + 1 }
    const before = points.at(-1)
    // Shards keep their own time, to the second: what is shown never goes back.
    if (before !== undefined && before.log === point.log && before.at >= point.at) points.pop()
    points.push(before === undefined || before.at <= point.at ? point : { ...point, at: before.at })
  }
  return points
}
