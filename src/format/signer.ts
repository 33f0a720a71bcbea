/**
 * Signers: an identity created from its seed, and the board's own. Notices and posts from receive URLs are ordinary signed commands.
 *
 * The board's nonce is an HMAC over the cause of the post. The same cause gives the same bytes and the same id, so a repetition has no
 * second effect, and the nonce cannot be guessed.
 */

import { createHash, createHmac, hash, sign as signWithOpenssl } from 'node:crypto'
import { createRequire } from 'node:module'
import { boardHandle } from '../../actors/records/handles.ts'
import type { Signed } from '../../actors/records/record.ts'
import { privateKeyOf, rawPublicKeyOf } from '../../storage/ed25519.ts'
import { signingBytes } from './signing.ts'

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

/** Null if it does not load on this machine. */
let sodium: Sodium | null | undefined

function loadSodium(): Sodium | null {
  try {
    return createRequire(import.meta.url)('sodium-native') as Sodium
  } catch {
    return null
  }
}

/** Number of keys and signatures created. */
let made = 0

/** Loading libsodium takes 40 ms, which it saves over this many operations. */
const opensslMax = 1_000

/**
 * Creates the signer of one identity from its seed.
 *
 * libsodium signs in 24 us, OpenSSL in 40. An import signs thousands per second and a board signs each notice, so libsodium is used for
 * large numbers, if it loads. Ed25519 is deterministic, so both give the same 64 bytes (RFC 8032 section 5.1.6).
 *
 * `seed` = the 32 secret bytes of RFC 8032.
 */
export function signerFromSeed(seed: Uint8Array): Signer {
  if (++made > opensslMax) return quickSigner(seed)
  const openssl = opensslSigner(seed)
  // The caller may overwrite its own copy.
  const kept = Uint8Array.from(seed)
  let signer = openssl
  return {
    ...openssl,
    sign(message) {
      if (++made > opensslMax && signer === openssl) signer = quickSigner(kept)
      return signer.sign(message)
    },
  }
}

function quickSigner(seed: Uint8Array): Signer {
  sodium ??= loadSodium()
  return sodium === null ? opensslSigner(seed) : sodiumSigner(sodium, seed)
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

/** Exported for the test that checks that both give the same bytes. */
export function opensslSigner(seed: Uint8Array): Signer {
  const key = privateKeyOf(seed)
  const rawKey = rawPublicKeyOf(key)
  return signerOf(rawKey, (message) => signWithOpenssl(null, message, key))
}

function signerOf(rawKey: Buffer, sign: (message: Uint8Array) => Buffer): Signer {
  const id = createHash('sha256').update(rawKey).digest('hex')
  return { publicKey: rawKey.toString('base64url'), id, sign }
}

export type Fields = { readonly operation: string } & Readonly<Record<string, string | number | readonly string[]>>
/** The cause, which is unique, and when it came into being (Unix seconds). */
export type Cause = { readonly cause: string; readonly at: number }

/** The board's own public key, and its seed. */
type BoardKeys = { readonly publicKey: string; readonly seed: Buffer }

/** Signs with the board's own key. */
export class BoardSigner {
  readonly #serviceId: string
  readonly #identity: BoardKeys
  #signer: Signer | undefined

  constructor({ serviceId, identity }: { readonly serviceId: string; readonly identity: BoardKeys }) {
    this.#serviceId = serviceId
    this.#identity = identity
  }

  /** A command as sent to a board. */
  command(fields: Fields, cause: Cause): Buffer {
    const { command, signature } = this.#sign(fields, cause)
    return Buffer.from(JSON.stringify({ ...command, signature: signature.toString('base64url') }))
  }

  #sign(fields: Fields, { cause, at }: Cause) {
    const { seed, publicKey } = this.#identity
    const nonce = createHmac('sha256', seed).update(cause).digest('base64url')
    const named = fields.operation === 'post' ? { handle: boardHandle } : {}
    const command = { ...named, ...fields, public_key: publicKey, timestamp: at, nonce }
    const bytes = signingBytes(this.#serviceId, command)
    this.#signer ??= signerFromSeed(seed)
    return { command, bytes, signature: this.#signer.sign(bytes) }
  }

  /** The same command, as a letter to an actor that posts it. `sha`: of the signing bytes. */
  signed(fields: Fields, cause: Cause): { readonly sha: Buffer; readonly by: Signed } {
    const { bytes, signature } = this.#sign(fields, cause)
    const key = Buffer.from(this.#identity.publicKey, 'base64url')
    return { sha: hash('sha256', bytes, 'buffer'), by: { key, sig: signature, signed: bytes } }
  }
}
