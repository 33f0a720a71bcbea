/** How scripts under `test/` read their command line. */
import { type ParseArgsConfig, parseArgs } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>

/** Prints the problem and exits with code 2. */
export function exitWith(problem: string): never {
  console.error(problem)
  process.exit(2)
}

/** The given options. An unknown one prints the usage and exits with code 2. `usage`: what follows `npm run`. */
export function readOptions<const Given extends Options>(options: Given, usage: string, allowPositionals = false) {
  try {
    return parseArgs({ options, allowPositionals })
  } catch (error) {
    return exitWith(`${error instanceof Error ? error.message : error}\nusage: npm run ${usage}`)
  }
}

/** The value of an option that takes a whole number of at most ten digits, as seeds have. */
export function wholeNumber(option: string, given: string): number {
  return /^\d{1,10}$/.test(given) ? Number(given) : exitWith(`--${option} is a whole number, not ${given}`)
}
