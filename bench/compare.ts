/**
 * Cases compared with their physical limit, in alternation: limit, cases, limit, cases. Other work on the machine then slows both, and the
 * ratio stays.
 */
import { Bench as TinyBench } from 'tinybench'
import { median } from './raw-limits.ts'
import type { Row } from './report.ts'

export type Case = {
  readonly name: string
  /** Operations that one call of `run` does: one call should last far longer than reading the clock. */
  readonly operations: number
  readonly run: () => unknown
}

export type Options = {
  readonly isQuick: boolean
  /** What is counted, for the column: `hashes` gives `hashes/s`. */
  readonly unit: string
  /** Operations of the limit that one operation of a case needs at least. */
  readonly limitsPerOperation?: number
}

const thorough = { rounds: 3, ms: 120 }
const quick = { rounds: 2, ms: 40 }

/** One row per case, the limit first. Rates are medians, so a pause in one call does not count. */
export async function compare(limit: Case, cases: readonly Case[], options: Options): Promise<Row[]> {
  const { isQuick, unit, limitsPerOperation = 1 } = options
  const { rounds, ms } = isQuick ? quick : thorough
  const rates = new Map([limit, ...cases].map((each): [Case, number[]] => [each, []]))
  const ratios = new Map(cases.map((each): [Case, number[]] => [each, []]))
  for (let round = 0; round < rounds; round++) {
    const of = await measure([limit, ...cases], ms)
    for (const [each, rate] of of) {
      rates.get(each)!.push(rate)
      ratios.get(each)?.push((rate * limitsPerOperation) / of.get(limit)!)
    }
  }
  const row = (each: Case): Row => {
    const perSecond = median(rates.get(each)!)
    return { case: each.name, [`${unit}/s`]: perSecond, 'us each': 1e6 / perSecond }
  }
  const first = { ...row(limit), case: `limit: ${limit.name}`, 'of limit': 1 }
  return [first, ...cases.map((each) => ({ ...row(each), 'of limit': median(ratios.get(each)!) }))]
}

async function measure(cases: readonly Case[], ms: number): Promise<Map<Case, number>> {
  const bench = new TinyBench({ time: ms, warmupTime: ms / 4, iterations: 3, warmupIterations: 1, throws: true })
  for (const [n, { run }] of cases.entries()) bench.add(String(n), run)
  await bench.run()
  return new Map(
    cases.map((each, n) => {
      const result = bench.getTask(String(n))?.result
      if (result === undefined || !('latency' in result)) throw new Error(`${each.name} was not measured`)
      return [each, (each.operations / result.latency.p50) * 1000]
    }),
  )
}

/** A case whose call does the same thing `operations` times. */
export function looped(name: string, operations: number, once: (n: number) => unknown): Case {
  return {
    name,
    operations,
    run: () => {
      for (let n = 0; n < operations; n++) once(n)
    },
  }
}
