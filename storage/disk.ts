/**
 * The disk: the only file that syncs, so every durability rule can be read in one place.
 *
 * Calls are synchronous, because each owner of files is a thread of its own. Exceptions are `writeAtomicLater` and
 * `openForReading`, for files that the main thread writes and reads. What each promise needs:
 *
 *   appended bytes    pwrite, fdatasync of the file (covers its size)
 *   a new file        the above, then fsync of its directory (covers its name)
 *   a replaced file   write `x.tmp`, fsync, rename over `x`, fsync of the directory
 *
 * After one failed sync nothing that is read back can be trusted: the kernel may have dropped the dirty pages, and a
 * second sync may falsely succeed. So a file whose sync failed is poisoned for good, and its owner has to start over
 * from what the disk holds.
 */

import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  statfsSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { type FileHandle, open, rename } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/** Files hold private rooms and keys: only the owner may read them. */
const fileMode = 0o600
const directoryMode = 0o700

/** A sync was refused by the kernel: what the file holds on disk is unknown. */
export class SyncFailed extends Error {
  readonly path: string
  constructor(path: string, cause?: unknown) {
    super(`sync of ${path} failed; its content on disk is unknown until it is opened again`, { cause })
    this.name = 'SyncFailed'
    this.path = path
  }
}

/** No space on the disk (ENOSPC), over quota (EDQUOT), or over the largest file allowed (EFBIG). */
export class DiskFull extends Error {
  readonly path: string
  constructor(path: string, cause?: unknown) {
    super(`no space to write ${path}`, { cause })
    this.name = 'DiskFull'
    this.path = path
  }
}

/** Bytes that were durable are not what was written. Never repaired silently: an operator has to look. */
export class Damage extends Error {
  readonly path: string
  /** Byte offset of the first bad structure in the file. */
  readonly offset: number
  readonly expected: string
  readonly found: string
  constructor(facts: { path: string; offset: number; expected: string; found: string }) {
    super(`${facts.path} is damaged at byte ${facts.offset}: expected ${facts.expected}, found ${facts.found}`)
    this.name = 'Damage'
    this.path = facts.path
    this.offset = facts.offset
    this.expected = facts.expected
    this.found = facts.found
  }
}

/** One open file. The interface is the seam through which tests hand in a failing disk. */
export interface DiskFile {
  readonly path: string
  /** Bytes in the file now. */
  size(): number
  /** Fills `into` from `position`; returns the bytes read, fewer than asked only at the end of the file. */
  readAt(into: Uint8Array, position: number): number
  /** Writes all of `bytes`. Throws DiskFull (part may be written), SyncFailed when poisoned, or the error of the system. */
  writeAt(bytes: Uint8Array, position: number): void
  /** fdatasync. Throws SyncFailed, after which every writeAt, truncate and sync throws SyncFailed. */
  sync(): void
  /** As `sync`, beside other work: `done` gets the SyncFailed, or nothing once the bytes are durable. Never called before it returns. */
  syncLater(done: (failed?: SyncFailed) => void): void
  truncate(size: number): void
  /** Closing twice is harmless, and nothing else may follow: it throws. Closing does not sync. */
  close(): void
}

/** `create` fails when the file exists. The caller must call `syncDirectory` before it promises anything. */
type OpenMode = 'read' | 'write' | 'create'
export type OpenFile = (path: string, mode: OpenMode) => DiskFile

/** Opens a real file. Throws DiskFull, or the error of the system (ENOENT, EEXIST, EACCES, EROFS). */
export function openFile(path: string, mode: OpenMode): DiskFile {
  return new RealFile(path, mode)
}

class RealFile implements DiskFile {
  readonly path: string
  readonly #descriptor: number
  #poison: SyncFailed | undefined
  #closed = false

  constructor(path: string, mode: OpenMode) {
    this.path = path
    this.#descriptor = openOrFull(path, openFlags[mode], fileMode)
  }

  /** The process may have given the number of a closed file to another one. */
  get #open(): number {
    if (this.#closed) throw new Error(`${this.path} is closed`)
    return this.#descriptor
  }

