/**
 * The disk, as everything that keeps files is handed it: its promises, and how they fail. `machine-disk.ts` is the real
 * one, the only file that syncs; a simulation hands in another.
 *
 * Calls are synchronous, because each owner of files is a thread of its own. Exceptions are those named `...Later` and
 * `openForReading`, for files that the main thread writes and reads.
 *
 * After one failed sync nothing that is read back can be trusted: the kernel may have dropped the dirty pages, and a
 * second sync may falsely succeed. So a file whose sync failed is poisoned for good, and its owner has to start over
 * from what the disk holds.
 */

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
  /** Number of the frame that is damaged, where those behind it can be read. */
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

/** What is found where the disk does not give back what is there. */
export const readError = 'a read error (EIO)'

/**
 * A place of a file that the disk does not give back (EIO). Who needs it now has to do as with damage; a later read may succeed, so
 * nobody may take it for lost for good: see `isUnreadable`.
 */
export class FailedRead extends Damage {
  readonly code = 'EIO'
  constructor(place: { path: string; offset: number; expected: string; frame?: number }) {
    super({ ...place, found: readError })
    this.name = 'FailedRead'
  }
}

/** What a read of a place of a segment has failed with. */
export function failedAt(place: ConstructorParameters<typeof FailedRead>[0], error: unknown): unknown {
  return isUnreadable(error) && !(error instanceof Damage) ? new FailedRead(place) : error
}

/** Something in the data directory has a format that only newer releases know. Nothing is wrong with it. */
export class NewerFormat extends Error {
  constructor(where: string, found: string) {
    super(`${where} ${found}, which this release does not know`)
    this.name = 'NewerFormat'
  }
}

/** The disk does not give back, or take, what a file holds (EIO). What is derived is made again then. */
export function isUnreadable(error: unknown): error is Error & { readonly code: 'EIO' } {
  return error instanceof Error && 'code' in error && error.code === 'EIO'
}

/** What is read of something derived; undefined where the disk does not give it back, and `onUnreadable` is told why. */
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
 * So many items are prefetched at once, and the next when these are read. They are ahead of whatever else needs a thread of libuv's pool: a
 * sync behind 50 of them took half a millisecond longer, behind 400 of them 25.
 */
export const prefetchedAtOnce = 32

/** One open file. */
export interface DiskFile {
  readonly path: string
  /** Bytes in the file now. */
  size(): number
  /** Fills `into` from `position`; returns the bytes read, fewer than asked only at the end of the file. */
  readAt(into: Uint8Array, position: number): number
  /** So many bytes will be read next: a slow disk begins to read them now. Never fails, and may do nothing. */
  prefetch(position: number, bytes: number): void
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

/** `create` fails when the file exists; its name is durable after `syncDirectory`. */
export type OpenMode = 'read' | 'write' | 'create'

/** A file that is read without waiting for the disk. */
export interface ReadHandle {
  readonly size: number
  /** Fills `into` from `position`; the bytes read, fewer than asked only at the end of the file. */
  read(into: Uint8Array, position: number): Promise<number>
  close(): Promise<void>
}

/** Paths are those of the machine. A missing file is an error of the system (ENOENT), where nothing else is said. */
export interface Disk {
  /** How many files and sockets the process may have open at a time; Infinity: unknown. */
  readonly descriptorsMax: number
  /** Short reads of this thread took long a moment ago: what is read next is worth prefetching. */
  readsAreSlow(): boolean
  /** Throws DiskFull, or the error of the system (ENOENT, EEXIST, EACCES, EROFS). */
  openFile(path: string, mode: OpenMode): DiskFile
  /** Undefined: there is no such file. */
  openForReading(path: string): Promise<ReadHandle | undefined>
  /** A whole file at once; for files whose size is bounded by their format. */
  readWhole(path: string): Buffer
  /** Throws the error of the system where it does not say, such as EACCES: what cannot be seen is not what does not exist. */
  fileExists(path: string): boolean
  /** What is there, a directory too. */
  look(path: string): { readonly isFile: boolean; readonly mode: number }
  /** Names of the plain files in a directory, sorted by code unit. Throws ENOENT. */
  listFiles(directory: string): string[]
  /** Names of the directories in a directory, and of links to one, sorted by code unit. Throws ENOENT. */
  listDirectories(directory: string): string[]
  /** Makes a directory and its missing parents (mode 0700), each name durable. */
  makeDirectory(path: string): void
  /** Makes the names in a directory durable: creations, renames, removals. Throws SyncFailed. */
  syncDirectory(path: string): void
  /**
   * Replaces a whole file, by one piece or by several in their order. After a crash it holds the old bytes or the new
   * ones; once this has returned, the new ones. One writer per path; mode 0600 by default. Throws DiskFull, SyncFailed
   * or a system error; the old file is then unchanged, unless only the last directory sync failed.
   */
  writeAtomic(path: string, bytes: Uint8Array | readonly Uint8Array[], mode?: number): void
  /**
   * The same without waiting for the disk, for a path that several may write at once: in the end it holds the bytes of
   * one of them. Makes the directory. Rejects with DiskFull, SyncFailed or a system error.
   */
  writeAtomicLater(path: string, bytes: Uint8Array): Promise<void>
  /**
   * Replaces a small text without waiting for the disk. After a power cut the file is the old one or the new one. One
   * writer per path. Rejects with a system error.
   */
  replaceLater(path: string, text: string): Promise<void>
  /** Renames over whatever `to` is. The content of `from` must be synced already. */
  renameDurable(from: string, to: string): void
  /** Removes a file; a power cut may bring it back. A missing file is fine. */
  removeUnsynced(path: string): void
  /** Removes a file for good; a missing file is fine. */
  removeFile(path: string): void
  /** Removes a directory with all that is in it; a power cut may bring some of it back. A missing one is fine. */
  removeDirectory(path: string): void
  /** Bytes that an unprivileged process may still write on the file system of `directory`. */
  freeBytes(directory: string): number
}
