/** What a board takes from the machine it runs on. A simulation hands in its own. */
import { randomBytes } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import type { StartThread } from '../actors/kernel/supervisor.ts'
import type { Disk } from '../storage/disk.ts'
import { machineDisk } from '../storage/machine-disk.ts'
import { type Clock, systemClock } from './clock.ts'

export type Random = (bytes: number) => Buffer

export type Platform = {
  readonly clock: Clock
  /** Bytes that cannot be guessed. */
  readonly random: Random
  /** SQLite's files and the lock of the directory are the machine's own, whatever this is. */
  readonly disk: Disk
  readonly startThread: StartThread
}

export const machine: Platform = {
  clock: systemClock,
  random: (bytes) => randomBytes(bytes),
  disk: machineDisk,
  startThread: (file, options) => new Worker(file, options),
}
