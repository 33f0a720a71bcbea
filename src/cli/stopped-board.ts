/** Shared by the commands that change the directory of a stopped board. */
import { machine } from '../platform.ts'
import { commandError, keepAlive, type Terminal } from './command-line.ts'
import { inertLine } from './terminal.ts'

/** The result of `work`, done while the directory is locked. Throws the errors of `commandError`. */
export async function withStoppedBoard<Result>(dataDirectory: string, work: () => Promise<Result>): Promise<Result> {
  const [{ readFacts }, { lockDirectory }] = await Promise.all([
    import('../board-directory.ts'),
    import('../../storage/lock.ts'),
  ])
  try {
    // Check first: a directory that is not a board must not be locked.
    readFacts(machine.disk, dataDirectory)
    const lock = await lockDirectory(dataDirectory)
    try {
      return await keepAlive(work())
    } finally {
      lock.release()
    }
  } catch (error) {
    throw commandError(error)
  }
}

/** Prints what a board would log as warnings. */
export function warningsOn(terminal: Terminal) {
  return (level: string, event: string, facts: Readonly<Record<string, unknown>>): void => {
    if (level === 'warn') terminal.err(`${event} ${inertLine(JSON.stringify(facts))}\n`)
  }
}
