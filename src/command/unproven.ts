/** The proof of work that this board requires of posts, and of requests of works, which are posts too. */

import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { requestsOfWork } from '../../actors/records/write.ts'
import { proofWanted } from '../../actors/rooms/policy.ts'
import { provenBits } from '../format/proof-of-work.ts'
import { isGiven } from './check.ts'
import { isOperator } from './delegated.ts'
import type { Verified } from './reply.ts'

/** Operations whose text is a post. */
const posting: ReadonlySet<string> = new Set(['post', ...requestsOfWork])

/** Why the proof of this command is not enough, or undefined. */
export function unproven(
  { operation, command, sha, door, signer }: Verified,
  { proofBits, operators }: { readonly proofBits: number; readonly operators: ReadonlySet<string> },
): Refusal | undefined {
  if (proofBits === 0 || !posting.has(operation.name) || !isGiven(command.text)) return undefined
  // The board's own identity, and its operators.
  if (door.via === 'board' || isOperator(signer, operators)) return undefined
  const proof = isGiven(command.proof) ? command.proof : ''
  if (provenBits(proof, sha.toString('hex')) >= proofBits) return undefined
  return refusal('proof_required', proofWanted('this board', proofBits), 'proof')
}
