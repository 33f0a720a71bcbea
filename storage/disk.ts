/**
 * The disk interface that everything that stores files receives: its guarantees, and how they fail. `machine-disk.ts`
 * is the real implementation, and the only file that syncs; a simulation passes another.
 *
 * Calls are synchronous, because each owner of files is a separate thread. Exceptions are the methods named `...Later`
 * and `openForReading`, for files that the main thread writes and reads.
 *
 * After a failed sync, data read back cannot be trusted: the kernel may have dropped the dirty pages, and a second sync
 * may falsely succeed. So a file whose sync failed is poisoned permanently, and its owner must start over from what is
 * on disk.
 */

/** The kernel refused a sync: what the file holds on disk is unknown. */
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

/** Durable bytes are not what was written. Never repaired silently: an operator has to look. */
export class Damage extends Error {
  readonly path: string
  /** Byte offset of the first bad structure in the file. */
  readonly offset: number
  readonly expected: string
  readonly found: string
  /** Number of the damaged frame, if the frames after it can still be read. */
  readonly frame: number | undefined
  constructor(facts: { path: string; offset: number; expected: string; found: string; frame?: number }) {
    super(`${facts.path} is damaged at byte ${facts.offset}: expected ${facts.expected}, found ${facts.found}`)
    this.name = 'Damage'
    this.path = facts.path
    this.offset = facts.offset
    this.expected = facts.expected
    this.found = facts.found
    this.frame = facts.frame
  }
}

/** The `found` text for bytes that the disk fails to return. */
export const readError = 'a read error (EIO)'

/**
 * The disk fails to read part of a file (EIO). Code that needs the bytes now must treat it as damage. A later read may
 * succeed, so nothing may count as permanently lost: see `isUnreadable`.
 */
export class FailedRead extends Damage {
  readonly code = 'EIO'
  constructor(place: { path: string; offset: number; expected: string; frame?: number }) {
    super({ ...place, found: readError })
    this.name = 'FailedRead'
  }
}

/** The error to throw after a failed read at a position in a segment: FailedRead for EIO, otherwise the error itself. */
export function failedAt(place: ConstructorParameters<typeof FailedRead>[0], error: unknown): unknown {
  return isUnreadable(error) && !(error instanceof Damage) ? new FailedRead(place) : error
}

/** Something in the data directory has a format that only newer releases know. It is not damaged. */
export class NewerFormat extends Error {
  constructor(where: string, found: string) {
    super(`${where} ${found}, which this release does not support`)
    this.name = 'NewerFormat'
  }
}

/** The disk cannot read or write a file (EIO). Derived files are then rebuilt. */
export function isUnreadable(error: unknown): error is Error & { readonly code: 'EIO' } {
  return error instanceof Error && 'code' in error && error.code === 'EIO'
}

/** Reads something derived. If the disk cannot read it, returns undefined and passes the reason to `onUnreadable`. */
export function unlessUnreadable<Found>(
  read: () => Found,
  onUnreadable: (problem: string) => void = () => {},
): Found | undefined {
  try {
    return read()
  } catch (error) {
    if (!isUnreadable(error)) throw error
    onUnreadable(error.message)
    return undefined
  }
}

/** Bytes of a file. Throws ENOENT. */
export function sizeOfFile(disk: Disk, path: string): number {
  const file = disk.openFile(path, 'read')
  try {
    return file.size()
  } finally {
    file.close()
  }
}

/**
 * This many items are prefetched at a time, and the next ones after these have been read. Prefetches queue ahead of
 * other work in libuv's thread pool: a sync behind 50 of them took half a millisecond longer, behind 400 of them 25.
 */
export const prefetchBatchMax = 32

