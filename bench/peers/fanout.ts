/** Deliveries a second to many readers of one room, and the memory per reader: the readers of the tail bench on each server. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Target } from '../board.ts'
import { median } from '../raw-limits.ts'
import type { Row } from '../report.ts'
import { followOn } from '../tail.bench.ts'
import type { TailFound } from '../tail-readers.ts'

const deliveriesPerRound = 100_000

export type Streaming = { readonly name: string; readonly target: Target; readonly serviceId: string }

/** Each number of readers uses fresh servers: what closed connections leave behind would serve the next. */
export async function measureFanout(all: readonly Streaming[], readers: number, rounds: number): Promise<Row[]> {
  const posts = Math.min(200, Math.max(12, Math.round(deliveriesPerRound / readers)))
  const found = new Map(all.map((each): [Streaming, TailFound[][]] => [each, []]))
  for (let round = 0; round < rounds; round++) {
    for (const each of round % 2 === 0 ? all : all.toReversed()) {
      const { port, pid } = each.target
      found.get(each)!.push(await followOn({ port, pid, serviceId: each.serviceId, readers, posts }))
      // Otherwise thousands of closing sockets would be charged to the next one.
      await sleep(500)
    }
  }
  return all.flatMap((each) => rowsOf(each.name, readers, found.get(each)!))
}

function rowsOf(server: string, readers: number, rounds: readonly (readonly TailFound[])[]): Row[] {
  // Only the first round shows the memory per reader: later ones reuse what the closed connections left.
  const { kibPerReader } = rounds[0]![0]!
  return rounds[0]!.map(({ pace }, at) => {
    const of = (pick: (found: TailFound) => number) => median(rounds.map((round) => pick(round[at]!)))
    return {
      readers,
      server,
      posts: pace,
      'deliveries/s': of(({ deliveriesPerSecond }) => deliveriesPerSecond),
      'server us each': of(({ serverUs }) => serverUs),
      'readers us each': of(({ readersUs }) => readersUs),
      'bytes each': of(({ bytes }) => bytes),
      'p50 to the last reader, ms': pace === 'one by one' ? of(({ p50Ms }) => p50Ms) : '',
      'KiB a reader': kibPerReader,
    }
  })
}
