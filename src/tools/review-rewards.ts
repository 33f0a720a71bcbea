/**
 * Reviews that earn credits. Keys are free, so anything that one person can create in any number earns nothing. The tool must
 * be on a host that names its publisher. The reviewer must have called it through this board, must be neither its owner nor
 * tied to them by credits, and must have been here for some time or be vouched for by a requester who had been. What remains is
 * capped per day: by reviewer, by publisher, by network and for the board. The market decides about these caps, the limit per
 * subject and the pool. It remembers each pair of subject and reviewer, so repeating a request gives nothing twice.
 * /docs/credits has the amounts.
 *
 * The reviewer's network is passed as a keyed hash of the network and the day, and is known only while the review is being
 * handled: reviews left by an earlier run count as one network together.
 *
 * A review is already on disk, and no caller asks about its reward again. So anything that cannot be determined or recorded now
 * (the index of the directory is being built, a disk is full) is retried with growing intervals until it can be. A review that
 * waits does not delay others.
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

/** `address`: of the client; absent if no longer known. */
type Reviewed = Pick<RecentReview, 'subject' | 'author'> & { readonly address?: string }

const recentSeconds = 86_400
const againMs = 1_000
const againMaxMs = 300_000
/** Temporary causes, such as an index being built, are over by then; a longer wait is reported, once. */
const longMs = 60_000

/** There is no answer now; a retry may get one. */
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

  /** Considers reviews of the last day of uptime that are not rewarded: a board that died may not have got to them. */
  async resume(): Promise<void> {
    const args = { seconds: recentSeconds, most: sizes.credit_review_rewards_per_subject }
    const recent = () => this.#ask('tools.recent_reviews', args, '')
    const found = await this.#untilNow({}, recent)
    const open: Promise<void>[] = []
    // Each is tried once before the next: hundreds at a time would overload what they query.
    for (const review of found?.reviews ?? [])
      await new Promise<void>((next) => open.push(this.consider(review, next).finally(next)))
    await Promise.all(open)
  }

  /** Rewards an accepted review if it earns it. `putOff`: called whenever that must be retried. */
  async consider(review: Reviewed, putOff?: () => void): Promise<void> {
    const { subject } = review
    try {
      await this.#untilNow({ review_of: subject }, () => this.#consider(review), putOff)
    } catch (error) {
      this.#options.report({ review_of: subject, problem: String(error) })
    }
  }

  /** Retries until `find` succeeds; undefined if the board stops. */
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
        // The market never refuses it, so the obstacle is temporary.
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

  /** Calls are recorded by subject; for the board's own tools, by tool. */
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

  /** A requester accepted a work of the reviewer, and had been here for some time by then. */
  async #isVouchedFor({ vouchers }: FoundReviewer): Promise<boolean> {
    for (const { requester, at } of vouchers)
      if ((await this.#since(requester)) + sizes.credit_review_requester_age_seconds <= at) return true
    return false
  }

  /** Unix seconds of an identity's first public record; Infinity if there is none. */
  async #since(identity: string): Promise<number> {
    const found = await this.#ask('identity.get', { target: identity }, identity)
    return found?.identity.created_at ?? Number.POSITIVE_INFINITY
  }

  /** Undefined if there is no such thing, or it can never be read. */
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
