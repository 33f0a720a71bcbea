/** Letters of signed commands: what an actor is sent about the signer and what was signed, and what to decide. */
import type { WriteLetter } from '../../actors/records/write.ts'
import type { Throttle } from '../rates/throttle.ts'
import { isOperator, standingOf } from './delegated.ts'
import type { LiveFacts } from './live-facts.ts'
import { signedBy, type Verified } from './reply.ts'

type SignedLetterOptions = {
  readonly news: LiveFacts
  readonly operators: ReadonlySet<string>
  readonly throttle: Pick<Throttle, 'factorOf'>
}

export function signedLetter(
  { news, operators, throttle }: SignedLetterOptions,
  verified: Verified,
  { to, args, limited }: { readonly to: string; readonly args: object; readonly limited: number },
): WriteLetter {
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
