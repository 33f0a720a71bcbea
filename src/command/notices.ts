/** Notices of a work: posts of the board in its thread, to its worker; as a reply they reach who asked for it. */
import { type NoticeFacts, noticeText } from '../views/notices.ts'
import type { Voice } from './voice.ts'

export type Notices = {
  readonly work: string
  readonly room: string
  readonly page: string
  /** Identity id, or ''. */
  readonly worker: string
  readonly notices: readonly NoticeFacts[]
}

type Saying = {
  readonly say: Voice['say']
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

/** Says them in order. `done(false)`: not all of them could be said now; what is said again has no second effect. */
export function sayNotices(
  saying: Saying,
  { work, room, page, worker, notices }: Notices,
  done: (said: boolean) => void,
): void {
  const [first, ...rest] = notices
  if (first === undefined) return done(true)
  const fields = { operation: 'post', room, page, text: noticeText(first), kind: 'notice', reply_to: work }
  const cause = { cause: `${work}:${first.number}`, at: first.at }
  saying.say(worker === '' ? fields : { ...fields, to: worker }, cause, (reply) => {
    if (reply === undefined || reply.status === 429) return done(false)
    if (reply.status !== 200) saying.report({ work, transition: first.number, answer: reply.body })
    sayNotices(saying, { work, room, page, worker, notices: rest }, done)
  })
}
