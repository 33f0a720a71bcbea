/**
 * Reviews that earn credits: of a tool that its author has called through this board, that is not his own, and by somebody who is
 * not of yesterday (an accepted public work, or 30 days of age). How many are rewarded, and out of what, the market decides; it
 * knows each pair of subject and reviewer once, so saying it again gives nothing twice.
 *
 * A review is on disk, and nobody asks about its reward again: whatever cannot be found out or written down now (the index of the
 * directory is being made, a disk is full) is tried again until it can, less and less often, and one that waits holds up no other.
 */
import { marketName, type RewardArgs } from '../../actors/market/letters.ts'
import { sizes } from '../limits.ts'
import { ownPrefix } from '../own-tools/descriptors.ts'
import type { FoundSubject } from '../tools/asks.ts'
import type { ReadAnswer, ReadRequest } from '../views/reads/read.ts'
import type { RecentReview } from '../views/reads/tools.ts'
import { internalLetter } from './own-letter.ts'
import { type Actors, isNotNow, type NoAnswer } from './ports.ts'

export type ReviewRewardsOptions = {
  readonly actors: Actors
  readonly read: (request: ReadRequest, answer: (answer: ReadAnswer | NoAnswer) => void) => void
  readonly noteChange: (actor: string, change: number) => void
  readonly wallSeconds: () => number
  readonly later: (callback: () => void, ms: number) => void
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

type Reviewed = Pick<RecentReview, 'subject' | 'author'>

const ageSeconds = 30 * 86_400
const recentSeconds = 86_400
const againMs = 1_000
const againMaxMs = 300_000
/** What is passing has passed by then (an index is being made): a wait from here on is said, once. */
const longMs = 60_000

/** No answer to this, or none yet: another time there may be one. */
class NotNow extends Error {}

export class ReviewRewards {
  readonly #options: ReviewRewardsOptions
  #closed = false

  constructor(options: ReviewRewardsOptions) {
    this.#options = options
  }

  close(): void {
    this.#closed = true
  }

  /**
   * Takes up reviews of the last day that the board was up and that are not rewarded: a board that died may not have come to them.
   */
  async resume(): Promise<void> {
    const args = { seconds: recentSeconds, most: sizes.credit_review_rewards_per_subject }
    const recent = () => this.#ask<{ reviews: RecentReview[] }>('tools.recent_reviews', args, '')
    const found = await this.#untilNow({}, recent)
    const open: Promise<void>[] = []
    // Each is tried once before the next: hundreds at the same time would only overload what they ask.
    for (const review of found?.reviews ?? [])
      await new Promise<void>((next) => open.push(this.consider(review, next).finally(next)))
    await Promise.all(open)
  }

  /** Rewards a review that was accepted, if it earns it. `putOff`: it could not be found out at the first try. */
  async consider(review: Reviewed, putOff?: () => void): Promise<void> {
    const { subject } = review
    try {
      await this.#untilNow({ review_of: subject }, () => this.#consider(review), putOff)
    } catch (error) {
      this.#options.report({ review_of: subject, problem: String(error) })
    }
  }

  /** Undefined: the board stops. */
  async #untilNow<Found>(
    what: { readonly review_of?: string },
    find: () => Promise<Found>,
    putOff?: () => void,
  ): Promise<Found | undefined> {
    const { later, report } = this.#options
    let isSaid = false
    for (let waitMs = againMs; !this.#closed; waitMs = Math.min(2 * waitMs, againMaxMs)) {
      try {
        return await find()
      } catch (error) {
        if (!(error instanceof NotNow)) throw error
        putOff?.()
        if (waitMs >= longMs && !isSaid) {
          isSaid = true
          report({ ...what, no_answer_to: error.message, again_in_seconds: waitMs / 1_000 })
        }
        await new Promise<void>((resolve) => later(resolve, waitMs))
      }
    }
    return undefined
  }

  async #consider({ subject, author }: Reviewed): Promise<void> {
    const found = await this.#ask<FoundSubject>('tools.subject', { subject }, author)
    if (found === undefined || found.isOwner || !(await this.#hasCalled(subject, found, author))) return
    if (found.accepted === 0 && !(await this.#isOfAge(author))) return
    const args: RewardArgs = {
      subject,
      reviewer: author,
      amount: sizes.credit_review_reward,
      subject_max: sizes.credit_review_rewards_per_subject,
    }
    await new Promise<void>((resolve, reject) =>
      this.#options.actors.write(internalLetter('credit.reward', marketName, author, args), (answered) => {
        // The market never refuses it: what stands in its way passes.
        if (answered?.ok !== true) return reject(new NotNow('credit.reward'))
        if (answered.change !== undefined) this.#options.noteChange(marketName, answered.change)
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

  /** Undefined: there is no such thing, or it cannot be read at all. */
  #ask<Found>(op: string, args: ReadRequest['args'], reader: string): Promise<Found | undefined> {
    return new Promise((resolve, reject) =>
      this.#options.read({ op, args, reader }, (found) => {
        if (found?.ok) return resolve(JSON.parse(found.json) as Found)
        if (isNotNow(found)) reject(new NotNow(op))
        else resolve(undefined)
      }),
    )
  }
}
