/** A letter that nobody signed, to the actor of somebody's receive URLs: it has no nonce, and what comes of it no signature. */
import { receiversOf } from '../../actors/receivers/decide.ts'
import type { WriteLetter } from '../../actors/write.ts'

const nothing = Buffer.alloc(64)

/** `owner`: identity id of whom the receive URLs belong to. */
export function ownLetter(op: string, owner: string, args: object): WriteLetter {
  return {
    op,
    to: receiversOf(owner),
    id: nothing.subarray(0, 16),
    sha: nothing.subarray(0, 32),
    author: owner,
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
