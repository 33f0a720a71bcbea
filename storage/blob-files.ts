/**
 * Stores the files of attachments, named by a hash of their content.
 *
 *   blobs/<room>/<SHA-256 of the bytes, 64 hex>     the bytes as they are served, nothing else; mode 0600
 *   blobs/<room>/<the same>.<16 hex>.tmp            being written
 *
 * Before any record or answer names a file, it is written whole, synced and renamed, and its directory is synced. The
 * same bytes in one room are one file. Two rooms never share a file, so the existence of one says nothing about another
 * room. The journals determine which files are needed. A file that no record names (after a crash between file and
 * record, or a refused command) is removed, at the latest by the sweep of the next start. The file of a redacted post
 * is removed together with the text. The signed bytes are not stored here: the record keeps them without the base64url
 * text of the file, plus the position where that text was (actors/records/record.ts, `Cut`).
 *
 * A directory has one owner. It counts the holders of each file, so that no file is removed while a command that will
 * name it is in progress.
 */
import { join } from 'node:path'
import { Damage, type Disk, type ReadHandle } from './disk.ts'

type Held = {
  holders: number
  /** No record named the file when it was first held. */
  isNew: boolean
  readonly written: Promise<void>
}

/** Called with an unneeded file that cannot be removed; the sweep of the next start tries again. */
type NotRemoved = (file: string, problem: unknown) => void

export class BlobFiles {
  readonly #disk: Disk
  readonly #directory: string
  readonly #notRemoved: NotRemoved
  readonly #held = new Map<string, Held>()

  constructor(disk: Disk, directory: string, notRemoved: NotRemoved) {
    this.#disk = disk
    this.#directory = directory
    this.#notRemoved = notRemoved
  }

  /** Number of files held by commands in progress. */
  get held(): number {
    return this.#held.size
  }

  /**
   * Resolves when the file is durable; it then stays until `release`. A file with different bytes, or one that cannot
   * be read, is rewritten. Rejects as `writeAtomicLater` does, and then holds nothing.
   */
  async hold(room: string, sha256: string, bytes: Uint8Array): Promise<void> {
    const path = blobPath(this.#directory, room, sha256)
    let held = this.#held.get(path)
    if (held === undefined) {
      const there = this.#standing(path, bytes)
      const written = there === 'same' ? Promise.resolve() : this.#disk.writeAtomicLater(path, bytes)
      held = { holders: 0, isNew: there === 'none', written }
      this.#held.set(path, held)
    }
    held.holders++
    try {
      await held.written
    } catch (error) {
      this.#releaseHold(path, held)
      throw error
    }
  }

  /** The command has finished. `isNamed`: a record names the file now, or may. */
  release(room: string, sha256: string, isNamed: boolean): void {
    const path = blobPath(this.#directory, room, sha256)
    const held = this.#held.get(path)
    if (held === undefined) throw new Error(`no command holds ${path}`)
    if (isNamed) held.isNew = false
    this.#releaseHold(path, held)
  }

  /** The last record that named the file is gone. The file is removed once nothing holds it. */
  drop(room: string, sha256: string): void {
    const path = blobPath(this.#directory, room, sha256)
    const held = this.#held.get(path)
    if (held === undefined) this.#remove(path)
    else held.isNew = true
  }

  /** Opens a file for reading in pieces; undefined if there is none. */
  open(room: string, sha256: string): Promise<ReadHandle | undefined> {
    return this.#disk.openForReading(blobPath(this.#directory, room, sha256))
  }

  /** Rooms that have files. */
  rooms(): string[] {
    return this.#disk.fileExists(this.#directory) ? this.#disk.listDirectories(this.#directory) : []
  }

  /** Removes files that are not needed. Call only while nothing is held. Returns how many files were removed. */
  sweep(room: string, needed: ReadonlySet<string>): number {
    const unneeded = this.#disk.listFiles(join(this.#directory, room)).filter((name) => !needed.has(name))
    return unneeded.filter((name) => this.#remove(join(this.#directory, room, name))).length
  }

  /** What is at the path where these bytes belong. */
  #standing(path: string, bytes: Uint8Array): 'none' | 'same' | 'other' {
    if (!this.#disk.fileExists(path)) return 'none'
    try {
      return this.#disk.readWhole(path).equals(bytes) ? 'same' : 'other'
    } catch {
      return 'other'
    }
  }

  #releaseHold(path: string, held: Held): void {
    if (--held.holders > 0) return
    this.#held.delete(path)
    if (held.isNew) this.#remove(path)
  }

  /** Returns whether it was removed. */
  #remove(path: string): boolean {
    try {
      this.#disk.removeUnsynced(path)
      return true
    } catch (problem) {
      this.#notRemoved(path, problem)
      return false
    }
  }
}

/** Reads a whole file; undefined if there is none. */
export function readBlob(disk: Disk, directory: string, room: string, sha256: string): Buffer | undefined {
  const path = blobPath(directory, room, sha256)
  return disk.fileExists(path) ? disk.readWhole(path) : undefined
}

/** The error for a file whose bytes do not match its name. */
export function blobDamage({ room, sha256 }: { readonly room: string; readonly sha256: string }): Damage {
  return new Damage({
    path: join(room, sha256),
    offset: 0,
    expected: 'bytes with this SHA-256',
    found: 'different bytes',
  })
}

/** The caller has validated `room` and `sha256` as names: neither contains a dot or a slash. */
function blobPath(directory: string, room: string, sha256: string): string {
  return join(directory, room, sha256)
}
