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
import type { log } from './observe.ts'

export const jumpSeconds = 3_600
const idleSecondsMax = 30 * 86_400
const heldSecondsMax = 86_400
/** Stamps of turns that were on their way may be this far ahead. */
const toleranceSeconds = 5

export type Jump = {
  /** Unix seconds at which the clocks last agreed: time-outs stand still there. */
  readonly heldAt: number
  /** By how much the wall clock is ahead, in seconds; behind: negative. */
  readonly by: number
}

type Held = Jump & {
  /** Of the monotonic clock, in seconds. */
  readonly since: number
  /** What the wall clock showed when it had jumped last. */
  readonly wall: number
  /** What the operator had accepted by then. */
  readonly accepted: number | undefined
}

type WatchOptions = {
  readonly clock: Pick<Clock, 'wallSeconds' | 'monotonicMs'>
  readonly disk: Disk
  /** Of the board. */
  readonly directory: string
  /** Time of the newest record of the whole board, Unix seconds; 0: there is none. */
  readonly newest: number
  readonly report: typeof log
}

/** The main thread has the only one, and tells the other threads (workers/shared-hold.ts). */
export class ClockWatch {
  readonly #options: WatchOptions
  /** Wall clock less monotonic clock, in seconds, at the last look. */
  #offset: number
  #jump: Held | undefined
  #lookedAt: number
  #isUnreadable = false

  constructor(options: WatchOptions) {
    this.#options = options
    const { newest } = options
    const wall = options.clock.wallSeconds()
    const now = this.#monotonic()
    this.#lookedAt = wall
    this.#offset = wall - now
    if (newest === 0 || isPlausible(newest, wall)) return
    const accepted = this.#accepted()
    if (accepted === undefined || !agree(accepted, wall))
      this.#jump = { heldAt: newest, by: wall - newest, since: now, wall, accepted }
  }

  /** What the wall clock showed at the last look. */
  get lookedAt(): number {
    return this.#lookedAt
  }

  /** Looks at both clocks. Undefined: they agree, or the operator has said that the wall clock is right. */
  look(): Jump | undefined {
    const wall = this.#options.clock.wallSeconds()
    const now = this.#monotonic()
    const expected = this.#offset + now
    this.#lookedAt = wall
    this.#offset = wall - now
    if (!agree(expected, wall)) this.#jumped(Math.floor(expected), wall, now)
    if (this.#jump !== undefined && this.#isOver(this.#jump, wall, now)) this.#jump = undefined
    return this.#jump
  }

  /** What the operator accepts is the clock as it is after the last jump. */
  #jumped(expected: number, wall: number, now: number): void {
    const { heldAt, since } = this.#jump ?? { heldAt: expected, since: now }
    const by = wall - Math.floor(heldAt + now - since)
    this.#jump = { heldAt, by, since, wall, accepted: this.#accepted() }
  }

  #isOver({ heldAt, since, wall: jumpedTo, accepted: before }: Held, wall: number, now: number): boolean {
    if (agree(heldAt + now - since, wall) || now - since >= heldSecondsMax) return true
    const accepted = this.#accepted()
    if (accepted === undefined || !agree(accepted, wall)) return false
    // The operator may have accepted a jump before it was seen here.
    return accepted !== before || Math.abs(accepted - jumpedTo) <= toleranceSeconds
  }

  /** A file that cannot be read accepts nothing. */
  #accepted(): number | undefined {
    const { disk, directory, report } = this.#options
    try {
      const accepted = acceptedAt(disk, directory)
      this.#isUnreadable = false
      return accepted
    } catch (error) {
      if (!this.#isUnreadable)
        report('warn', 'clock.accept_unreadable', {
          file: fileIn(directory),
          problem: (error as Error).message,
          note: 'Nothing was accepted. Remove what is there, and run broadside clock accept again.',
        })
      this.#isUnreadable = true
      return undefined
    }
  }

  #monotonic(): number {
    return this.#options.clock.monotonicMs() / 1_000
  }
}

function agree(one: number, other: number): boolean {
  return Math.abs(one - other) < jumpSeconds
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

/** The operator says that the clock is right. `at`: what it shows. The board of another user reads it, where root has written it. */
export function acceptClock(disk: Disk, directory: string, at: number): void {
  disk.writeAtomic(fileIn(directory), Buffer.from(`${JSON.stringify({ at })}\n`), 0o644)
}

/** Undefined: nothing was accepted. Throws where the file cannot be read, or is not what `acceptClock` writes. */
function acceptedAt(disk: Disk, directory: string): number | undefined {
  const path = fileIn(directory)
  if (!disk.fileExists(path)) return undefined
  const { at } = Object(foreignJson(disk.readWhole(path).toString('utf8'))) as { readonly at?: unknown }
  if (typeof at !== 'number') throw new Error('It is not what broadside clock accept writes.')
  return at
}
