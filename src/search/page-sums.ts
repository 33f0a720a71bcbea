/**
 * A checksum for every page of the search index. SQLite has none, and a changed byte in a list of words leaves a well-formed page that
 * gives wrong answers.
 *
 * The database file changes only when the write-ahead log is checkpointed into it, which is done here: first the checksums of the pages to
 * be written are saved, then the pages are written. A page that is also in the log is not checked: the log has its own checksums, and while
 * it holds the page nothing reads the copy in the file.
 *
 * File `index.sums`: "BSP" and version 1, a CRC-32 of the rest (little-endian), then a CRC-32 for each page.
 */
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { type Disk, type DiskFile, sizeOfFile } from '../../storage/disk.ts'
import type { DatabaseSync } from '../sqlite.ts'

const magicAndVersion = Buffer.from('BSP\x01', 'latin1')
const headBytes = 8
const pageBytes = 4_096
const walHeadBytes = 32
const walFrameHeadBytes = 24
/** Pages checked per step: about 1 ms. */
const pagesPerStep = 128
/** The write-ahead log is checkpointed when it exceeds this. */
const walBytesMax = 4 * 1024 * 1024

/** A page of the index is not what was written. */
export class BadPage extends Error {
  override readonly name = 'BadPage'
}

const fileIn = (directory: string): string => join(directory, 'index.db')
const walIn = (directory: string): string => join(directory, 'index.db-wal')
const sumsIn = (directory: string): string => join(directory, 'index.sums')

/** Checks all pages, a few in each step. Throws BadPage. An index of an old release, without checksums, is accepted as it is. */
export function* checkPages(disk: Disk, directory: string): Generator<number, void, undefined> {
  const sums = readSums(disk, directory)
  if (sums === undefined || !disk.fileExists(fileIn(directory))) return
  const { pages: held } = pagesInWal(disk, directory)
  const file = disk.openFile(fileIn(directory), 'read')
  try {
    const bytes = Buffer.allocUnsafe(pagesPerStep * pageBytes)
    for (let page = 0; page < sums.length; page += pagesPerStep) {
      const filled = file.readAt(bytes, page * pageBytes)
      for (let at = 0; at < pagesPerStep && page + at < sums.length; at++) {
        if (held.has(page + at + 1)) continue
        const found = bytes.subarray(at * pageBytes, Math.min(filled, (at + 1) * pageBytes))
        // The log may have been checkpointed between two steps.
        if (crc32(found) !== sums[page + at] && isWrong(disk, directory, page + at, found))
          throw new BadPage(
            `page ${page + at + 1} of ${file.path} (byte ${(page + at) * pageBytes}) is not what was written`,
          )
      }
      yield filled
    }
  } finally {
    file.close()
  }
}

function isWrong(disk: Disk, directory: string, page: number, found: Uint8Array): boolean {
  if (pagesInWal(disk, directory).pages.has(page + 1)) return false
  const sum = readSums(disk, directory)?.[page]
  return sum !== undefined && sum !== crc32(found)
}

/** Maintains the checksums of one open index. */
export class PageSums {
  readonly #disk: Disk
  readonly #directory: string
  readonly #database: DatabaseSync
  #sums: number[]

  constructor(disk: Disk, directory: string, database: DatabaseSync) {
    this.#disk = disk
    this.#directory = directory
    this.#database = database
    // From now on only `putIn` writes to the file.
    database.exec('PRAGMA wal_autocheckpoint = 0')
    this.#sums = readSums(disk, directory) ?? sumsOf(disk, fileIn(directory))
  }

  /** Checkpoints the write-ahead log if it is large. */
  afterCommit(): void {
    const wal = walIn(this.#directory)
    if (this.#disk.fileExists(wal) && sizeOfFile(this.#disk, wal) > walBytesMax) this.putIn()
  }

  /** Checkpoints the write-ahead log and truncates it. No transaction may be open. */
  putIn(): void {
    const { pages, count } = pagesInWal(this.#disk, this.#directory)
    if (pages.size > 0) {
      this.#sums.length = Math.min(this.#sums.length, count)
      for (const [page, sum] of pages) if (page <= count) this.#sums[page - 1] = sum
      this.#write()
    }
    this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  }

  #write(): void {
    const bytes = Buffer.alloc(headBytes + this.#sums.length * 4)
    magicAndVersion.copy(bytes)
    for (const [at, sum] of this.#sums.entries()) bytes.writeUInt32LE(sum, headBytes + at * 4)
    bytes.writeUInt32LE(crc32(bytes.subarray(headBytes)), 4)
    this.#disk.writeAtomic(sumsIn(this.#directory), bytes)
  }
}

/** Undefined if there are none. Throws BadPage if they are damaged themselves. */
function readSums(disk: Disk, directory: string): number[] | undefined {
  const path = sumsIn(directory)
  if (!disk.fileExists(path)) return undefined
  const bytes = disk.readWhole(path)
  const isSound =
    bytes.length >= headBytes &&
    bytes.subarray(0, 4).equals(magicAndVersion) &&
    bytes.readUInt32LE(4) === crc32(bytes.subarray(headBytes))
  if (!isSound) throw new BadPage(`${path} is not what was written`)
  return Array.from({ length: (bytes.length - headBytes) / 4 }, (_, at) => bytes.readUInt32LE(headBytes + at * 4))
}

function sumsOf(disk: Disk, path: string): number[] {
  const file = disk.openFile(path, 'read')
  try {
    const bytes = Buffer.allocUnsafe(pageBytes)
    return Array.from({ length: Math.ceil(file.size() / pageBytes) }, (_, page) =>
      crc32(bytes.subarray(0, file.readAt(bytes, page * pageBytes))),
    )
  } finally {
    file.close()
  }
}

type HeldPages = {
  /** Page number (from 1) -> checksum of its newest committed bytes. */
  readonly pages: ReadonlyMap<number, number>
  /** Number of database pages after the newest commit. */
  readonly count: number
}

/** The pages that committed transactions have left in the write-ahead log (SQLite file format, section 4). */
function pagesInWal(disk: Disk, directory: string): HeldPages {
  const path = walIn(directory)
  if (!disk.fileExists(path)) return { pages: new Map(), count: 0 }
  const file = disk.openFile(path, 'read')
  try {
    return committedPages(file)
  } finally {
    file.close()
  }
}

function committedPages(file: DiskFile): HeldPages {
  const pages = new Map<number, number>()
  const open = new Map<number, number>()
  let count = 0
  const head = Buffer.alloc(walHeadBytes)
  if (file.readAt(head, 0) < walHeadBytes) return { pages, count }
  const frame = Buffer.alloc(walFrameHeadBytes + pageBytes)
  for (let at = walHeadBytes; file.readAt(frame, at) === frame.length; at += frame.length) {
    // Frames of an earlier round, which are already in the file, have different salts.
    if (!frame.subarray(8, 16).equals(head.subarray(16, 24))) break
    open.set(frame.readUInt32BE(0), crc32(frame.subarray(walFrameHeadBytes)))
    const pagesAfter = frame.readUInt32BE(4)
    if (pagesAfter === 0) continue
    // A commit. Frames after the last commit were rolled back.
    count = pagesAfter
    for (const [page, sum] of open) pages.set(page, sum)
    open.clear()
  }
  return { pages, count }
}
