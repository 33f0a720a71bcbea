/** The attachments named by the frames of a shard. */
import { join } from 'node:path'
import { fromFrame, RecordType } from '../../actors/records/record.ts'
import type { Disk } from '../../storage/disk.ts'
import type { Frame } from '../../storage/journal.ts'
import type { ReadNamed } from './journals-out.ts'

/** `<room>/<SHA-256 of the bytes, 64 hex>`, relative to the attachments directory; undefined if this frame names none. */
export function fileNamedIn(frame: Frame): string | undefined {
  if (frame.type !== RecordType.act) return undefined
  const record = fromFrame(frame)
  if (record.type !== RecordType.act || record.op !== 'blob.put') return undefined
  const { sha256 } = record.facts
  return sha256 instanceof Uint8Array ? `${record.room}/${Buffer.from(sha256).toString('hex')}` : undefined
}

/** Reads them from this directory. Files taken down since are missing. */
export function readNamedIn(disk: Disk, directory: string): ReadNamed {
  return (frame) => {
    const name = fileNamedIn(frame)
    if (name === undefined) return undefined
    const path = join(directory, name)
    return disk.fileExists(path) ? { name, bytes: disk.readWhole(path) } : undefined
  }
}
