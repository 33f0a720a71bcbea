/**
 * Ed25519 by libsodium: the fastest here, where its prebuilt binary loads.
 *
 * crypto_sign_verify_detached refuses S >= L, an R or A of small order, and compares R's
 * bytes with encode([S]B - [k]A). crypto_core_ed25519_is_valid_point is exactly the rule
 * for keys: canonical, on the curve, in the prime-order group, not of small order.
 */
import { createRequire } from 'node:module'
import { type Ed25519Backend, publicKeyBytes, signatureBytes } from './backend.ts'
import { KeyCache } from './key-cache.ts'

type Sodium = {
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean
  crypto_core_ed25519_is_valid_point(point: Uint8Array): boolean
}

/** Throws what the loader throws when there is no binary for this platform. */
export function createSodiumBackend(): Ed25519Backend {
  // By require and at the call: an import would take the whole program down where the binary is missing.
  const sodium: Sodium = createRequire(import.meta.url)('sodium-native')
  const keys = new KeyCache((publicKey) => sodium.crypto_core_ed25519_is_valid_point(publicKey))
  const checkKey = (publicKey: Uint8Array) => publicKey.length === publicKeyBytes && keys.get(publicKey)
  return {
    name: 'sodium',
    checkKey,
    verify(signature, message, publicKey) {
      // The binding takes longer signatures and reads their first 64 bytes: the length is ours to check.
      if (signature.length !== signatureBytes || !checkKey(publicKey)) return false
      return sodium.crypto_sign_verify_detached(signature, message, publicKey)
    },
  }
}
