/** The command line as it is installed: built code, which the global setup of the tests has brought up to date. */
import { resolve } from 'node:path'

export const program = resolve(import.meta.dirname, '../../dist/src/cli/main.js')
