/**
 * Tries changed bytes on everything that reads bytes: `npm run fuzz -- [--rounds N] [--seed S] [--target NAME]`.
 *
 * A million inputs for each target unless it says otherwise. Exit code 1 when something was found, with the seed and the round.
 */
import { parseArgs } from 'node:util'
import { fuzz } from './fuzz.ts'

const text = { type: 'string' } as const
const { values } = parseArgs({ options: { rounds: text, seed: text, target: text } })
const count = (flag: 'rounds' | 'seed', otherwise: number): number => {
  const given = values[flag]
  if (given === undefined) return otherwise
  if (/^\d{1,9}$/.test(given)) return Number(given)
  console.error(`--${flag} is a whole number, not ${given}`)
  process.exit(2)
}
const seed = count('seed', Math.floor(Math.random() * 2 ** 31))
console.log(`fuzz, seed ${seed}`)
try {
  for await (const line of fuzz({ rounds: count('rounds', 1_000_000), seed, target: values.target })) console.log(line)
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}