  size(): number {
    return fstatSync(this.#open).size
  }

  readAt(into: Uint8Array, position: number): number {
    let total = 0
    while (total < into.length) {
      const count = readSync(this.#open, into, total, Math.min(into.length - total, callBytesMax), position + total)
      if (count === 0) break
      total += count
    }
    return total
  }

  writeAt(bytes: Uint8Array, position: number): void {
    if (this.#poison) throw this.#poison
    writeAll(this.#open, bytes, position, this.path)
  }

  sync(): void {
    if (this.#poison) throw this.#poison
    const descriptor = this.#open
    try {
      fdatasyncSync(descriptor)
    } catch (cause) {
      this.#poison = new SyncFailed(this.path, cause)
      throw this.#poison
    }
  }

  syncLater(done: (failed?: SyncFailed) => void): void {
    if (this.#poison) throw this.#poison
    fdatasync(this.#open, (cause) => {
      if (cause === null) return done()
      this.#poison = new SyncFailed(this.path, cause)
      done(this.#poison)
    })
  }

  truncate(size: number): void {
    if (this.#poison) throw this.#poison
    ftruncateSync(this.#open, size)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    closeSync(this.#descriptor)
  }
}

const openFlags: Readonly<Record<OpenMode, number>> = {
  read: constants.O_RDONLY,
  write: constants.O_RDWR,
  create: constants.O_RDWR | constants.O_CREAT | constants.O_EXCL,
}

/** Of one system call: Node counts them in 31 bits, and the column of a snapshot can be longer. */
const callBytesMax = 2 ** 30

// A full disk shows as a short count first and as an error only on the next call.
function writeAll(descriptor: number, bytes: Uint8Array, position: number, path: string): void {
  let total = 0
  while (total < bytes.length) {
    let count: number
    try {
      count = writeSync(descriptor, bytes, total, Math.min(bytes.length - total, callBytesMax), position + total)
    } catch (cause) {
      throw isFull(cause) ? new DiskFull(path, cause) : cause
    }
    if (count === 0) throw new DiskFull(path)
    total += count
  }
}

function isFull(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code
  return code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG'
}

/** Makes the names in a directory durable: creations, renames, removals. Throws SyncFailed. */
export function syncDirectory(path: string): void {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    fsyncSync(descriptor)
  } catch (cause) {
    throw new SyncFailed(path, cause)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Replaces a whole file, by one piece or by several in their order. After a crash it holds the old bytes or the new
 * ones; once this has returned, the new ones. One writer per path. Throws DiskFull, SyncFailed or a system error; the
 * old file is then unchanged, unless only the last directory sync failed.
 */
export function writeAtomic(path: string, bytes: Uint8Array | readonly Uint8Array[], mode: number = fileMode): void {
  const temporary = `${path}.tmp`
  // A leftover of a crash may have another mode or be a link: never write into it.
  unlinkIfThere(temporary)
  const descriptor = openOrFull(temporary, openFlags.create, mode)
  try {
    fchmodSync(descriptor, mode)
    let at = 0
    for (const part of bytes instanceof Uint8Array ? [bytes] : bytes) {
      writeAll(descriptor, part, at, path)
      at += part.length
    }
    try {
      fsyncSync(descriptor)
    } catch (cause) {
      throw new SyncFailed(path, cause)
    }
  } catch (error) {
    unlinkIfThere(temporary)
    throw error
  } finally {
    closeSync(descriptor)
  }
  renameDurable(temporary, path)
}

// Creating a name can run out of space as well: the directory may need a new block.
function openOrFull(path: string, flags: number, mode: number): number {
  try {
    return openSync(path, flags, mode)
  } catch (cause) {
    throw isFull(cause) ? new DiskFull(path, cause) : cause
  }
}

/**
 * The same without waiting for the disk, for a path that several may write at once: in the end it holds the bytes of
 * one of them. Makes the directory. Rejects with DiskFull, SyncFailed or a system error.
 */
export async function writeAtomicLater(path: string, bytes: Uint8Array): Promise<void> {
  const directory = dirname(path)
  makeDirectory(directory)
  const temporary = `${path}.${randomBytes(8).toString('hex')}.tmp`
  try {
    const file = await open(temporary, 'wx', fileMode)
    try {
      await file.writeFile(bytes)
      await syncLater(file, path)
    } finally {
      await file.close()
    }
    await rename(temporary, path)
    const names = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY)
    try {
      await syncLater(names, directory)
    } finally {
      await names.close()
    }
  } catch (error) {
    unlinkIfThere(temporary)
    throw isFull(error) ? new DiskFull(path, error) : error
  }
}

async function syncLater(file: FileHandle, path: string): Promise<void> {
  try {
    await file.sync()
  } catch (cause) {
    throw new SyncFailed(path, cause)
  }
}

/** A file that is read without waiting for the disk. */
export interface ReadHandle {
  readonly size: number
  /** Fills `into` from `position`; the bytes read, fewer than asked only at the end of the file. */
  read(into: Uint8Array, position: number): Promise<number>
  close(): Promise<void>
}

/** Undefined: there is no such file. */
export async function openForReading(path: string): Promise<ReadHandle | undefined> {
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const { size } = await file.stat()
  return {
    size,
    read: async (into, position) => (await file.read(into, 0, into.length, position)).bytesRead,
    close: () => file.close(),
  }
}

/** Renames over whatever `to` is. The content of `from` must be synced already. */
export function renameDurable(from: string, to: string): void {
  renameSync(from, to)
  syncDirectory(dirname(to))
  if (dirname(from) !== dirname(to)) syncDirectory(dirname(from))
}

/** Removes a file; a power cut may bring it back. A missing file is fine. */
export function removeUnsynced(path: string): void {
  unlinkIfThere(path)
}

/** Removes a file for good; a missing file is fine. */
export function removeFile(path: string): void {
  unlinkIfThere(path)
  syncDirectory(dirname(path))
}

function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** Makes a directory and its missing parents (mode 0700), each name durable. */
export function makeDirectory(path: string): void {
  const full = resolve(path)
  if (existsSync(full)) return
  makeDirectory(dirname(full))
  try {
    mkdirSync(full, { mode: directoryMode })
  } catch (error) {
    // Another process may have made it meanwhile. Not `recursive`, which never returns where nothing can be made
    // (/proc).
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  syncDirectory(dirname(full))
}

/** Names of the plain files in a directory, sorted by code unit. Throws ENOENT. */
export function listFiles(directory: string): string[] {
  const entries = readdirSync(directory, { withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name)
    .sort()
}

/** Names of the directories in a directory, sorted by code unit. Throws ENOENT. */
export function listDirectories(directory: string): string[] {
  const entries = readdirSync(directory, { withFileTypes: true })
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()
}

/** Throws the error of the system where it does not say, such as EACCES: what cannot be seen is not what does not exist. */
export function fileExists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined
}

/** A whole file at once; for files whose size is bounded by their format. */
export function readWhole(path: string): Buffer {
  return readFileSync(path)
}

/** Bytes that an unprivileged process may still write on the file system of `directory`. */
export function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize
}
