/** What a client gets: a status, and JSON. */
import { type Refusal, refusalBody, statusOf } from '../../actors/kernel/refusals.ts'

/** What the client gets; `undefined`: nothing, the connection is to be cut (the outcome is unknown). */
export type Reply = { readonly status: number; readonly body: string; readonly retryAfter?: number }
export type Respond = (reply: Reply | undefined) => void

export function refused(found: Refusal): Reply {
  return {
    status: statusOf[found.code],
    body: refusalBody(found),
    ...(found.retryAfter === undefined ? {} : { retryAfter: found.retryAfter }),
  }
}
