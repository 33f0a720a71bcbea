/** Screening at the command path: the hide that the board signs, and what was accepted and not screened when it last stopped. */

import { windowSeconds } from '../../actors/records/write.ts'
import type { Actors, BoardAuthor } from '../command/ports.ts'
import { envelopeOf } from '../format/reply.ts'
import { dataOf } from '../reads/read.ts'
import type { Hidden, Screened, ScreeningQueue } from './screening.ts'

/** The same post gives the same command, so that hiding it again has no second effect. */
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

/** `now`: Unix seconds. Hides are signed as of the time of the post, so only posts inside the window of signatures are still of use. */
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
