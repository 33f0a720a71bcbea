/**
 * Watches the clocks for the whole board, and tells the other threads whether to hold the timeouts of works. A clock jump is reported in
 * the log, at /healthz, and in /metrics until it is over.
 */
import { daySeconds } from '../../actors/kernel/day.ts'
import type { Cancel } from '../../actors/kernel/timers.ts'
import type { Clock } from '../clock.ts'
import type { ClockWatch, Jump } from '../clock-jumps.ts'
import type { Notices } from '../notices.ts'
import type { log } from '../observe.ts'
import { type SharedHold, storeHold } from '../workers/shared-hold.ts'

const checkEveryMs = 1_000

type ClockNoticeOptions = {
  readonly watch: ClockWatch
  readonly clock: Pick<Clock, 'every'>
  readonly hold: SharedHold
  readonly notices: Notices
  readonly report: typeof log
}

export class ClockNotice {
  readonly #options: ClockNoticeOptions
  readonly #cancel: Cancel
  #shown: Jump | undefined

  constructor(options: ClockNoticeOptions) {
    this.#options = options
    this.#check()
    this.#cancel = options.clock.every(() => this.#check(), checkEveryMs)
  }

  stop(): void {
    this.#cancel()
  }

  #check(): void {
    const { watch, hold, notices, report } = this.#options
    const jump = watch.check()
    storeHold(hold, watch.checkedAt, jump)
    if (jump === this.#shown) return
    this.#shown = jump
    if (jump === undefined) {
      report('info', 'clock.jump_over')
      return notices.end('clock')
    }
    const { by, heldAt } = jump
    report('warn', 'clock.jumped', { seconds: by, held_at: heldAt })
    notices.set(
      'clock',
      `the clock has jumped ${spanText(Math.abs(by))} ${by > 0 ? 'ahead' : 'back'}, and timeouts of works are on hold: correct the clock, or run broadside clock accept`,
    )
  }
}

/** In the largest unit of which there are at least two. */
function spanText(seconds: number): string {
  const units = [
    ['days', daySeconds],
    ['hours', 3_600],
    ['minutes', 60],
  ] as const
  const [name, unit] = units.find(([, size]) => seconds >= 2 * size) ?? ['seconds', 1]
  return `${Math.round(seconds / unit)} ${name}`
}
