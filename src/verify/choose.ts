/**
 * Which backend this machine verifies with: the fastest one that loads and tells true
 * from false.
 *
 * The order is fixed, not measured at start: libsodium does about 17,000 verifications a
 * second where OpenSSL does 8,000 and noble 400, and a quick measurement on a busy machine
 * would sometimes choose wrongly.
 */
import type { BackendName, Ed25519Backend } from './backend.ts'
import { createNobleBackend } from './noble.ts'
import { createOpensslBackend } from './openssl.ts'
import { createSodiumBackend } from './sodium.ts'

const makers: readonly (readonly [BackendName, () => Ed25519Backend])[] = [
  ['sodium', createSodiumBackend],
  ['openssl', createOpensslBackend],
  ['noble', createNobleBackend],
]

/** The fastest backend that loads and passes its self-test, or the named one if it does. Throws when none does. */
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

/** Two answers that must be yes and four that must be no. Under a millisecond, except for noble (8 ms). */
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
