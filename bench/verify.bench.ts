/**
 * What does our strict rule cost on top of each library, and what does the round trip to the verifying threads cost?
 *
 * The plain alternative is node:crypto with the key imported each time, as most programs do it.
 */

import { createPublicKey, verify } from 'node:crypto'
import { machine } from '../src/platform.ts'
import { type BackendName, chooseBackend } from '../src/verify/backends.ts'
import { Verifier } from '../src/verify/verifier.ts'
import { type Case, compare, looped } from './compare.ts'
import { messageBytes, rawVerifier, type SignedBytes, signedBytes } from './raw-limits.ts'
import type { Bench } from './report.ts'

const names: readonly BackendName[] = ['sodium', 'openssl', 'noble']
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex')
const inFlight = 64

export const verifyBench: Bench = {
  name: 'verify',
  question: 'What do our rule and our threads cost on top of the fastest library?',
  run: async ({ isQuick }) => {
    const items = signedBytes(64)
    const raw = rawVerifier()
    const limit = looped('libsodium alone, one core', 16, (n) => raw(items[n]!))
    const backends = names.map((name) => {
      const backend = chooseBackend(name)
      return looped(`${name} with our rule`, name === 'noble' ? 2 : 16, (n) => {
        const { signature, message, publicKey } = items[n]!
        if (!backend.verify(signature, message, publicKey)) throw new Error('a good signature fails')
      })
    })
    const plain = looped('plain: node:crypto, key imported each time', 8, (n) => importAndVerify(items[n]!))
    const one = await Verifier.start({ startPool: machine.startPool, threads: 1 })
    const two = await Verifier.start({ startPool: machine.startPool, threads: 2 })
    const pools = [threads('1 thread, 64 in flight', one, items), threads('2 threads, 64 in flight', two, items)]
    const rows = await compare(limit, [...backends, plain, ...pools], { isQuick, unit: 'verifications' })
    await one.close()
    await two.close()
    return [{ title: `Ed25519 over ${messageBytes} bytes, 64 keys`, rows }]
  },
}

function importAndVerify({ signature, message, publicKey }: SignedBytes): void {
  const key = createPublicKey({ key: Buffer.concat([spkiPrefix, publicKey]), format: 'der', type: 'spki' })
  if (!verify(undefined, message, key, signature)) throw new Error('a good signature fails')
}

/** Always 64 in flight, as with as many clients that each wait for their answer. */
function threads(name: string, verifier: Verifier, items: readonly SignedBytes[]): Case {
  const operations = 512
  const run = () =>
    new Promise<void>((resolve, reject) => {
      let sent = 0
      let done = 0
      const next = () => {
        const { signature, message, publicKey } = items[sent++ % items.length]!
        verifier.verify(signature, publicKey, message, (verdict) => {
          if (verdict !== 'good') reject(new Error(verdict))
          if (++done === operations) resolve()
          else if (sent < operations) next()
        })
      }
      for (let n = 0; n < inFlight; n++) next()
    })
  return { name, operations, run }
}
