/**
 * The log's signer: an Ed25519 key, made from its 32-byte seed, that signs notes. Only the thread that owns the log may
 * hold one.
 */
import { sign } from 'node:crypto'
import { privateKeyOf, rawPublicKeyOf } from './ed25519.ts'
import { formatVkey, KEY_TYPE, keyIdOf, type Signer } from './note.ts'

/** Bytes of a seed: what the key file keeps. */
const SEED_BYTES = 32

/** A signer, and the public key that others pin to check it. */
export type NoteKey = { readonly signer: Signer; readonly vkey: string; readonly publicKey: Buffer }

/**
 * The signer of this name and seed. Ed25519 is deterministic (RFC 8032): the
 * same text is always signed with the same bytes.
 *
 * @throws RangeError when the seed has not 32 bytes, or the name cannot be a key's
 */
export function createNoteKey(name: string, seed: Uint8Array): NoteKey {
  if (seed.length !== SEED_BYTES) throw new RangeError(`a seed has ${SEED_BYTES} bytes, not ${seed.length}`)
  const privateKey = privateKeyOf(seed)
  const publicKey = rawPublicKeyOf(privateKey)
  const vkey = formatVkey({ name, type: KEY_TYPE.ed25519, publicKey })
  const keyId = keyIdOf(name, KEY_TYPE.ed25519, publicKey)
  return { signer: { name, keyId, sign: (text) => sign(null, text, privateKey) }, vkey, publicKey }
}
