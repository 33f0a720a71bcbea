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

import { type KeyObject, verify as opensslVerify } from 'node:crypto'
import { createRequire } from 'node:module'
import { hashes, verify as nobleVerify, Point } from '@noble/ed25519'
import { sha512 } from '@noble/hashes/sha2.js'
import { BoundedMap } from '../../storage/bounded-map.ts'
import { publicKeyOf } from '../../storage/ed25519.ts'

export type BackendName = 'noble' | 'openssl' | 'sodium'

export interface Ed25519Backend {
  readonly name: BackendName
  /** True when the signature is good under the rule above. False for wrong lengths, never a throw. */
  verify(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean
  /** Part 1 of the rule: whether this may be a key at all. */
  checkKey(publicKey: Uint8Array): boolean
}

export const publicKeyBytes = 32
export const signatureBytes = 64

/** Part 4 of the rule. The identity has one canonical encoding: y = 1, x = 0. */
function isIdentityR(signature: Uint8Array): boolean {
  if (signature[0] !== 1) return false
  for (let index = 1; index < 32; index += 1) if (signature[index] !== 0) return false
  return true
}

/** About 300 bytes per entry, more with a KeyObject: a few MiB per thread when full. */
const cachedKeysMax = 8_192

/**
 * Caches facts about the most recently seen keys, so that each is examined once.
 *
 * A key costs a subgroup check (0.05 to 1 ms) and, for OpenSSL, an import that costs as much as a verification. The cache is bounded: a
 * flood of unknown keys evicts old ones, which costs their owners one more examination and others nothing.
 */
export class KeyCache<Fact> {
  readonly #facts: BoundedMap<string, Fact>
  readonly #examine: (publicKey: Uint8Array) => Fact

  constructor(examine: (publicKey: Uint8Array) => Fact, keysMax: number = cachedKeysMax) {
    this.#examine = examine
    this.#facts = new BoundedMap(keysMax)
  }

  get size(): number {
    return this.#facts.size
  }

