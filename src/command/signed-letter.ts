/** Letters of signed commands: what an actor is sent about the signer and what was signed, and what to decide. */

import type { AnyWriteName } from '../../actors/operations.ts'
import type { ArgsOf, ReplyOf, WriteLetter } from '../../actors/records/write.ts'
import type { Throttle } from '../rates/throttle.ts'
import { isOperator, standingOf } from './delegated.ts'
import type { LiveFacts } from './live-facts.ts'
import type { Decided } from './plan.ts'
import { signedBy, type Verified } from './reply.ts'

type SignedLetterOptions = {
  readonly news: LiveFacts
  readonly operators: ReadonlySet<string>
  readonly throttle: Pick<Throttle, 'factorOf'>
}

/** What the actor is given with a letter of this name; of a plan, whatever that gives. */
export type Given<Name extends AnyWriteName = never> = [Name] extends [never] ? object : ArgsOf<Name>
/** What it replies; to a retry, what it replied the first time. `sha`: as in Decided. */
export type Said<Name extends AnyWriteName = never> = [Name] extends [never]
  ? Decided
  : ReplyOf<Name> & Pick<Decided, 'sha'>

export function signedLetter<Name extends AnyWriteName = never>(
  { news, operators, throttle }: SignedLetterOptions,
  verified: Verified,
  { to, args, limited }: { readonly to: string; readonly args: Given<Name>; readonly limited: number },
): WriteLetter<Given<Name>, Said<Name>> {
  const { command, operation, signer, sha, door } = verified
  const { delegate } = signer
  const factor = throttle.factorOf(signer.id)
  return {
    op: operation.name,
    to,
    id: sha.subarray(0, 16),
    sha,
    author: signer.id,
    by: signedBy(verified),
    timestamp: command.timestamp,
    nonce: command.nonce,
    requestId: command.request_id ?? '',
    via: door.via,
    limited,
    ...(factor === 1 ? {} : { factor }),
    rotated: news.isRetired(signer.text),
    suspended: news.isSuspended(signer.id),
    ...(delegate === undefined ? {} : { delegated: standingOf(news, delegate) }),
    operator: isOperator(signer, operators),
    args,
  }
}
