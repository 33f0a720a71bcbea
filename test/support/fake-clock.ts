/** A board's wall clock under the control of a test, through libfaketime. */
import { main } from '../../src/cli/main.ts'
import { systemClock } from '../../src/clock.ts'
import { findLibrary, missingLibrary } from '../peers/peers.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { now } from './client.ts'

const library = 'faketime/libfaketimeMT.so.1'

/** A sentence on what is missing for a test that sets a clock; undefined if it is there. */
export const missingFakeClock = missingLibrary(library)

/**
 * The environment of a board whose clock shows what is in `clockFile`, which is read at every call: seconds ahead (`+60`), or a time at
 * which it stands still (`2027-01-05 23:00:00`). The monotonic clock stays the machine's own.
 */
export function fakeClock(clockFile: string): Readonly<Record<string, string>> {
  return {
    LD_PRELOAD: findLibrary(library)!,
    FAKETIME_TIMESTAMP_FILE: clockFile,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  }
}

/** The operator accepts the clock of a running board, which is this many seconds ahead of the machine's. */
export async function acceptClock(directory: string, secondsAhead: number): Promise<void> {
  const terminal = { ...capturedTerminal(), clock: { ...systemClock, wallSeconds: () => now() + secondsAhead } }
  const code = await main(['clock', 'accept', '--data', directory], terminal)
  if (code !== 0) throw new Error(`clock accept ended with ${code}: ${terminal.said.err}`)
}
