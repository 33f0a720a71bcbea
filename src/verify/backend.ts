/**
 * What an Ed25519 backend is: one rule of acceptance that every backend keeps.
 *
 * A signature (R, S) over a message by a key A is accepted when, and only when,
 *
 *   1. A is 32 bytes, a canonical point of the prime-order group, and not the identity
 *      (so neither of small order nor with a torsion part);
 *   2. the signature is 64 bytes and S < L (RFC 8032, 5.1.7);
 *   3. encode([S]B - [k]A) equals R byte for byte, k = SHA-512(R || A || message) mod L:
 *      the cofactorless check, which also rules out every non-canonical R;
 *   4. R is not the identity. No honest signer makes one, it gives the secret scalar away,
 *      and libsodium refuses it; so do we, whichever backend is asked.
 *
 * What passes here passes in every Ed25519 library we know of, so an auditor never
 * disagrees with the board.
 */
export type BackendName = 'noble' | 'openssl' | 'sodium'

export interface Ed25519Backend {
  readonly name: BackendName
  /** True when the signature is good under the rule above. False for wrong lengths, never a throw. */
  verify(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean
  /** Part 1 of the rule: may this be a key at all? */
  checkKey(publicKey: Uint8Array): boolean
}

export const publicKeyBytes = 32
export const signatureBytes = 64

/** Part 4 of the rule. The identity has one canonical encoding: y = 1, x = 0. */
export function isIdentityR(signature: Uint8Array): boolean {
  if (signature[0] !== 1) return false
  for (let index = 1; index < 32; index += 1) if (signature[index] !== 0) return false
  return true
}
