/**
 * Looks at the clocks for the whole board, and tells the other threads whether time-outs of works wait. A jump is reported in the log, to
 * /healthz and to /metrics, until it is over.
 */
import type { Cancel } from '../../actors/kernel/timers.ts'
import type { Clock } from '../clock.ts'
import type { ClockWatch } from '../clock-jumps.ts'
import type { Notices } from '../notices.ts'
import type { log } from '../observe.ts'
import { type SharedHold, storeHold } from '../workers/shared-hold.ts'

const lookMs = 1_000

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
  #isJumped = false

  constructor(options: ClockNoticeOptions) {
    this.#options = options
    this.#look()
    this.#cancel = options.clock.every(() => this.#look(), lookMs)
  }

  stop(): void {
    this.#cancel()
  }

  #look(): void {
    const { watch, hold, notices, report } = this.#options
    const jump = watch.look()
    storeHold(hold, watch.lookedAt, jump)
    if (jump === undefined) {
      if (this.#isJumped) report('info', 'clock.jump_over')
      this.#isJumped = false
      return notices.end('clock')
    }
    if (this.#isJumped) return
    this.#isJumped = true
    const { by, heldAt } = jump
    const how = `${Math.abs(Math.round(by / 60))} minutes ${by > 0 ? 'ahead' : 'back'}`
    report('warn', 'clock.jumped', { seconds: by, held_at: heldAt })
    notices.set(
      'clock',
      `the clock has jumped ${how}, and time-outs of works wait: set it right, or run broadside clock accept`,
    )
  }
}
