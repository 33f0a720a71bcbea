/**
 * Detects jumps of the wall clock. While a board runs, the wall clock and the monotonic clock advance together; a difference of an hour is
 * a jump. Between two starts nothing measures time: a clock behind the newest record, or more than 30 days ahead of it, is a jump.
 *
 * This code cannot tell which clock is right: a machine that slept looks the same as one whose clock was set wrong. So timeouts of works
 * are held at the time when the clocks last agreed, until the operator accepts the clock (`broadside clock accept`), the clocks agree
 * again, or 24 hours have passed.
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
/** Timestamps of turns in flight may be this far ahead. */
const toleranceSeconds = 5

export type Jump = {
  /** Unix seconds at which the clocks last agreed; timeouts are held there. */
  readonly heldAt: number
  /** Seconds by which the wall clock is ahead; negative if it is behind. */
  readonly by: number
}

type HeldJump = Jump & {
  /** Monotonic seconds. */
  readonly since: number
  /** The wall clock at its last jump. */
  readonly wall: number
  /** What the operator had accepted by then. */
  readonly accepted: number | undefined
}

type WatchOptions = {
  readonly clock: Pick<Clock, 'wallSeconds' | 'monotonicMs'>
  readonly disk: Disk
  /** The data directory of the board. */
  readonly directory: string
  /** Time of the newest record of the whole board, Unix seconds; 0 if there is none. */
  readonly newest: number
  readonly report: typeof log
}

/** Only the main thread has one, and it notifies the other threads (workers/shared-hold.ts). */
export class ClockWatch {
  readonly #options: WatchOptions
  /** Wall clock minus monotonic clock, in seconds, at the last check. */
  #offset: number
  #jump: HeldJump | undefined
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

  /** The wall clock at the last check. */
  get checkedAt(): number {
    return this.#lookedAt
  }

  /** Compares both clocks. Undefined if they agree, or the operator has accepted the wall clock. */
  check(): Jump | undefined {
    const wall = this.#options.clock.wallSeconds()
    const now = this.#monotonic()
    const expected = this.#offset + now
    this.#lookedAt = wall
    this.#offset = wall - now
    if (!agree(expected, wall)) this.#jumped(Math.floor(expected), wall, now)
    if (this.#jump !== undefined && this.#isOver(this.#jump, wall, now)) this.#jump = undefined
    return this.#jump
  }

  /** Records a jump. The operator accepts the clock as it is after the last jump. */
  #jumped(expected: number, wall: number, now: number): void {
    const { heldAt, since } = this.#jump ?? { heldAt: expected, since: now }
    const by = wall - Math.floor(heldAt + now - since)
    this.#jump = { heldAt, by, since, wall, accepted: this.#accepted() }
  }

  #isOver({ heldAt, since, wall: jumpedTo, accepted: before }: HeldJump, wall: number, now: number): boolean {
    if (agree(heldAt + now - since, wall) || now - since >= heldSecondsMax) return true
    const accepted = this.#accepted()
    if (accepted === undefined || !agree(accepted, wall)) return false
    // The operator may have accepted a jump before it was detected here.
    return accepted !== before || Math.abs(accepted - jumpedTo) <= toleranceSeconds
  }

  /** An unreadable file counts as no acceptance. */
  #accepted(): number | undefined {
    const { disk, directory, report } = this.#options
    try {
      const accepted = acceptedAt(disk, directory)
      this.#isUnreadable = false
      return accepted
    } catch (error) {
      if (!this.#isUnreadable)
        report('warn', 'clock.accept_unreadable', {
          file: acceptedFile(directory),
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

/** Whether the clock may have advanced from `newest` to `wall` between two starts. */
function isPlausible(newest: number, wall: number): boolean {
  return wall >= newest - toleranceSeconds && wall <= newest + idleSecondsMax
}

/**
 * Time of the newest record of a board, Unix seconds. If a shard has been idle since its clock was absurdly far ahead, its newest record is
 * wrong; then the newest log entry is used, if the clock has been right since.
 */
export function newestStamp(log: number, shards: readonly number[], wall: number): number {
  const isLogRight = log > 0 && isPlausible(log, wall)
  return Math.max(log, ...shards.filter((at) => !isLogRight || at <= wall + absurdSeconds))
}

/** What `broadside clock accept` writes. */
export const acceptedFile = (directory: string): string => join(directory, 'clock-accepted.json')

/**
 * The operator confirms that the clock is right. `at`: its current time. World-readable, because root may write it and the board may run as
 * another user.
 */
export function acceptClock(disk: Disk, directory: string, at: number): void {
  disk.writeAtomic(acceptedFile(directory), Buffer.from(`${JSON.stringify({ at })}\n`), 0o644)
}

/** Undefined if nothing was accepted. Throws if the file cannot be read, or does not have the format that `acceptClock` writes. */
export function acceptedAt(disk: Disk, directory: string): number | undefined {
  const path = acceptedFile(directory)
  if (!disk.fileExists(path)) return undefined
  const { at } = Object(foreignJson(disk.readWhole(path).toString('utf8'))) as { readonly at?: unknown }
  if (typeof at !== 'number') throw new Error('It is not what broadside clock accept writes.')
  return at
}
