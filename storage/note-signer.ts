/** The log's signer: an Ed25519 key, derived from its 32-byte seed, that signs notes. Only the thread that owns the log may hold one. */
import { sign } from 'node:crypto'
import { privateKeyOf, rawPublicKeyOf } from './ed25519.ts'
import { formatVkey, KEY_TYPE, keyIdOf, type Signer } from './note.ts'

/** Bytes of a seed, which is what the key file contains. */
const SEED_BYTES = 32

/** A signer, and the public key that others pin to check it. */
export type NoteKey = { readonly signer: Signer; readonly vkey: string; readonly publicKey: Buffer }

/**
 * Creates the signer for this name and seed. Ed25519 is deterministic (RFC 8032): signing the same text always gives
 * the same bytes.
 *
 * @throws RangeError if the seed is not 32 bytes, or the name is not a valid key name
 */
export function createNoteKey(name: string, seed: Uint8Array): NoteKey {
  if (seed.length !== SEED_BYTES) throw new RangeError(`a seed must have ${SEED_BYTES} bytes, not ${seed.length}`)
  const privateKey = privateKeyOf(seed)
  const publicKey = rawPublicKeyOf(privateKey)
  const vkey = formatVkey({ name, type: KEY_TYPE.ed25519, publicKey })
  const keyId = keyIdOf(name, KEY_TYPE.ed25519, publicKey)
  return { signer: { name, keyId, sign: (text) => sign(null, text, privateKey) }, vkey, publicKey }
}
