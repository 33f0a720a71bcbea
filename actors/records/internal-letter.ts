/** Letters of the board's own, which are not signed: they have no nonce, and records made of them have no signature. */
import type { InternalWriteName } from './internal-operations.ts'
import type { ArgsOf, ReplyOf, WriteLetter } from './write.ts'

const nothing = Buffer.alloc(64)

/** `author`: the identity id that it is about. */
export function internalLetter<Name extends InternalWriteName>(
  op: Name,
  to: string,
  author: string,
  args: ArgsOf<Name>,
): WriteLetter<ArgsOf<Name>, ReplyOf<Name>> {
  return {
    op,
    to,
    id: nothing.subarray(0, 16),
    sha: nothing.subarray(0, 32),
    author,
    by: { key: nothing.subarray(0, 32), sig: nothing, signed: nothing.subarray(0, 0) },
    timestamp: 0,
    nonce: '',
    requestId: '',
    via: 'receiver',
    limited: 0,
    rotated: false,
    suspended: false,
    operator: false,
    args,
  }
}
