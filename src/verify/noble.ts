/**
 * Ed25519 in plain JavaScript: works everywhere, and is the reference the fast backends
 * are tested against.
 *
 * noble checks the cofactored equation [8][S]B = [8]R + [8][k]A. With A and R both in the
 * prime-order group, multiplying by 8 loses nothing, and the equation is the cofactorless
 * one. So R has to be torsion-free here; the other backends compare R's bytes with a
 * multiple sum of torsion-free points, and so get the same for nothing.
 */
import { hashes, verify as nobleVerify, Point } from '@noble/ed25519'
import { sha512 } from '@noble/hashes/sha2.js'
import { type Ed25519Backend, isIdentityR, publicKeyBytes, signatureBytes } from './backend.ts'
import { KeyCache } from './key-cache.ts'

// noble brings no SHA-512 of its own for the synchronous calls.
hashes.sha512 = sha512

/** RFC 8032 decoding only (zip215 would take y >= p and x = 0 with a sign). */
const strictly = { zip215: false }

export function createNobleBackend(): Ed25519Backend {
  const keys = new KeyCache(isKeyPoint)
  const checkKey = (publicKey: Uint8Array) => publicKey.length === publicKeyBytes && keys.get(publicKey)
  return {
    name: 'noble',
    checkKey,
    verify(signature, message, publicKey) {
      if (signature.length !== signatureBytes || !checkKey(publicKey) || isIdentityR(signature)) return false
      // The equation first: it is the cheaper half, and refuses nearly all that will be refused.
      return nobleVerify(signature, message, publicKey, strictly) && isTorsionFree(signature.subarray(0, 32))
    },
  }
}

/** Is this the canonical encoding of a point of the prime-order group other than the identity? */
export function isKeyPoint(bytes: Uint8Array): boolean {
  const point = decode(bytes)
  return point !== undefined && !point.is0() && point.isTorsionFree()
}

function isTorsionFree(bytes: Uint8Array): boolean {
  return decode(bytes)?.isTorsionFree() ?? false
}

function decode(bytes: Uint8Array): Point | undefined {
  try {
    return Point.fromBytes(bytes, false)
  } catch {
    return undefined // RFC 8032, 5.1.3: decoding fails. That is an answer here, not an error.
  }
}
