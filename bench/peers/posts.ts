/** Posts per second and the cost of one, for a board and its peers: every load, all in turn. */

import type { Measured } from '../client-process.ts'
import { median, rawVerify } from '../raw-limits.ts'
import type { Row } from '../report.ts'
import type { Contestant } from './servers.ts'

const loads = [
  [1, 1_000],
  [16, 4_000],
  [64, 8_000],
  [256, 8_000],
] as const
export const postLoads = loads.map(([inFlight]) => String(inFlight))
const step = 5_000

export type PostRates = { readonly rows: Row[]; readonly rates: ReadonlyMap<string, readonly number[]> }

export async function measurePosts(all: readonly Contestant[], rounds: number, warm: number): Promise<PostRates> {
  for (const each of all) {
    for (let left = Math.min(warm, each.warmup); left > 0; left -= step) await each.post(64, Math.min(left, step))
  }
  const found = new Map(all.map((each): [Contestant, Measured[][]] => [each, loads.map(() => [])]))
  const verify: number[] = []
  for (let round = 0; round < rounds; round++) {
    for (const [at, [inFlight, count]] of loads.entries()) {
      verify.push(rawVerify().perSecond)
      for (const each of round % 2 === 0 ? all : all.toReversed())
        found.get(each)![at]!.push(await each.post(inFlight, Math.ceil(count / each.slower)))
    }
  }
  const of = (each: Contestant, at: number, pick: (measured: Measured) => number) =>
    median(found.get(each)![at]!.map(pick))
  const first = all[0]!
  const rows = loads.flatMap(([inFlight], at) =>
    all.map((each): Row => {
      const ratio = found.get(first)![at]!.map((ours, n) => ours.perSecond / found.get(each)![at]![n]!.perSecond)
      return {
        'in flight': String(inFlight),
        server: each.name,
        'posts/s': of(each, at, ({ perSecond }) => perSecond),
        'server us a post': of(
          each,
          at,
          ({ serverUserUs, serverSystemUs, requests }) => (serverUserUs + serverSystemUs) / requests,
        ),
        'p50 ms': of(each, at, ({ p50Ms }) => p50Ms),
        'p99 ms': of(each, at, ({ p99Ms }) => p99Ms),
        'Broadside is times': median(ratio),
        'of raw verify': of(each, at, ({ perSecond }) => perSecond) / median(verify),
      }
    }),
  )
  const rates = all.map((each): [string, number[]] => [
    each.name,
    loads.map((_, at) => of(each, at, ({ perSecond }) => perSecond)),
  ])
  return { rows, rates: new Map(rates) }
}
