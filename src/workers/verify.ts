/** The verifying thread: piscina runs it in each worker. Stateless except for its cache of examined keys. */

import { workerData } from 'node:worker_threads'
import { type BackendName, chooseBackend } from '../verify/backends.ts'
import { judgeBatch, unpackBatch, type VerifyWorkerData } from '../verify/batch.ts'

// In a simulation it is not a worker, and chooses for itself.
const backend = chooseBackend((workerData as Partial<VerifyWorkerData> | null)?.backend)

export function verifyBatch(letter: ArrayBuffer): Uint8Array {
  return judgeBatch(backend, unpackBatch(letter))
}

/** Which backend this thread uses. Called once at start, so that a thread that cannot verify aborts the start. */
export function backendName(): BackendName {
  return backend.name
}
