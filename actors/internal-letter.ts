/** Letters that nobody signed: they have no nonce, and what comes of them no signature. */
import type { InternalWriteName } from './internal-operations.ts'
import { receiversOf } from './receive-urls/decide.ts'
import type { WriteLetter } from './write.ts'

const nothing = Buffer.alloc(64)

/** To the actor of somebody's receive URLs. `owner`: identity id of whom they belong to. */
export function ownLetter(op: InternalWriteName, owner: string, args: object): WriteLetter {
  return internalLetter(op, receiversOf(owner), owner, args)
}

/** `author`: identity id of whom it is about. */
export function internalLetter(op: InternalWriteName, to: string, author: string, args: object): WriteLetter {
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
    args: args as Readonly<Record<string, unknown>>,
  }
}
