/**
 * Tries mutated bytes on every parser: `npm run fuzz`.
 *
 * A million inputs for each target unless it says otherwise. Exit code 1 if something was found, with the seed and the round.
 */
import { readOptions, wholeNumber } from '../support/script-options.ts'
import { fuzz } from './fuzz.ts'

const text = { type: 'string' } as const
const usage = 'fuzz -- [--rounds N] [--seed S] [--target NAME]'
const { values } = readOptions({ rounds: text, seed: text, target: text }, usage)
const count = (flag: 'rounds' | 'seed', otherwise: number): number => {
  const given = values[flag]
  return given === undefined ? otherwise : wholeNumber(flag, given)
}
const seed = count('seed', Math.floor(Math.random() * 2 ** 31))
console.log(`fuzz, seed ${seed}`)
try {
  for await (const line of fuzz({ rounds: count('rounds', 1_000_000), seed, target: values.target })) console.log(line)
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}
