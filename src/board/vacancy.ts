/**
 * What a follower that may lead does when its leader is gone: it gives up its port to lead, or reports why it cannot and keeps following.
 */
import type { Notices } from '../notices.ts'
import { log } from '../observe.ts'
import type { Standing } from '../replication/follower.ts'
import type { ActorListener } from '../workers/actor-host.ts'

type VacancyOptions = {
  /**
   * What keeps this box from leading after this message of the stream; `after` is omitted while there is a leader. Undefined if nothing is
   * known to.
   */
  readonly problem: (after?: number) => string | undefined
  readonly notices: Notices
  readonly onVacant: (after: number) => void
  /** What was reported before this board was started. */
  readonly reported: string | undefined
}

export class Vacancy implements ActorListener {
  readonly #options: VacancyOptions
  /** What was reported last; undefined if nothing was, or it is over. */
  #reported: string | undefined

  constructor(options: VacancyOptions) {
    this.#options = options
    this.#reported = options.reported
  }

  vacant(after: number): void {
    const { problem, notices, onVacant } = this.#options
    const found = problem(after)
    if (found === undefined) return onVacant(after)
    if (found !== this.#reported) log('error', 'lead.not_taken', { problem: found })
    this.#reported = found
    notices.set('lead', found)
  }

  standing({ behindMs, withoutStream }: Standing): void {
    const { problem, notices } = this.#options
    if (this.#reported === undefined) {
      if (withoutStream === undefined) notices.end('lead')
      else notices.set('lead', `This box cannot take over now: ${withoutStream.replace(/\.$/, '')}.`)
      return
    }
    if (behindMs > 0 || problem() !== undefined) return
    this.#reported = undefined
    notices.end('lead')
  }
}
