/** Readers for the parts of an export: on the calling thread, or on other threads. */
import { threadFile } from '../program.ts'
import { startReadyPool } from '../runtime/ready-pool.ts'
import type { StartPool } from '../runtime/thread-pool.ts'
import { chooseBackend } from '../verify/backends.ts'
import { type ExportPart, type PartReading, readPart } from './part.ts'

export interface PartReader {
  /** Parts that may be requested before the first is answered. */
  readonly partsMax: number
  /** Rejects only if its thread died. The caller gives up the bytes of the part. */
  read(part: ExportPart): PartReading | Promise<PartReading>
  close(): Promise<void>
}

/** Reads immediately on this thread: a small file is done before threads would have started. */
export function readOnThisThread(backend = chooseBackend()): PartReader {
  return { partsMax: 1, read: (part) => readPart(part, backend), close: () => Promise.resolve() }
}

/** One part being read, and one ready in the thread's port. */
const partsPerThread = 2

/** Starts the threads, and resolves when each of them can read. */
export async function readOnThreads(threads: number, startPool: StartPool): Promise<PartReader> {
  const file = threadFile('export-check')
  const { pool } = await startReadyPool(startPool, 'isReady', file, { threads, tasksPerThread: partsPerThread })
  return {
    partsMax: threads * partsPerThread + 1,
    read: (part) => pool.run<PartReading>('read', part, { transfer: [part.bytes.buffer] }),
    close: () => pool.end(),
  }
}
