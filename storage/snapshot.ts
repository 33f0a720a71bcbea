/**
 * Snapshots: an owner's state at a journal position, so that a start replays only the journal's tail.
 *
 * Snapshots are an optimization, never the source of truth: deleting all of them only makes a start slower. File `<seq,
 * 20 digits>.snapshot`, little-endian:
 *
 *   offset  bytes  field
 *        0      4  magic       "BSS" and version 2
 *        4     16  journal id
 *       20      8  seq         the state holds all frames up to this one
 *       28      4  n           columns
 *       32      4  crc         CRC-32 (IEEE) of bytes 0..32 and all after this field
 *       36   8+8n  lengths     of the state, then of each column
 *              …  state, then the columns one after the other
 *
 * Columns are the large arrays of a state. Each is read into its own memory, which can grow.
 */
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { Damage, type Disk, type DiskFile, unlessUnreadable } from './disk.ts'
import { readSeq, writeSeq } from './frame.ts'

/** The one in use, plus one in case it turns out to be unreadable. */
const snapshotsKept = 2

const suffix = '.snapshot'
const magicAndVersion = Buffer.from('BSS\x02', 'latin1')
const headerBytes = 36
const crcAt = 32
const lengthBytes = 8

/** The saved form of a state. */
export type Image = { readonly bytes: Uint8Array; readonly columns: readonly Uint8Array[] }
/** Each column is at the start of its own ArrayBuffer, whose size is a power of two bytes, and is followed by zeros. */
export type Snapshot = Image & { readonly seq: number }

/** The contents of a snapshot. `seq`: the durable frame after which the state looks like this. */
type Saved = Image & { readonly journalId: Buffer; readonly seq: number }

/**
 * Saves a state atomically. Removes all but the newest two snapshots, and leftovers of an interrupted one. Throws
 * DiskFull, SyncFailed or a system error; the older snapshots are then unchanged.
 */
export function save(disk: Disk, directory: string, saved: Saved): void {
  const header = begin(disk, directory, saved)
  const parts = [saved.bytes, ...saved.columns]
  header.writeUInt32LE(checksum(header, parts), crcAt)
  disk.writeAtomic(pathOf(directory, saved.seq), [header, ...parts])
  removeOld(disk, directory)
}

/** Bytes written at a time in the background: some 2 ms. */
const pieceBytes = 1024 * 1024

/** Saves a state piece by piece while its owner does other work: nothing in its arrays may change in the meantime. */
export class SnapshotWriter {
  readonly #disk: Disk
  readonly #directory: string
  readonly #path: string
  readonly #header: Buffer
  readonly #file: DiskFile
  /** The pieces left to write, in order. */
  readonly #pieces: Generator<Uint8Array>
  #at: number
  #crc: number
  #isGivenUp = false

  /** Throws as `save` does. */
  constructor(disk: Disk, directory: string, saved: Saved) {
    this.#disk = disk
    this.#directory = directory
    this.#path = pathOf(directory, saved.seq)
    this.#header = begin(disk, directory, saved)
    this.#crc = checksum(this.#header, [])
    this.#at = this.#header.length
    this.#pieces = piecesOf([saved.bytes, ...saved.columns])
    this.#file = disk.openFile(this.#temporary, 'create')
  }

  /** Writes a piece; false if there are no more. Throws DiskFull or a system error, after which the writer must be given up. */
  step(): boolean {
    const { value: piece } = this.#pieces.next()
    if (piece === undefined) {
      this.#header.writeUInt32LE(this.#crc, crcAt)
      this.#file.writeAt(this.#header, 0)
      return false
    }
    this.#crc = crc32(piece, this.#crc)
    this.#file.writeAt(piece, this.#at)
    this.#at += piece.length
    return true
  }

  /** Call after the last piece: makes this the newest snapshot once it is durable. `done` receives any error. */
  finish(done: (failed?: unknown) => void): void {
    this.#file.syncLater((failed) => {
      if (this.#isGivenUp) return
      this.#file.close()
      try {
        if (failed !== undefined) throw failed
        this.#disk.renameDurable(this.#temporary, this.#path)
        removeOld(this.#disk, this.#directory)
        done()
      } catch (error) {
        done(error)
      }
    })
  }

  /** Removes what was written; after this `finish` does not call `done`. */
  giveUp(): void {
    this.#isGivenUp = true
    this.#file.close()
    this.#disk.removeUnsynced(this.#temporary)
  }

  get #temporary(): string {
    return `${this.#path}.tmp`
  }
}

function* piecesOf(parts: readonly Uint8Array[]): Generator<Uint8Array> {
  for (const part of parts)
    for (let at = 0; at < part.length; at += pieceBytes) yield part.subarray(at, at + pieceBytes)
}

/** Removes the leftovers of an interrupted snapshot; returns the header without its checksum. */
function begin(disk: Disk, directory: string, { journalId, seq, bytes, columns }: Saved): Buffer {
  disk.makeDirectory(directory)
  // Each has a different name, so no later snapshot would overwrite it.
  for (const name of disk.listFiles(directory))
    if (name.endsWith(`${suffix}.tmp`)) disk.removeUnsynced(join(directory, name))
  const parts = [bytes, ...columns]
  const header = Buffer.alloc(headerBytes + parts.length * lengthBytes)
  magicAndVersion.copy(header)
  journalId.copy(header, 4)
  writeSeq(header, seq, 20)
  header.writeUInt32LE(columns.length, 28)
  for (const [n, { length }] of parts.entries()) writeSeq(header, length, headerBytes + n * lengthBytes)
  return header
}

