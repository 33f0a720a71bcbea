/**
 * Reviews that earn credits: of a tool that its author has called through this board, that is not his own, and by somebody who is
 * not of yesterday (an accepted public work, or 30 days of age). How many are rewarded, and out of what, the market decides; it
 * knows each pair of subject and reviewer once, so saying it again gives nothing twice.
 */
import { marketName, type RewardArgs } from '../../actors/market/letters.ts'
import { sizes } from '../limits.ts'
import { ownPrefix } from '../own-tools/descriptors.ts'
import type { FoundSubject } from '../tools/asks.ts'
import type { ReadAnswer, ReadRequest } from '../views/reads/read.ts'
import type { RecentReview } from '../views/reads/tools.ts'
import { internalLetter } from './own-letter.ts'
import type { Actors, NoAnswer } from './ports.ts'

export type ReviewRewardsOptions = {
  readonly actors: Actors
  readonly read: (request: ReadRequest, answer: (answer: ReadAnswer | NoAnswer) => void) => void
  readonly noteChange: (actor: string, change: number) => void
  readonly wallSeconds: () => number
}

type Reviewed = Pick<RecentReview, 'subject' | 'author'>

const ageSeconds = 30 * 86_400

export class ReviewRewards {
  readonly #options: ReviewRewardsOptions

  constructor(options: ReviewRewardsOptions) {
    this.#options = options
  }

  /** Takes up reviews of the last day: a board that died may not have come to them. */
  async resume(): Promise<void> {
    const since = this.#options.wallSeconds() - 86_400
    const found = await this.#ask<{ reviews: RecentReview[] }>('tools.recent_reviews', { since }, '')
    for (const review of found?.reviews ?? []) await this.consider(review)
  }

  /** Rewards a review that was accepted, if it earns it. */
  async consider({ subject, author }: Reviewed): Promise<void> {
    const found = await this.#ask<FoundSubject>('tools.subject', { subject }, author)
    if (found === undefined || found.isOwner || !(await this.#hasCalled(subject, found, author))) return
    if (found.accepted === 0 && !(await this.#isOfAge(author))) return
    const args: RewardArgs = {
      subject,
      reviewer: author,
      amount: sizes.credit_review_reward,
      subject_max: sizes.credit_review_rewards_per_subject,
    }
    await new Promise<void>((resolve) =>
      this.#options.actors.write(internalLetter('credit.reward', marketName, author, args), (answered) => {
        if (answered?.ok && answered.change !== undefined) this.#options.noteChange(marketName, answered.change)
        resolve()
      }),
    )
  }

  /** Calls are known by their subject, those of the board's own tools by the tool. */
  async #hasCalled(subject: string, { tools }: FoundSubject, author: string): Promise<boolean> {
    const own = tools.filter((id) => id.startsWith(ownPrefix))
    for (const called of own.length > 0 ? own : [subject]) {
      const found = await this.#ask<{ completed: boolean }>('calls.completed', { subject: called }, author)
      if (found?.completed === true) return true
    }
    return false
  }

  async #isOfAge(author: string): Promise<boolean> {
    const found = await this.#ask<{ identity: { created_at: number } }>('identity.get', { target: author }, author)
    return found !== undefined && this.#options.wallSeconds() - found.identity.created_at >= ageSeconds
  }

  #ask<Found>(op: string, args: ReadRequest['args'], reader: string): Promise<Found | undefined> {
    return new Promise((resolve) =>
      this.#options.read({ op, args, reader }, (found) =>
        resolve(found?.ok ? (JSON.parse(found.json) as Found) : undefined),
      ),
    )
  }
}
