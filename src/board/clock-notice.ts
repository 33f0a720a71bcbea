/** Looks at the clocks of the main thread, and reports a jump: in the log, to /healthz and to /metrics, until it is over. */
import type { Cancel } from '../../actors/kernel/timers.ts'
import type { Clock } from '../clock.ts'
import { type ClockWatch, clockLookMs } from '../clock-jumps.ts'
import type { Notices } from '../notices.ts'
import type { log } from '../observe.ts'

export class ClockNotice {
  readonly #watch: ClockWatch
  readonly #notices: Notices
  readonly #report: typeof log
  readonly #cancel: Cancel
  #isJumped = false

  constructor(watch: ClockWatch, { every }: Pick<Clock, 'every'>, notices: Notices, report: typeof log) {
    this.#watch = watch
    this.#notices = notices
    this.#report = report
    this.#look()
    this.#cancel = every(() => this.#look(), clockLookMs)
  }

  stop(): void {
    this.#cancel()
  }

  #look(): void {
    const jump = this.#watch.look()
    if (jump === undefined) {
      if (this.#isJumped) this.#report('info', 'clock.jump_over')
      this.#isJumped = false
      return this.#notices.end('clock')
    }
    if (this.#isJumped) return
    this.#isJumped = true
    const { by, heldAt } = jump
    const how = `${Math.abs(Math.round(by / 60))} minutes ${by > 0 ? 'ahead' : 'back'}`
    this.#report('warn', 'clock.jumped', { seconds: by, held_at: heldAt })
    this.#notices.set(
      'clock',
      `the clock has jumped ${how}, and time-outs of works wait: set it right, or run broadside clock accept`,
    )
  }
}
