/** Letters of the board's own to receive URLs. */
import { internalLetter } from '../records/internal-letter.ts'
import type { InternalWriteName } from '../records/internal-operations.ts'
import type { ArgsOf, ReplyOf, WriteLetter } from '../records/write.ts'
import { receiversOf } from './decide.ts'

/** To the actor of an identity's receive URLs. `owner`: identity id. */
export function ownLetter<Name extends InternalWriteName>(
  op: Name,
  owner: string,
  args: ArgsOf<Name>,
): WriteLetter<ArgsOf<Name>, ReplyOf<Name>> {
  return internalLetter(op, receiversOf(owner), owner, args)
}
