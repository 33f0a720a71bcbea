/**
 * The real disk of this machine. This is the only file that syncs, so every durability rule is in one place. What each
 * guarantee takes:
 *
 *   appended bytes    pwrite, fdatasync of the file (covers its size)
 *   a new file        the above, then fsync of its directory (covers its name)
 *   a replaced file   write `x.tmp`, fsync, rename over `x`, fsync of the directory
 */

import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  type Dirent,
  existsSync,
  fchmodSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  read,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { type FileHandle, open, rename } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { type Disk, type DiskFile, DiskFull, type OpenMode, type ReadHandle, SyncFailed } from './disk.ts'
import { readPace } from './read-pace.ts'

/** Files hold private rooms and keys: only the owner may read them. */
const fileMode = 0o600
const directoryMode = 0o700

/** Prefetching fills the page cache. Bytes read into this buffer are discarded. */
const unused = Buffer.allocUnsafeSlow(16 * 1024)

function readsAreSlow(): boolean {
  return readPace.isSlow(performance.now())
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

  /** Guards the descriptor: after closing, the process may reuse its number for another file. */
  get #open(): number {
    if (this.#closed) throw new Error(`${this.path} is closed`)
    return this.#descriptor
  }

  size(): number {
    return fstatSync(this.#open).size
  }

  readAt(into: Uint8Array, position: number): number {
    const begun = performance.now()
    let total = 0
    try {
      while (total < into.length) {
        const count = readSync(this.#open, into, total, Math.min(into.length - total, callBytesMax), position + total)
        if (count === 0) break
        total += count
      }
    } catch (cause) {
      throw naming(this.path, cause)
    }
    readPace.note(into.length, begun, performance.now())
    return total
  }

  prefetch(position: number, bytes: number): void {
    if (this.#closed || !readsAreSlow()) return
    // If the file is closed before this read runs, it fails, or reads another file in vain.
    read(this.#descriptor, unused, 0, Math.min(bytes, unused.length), position, () => {})
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

/** Limit for one system call: Node counts bytes in 31 bits, and the column of a snapshot can be longer. */
const callBytesMax = 2 ** 30

// A full disk shows first as a short count, and as an error only on the next call.
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

/** A failed read says what went wrong, but not in which file: adds the path. */
function naming(path: string, cause: unknown): unknown {
  if (!(cause instanceof Error && 'syscall' in cause) || 'path' in cause) return cause
  return Object.assign(cause, { path, message: `${cause.message} '${path}'` })
}

function readWhole(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw naming(path, cause)
  }
}

function syncDirectory(path: string): void {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    fsyncSync(descriptor)
  } catch (cause) {
    throw new SyncFailed(path, cause)
  } finally {
    closeSync(descriptor)
  }
}

function writeAtomic(path: string, bytes: Uint8Array | readonly Uint8Array[], mode: number = fileMode): void {
  const temporary = `${path}.tmp`
  // A leftover from a crash may have another mode or be a link: never write into it.
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

// Creating a name can also run out of space: the directory may need a new block.
function openOrFull(path: string, flags: number, mode: number): number {
  try {
    return openSync(path, flags, mode)
  } catch (cause) {
    throw isFull(cause) ? new DiskFull(path, cause) : cause
  }
}

async function writeAtomicLater(path: string, bytes: Uint8Array): Promise<void> {
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

async function openForReading(path: string): Promise<ReadHandle | undefined> {
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
    read: async (into, position) => {
      try {
        return (await file.read(into, 0, into.length, position)).bytesRead
      } catch (cause) {
        throw naming(path, cause)
      }
    },
    close: () => file.close(),
  }
}

function renameDurable(from: string, to: string): void {
  renameSync(from, to)
  syncDirectory(dirname(to))
  if (dirname(from) !== dirname(to)) syncDirectory(dirname(from))
}

function removeFile(path: string): void {
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

function makeDirectory(path: string): void {
  const full = resolve(path)
  if (existsSync(full)) return
  makeDirectory(dirname(full))
  try {
    mkdirSync(full, { mode: directoryMode })
  } catch (error) {
    // Another process may have created it in the meantime. `recursive` is not used: it never returns where nothing can be created (/proc).
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  syncDirectory(dirname(full))
}

function listed(directory: string, isWanted: (entry: Dirent) => boolean): string[] {
  const entries = readdirSync(directory, { withFileTypes: true })
  return entries
    .filter(isWanted)
    .map((entry) => entry.name)
    .sort()
}

/** Includes links to directories: an operator may keep part of a board on another volume. */
function isDirectory(entry: Dirent): boolean {
  if (!entry.isSymbolicLink()) return entry.isDirectory()
  return statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.isDirectory() === true
}

async function replaceLater(path: string, text: string): Promise<void> {
  const file = await open(`${path}.tmp`, 'w', fileMode)
  try {
    await file.writeFile(text)
    await file.datasync()
  } finally {
    await file.close()
  }
  await rename(`${path}.tmp`, path)
}

function stat(path: string): ReturnType<Disk['stat']> {
  const found = statSync(path)
  return { isFile: found.isFile(), mode: found.mode }
}

function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize
}

/** Descriptors that this process may open; Node has already raised the soft limit to the hard one. Infinity if unknown. */
export function descriptorsMax(): number {
  let limits: string
  try {
    limits = readFileSync('/proc/self/limits', 'latin1')
  } catch {
    return Number.POSITIVE_INFINITY
  }
  return softLimitIn(limits)
}

/** Parses the text of /proc/<pid>/limits. */
export function softLimitIn(limits: string): number {
  const soft = /^Max open files +([0-9]+) /m.exec(limits)?.[1]
  return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
}

export const machineDisk: Disk = {
  descriptorsMax: descriptorsMax(),
  readsAreSlow,
  openFile: (path, mode) => new RealFile(path, mode),
  openForReading,
  readWhole,
  fileExists: (path) => statSync(path, { throwIfNoEntry: false }) !== undefined,
  stat,
  listFiles: (directory) => listed(directory, (entry) => entry.isFile()),
  listDirectories: (directory) => listed(directory, isDirectory),
  makeDirectory,
  syncDirectory,
  writeAtomic,
  writeAtomicLater,
  replaceLater,
  renameDurable,
  removeUnsynced: unlinkIfThere,
  removeFile,
  removeDirectory: (path) => rmSync(path, { recursive: true, force: true }),
  freeBytes,
}