function removeOld(disk: Disk, directory: string): void {
  for (const old of snapshotSeqs(disk, directory).slice(snapshotsKept)) disk.removeFile(pathOf(directory, old))
}

/**
 * The newest valid snapshot of this journal; invalid ones and those of other journals are skipped. `onUnreadable`:
 * called for those that the disk fails to read.
 */
export function loadNewest(
  disk: Disk,
  directory: string,
  journalId: Buffer,
  onUnreadable: (path: string, problem: string) => void = () => {},
): Snapshot | undefined {
  for (const seq of snapshotSeqs(disk, directory)) {
    const path = pathOf(directory, seq)
    const image = unlessUnreadable(
      () => readValid(disk, path, journalId, seq),
      (problem) => onUnreadable(path, problem),
    )
    if (image !== undefined) return { seq, ...image }
  }
  return undefined
}

/** The newest frame covered by the snapshots of this journal, according to their headers; 0 if there are none. Reads only the headers. */
export function reachOf(disk: Disk, directory: string, journalId: Buffer): number {
  for (const seq of disk.fileExists(directory) ? snapshotSeqs(disk, directory) : []) {
    const head = unlessUnreadable(() => headOf(disk, pathOf(directory, seq)))
    const isHead = head?.subarray(0, 4).equals(magicAndVersion) === true
    if (isHead && head.subarray(4, 20).equals(journalId) && readSeq(head, 20) === seq) return seq
  }
  return 0
}

function headOf(disk: Disk, path: string): Buffer {
  const file = disk.openFile(path, 'read')
  try {
    const head = Buffer.alloc(headerBytes)
    return head.subarray(0, file.readAt(head, 0))
  } finally {
    file.close()
  }
}

/** `seqMax` is the last durable seq. A valid snapshot beyond it proves that the journal has lost acknowledged frames, and throws Damage. */
export function checkReached(directory: string, seq: number, seqMax: number): void {
  if (seq <= seqMax) return
  const expected = `a journal with frame ${seq}, which this snapshot holds`
  const found = `a journal that ends at ${seqMax}`
  throw new Damage({ path: pathOf(directory, seq), offset: 20, expected, found })
}

/**
 * Every snapshot that a start would not use. The contents of valid ones are not compared with the frames they were made
 * from. `isDamage`: the snapshot is valid and proves that the journal, which ends at `seqMax`, has lost frames.
 */
export function* badSnapshots(
  disk: Disk,
  directory: string,
  journalId: Buffer,
  seqMax: number,
): Generator<{ readonly path: string; readonly problem: string; readonly isDamage: boolean }, void, undefined> {
  for (const seq of disk.fileExists(directory) ? snapshotSeqs(disk, directory) : []) {
    const path = pathOf(directory, seq)
    let problem = 'its checksum, journal id or frame number does not match'
    const sound = unlessUnreadable(
      () => readValid(disk, path, journalId, seq),
      (unreadable) => (problem = unreadable),
    )
    if (sound === undefined) yield { path, problem, isDamage: false }
    else if (seq > seqMax)
      yield { path, problem: `it holds frame ${seq} of a journal that ends at ${seqMax}`, isDamage: true }
  }
}

function readValid(disk: Disk, path: string, journalId: Buffer, seq: number): Image | undefined {
  const file = disk.openFile(path, 'read')
  try {
    const start = Buffer.alloc(headerBytes)
    if (file.readAt(start, 0) < headerBytes || !start.subarray(0, 4).equals(magicAndVersion)) return undefined
    const count = 1 + start.readUInt32LE(28)
    const size = file.size()
    if (headerBytes + count * lengthBytes > size) return undefined
    const header = Buffer.alloc(headerBytes + count * lengthBytes)
    file.readAt(header, 0)
    const lengths = Array.from({ length: count }, (_, n) => readSeq(header, headerBytes + n * lengthBytes))
    // Checked before memory is allocated for them.
    if (lengths.reduce((sum, length) => sum + length, header.length) !== size) return undefined
    let at = header.length
    const parts = lengths.map((length) => {
      const part = new Uint8Array(new ArrayBuffer(capacityFor(length)), 0, length)
      file.readAt(part, at)
      at += length
      return part
    })
    if (header.readUInt32LE(crcAt) !== checksum(header, parts)) return undefined
    if (!header.subarray(4, 20).equals(journalId) || readSeq(header, 20) !== seq) return undefined
    const [bytes, ...columns] = parts
    return { bytes: Buffer.from(bytes!.buffer, 0, bytes!.length), columns }
  } finally {
    file.close()
  }
}

/** The smallest power of two that holds this many bytes. */
export function capacityFor(bytes: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(8, bytes)))
}

function checksum(header: Buffer, parts: readonly Uint8Array[]): number {
  let crc = crc32(header.subarray(headerBytes), crc32(header.subarray(0, crcAt)))
  // An empty part has no pieces: zlib restarts the checksum when given an empty view.
  for (const piece of piecesOf(parts)) crc = crc32(piece, crc)
  return crc
}

function pathOf(directory: string, seq: number): string {
  return join(directory, `${String(seq).padStart(20, '0')}${suffix}`)
}

/** Newest first. */
function snapshotSeqs(disk: Disk, directory: string): number[] {
  const names = disk.listFiles(directory).filter((name) => /^\d{20}\.snapshot$/.test(name))
  return names.map((name) => Number(name.slice(0, 20))).reverse()
}
