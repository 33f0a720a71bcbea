/** What the front does for the tools directory beside reading and writing it: looks of the lab, and rewards for reviews. */
import { Probes, type ProbesOptions } from './probes.ts'
import { ReviewRewards } from './review-rewards.ts'

export class ToolDesk extends Probes {
  readonly #rewards: ReviewRewards
  readonly #report: ProbesOptions['report']

  constructor(options: ProbesOptions) {
    super(options)
    this.#rewards = new ReviewRewards(options)
    this.#report = options.report
  }

  /** A review was accepted. */
  reviewed(subject: string, author: string): void {
    this.#rewards
      .consider({ subject, author })
      .catch((error: unknown) => this.#report({ review_of: subject, problem: String(error) }))
  }

  /** Takes up reviews that an earlier run may not have come to. */
  resume(): void {
    this.#rewards.resume().catch((error: unknown) => this.#report({ problem: String(error) }))
  }
}
