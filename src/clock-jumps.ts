/**
 * Jumps of the wall clock. While a board runs, the wall clock and the monotonic one go alike: an hour apart is a jump. Between two
 * starts nothing measures time: a clock behind the newest record, or more than 30 days ahead of it, is a jump.
 *
 * Nobody here knows which clock is right: a machine that slept shows the same as one that was set wrong. So time-outs of works stand
 * still where the clocks last agreed, until the operator has accepted the clock (`broadside clock accept`), the clocks agree again, or
 * 24 hours have passed.
 */
import { join } from 'node:path'
import { absurdSeconds } from '../actors/kernel/day.ts'
import type { Disk } from '../storage/disk.ts'
import type { Clock } from './clock.ts'
import { foreignJson } from './format/foreign-json.ts'

export const jumpSeconds = 3_600
const idleSecondsMax = 30 * 86_400
const heldSecondsMax = 86_400
/** Stamps of turns that were on their way may be this far ahead. */
const toleranceSeconds = 5
/** How often the file of `accept` is looked for. */
const lookSeconds = 1

export type Jump = {
  /** Unix seconds at which the clocks last agreed: time-outs stand still there. */
  readonly heldAt: number
  /** By how much the wall clock is ahead, in seconds; behind: negative. */
  readonly by: number
}

type WatchOptions = {
  readonly clock: Pick<Clock, 'wallSeconds' | 'monotonicMs'>
  readonly disk: Disk
  /** Of the board. */
  readonly directory: string
  /** Time of the newest record of the whole board, Unix seconds; 0: there is none. */
  readonly newest: number
}

/** The main thread has the only one, and tells the other threads (workers/shared-hold.ts). */
export class ClockWatch {
  readonly #options: WatchOptions
  /** Wall clock less monotonic clock, in seconds, when they last agreed. */
  #offset: number
  #jump: (Jump & { readonly since: number; readonly wall: number }) | undefined
  #wall: number
  #readAt = Number.NEGATIVE_INFINITY

  constructor(options: WatchOptions) {
    this.#options = options
    const { newest } = options
    const wall = options.clock.wallSeconds()
    const now = this.#monotonic()
    this.#wall = wall
    this.#offset = wall - now
    if (newest > 0 && !isPlausible(newest, wall)) this.#begin(newest, wall, now)
  }

  /** What the wall clock showed at the last look. */
  get lookedAt(): number {
    return this.#wall
  }

  /** Looks at both clocks. Undefined: they agree, or the operator has said that the wall clock is right. */
  look(): Jump | undefined {
    const wall = this.#options.clock.wallSeconds()
    const now = this.#monotonic()
    this.#wall = wall
    const by = wall - (this.#offset + now)
    if (this.#jump === undefined) {
      if (Math.abs(by) < jumpSeconds) this.#offset = wall - now
      else this.#begin(Math.floor(this.#offset + now), wall, now)
      return this.#jump
    }
    const agrees = Math.abs(wall - this.#jump.heldAt - (now - this.#jump.since)) < jumpSeconds
    if (agrees || now - this.#jump.since >= heldSecondsMax || this.#isAccepted(wall, now)) {
      this.#jump = undefined
      this.#offset = wall - now
    }
    return this.#jump
  }

  #begin(heldAt: number, wall: number, now: number): void {
    this.#jump = { heldAt, by: wall - heldAt, since: now, wall }
    // What the operator accepts is the clock as it is now.
    this.#readAt = Number.NEGATIVE_INFINITY
  }

  #isAccepted(wall: number, now: number): boolean {
    if (now - this.#readAt < lookSeconds) return false
    this.#readAt = now
    const at = acceptedAt(this.#options.disk, this.#options.directory)
    // The operator may have seen the jump before it was seen here.
    return at !== undefined && at >= this.#jump!.wall - toleranceSeconds && at <= wall + toleranceSeconds
  }

  #monotonic(): number {
    return this.#options.clock.monotonicMs() / 1_000
  }
}

/** Between two starts the clock may have got from there to here. */
function isPlausible(newest: number, wall: number): boolean {
  return wall >= newest - toleranceSeconds && wall <= newest + idleSecondsMax
}

/**
 * Time of the newest record of a board, Unix seconds. In a shard that is quiet since its clock was absurdly far ahead, the newest
 * record is not right; the newest entry of the log is, if the clock has been right since.
 */
export function newestStamp(log: number, shards: readonly number[], wall: number): number {
  const isLogRight = log > 0 && isPlausible(log, wall)
  return Math.max(log, ...shards.filter((at) => !isLogRight || at <= wall + absurdSeconds))
}

const fileIn = (directory: string): string => join(directory, 'clock-accepted.json')

/** The operator says that the clock is right. `at`: what it shows. */
export function acceptClock(disk: Disk, directory: string, at: number): void {
  disk.writeAtomic(fileIn(directory), Buffer.from(`${JSON.stringify({ at })}\n`))
}

function acceptedAt(disk: Disk, directory: string): number | undefined {
  const path = fileIn(directory)
  if (!disk.fileExists(path)) return undefined
  const { at } = Object(foreignJson(disk.readWhole(path).toString('utf8'))) as { readonly at?: unknown }
  return typeof at === 'number' ? at : undefined
}
