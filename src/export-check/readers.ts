/** What reads the parts of an export: the calling thread, or threads beside it. */
import { threadFile } from '../program.ts'
import type { StartPool } from '../runtime/thread-pool.ts'
import { chooseBackend } from '../verify/backends.ts'
import { type ExportPart, type PartReading, readPart } from './part.ts'

export interface PartReader {
  /** Parts that may be asked for before the first is answered. */
  readonly partsMax: number
  /** Rejects only when its thread died. The bytes of the part are no longer the caller's. */
  read(part: ExportPart): PartReading | Promise<PartReading>
  close(): Promise<void>
}

/** Reads at once on this thread: a small file is done before threads would have started. */
export function readHere(backend = chooseBackend()): PartReader {
  return { partsMax: 1, read: (part) => readPart(part, backend), close: () => Promise.resolve() }
}

/** One part being read, one lying ready in the thread's own port. */
const partsPerThread = 2

/** Starts the threads, and returns when each of them can read. */
export async function readOnThreads(threads: number, startPool: StartPool): Promise<PartReader> {
  const pool = await startPool(threadFile('export-check'), { threads, tasksPerThread: partsPerThread })
  const asked = Array.from({ length: threads }, () => pool.run('isReady', undefined))
  try {
    // A thread that is ended while it loads its modules can take the process with it (V8: IsGraphAsync): each answers first.
    await Promise.allSettled(asked)
    await Promise.all(asked)
  } catch (error) {
    await pool.end()
    throw error
  }
  return {
    partsMax: threads * partsPerThread + 1,
    read: (part) => pool.run<PartReading>('read', part, { transfer: [part.bytes.buffer] }),
    close: () => pool.end(),
  }
}
