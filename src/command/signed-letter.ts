/** Letters of signed commands: what an actor is told of who signed and what was signed, and what to decide. */
import type { WriteLetter } from '../../actors/write.ts'
import { isOperator, standingOf } from './delegated.ts'
import type { News } from './news.ts'
import { signedBy, type Verified } from './reply.ts'

export function signedLetter(
  { news, operators }: { readonly news: News; readonly operators: ReadonlySet<string> },
  verified: Verified,
  { to, args, limited }: { readonly to: string; readonly args: object; readonly limited: number },
): WriteLetter {
  const { command, operation, signer, sha, door } = verified
  const { delegate } = signer
  return {
    op: operation.name,
    to,
    id: sha.subarray(0, 16),
    sha,
    author: signer.id,
    by: signedBy(verified),
    timestamp: command.timestamp as number,
    nonce: command.nonce as string,
    requestId: (command.request_id as string | undefined) ?? '',
    via: door.via,
    limited,
    rotated: news.isRetired(signer.text),
    suspended: news.isSuspended(signer.id),
    ...(delegate === undefined ? {} : { delegated: standingOf(news, delegate) }),
    operator: isOperator(signer, operators),
    args: args as Record<string, unknown>,
  }
}
