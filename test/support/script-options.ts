/** The command line of the scripts of the tests. */
import { type ParseArgsConfig, parseArgs } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>

/** Ends the process with exit code 2, after these words. */
export function stopWith(problem: string): never {
  console.error(problem)
  process.exit(2)
}

/** What the command line gives. With an option that is none of these, it ends with the usage. `usage`: what comes after `npm run`. */
export function readOptions<const Given extends Options>(options: Given, usage: string, allowPositionals = false) {
  try {
    return parseArgs({ options, allowPositionals })
  } catch (error) {
    return stopWith(`${error instanceof Error ? error.message : error}\nusage: npm run ${usage}`)
  }
}

/** The whole number that an option gives, below ten thousand million. */
export function wholeNumber(option: string, given: string): number {
  return /^\d{1,10}$/.test(given) ? Number(given) : stopWith(`--${option} is a whole number, not ${given}`)
}