/** One open file. */
export interface DiskFile {
  readonly path: string
  /** Current size of the file in bytes. */
  size(): number
  /** Fills `into` from `position`; returns the bytes read, fewer than requested only at the end of the file. */
  readAt(into: Uint8Array, position: number): number
  /** Hints that this many bytes will be read next: a slow disk starts reading them now. Never fails, and may do nothing. */
  prefetch(position: number, bytes: number): void
  /** Writes all of `bytes`. Throws DiskFull (part may have been written), SyncFailed if poisoned, or a system error. */
  writeAt(bytes: Uint8Array, position: number): void
  /** fdatasync. Throws SyncFailed, after which every writeAt, truncate and sync throws SyncFailed. */
  sync(): void
  /**
   * `sync` in the background: `done` gets the SyncFailed, or nothing once the bytes are durable. Never called before
   * this method returns.
   */
  syncLater(done: (failed?: SyncFailed) => void): void
  truncate(size: number): void
  /** Closing twice is harmless; any other call after closing throws. Closing does not sync. */
  close(): void
}

/** `create` fails if the file exists; the new name is durable after `syncDirectory`. */
export type OpenMode = 'read' | 'write' | 'create'

/** A file that is read asynchronously. */
export interface ReadHandle {
  readonly size: number
  /** Fills `into` from `position`; resolves with the bytes read, fewer than requested only at the end of the file. */
  read(into: Uint8Array, position: number): Promise<number>
  close(): Promise<void>
}

/** Paths are machine paths. A missing file is a system error (ENOENT) unless stated otherwise. */
export interface Disk {
  /** How many files and sockets the process may have open at a time; Infinity if unknown. */
  readonly descriptorsMax: number
  /** This thread's recent short reads were slow, so prefetching is worthwhile. */
  readsAreSlow(): boolean
  /** Throws DiskFull or a system error (ENOENT, EEXIST, EACCES, EROFS). */
  openFile(path: string, mode: OpenMode): DiskFile
  /** Undefined if there is no such file. */
  openForReading(path: string): Promise<ReadHandle | undefined>
  /** Reads a whole file; for files whose size is bounded by their format. */
  readWhole(path: string): Buffer
  /** Throws the system error if it cannot tell, such as EACCES: a file that cannot be seen is not a file that does not exist. */
  fileExists(path: string): boolean
  /** What is at a path, which may be a directory. */
  stat(path: string): { readonly isFile: boolean; readonly mode: number }
  /** Names of the plain files in a directory, sorted by code unit. Throws ENOENT. */
  listFiles(directory: string): string[]
  /** Names of the directories in a directory, including links to directories, sorted by code unit. Throws ENOENT. */
  listDirectories(directory: string): string[]
  /** Creates a directory and its missing parents (mode 0700), each name durable. */
  makeDirectory(path: string): void
  /** Makes the names in a directory durable: creations, renames, removals. Throws SyncFailed. */
  syncDirectory(path: string): void
  /**
   * Replaces a whole file with one piece or several in order. After a crash it holds the old bytes or the new ones;
   * once this has returned, the new ones. One writer per path; mode 0600 by default. Throws DiskFull, SyncFailed or a
   * system error; the old file is then unchanged, unless only the last directory sync failed.
   */
  writeAtomic(path: string, bytes: Uint8Array | readonly Uint8Array[], mode?: number): void
  /**
   * Asynchronous `writeAtomic` for a path that may have several concurrent writers: it ends up with the bytes of one of
   * them. Creates the directory. Rejects with DiskFull, SyncFailed or a system error.
   */
  writeAtomicLater(path: string, bytes: Uint8Array): Promise<void>
  /**
   * Replaces a small text file asynchronously. After a power cut the file is the old one or the new one. One writer per
   * path. Rejects with a system error.
   */
  replaceLater(path: string, text: string): Promise<void>
  /** Renames, replacing whatever is at `to`. The content of `from` must already be synced. */
  renameDurable(from: string, to: string): void
  /** Removes a file; a power cut may bring it back. A missing file is fine. */
  removeUnsynced(path: string): void
  /** Removes a file permanently; a missing file is fine. */
  removeFile(path: string): void
  /** Removes a directory with everything in it; a power cut may bring some of it back. A missing one is fine. */
  removeDirectory(path: string): void
  /** Bytes that an unprivileged process may still write on the file system of `directory`. */
  freeBytes(directory: string): number
}
