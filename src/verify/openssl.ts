/**
 * Ed25519 by node:crypto: fast, and there wherever Node is.
 *
 * OpenSSL compares R's bytes with encode([S]B - [k]A) and refuses S >= L, which is the
 * rule's middle part. It imports any 32 bytes as a key without complaint, small order and
 * non-canonical ones too, and takes R = identity; both are refused here before it is asked.
 */
import { type KeyObject, verify as opensslVerify } from 'node:crypto'
import { publicKeyOf } from '../../storage/ed25519.ts'
import { type Ed25519Backend, isIdentityR, publicKeyBytes, signatureBytes } from './backend.ts'
import { KeyCache } from './key-cache.ts'
import { isKeyPoint } from './noble.ts'

type Examined = { readonly key: KeyObject | undefined }

export function createOpensslBackend(): Ed25519Backend {
  // Importing costs as much as verifying, so the cache holds the imported key.
  const keys = new KeyCache(examine)
  return {
    name: 'openssl',
    checkKey: (publicKey) => publicKey.length === publicKeyBytes && keys.get(publicKey).key !== undefined,
    verify(signature, message, publicKey) {
      if (signature.length !== signatureBytes || publicKey.length !== publicKeyBytes) return false
      const { key } = keys.get(publicKey)
      return key !== undefined && !isIdentityR(signature) && opensslVerify(undefined, message, key, signature)
    },
  }
}

function examine(publicKey: Uint8Array): Examined {
  return { key: isKeyPoint(publicKey) ? publicKeyOf(publicKey) : undefined }
}
