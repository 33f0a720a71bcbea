/**
 * Screening: what becomes of posts in rooms whose policy says `promotion: moderate`, after they were accepted and answered.
 *
 * A post judged an advertisement is hidden by a signed command of the board's own identity; whether it still may be is the
 * room's decision, which looks at its policy again. A post that cannot be judged stays as it is. Nothing waits without bound:
 * what comes while the queue is full is not screened, and the log says so.
 */

import { windowSeconds } from '../../actors/records/write.ts'
import type { Clock } from '../clock.ts'
import type { Actors, BoardAuthor } from '../command/ports.ts'
import { envelopeOf } from '../format/reply.ts'
import { dataOf } from '../reads/read.ts'
import type { Judgement } from './advertising.ts'

/** An accepted public post of an author who does not run the room. */
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

/** What came of the wish to hide; `later`: seconds after which it is worth another try. */
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

/** At least so much hides; a reply is given more benefit of the doubt. */
const threadScore = 0.9
const replyScore = 0.97

/** Posts that may wait: 32 MiB of text at most. */
const waitingMax = 1_024
const atOnceMax = 8
const triesMax = 5

/** Posts that wait to be screened. */
export class ScreeningQueue {
  readonly #report: Report
  readonly #waiting: Screened[] = []
  #onAdded: () => void = () => {}

  constructor(report: Report) {
    this.#report = report
  }

  /** Takes a post and returns at once. */
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
  #underWay = 0
  #scheduled = false

  constructor(options: ScreeningOptions) {
    this.#options = options
    options.queue.onAdded(() => this.#schedule())
  }

  /** One post a turn of the event loop: judging is work, and answers go first. */
  #schedule(): void {
    if (this.#scheduled || this.#underWay >= atOnceMax || this.#options.queue.isEmpty) return
    this.#scheduled = true
    this.#options.soon(() => {
      this.#scheduled = false
      const post = this.#options.queue.take()
      if (post === undefined) return
      this.#underWay++
      void this.#screen(post).finally(() => {
        this.#underWay--
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

/**
 * Hides a post by a command that the board signs. The same post gives the same command, so that hiding it again has no
 * second effect.
 */
export function hideBy(voice: BoardAuthor, post: Screened, reason: string, done: (hidden: Hidden) => void): void {
  const fields = { operation: 'room.hide', event_id: post.id, reason }
  voice.say(fields, { cause: `screen:${post.id}`, at: post.at }, (reply) => {
    if (reply === undefined) return done({ ok: false, later: 1, words: 'no answer' })
    if (reply.status === 200) return done({ ok: true })
    const words = envelopeOf(reply).error?.message ?? ''
    const later = reply.status === 429 ? { later: reply.retryAfter ?? 1 } : {}
    done({ ok: false, words, ...later })
  })
}

/**
 * Queues what was accepted and not screened when the board last stopped. Hides are signed as of the time of the post, so only
 * posts inside the window of signatures are still of use. `now`: Unix seconds.
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
