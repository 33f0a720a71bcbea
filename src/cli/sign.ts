/**
 * A signed command from its fields: the bytes to POST and the ids that the board will give.
 *
 * libsodium signs in 24 us what OpenSSL signs in 40 (an import signs thousands a second), so it is used where it
 * loads; Ed25519 is deterministic, both give the same 64 bytes (RFC 8032 section 5.1.6).
 */
import { createHash, randomBytes, sign as signWithOpenssl } from 'node:crypto'
import { createRequire } from 'node:module'
import { privateKeyOf, rawPublicKeyOf } from '../../storage/ed25519.ts'
import { commandId, signingBytes } from '../format/signing.ts'

export type Signer = {
  /** base64url, 43 characters. */
  readonly publicKey: string
  /** hex SHA-256 of the raw public key, 64 characters. */
  readonly id: string
  /** The 64 bytes of an Ed25519 signature. */
  sign(message: Uint8Array): Buffer
}

/** The fields of a command that its signer chooses; key, time, nonce and signature are added here. */
export type CommandFields = { readonly operation: string } & { readonly [field: string]: string | number | string[] }

export type SignedCommand = { readonly body: Buffer; readonly eventId: string; readonly sha256: string }

type Sodium = {
  crypto_sign_seed_keypair(publicKey: Buffer, secretKey: Buffer, seed: Uint8Array): void
  crypto_sign_detached(signature: Buffer, message: Uint8Array, secretKey: Buffer): void
}

const sodium = loadSodium()

function loadSodium(): Sodium | undefined {
  try {
    return createRequire(import.meta.url)('sodium-native') as Sodium
  } catch {
    return undefined
  }
}

/** `seed` = the 32 secret bytes of RFC 8032. */
export function signerFromSeed(seed: Uint8Array): Signer {
  return sodium === undefined ? opensslSigner(seed) : sodiumSigner(sodium, seed)
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

export type SignOptions = { readonly signer: Signer; readonly serviceId: string; readonly nowSeconds: number }

/** Signs `fields` as a command of `signer` at `nowSeconds` (Unix), with a fresh nonce of 16 random bytes. */
export function signCommand(fields: CommandFields, { signer, serviceId, nowSeconds }: SignOptions): SignedCommand {
  const command = { ...fields, public_key: signer.publicKey, timestamp: nowSeconds, nonce: freshNonce() }
  const bytes = signingBytes(serviceId, command)
  const signature = signer.sign(bytes)
  const { eventId, sha256 } = commandId(bytes)
  return { body: bodyOf(bytes, serviceId, signature), eventId, sha256: hexOf(sha256) }
}

/**
 * The command JSON to send. Its fields are already written in the signing bytes
 * `{"version":1,"service":…,"command":{…}}`: the inner object is cut out and the signature added, which costs less
 * than writing the JSON again.
 */
function bodyOf(bytes: Buffer, serviceId: string, signature: Buffer): Buffer {
  const start = `{"version":1,"service":${JSON.stringify(serviceId)},"command":`
  const inner = bytes.subarray(Buffer.byteLength(start), bytes.length - 2)
  return Buffer.concat([inner, Buffer.from(`,"signature":"${signature.toString('base64url')}"}`)])
}

const nonceBytes = 16
let nonces = Buffer.alloc(0)

/** Drawn 256 at a time: one call of the random generator costs as much as a hundred nonces. */
function freshNonce(): string {
  if (nonces.length < nonceBytes) nonces = randomBytes(256 * nonceBytes)
  const nonce = nonces.toString('base64url', 0, nonceBytes)
  nonces = nonces.subarray(nonceBytes)
  return nonce
}

function hexOf(hash: Uint8Array | string): string {
  return typeof hash === 'string' ? hash : Buffer.from(hash).toString('hex')
}
