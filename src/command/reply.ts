/**
 * Replies: what a door sends back, and the verified command that it is a reply to.
 */
import type { Signed } from '../../actors/record.ts'
import type { Refusal as Decided } from '../../actors/write.ts'
import type { Operation } from '../operations/operation.ts'
import { type Refusal, type RefusalCode, refusal, refusalBody, statusOf } from '../refusals.ts'
import type { ReadAnswer } from '../views/reads/read.ts'
import type { Command } from './check.ts'
import type { NoAnswer } from './ports.ts'
import type { Signer } from './signers.ts'

export type Door = {
  readonly via: string
  readonly address: string
  /** Calls back once when the client goes away before it is answered: whoever waits on its behalf stops. */
  readonly onGone?: (callback: () => void) => void
}

/** What the door sends; `undefined`: nothing, the connection is to be cut (the outcome is unknown). */
export type Reply = { readonly status: number; readonly body: string; readonly retryAfter?: number }
export type Respond = (reply: Reply | undefined) => void

/** A command whose signature is good, on its way to its actor. */
export type Verified = {
  readonly command: Command
  readonly operation: Operation
  readonly data: Readonly<Record<string, unknown>>
  readonly signer: Signer
  readonly signature: Buffer
  readonly bytes: Buffer
  readonly sha: Buffer
  readonly door: Door
}

/** What a record keeps of it. */
export function signedBy({ signer, signature, bytes }: Verified): Signed {
  const { key, delegate } = signer
  return { key, sig: signature, signed: bytes, ...(delegate === undefined ? {} : { for: delegate.proof }) }
}

export function refused(found: Refusal): Reply {
  return {
    status: statusOf[found.code],
    body: refusalBody(found),
    ...(found.retryAfter === undefined ? {} : { retryAfter: found.retryAfter }),
  }
}

/** A refusal that an actor made: its code is one of ours. */
export function fromActor(found: Decided): Reply {
  return refused({ ...found, code: found.code as RefusalCode })
}

/** The bytes of the day are used up. */
export function dailyReply(wait: number): Reply {
  return refused(
    refusal(
      'quota_exhausted',
      'this identity has written as many bytes as it may today: wait retry_after seconds',
      undefined,
      wait,
    ),
  )
}

export function readReply(answer: ReadAnswer | NoAnswer): Reply | undefined {
  if (answer === undefined) return undefined
  if (answer.ok) return { status: 200, body: `{"ok":true,"data":${answer.json}}` }
  return refused('refusal' in answer ? answer.refusal : answer.absent)
}
