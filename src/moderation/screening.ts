/**
 * Screening: judges posts in rooms whose policy says `promotion: moderate`, after they were accepted and answered.
 *
 * A post judged to be an advertisement is hidden by a signed command of the board's own identity. The room decides whether that is still
 * allowed, checking its policy again. A post that cannot be judged stays as it is. The queue is bounded: posts that arrive while it is full
 * are not screened, and the log says so.
 */

import { windowSeconds } from '../../actors/records/write.ts'
import type { Clock } from '../clock.ts'
import type { Actors, BoardAuthor } from '../command/ports.ts'
import { envelopeOf } from '../format/reply.ts'
import { dataOf } from '../reads/read.ts'
import type { Judgement } from './advertising.ts'

/** An accepted public post whose author does not run the room. */
export type Screened = {
  /** 32 hex. */
  readonly id: string
  readonly room: string
  readonly kind: string
  readonly text: string
  readonly isReply: boolean
  /** Unix seconds. */
  readonly at: number
}

/** The result of a hide; `later`: seconds after which a retry may succeed. */
export type Hidden = { readonly ok: true } | { readonly ok: false; readonly later?: number; readonly words: string }

export type Report = (level: 'info' | 'warn', event: string, facts: Readonly<Record<string, unknown>>) => void

type ScreeningOptions = {
  readonly queue: ScreeningQueue
  readonly judge: (post: Screened) => Judgement | Promise<Judgement>
  readonly hide: (post: Screened, reason: string, done: (hidden: Hidden) => void) => void
  readonly later: Clock['later']
  readonly soon: Clock['soon']
  readonly report: Report
}

/** A score of at least this hides the post; replies get more benefit of the doubt. */
const threadScore = 0.9
const replyScore = 0.97

/** Posts that may wait: at most 32 MiB of text. */
const waitingMax = 1_024
const concurrentMax = 8
const triesMax = 5

/** Posts waiting to be screened. */
export class ScreeningQueue {
  readonly #report: Report
  readonly #waiting: Screened[] = []
  #onAdded: () => void = () => {}

  constructor(report: Report) {
    this.#report = report
  }

  /** Takes a post and returns immediately. */
  add(post: Screened): void {
    if (this.#waiting.length >= waitingMax) {
      this.#report('warn', 'screening.full', { event_id: post.id, room: post.room })
      return
    }
    this.#waiting.push(post)
    this.#onAdded()
  }

  onAdded(listener: () => void): void {
    this.#onAdded = listener
  }

  take(): Screened | undefined {
    return this.#waiting.shift()
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }
}

export class Screening {
  readonly #options: ScreeningOptions
  #inFlight = 0
  #scheduled = false

  constructor(options: ScreeningOptions) {
    this.#options = options
    options.queue.onAdded(() => this.#schedule())
  }

  /** One post per turn of the event loop: judging takes time, and answers go first. */
  #schedule(): void {
    if (this.#scheduled || this.#inFlight >= concurrentMax || this.#options.queue.isEmpty) return
    this.#scheduled = true
    this.#options.soon(() => {
      this.#scheduled = false
      const post = this.#options.queue.take()
      if (post === undefined) return
      this.#inFlight++
      void this.#screen(post).finally(() => {
        this.#inFlight--
        this.#schedule()
      })
      this.#schedule()
    })
  }

  async #screen(post: Screened): Promise<void> {
    const { id: event_id, room } = post
    try {
      const { score, rule, words } = await this.#options.judge(post)
      if (score < (post.isReply ? replyScore : threadScore)) return
      this.#hide(post, reasonOf(rule, words), { event_id, room, rule, score }, 1)
    } catch (error) {
      this.#options.report('warn', 'screening.failed', { event_id, room, why: String(error) })
    }
  }

  #hide(post: Screened, reason: string, facts: Readonly<Record<string, unknown>>, tries: number): void {
    this.#options.hide(post, reason, (hidden) => {
      if (hidden.ok) return this.#options.report('info', 'screening.hidden', facts)
      if (hidden.later !== undefined && tries < triesMax) {
        this.#options.later(() => this.#hide(post, reason, facts, tries + 1), hidden.later * 1_000)
        return
      }
      this.#options.report('info', 'screening.kept', { ...facts, why: hidden.words })
    })
  }
}

export function reasonOf(rule: string, words: string): string {
  const saw = words === '' ? '' : `, ${words}`
  return `Advertising: ${rule}${saw}. The owner or a moderator of this room may restore it; room.create makes a room of your own.`
}

/** Hides a post by a command that the board signs. The same post gives the same command, so hiding it again has no second effect. */
export function hideBy(boardAuthor: BoardAuthor, post: Screened, reason: string, done: (hidden: Hidden) => void): void {
  const fields = { operation: 'room.hide', event_id: post.id, reason }
  boardAuthor.send(fields, { cause: `screen:${post.id}`, at: post.at }, (reply) => {
    if (reply === undefined) return done({ ok: false, later: 1, words: 'no answer' })
    if (reply.status === 200) return done({ ok: true })
    const words = envelopeOf(reply).error?.message ?? ''
    const later = reply.status === 429 ? { later: reply.retryAfter ?? 1 } : {}
    done({ ok: false, words, ...later })
  })
}

/**
 * Queues posts that were accepted and not screened when the board last stopped. A hide has the timestamp of its post, so only posts within
 * the signature window can still be hidden. `now`: Unix seconds.
 */
export function resumeScreening(
  actors: Actors,
  queue: ScreeningQueue,
  operators: readonly string[],
  now: number,
): void {
  const since = now - windowSeconds
  actors.read({ op: 'screening.recent', args: { since }, reader: '' }, (found) => {
    if (found === undefined || !found.ok) return
    const { posts } = dataOf(found)
    for (const { author, ...post } of posts) if (author === undefined || !operators.includes(author)) queue.add(post)
  })
}
