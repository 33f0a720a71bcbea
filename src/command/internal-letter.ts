/** Letters that nobody signed: they have no nonce, and what comes of them no signature. */
import type { ArgsOf } from '../../actors/deciders.ts'
import type { InternalWriteName } from '../../actors/internal-operations.ts'
import { receiversOf } from '../../actors/receive-urls/decide.ts'
import type { WriteLetter } from '../../actors/write.ts'

const nothing = Buffer.alloc(64)

/** To the actor of somebody's receive URLs. `owner`: identity id of whom they belong to. */
export function ownLetter<Name extends InternalWriteName>(op: Name, owner: string, args: ArgsOf<Name>): WriteLetter {
  return internalLetter(op, receiversOf(owner), owner, args)
}

/** `author`: identity id of whom it is about. */
export function internalLetter<Name extends InternalWriteName>(
  op: Name,
  to: string,
  author: string,
  args: ArgsOf<Name>,
): WriteLetter<ArgsOf<Name>> {
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
