/**
 * Checks the signatures of a stored record: its author’s; if a delegate signed, that of the identity over the delegation; and of a move to
 * another key, that of the new key.
 */
import { createHash } from 'node:crypto'
import { operationByName } from '../../actors/operations.ts'
import { ActsOf, commandIn, type Delegated, type Signed } from '../../actors/records/record.ts'
import { dataOf, textOf } from './signed-line.ts'

export type Verify = (signature: Uint8Array, message: Uint8Array, key: Uint8Array) => boolean

/** `to`: a public key, `proof`: its signature over the signed bytes, both base64url. */
type MoveFacts = { readonly to: string; readonly proof: string }

/** Moves of an identity to another key. */
export const moves = new ActsOf<MoveFacts>('identity.rotate')

/** Whether the new key has signed the move too. `message`: the signed bytes, complete. */
export function isProven({ to, proof }: MoveFacts, message: Uint8Array, verify: Verify): boolean {
  return verify(Buffer.from(proof, 'base64url'), message, Buffer.from(to, 'base64url'))
}

/** What is wrong with the signatures; undefined if nothing is. `message`: the signed bytes, complete. */
export function signatureFault(by: Signed, message: Uint8Array, verify: Verify): string | undefined {
  if (!verify(by.sig, message, by.key)) return 'its signature does not verify'
  return by.for === undefined ? undefined : delegationFault(by.for, by, verify)
}

function delegationFault(
  { id, key, sig, signed }: Delegated,
  by: Pick<Signed, 'key' | 'signed'>,
  verify: Verify,
): string | undefined {
  if (!createHash('sha256').update(signed).digest().subarray(0, 16).equals(id))
    return 'the id of its delegation is not the hash of the signed bytes'
  const made = commandIn(signed)
  if (made.operation !== 'delegation.create' || made.target !== Buffer.from(by.key).toString('base64url'))
    return 'its delegation is not for the key that signed'
  const scope = operationByName.get(textOf(commandIn(by.signed).operation))?.scope
  const { scopes } = dataOf(made)
  if (scope === undefined || !Array.isArray(scopes) || !scopes.includes(scope))
    return 'its delegation does not cover this operation'
  return verify(sig, signed, key) ? undefined : 'the signature of its delegation does not verify'
}
