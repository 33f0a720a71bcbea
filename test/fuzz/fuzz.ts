/** Runs targets: each with its own sequence of random numbers from the seed, so that one of them can be repeated alone. */
import { randomFrom } from '../support/load.ts'
import { type Target, targets } from './targets.ts'

type FuzzOptions = {
  /** Inputs for each target. */
  readonly rounds: number
  readonly seed: number
  /** Only the target of this name. */
  readonly target?: string | undefined
}

/** Yields a line for each target that held. Throws an Error with target, round, seed and input if one did not. */
export async function* fuzz({ rounds, seed, target: only }: FuzzOptions): AsyncGenerator<string> {
  let ran = 0
  for (const make of targets) {
    const target = await make()
    try {
      if (only !== undefined && target.name !== only) continue
      ran++
      await runTarget(target, rounds, seed)
      yield `${target.name}: ${rounds} inputs, nothing found`
    } finally {
      await target.close?.()
    }
  }
  if (ran === 0) throw new Error(`there is no target ${only}`)
}

async function runTarget(target: Target, rounds: number, seed: number): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < rounds) {
      const round = next++
      try {
        await target.attempt(randomFrom(seed + Math.imul(round, 0x9e3779b9)))
      } catch (cause) {
        const what = cause instanceof Error ? cause.message : String(cause)
        throw new Error(`${target.name}, round ${round}, seed ${seed}: ${what}`, { cause })
      }
    }
  }
  await Promise.all(Array.from({ length: target.concurrency ?? 1 }, lane))
}
