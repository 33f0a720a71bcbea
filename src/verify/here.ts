/** Signatures checked in the calling thread: where cores are few, handing them to another one costs more than it gains. */
import { type BackendName, type Ed25519Backend, publicKeyBytes } from './backend.ts'
import { hasRightLengths, judge, verdictBadKey, verdictGood } from './batch.ts'
import type { Checks, VerdictCallback } from './verifier.ts'

export class ChecksHere implements Checks {
  readonly backend: BackendName
  readonly waiting = 0
  readonly #backend: Ed25519Backend

  constructor(backend: Ed25519Backend) {
    this.backend = backend.name
    this.#backend = backend
  }

  /** As of a Verifier; the callback runs before this returns. */
  verify(signature: Uint8Array, publicKey: Uint8Array, message: Uint8Array, callback: VerdictCallback): void {
    const item = { signature, publicKey, message }
    if (!hasRightLengths(item)) return callback(publicKey.length === publicKeyBytes ? 'bad_signature' : 'bad_key')
    const verdict = judge(this.#backend, item)
    if (verdict === verdictGood) callback('good')
    else callback(verdict === verdictBadKey ? 'bad_key' : 'bad_signature')
  }

  async close(): Promise<void> {}
}
