/**
 * Converts Ed25519 keys between node:crypto objects and their raw 32 bytes (RFC 8032). node:crypto accepts them only in
 * DER, where the bytes before the key are always the same (RFC 8410, sections 4 and 7).
 */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'

const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex')

/** `seed`: the 32 secret bytes. */
export function privateKeyOf(seed: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([pkcs8Prefix, seed]), format: 'der', type: 'pkcs8' })
}

/** The 32 public bytes of a private key. */
export function rawPublicKeyOf(privateKey: KeyObject): Buffer {
  return createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(spkiPrefix.length)
}

/** `raw`: the 32 public bytes. Does not check that they are a valid point. */
export function publicKeyOf(raw: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.concat([spkiPrefix, raw]), format: 'der', type: 'spki' })
}
