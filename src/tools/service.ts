/** What the main thread does for the tools directory besides reading and writing it: probes, and rewards for reviews. */
import { LabRound, type LabRoundOptions } from './daily-probes.ts'
import { type LooksOptions, ToolProber } from './probe.ts'
import { type ProbesOptions, RequestedProbes } from './requested-probes.ts'
import { ReviewRewards, type ReviewRewardsOptions } from './review-rewards.ts'

export type ToolDeskOptions = LooksOptions &
  ReviewRewardsOptions &
  Omit<ProbesOptions, 'looks'> &
  Omit<LabRoundOptions, 'looks'>

export class ToolDesk extends RequestedProbes {
  readonly #rewards: ReviewRewards
  readonly #round: LabRound
  readonly #report: ProbesOptions['report']

  constructor(options: ToolDeskOptions) {
    const looks = new ToolProber(options)
    super({ ...options, looks })
    this.#rewards = new ReviewRewards(options)
    this.#round = new LabRound({ ...options, looks })
    this.#report = options.report
  }

  /** A review was accepted. */
  reviewed(subject: string, author: string, address: string): void {
    void this.#rewards.consider({ subject, author, address })
  }

  /** Takes up reviews that an earlier run may not have come to, and begins the daily round. */
  resume(): void {
    this.#round.begin()
    this.#rewards.resume().catch((error: unknown) => this.#report({ problem: String(error) }))
  }

  close(): void {
    this.#rewards.close()
    this.#round.close()
  }
}
