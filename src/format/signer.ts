/**
 * Signs as one identity, from its seed.
 *
 * libsodium signs in 24 us what OpenSSL signs in 40 (an import signs thousands a second, a board each notice), so it is used where
 * it loads; Ed25519 is deterministic, both give the same 64 bytes (RFC 8032 section 5.1.6).
 */
import { createHash, sign as signWithOpenssl } from 'node:crypto'
import { createRequire } from 'node:module'
import { privateKeyOf, rawPublicKeyOf } from '../../storage/ed25519.ts'

export type Signer = {
  /** base64url, 43 characters. */
  readonly publicKey: string
  /** hex SHA-256 of the raw public key, 64 characters. */
  readonly id: string
  /** The 64 bytes of an Ed25519 signature. */
  sign(message: Uint8Array): Buffer
}

type Sodium = {
  crypto_sign_seed_keypair(publicKey: Buffer, secretKey: Buffer, seed: Uint8Array): void
  crypto_sign_detached(signature: Buffer, message: Uint8Array, secretKey: Buffer): void
}

let loaded: { readonly sodium: Sodium | undefined } | undefined

function loadSodium(): Sodium | undefined {
  try {
    return createRequire(import.meta.url)('sodium-native') as Sodium
  } catch {
    return undefined
  }
}

/** `seed` = the 32 secret bytes of RFC 8032. */
export function signerFromSeed(seed: Uint8Array): Signer {
  loaded ??= { sodium: loadSodium() }
  return loaded.sodium === undefined ? opensslSigner(seed) : sodiumSigner(loaded.sodium, seed)
}

function sodiumSigner(library: Sodium, seed: Uint8Array): Signer {
  const rawKey = Buffer.alloc(32)
  const secretKey = Buffer.alloc(64)
  library.crypto_sign_seed_keypair(rawKey, secretKey, seed)
  return signerOf(rawKey, (message) => {
    const signature = Buffer.alloc(64)
    library.crypto_sign_detached(signature, message, secretKey)
    return signature
  })
}

/** Exported for the test that holds both to the same bytes. */
export function opensslSigner(seed: Uint8Array): Signer {
  const key = privateKeyOf(seed)
  const rawKey = rawPublicKeyOf(key)
  return signerOf(rawKey, (message) => signWithOpenssl(null, message, key))
}

function signerOf(rawKey: Buffer, sign: (message: Uint8Array) => Buffer): Signer {
  const id = createHash('sha256').update(rawKey).digest('hex')
  return { publicKey: rawKey.toString('base64url'), id, sign }
}
