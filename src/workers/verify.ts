/**
 * The verifying thread: what piscina runs in each worker. Stateless but for the cache of examined keys.
 */

import { workerData } from 'node:worker_threads'
import { type BackendName, chooseBackend } from '../verify/backends.ts'
import { judgeBatch, unpackBatch, type VerifyWorkerData } from '../verify/batch.ts'

// In a simulation it is no worker, and may choose.
const backend = chooseBackend((workerData as Partial<VerifyWorkerData> | null)?.backend)

export function verifyBatch(letter: ArrayBuffer): Uint8Array {
  return judgeBatch(backend, unpackBatch(letter))
}

/** What this thread verifies with: asked once at start, so that a thread that cannot verify stops the start. */
export function backendName(): BackendName {
  return backend.name
}
