/**
 * A follower's attachment files, which must be here before the records that name them are applied. The stream brings them, and
 * what it did not bring is fetched. Files that are missing while the leader is out of reach are listed in
 * `missing-attachments.json` and fetched later.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { type CopiedFrames, framesIn } from '../../storage/copied-frames.ts'
import type { Disk } from '../../storage/disk.ts'
import { blobsDirectory } from '../board-directory.ts'
import { foreignJson } from '../format/foreign-json.ts'
import { type Leader, OutOfReach } from './leader.ts'
import { fileNamedIn } from './named-files.ts'

/** `<room>/<64 hex>`. */
type BlobName = string

export const missingAttachmentsFile = (dataDirectory: string): string => join(dataDirectory, 'missing-attachments.json')

/** The files that a follower has listed as missing; undefined if it has listed none, or the list cannot be used. */
export function missingAttachmentsIn(disk: Disk, dataDirectory: string): BlobName[] | undefined {
  const file = missingAttachmentsFile(dataDirectory)
  const found = disk.fileExists(file) ? foreignJson(disk.readWhole(file).toString('utf8')) : undefined
  return isListOfNames(found) ? found : undefined
}

function isListOfNames(value: unknown): value is BlobName[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

export class Attachments {
  readonly #disk: Disk
  readonly #leader: Pick<Leader, 'blob'>
  readonly #directory: string
  readonly #file: string
  readonly #missing: Set<BlobName>

  constructor(disk: Disk, dataDirectory: string, leader: Pick<Leader, 'blob'>) {
    this.#disk = disk
    this.#leader = leader
    this.#directory = blobsDirectory(dataDirectory)
    this.#file = missingAttachmentsFile(dataDirectory)
    this.#missing = new Set(missingAttachmentsIn(disk, dataDirectory))
  }

  /** The files that are still missing, `<room>/<64 hex>`. */
  get missing(): ReadonlySet<BlobName> {
    return this.#missing
  }

  /**
   * Ensures that the files named by these frames are here, or lists them as missing. `shards`: frames of the shards' journals.
   * `brought`: files that came with them.
   */
  async fetchFor(shards: readonly CopiedFrames[], brought: ReadonlyMap<BlobName, Uint8Array>): Promise<void> {
    let isReached = true
    for (const name of shards.flatMap((copied) => framesIn(copied).flatMap((frame) => fileNamedIn(frame) ?? []))) {
      if (this.#disk.fileExists(join(this.#directory, name))) continue
      const bytes = brought.get(name)
      if (bytes !== undefined) await this.#write(name, bytes)
      else {
        // Try a leader that is out of reach only once, not for each file: the frames are waiting.
        isReached &&= await this.#fetch(name)
        if (!isReached) this.#missing.add(name)
      }
    }
    if (!isReached) this.#keep()
  }

  /** Retries the missing files until the leader is out of reach. */
  async fetchMissing(): Promise<void> {
    let fetched = 0
    for (const name of this.#missing) {
      if (!(await this.#fetch(name))) break
      this.#missing.delete(name)
      fetched++
    }
    if (fetched > 0) this.#keep()
  }

  /** Takes missing files from those of a batch. */
  async takeMissing(brought: ReadonlyMap<BlobName, Uint8Array>): Promise<void> {
    const before = this.#missing.size
    for (const [name, bytes] of brought) {
      if (!this.#missing.has(name)) continue
      await this.#write(name, bytes)
      if (this.#disk.fileExists(join(this.#directory, name))) this.#missing.delete(name)
    }
    if (this.#missing.size < before) this.#keep()
  }

  /** Returns false if the leader is out of reach. A file that the leader no longer has is not needed. */
  async #fetch(name: BlobName): Promise<boolean> {
    const [room = '', sha256 = ''] = name.split('/')
    try {
      const bytes = await this.#leader.blob(room, sha256)
      if (bytes !== undefined) await this.#write(name, bytes)
      return true
    } catch (error) {
      if (error instanceof OutOfReach) return false
      throw error
    }
  }

  /** Bytes that do not match the hash in the name are discarded. */
  async #write(name: BlobName, bytes: Uint8Array): Promise<void> {
    const [room = '', sha256 = ''] = name.split('/')
    if (createHash('sha256').update(bytes).digest('hex') !== sha256) return
    this.#disk.makeDirectory(join(this.#directory, room))
    await this.#disk.writeAtomicLater(join(this.#directory, name), bytes)
  }

  #keep(): void {
    this.#disk.writeAtomic(this.#file, Buffer.from(`${JSON.stringify([...this.#missing])}\n`))
  }
}

/** Stands in for a leader that cannot be queried: only the stream brings attachments. */
export const unreachableLeader: Pick<Leader, 'blob'> = {
  blob: () => Promise.reject(new OutOfReach('a follower taking over does not request attachments from the old leader')),
}
