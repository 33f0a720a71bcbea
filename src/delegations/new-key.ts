/** A key that is to act from now on, for an identity or as it: it must have signed the same bytes, and never have acted here. */

import { refusal } from '../../actors/kernel/refusals.ts'
import type { Found, Services } from '../command/plan.ts'
import type { Verified } from '../command/verified.ts'
import { decodeBytes32, decodeBytes64, identityId } from '../format/encoding.ts'

/** `target` is the key, `proof` its signature. As an identity of its own it would lose what is its. */
export function proveNewKey({ command, bytes }: Verified, services: Services, pass: (found: Found) => void): void {
  const key = decodeBytes32(command.target!)!
  const identity = identityId(key)
  services.verify(decodeBytes64(command.proof!)!, key, bytes, (verdict) => {
    if (verdict === 'overloaded')
      return pass({
        refusal: refusal('overloaded', 'too many signatures are waiting to be checked: try again', undefined, 1),
      })
    if (verdict === 'bad_key')
      return pass({ refusal: refusal('bad_key', 'target is not a canonical, torsion-free Ed25519 key', 'target') })
    if (verdict !== 'good') {
      const message = 'proof must be the signature of the new key (target) over the same bytes that you signed'
      return pass({ refusal: refusal('bad_signature', message, 'proof') })
    }
    // As this identity itself asks: what it did in private rooms counts too.
    services.read({ op: 'identity.get', args: { target: identity }, reader: identity }, (found) =>
      pass(found === undefined ? undefined : { args: { identity, used: found.ok } }),
    )
  })
}
