/** What a board takes from the machine it runs on. A simulation hands in its own. */
import { Worker } from 'node:worker_threads'
import type { StartThread } from '../actors/kernel/supervisor.ts'
import { type Clock, systemClock } from './clock.ts'

export type Platform = {
  readonly clock: Clock
  readonly startThread: StartThread
}

export const machine: Platform = {
  clock: systemClock,
  startThread: (file, options) => new Worker(file, options),
}
