/**
 * A read at half load, which is half the highest rate of that read in a closed loop. Static bytes of the same size at the same rate, by the
 * same client just after, show what the machine adds.
 */
import type { BoardRun, Target } from './board.ts'
import type { Row } from './report.ts'

export const readsInFlight = 16

export type Reading = {
  readonly board: BoardRun
  readonly ready: Target
  readonly name: string
  /** Requested in turn; each is requested once if there are enough. */
  readonly targets: readonly string[]
  readonly count: number
  readonly rounds: number
}

/** The best round: other work on the machine explains the rest. */
export async function halfLoad({ board, ready, name, targets, count, rounds }: Reading): Promise<Row> {
  let from = 0
  const next = (): readonly string[] => {
    if (targets.length === 1) return targets
    from += count
    return Array.from({ length: count }, (_, n) => targets[(from + n) % targets.length]!)
  }
  await board.get(readsInFlight, next(), count)
  const found: Row[] = []
  for (let round = 0; round < rounds; round++) {
    const full = await board.get(readsInFlight, next(), count)
    const rate = full.perSecond / 2
    const half = await board.getPaced(rate, readsInFlight, next(), count)
    const bytes = Math.round(half.bodyBytes / count)
    // Within five seconds: the static server closes connections that are idle for ten.
    const some = Math.ceil(Math.min(count, rate * 5))
    const limit = await board.getPaced(rate, readsInFlight, [`/${bytes}`], some, ready)
    found.push({
      read: name,
      'reads/s, full': full.perSecond,
      'reads/s, half': rate,
      'bytes each': bytes,
      'p50 ms at half': half.p50Ms,
      'p99 ms at half': half.p99Ms,
      'p99 ms of ready bytes': limit.p99Ms,
      'server us each': (half.serverUserUs + half.serverSystemUs) / count,
    })
  }
  return found.reduce((best, each) => (Number(each['p99 ms at half']) < Number(best['p99 ms at half']) ? each : best))
}

/** Spreads neighbors in the list far apart in the result. */
export function spread<Item>(items: readonly Item[]): readonly Item[] {
  // A step that shares no factor with the length.
  return items.map((_, n) => items[(n * 7_919) % items.length]!)
}
