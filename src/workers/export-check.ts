/** The thread that reads parts of an export: what piscina runs in each worker. Stateless but for the cache of examined keys. */
import { type ExportPart, type PartReading, readPart } from '../export-check/part.ts'
import { chooseBackend } from '../verify/backends.ts'

const backend = chooseBackend()

export function read(part: ExportPart): PartReading {
  return readPart(part, backend)
}

/** Asked once at start: a thread that cannot check signatures stops the start. */
export function isReady(): boolean {
  return true
}
