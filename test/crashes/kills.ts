/** Kills of a board under load (SIGKILL at random moments, also right after a new segment and during a start). */
import { type CrashOptions, crashRounds } from './rounds.ts'

/** Runs the rounds; gives a summary, or throws a Finding. */
export function runKills(options: CrashOptions): Promise<string> {
  return crashRounds(options, { name: 'kills', strike: (board) => board.signal('SIGKILL'), mayRefuse: /(?!)/ })
}
