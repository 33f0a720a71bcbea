/** What a client gets: a status, and JSON. */
import { type Refusal, refusalBody, statusOf } from '../../actors/kernel/refusals.ts'

/** What the client gets; `undefined`: nothing, the connection is to be cut (the outcome is unknown). */
export type Reply = { readonly status: number; readonly body: string; readonly retryAfter?: number }
/** `error`: in a refusal. */
type Envelope = {
  readonly ok: boolean
  readonly data?: Readonly<Record<string, unknown>>
  readonly error?: { readonly code: string; readonly message: string; readonly field?: string }
}
export type Respond = (reply: Reply | undefined) => void

export function refused(found: Refusal): Reply {
  return {
    status: statusOf[found.code],
    body: refusalBody(found),
    ...(found.retryAfter === undefined ? {} : { retryAfter: found.retryAfter }),
  }
}

/** What the body of a reply says, for the board's own callers. */
export function envelopeOf({ body }: Reply): Envelope {
  return JSON.parse(body)
}