  /** The fact about this key, cached or examined now. Evicts the least recently used. */
  get(publicKey: Uint8Array): Fact {
    const name = nameOf(publicKey)
    const known = this.#facts.touch(name)
    if (known !== undefined) return known
    const fact = this.#examine(publicKey)
    this.#facts.set(name, fact)
    return fact
  }
}

/** Latin-1 maps each byte to one character: one native call, and no two keys share a name. */
function nameOf(publicKey: Uint8Array): string {
  return Buffer.from(publicKey.buffer, publicKey.byteOffset, publicKey.byteLength).toString('latin1')
}

// noble does not include SHA-512 for synchronous calls.
hashes.sha512 = sha512

/** RFC 8032 decoding only (zip215 would accept y >= p and x = 0 with a sign). */
const strictly = { zip215: false }

/**
 * Ed25519 in plain JavaScript: works everywhere, and is the reference for testing the fast backends.
 *
 * noble checks the cofactored equation [8][S]B = [8]R + [8][k]A. With A and R both in the prime-order group, multiplying by 8 loses
 * nothing, and the equation equals the cofactorless one. So R has to be torsion-free here. The other backends compare R's bytes with a
 * multiple sum of torsion-free points, and so get the same for free.
 */
export function createNobleBackend(): Ed25519Backend {
  const keys = new KeyCache(isKeyPoint)
  const checkKey = (publicKey: Uint8Array) => publicKey.length === publicKeyBytes && keys.get(publicKey)
  return {
    name: 'noble',
    checkKey,
    verify(signature, message, publicKey) {
      if (signature.length !== signatureBytes || !checkKey(publicKey) || isIdentityR(signature)) return false
      // The equation first: it is the cheaper half, and rejects nearly everything that is invalid.
      return nobleVerify(signature, message, publicKey, strictly) && isTorsionFree(signature.subarray(0, 32))
    },
  }
}

/** Whether this is the canonical encoding of a point of the prime-order group other than the identity. */
function isKeyPoint(bytes: Uint8Array): boolean {
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

type Examined = { readonly key: KeyObject | undefined }

/**
 * Ed25519 by node:crypto: fast, and available wherever Node is.
 *
 * OpenSSL compares R's bytes with encode([S]B - [k]A) and rejects S >= L, which is the rule's middle part. But it imports any 32 bytes as a
 * key, including small-order and non-canonical ones, and accepts R = identity. Both are rejected here before OpenSSL is called.
 */
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

type Sodium = {
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean
  crypto_core_ed25519_is_valid_point(point: Uint8Array): boolean
}

/**
 * Ed25519 by libsodium: the fastest here, if its prebuilt binary loads.
 *
 * crypto_sign_verify_detached rejects S >= L and an R or A of small order, and compares R's bytes with encode([S]B - [k]A).
 * crypto_core_ed25519_is_valid_point is exactly the rule for keys: canonical, on the curve, in the prime-order group, not of small order.
 *
 * Throws the loader's error if there is no binary for this platform.
 */
export function createSodiumBackend(): Ed25519Backend {
  // By require and at the call: an import would crash the whole program if the binary is missing.
  const sodium: Sodium = createRequire(import.meta.url)('sodium-native')
  const keys = new KeyCache((publicKey) => sodium.crypto_core_ed25519_is_valid_point(publicKey))
  const checkKey = (publicKey: Uint8Array) => publicKey.length === publicKeyBytes && keys.get(publicKey)
  return {
    name: 'sodium',
    checkKey,
    verify(signature, message, publicKey) {
      // The binding accepts longer signatures and reads their first 64 bytes, so the length must be checked here.
      if (signature.length !== signatureBytes || !checkKey(publicKey)) return false
      return sodium.crypto_sign_verify_detached(signature, message, publicKey)
    },
  }
}

const makers: readonly (readonly [BackendName, () => Ed25519Backend])[] = [
  ['sodium', createSodiumBackend],
  ['openssl', createOpensslBackend],
  ['noble', createNobleBackend],
]

/**
 * Chooses the backend for this machine: the fastest one that loads and passes its self-test, or the named one if it does. Throws if none
 * does.
 *
 * The order is fixed, not measured at start: libsodium does about 17,000 verifications per second, OpenSSL 8,000 and noble 400, and a quick
 * measurement on a busy machine would sometimes choose wrongly.
 */
export function chooseBackend(wanted?: BackendName): Ed25519Backend {
  const failures: string[] = []
  for (const [name, make] of makers) {
    if (wanted !== undefined && wanted !== name) continue
    try {
      const backend = make()
      if (passesSelfTest(backend)) return backend
      failures.push(`${name}: gives wrong answers to its self-test`)
    } catch (error) {
      failures.push(`${name}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  throw new Error(`no Ed25519 backend works here: ${failures.join('; ')}`)
}

/** RFC 8032, 7.1, TEST 2: one byte of message. */
const known = {
  publicKey: Buffer.from('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c', 'hex'),
  message: Buffer.from('72', 'hex'),
  signature: Buffer.from(
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da' +
      '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    'hex',
  ),
}

/** With the identity as key, [S]B = R is a signature of every message: here S = 1, R = B. */
const identityKey = Buffer.from(`01${'00'.repeat(31)}`, 'hex')
const signatureOfAnything = Buffer.from(`58${'66'.repeat(31)}01${'00'.repeat(31)}`, 'hex')

export function isBackendName(name: unknown): name is BackendName {
  return makers.some(([known]) => known === name)
}

/** Two checks that must pass and four that must fail. Under a millisecond, except for noble (8 ms). */
export function passesSelfTest(backend: Ed25519Backend): boolean {
  const { publicKey, message, signature } = known
  const bent = Buffer.from(signature)
  bent[40] = bent[40]! ^ 1
  return (
    backend.checkKey(publicKey) &&
    backend.verify(signature, message, publicKey) &&
    !backend.verify(bent, message, publicKey) &&
    !backend.verify(signature, Buffer.from('73', 'hex'), publicKey) &&
    !backend.checkKey(identityKey) &&
    !backend.verify(signatureOfAnything, message, identityKey)
  )
}

export type SignatureItem = {
  readonly signature: Uint8Array
  readonly publicKey: Uint8Array
  readonly message: Uint8Array
}

/** The verdict bytes. Zero is not one of them, so a verdict that was never written cannot pass for one. */
export const verdictGood = 1

export const verdictBadKey = 2

export const verdictBadSignature = 3

/** Whether an item may be packed. */
export function hasRightLengths(item: Pick<SignatureItem, 'signature' | 'publicKey'>): boolean {
  return item.signature.length === signatureBytes && item.publicKey.length === publicKeyBytes
}

/** The verdict byte of one item, whose signature and key have the right lengths. */
export function judge(backend: Ed25519Backend, { signature, message, publicKey }: SignatureItem): number {
  if (backend.verify(signature, message, publicKey)) return verdictGood
  return backend.checkKey(publicKey) ? verdictBadSignature : verdictBadKey
}
