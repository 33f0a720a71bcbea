/** The thread that checks parts of an export: piscina runs it in each worker. Stateless except for its cache of examined keys. */
import { type ExportPart, type PartReading, readPart } from '../export-check/part.ts'
import { chooseBackend } from '../verify/backends.ts'

const backend = chooseBackend()

export function read(part: ExportPart): PartReading {
  return readPart(part, backend)
}

/** Called once at start, so that a thread that cannot check signatures aborts the start. */
export function isReady(): boolean {
  return true
}
