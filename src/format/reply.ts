/** A reply to a client: a status, and JSON. */
import { type Refusal, refusalBody, statusOf } from '../../actors/kernel/refusals.ts'

/** What the client gets. `undefined`: nothing, and the connection must be closed, because the outcome is unknown. */
export type Reply = { readonly status: number; readonly body: string | Uint8Array; readonly retryAfter?: number }
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

/** The body of a reply as text. */
export function bodyOf({ body }: Pick<Reply, 'body'>): string {
  return typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
}

/** The parsed body, for the board's own callers. */
export function envelopeOf(reply: Reply): Envelope {
  return JSON.parse(bodyOf(reply))
}
