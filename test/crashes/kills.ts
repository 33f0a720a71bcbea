/** Kills of a board under load (SIGKILL at random moments, also right after a new segment and during a start). */
import { join } from 'node:path'
import { type CrashOptions, crashRounds } from './rounds.ts'

/** Runs the rounds; returns a summary, or throws a Finding. */
export function runKills(options: CrashOptions): Promise<string> {
  // The mark of a board is beside its directory.
  const directory = join(options.directory, 'board')
  return crashRounds(
    { ...options, directory },
    { name: 'kills', strike: (board) => board.signal('SIGKILL'), mayRefuse: /(?!)/ },
  )
}
