/**
 * Reviews that earn credits. Keys are free, so whatever one person can have any number of earns nothing: the tool has to be on a
 * machine that names its publisher, its reviewer has to have called it through this board, to be neither its owner nor tied to them
 * by credits, and to have been here for some time or to be vouched for by a requester who had been. What is left is capped for a day:
 * by reviewer, by publisher, by network and for the board. The market decides about these caps, about the slots of a subject and
 * the pool; it knows each pair of subject and reviewer once, so saying it again gives nothing twice. /docs/credits has the sums.
 *
 * The network of a reviewer is given as a keyed hash of it and the day, and is known only while the review is at hand: reviews that
 * an earlier run left are one network together.
 *
 * A review is on disk, and no caller asks about its reward again: whatever cannot be found out or recorded now (the index of the
 * directory is being made, a disk is full) is tried again until it can, less and less often, and one that waits holds up no other.
 */

import { dayOf } from '../../actors/kernel/day.ts'
import { rates, sizes } from '../../actors/kernel/limits.ts'
import type { AnyReadName } from '../../actors/operations.ts'
import { internalLetter } from '../../actors/records/internal-operations.ts'
import { type Cap, marketName, type RewardArgs } from '../../actors/works/market/letters.ts'
import { type Actors, isNotNow } from '../command/ports.ts'
import { ownPrefix } from '../own-tools/descriptors.ts'
import { type AnswerOf, dataOf, type ReadCall, type ReadRequest } from '../reads/read.ts'
import { networkMark, widerNetworkMark } from '../works/welcome.ts'
import type { FoundReviewer, FoundSubject } from './asks.ts'
import type { RecentReview } from './reads.ts'

export type ReviewRewardsOptions = {
  readonly actors: Actors
  readonly read: ReadCall
  readonly noteChange: (actor: string, change: number) => void
  readonly limitsOn: boolean
  /** Secret of this board. */
  readonly secret: Buffer
  readonly wallSeconds: () => number
  readonly later: (callback: () => void, ms: number) => void
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

/** `address`: of the client; absent: not known any more. */
type Reviewed = Pick<RecentReview, 'subject' | 'author'> & { readonly address?: string }

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
    const recent = () => this.#ask('tools.recent_reviews', args, '')
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

  async #consider(review: Reviewed): Promise<void> {
    const { subject, author } = review
    const found = await this.#ask('tools.subject', { subject }, author)
    if (found === undefined || found.isOwner || found.publishers.length === 0) return
    if (!(await this.#hasCalled(subject, found, author))) return
    const known = await this.#ask('tools.reviewer', { subject }, author)
    if (known === undefined || known.isTied) return
    if (!(await this.#isOfAge(author)) && !(await this.#isVouchedFor(known))) return
    const args: RewardArgs = {
      subject,
      reviewer: author,
      amount: sizes.credit_review_reward,
      subject_max: sizes.credit_review_rewards_per_subject,
      caps: this.#caps(review, found),
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

  #caps({ author, address = '' }: Reviewed, { publishers }: FoundSubject): readonly Cap[] {
    const { limitsOn, secret, wallSeconds } = this.#options
    const purpose = `review ${dayOf(wallSeconds())}`
    const wider = widerNetworkMark(secret, purpose, address)
    const ofNetwork = rates.review_rewards_per_network_per_day
    const ofPublisher = rates.review_rewards_per_publisher_per_day
    const cap = (name: string, most: number, why: Cap['why']): Cap => ({
      name,
      most: limitsOn ? most : Number.POSITIVE_INFINITY,
      why,
    })
    return [
      cap('board', rates.review_rewards_per_board_per_day, 'board'),
      cap(`reviewer ${author}`, rates.review_rewards_per_reviewer_per_day, 'reviewer'),
      ...publishers.map((each) => cap(`publisher ${each}`, ofPublisher, 'publisher')),
      cap(`network ${networkMark(secret, purpose, address)}`, ofNetwork, 'network'),
      ...(wider === '' ? [] : [cap(`network ${wider}`, rates.ipv6_48_factor * ofNetwork, 'network')]),
    ]
  }

  /** Calls are known by their subject, those of the board's own tools by the tool. */
  async #hasCalled(subject: string, { tools }: FoundSubject, author: string): Promise<boolean> {
    const own = tools.filter((id) => id.startsWith(ownPrefix))
    for (const called of own.length > 0 ? own : [subject]) {
      const found = await this.#ask('calls.completed', { subject: called }, author)
      if (found?.completed === true) return true
    }
    return false
  }

  async #isOfAge(author: string): Promise<boolean> {
    return (await this.#since(author)) + sizes.credit_review_author_age_seconds <= this.#options.wallSeconds()
  }

  /** A requester accepted a work of the reviewer and had been here for some time then. */
  async #isVouchedFor({ vouchers }: FoundReviewer): Promise<boolean> {
    for (const { requester, at } of vouchers)
      if ((await this.#since(requester)) + sizes.credit_review_requester_age_seconds <= at) return true
    return false
  }

  /** Unix seconds of an identity's first public record; Infinity: there is none. */
  async #since(identity: string): Promise<number> {
    const found = await this.#ask('identity.get', { target: identity }, identity)
    return found?.identity.created_at ?? Number.POSITIVE_INFINITY
  }

  /** Undefined: there is no such thing, or it cannot be read at all. */
  #ask<Name extends AnyReadName>(
    op: Name,
    args: ReadRequest['args'],
    reader: string,
  ): Promise<AnswerOf<Name> | undefined> {
    return new Promise((resolve, reject) =>
      this.#options.read({ op, args, reader }, (found) => {
        if (found?.ok) return resolve(dataOf(found))
        if (isNotNow(found)) reject(new NotNow(op))
        else resolve(undefined)
      }),
    )
  }
}
