/**
 * The durable mark: records how far a journal was durable, in a file next to its segments, after it has been idle for a
 * while.
 *
 * Each frame states how far the frames before it were synced, but nothing states that for the newest one. If it is
 * damaged, it looks like a torn write, which recovery cuts. The mark closes this gap. It is supplementary evidence: a
 * missing or invalid mark says nothing.
 *
 * File `durable` in the directory of the journal, 32 bytes, little-endian, overwritten in place:
 *
 *   offset  bytes  field
 *        0      4  magic       "BSD" and version 1
 *        4     16  journal id
 *       20      8  seq         all frames up to this one are durable
 *       28      4  crc         CRC-32 (IEEE) of bytes 0..28
 */
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Disk, DiskFile, SyncFailed } from './disk.ts'
import { readSeq, writeSeq } from './frame.ts'

/** Evidence of how far a journal was durable: `by` names the source in sentences. `seq` 0: no evidence. */
export type Durable = { readonly seq: number; readonly by: string }

const bytesOfMark = 32
const crcAt = 28
const magicAndVersion = Buffer.from('BSD\x01', 'latin1')
export const durableMarkFile = (directory: string): string => join(directory, 'durable')

export function newestDurable(...known: readonly Durable[]): Durable {
  return known.reduce((newest, each) => (each.seq > newest.seq ? each : newest))
}

/** What the mark says about the journal with this id. */
export function markedDurable(disk: Disk, directory: string, journalId: Buffer): Durable {
  const path = durableMarkFile(directory)
  const bytes = readIfSound(disk, path)
  return { seq: isOfJournal(bytes, journalId) ? readSeq(bytes, 20) : 0, by: `the mark ${path}` }
}

/** Whether there is a mark that says nothing, because it is damaged or of another journal. */
export function isMarkUnusable(disk: Disk, directory: string, journalId: Buffer): boolean {
  const path = durableMarkFile(directory)
  return disk.fileExists(path) && !isOfJournal(readIfSound(disk, path), journalId)
}

function isOfJournal(bytes: Buffer, journalId: Buffer): boolean {
  return (
    bytes.length === bytesOfMark &&
    bytes.readUInt32LE(crcAt) === crc32(bytes.subarray(0, crcAt)) &&
    bytes.subarray(0, 4).equals(magicAndVersion) &&
    bytes.subarray(4, 20).equals(journalId)
  )
}

/** An unreadable mark says nothing: the journal works without it. */
function readIfSound(disk: Disk, path: string): Buffer {
  try {
    return disk.fileExists(path) ? disk.readWhole(path) : Buffer.alloc(0)
  } catch {
    return Buffer.alloc(0)
  }
}

/** Writes the mark of a journal. */
export class DurableMark {
  readonly #disk: Disk
  readonly #directory: string
  readonly #bytes = Buffer.alloc(bytesOfMark)
  #file: DiskFile | undefined
  /** The seq in the file, synced or being synced. */
  #kept = 0
  /** The seq to write next, once the pending sync is done. */
  #wanted = 0
  #isSyncing = false

  constructor(disk: Disk, directory: string, journalId: Buffer) {
    this.#disk = disk
    this.#directory = directory
    magicAndVersion.copy(this.#bytes)
    journalId.copy(this.#bytes, 4)
  }

  /** Writes and syncs the mark for `seq`. Throws DiskFull, SyncFailed or a system error; the journal is not affected. */
  keep(seq: number): void {
    if (seq !== this.#kept || this.#isSyncing) this.#write(seq).sync()
  }

  /**
   * `keep` with the sync in the background: on a slow disk the owner of the journal does not wait for it. `failed`:
   * called if the sync fails.
   */
  keepLater(seq: number, failed: (error: SyncFailed) => void): void {
    this.#wanted = seq
    if (seq === this.#kept || this.#isSyncing) return
    const file = this.#write(seq)
    this.#isSyncing = true
    file.syncLater((error) => {
      this.#isSyncing = false
      // While a sync is pending, a closed descriptor's number could be reused for another file.
      if (this.#file === undefined) file.close()
      else if (error !== undefined) failed(error)
      else this.keepLater(this.#wanted, failed)
    })
  }

  close(): void {
    if (!this.#isSyncing) this.#file?.close()
    this.#file = undefined
  }

  #write(seq: number): DiskFile {
    this.#kept = seq
    writeSeq(this.#bytes, seq, 20)
    this.#bytes.writeUInt32LE(crc32(this.#bytes.subarray(0, crcAt)), crcAt)
    this.#file ??= this.#open()
    this.#file.writeAt(this.#bytes, 0)
    return this.#file
  }

  #open(): DiskFile {
    const path = durableMarkFile(this.#directory)
    if (this.#disk.fileExists(path)) return this.#disk.openFile(path, 'write')
    const file = this.#disk.openFile(path, 'create')
    this.#disk.syncDirectory(this.#directory)
    return file
  }
}
