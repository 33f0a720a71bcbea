/**
 * Files of attachments for a follower: fetched before the records that name them are applied. While the leader is out of reach they are
 * noted, in `missing-attachments.json`, and fetched later: what the stream has is applied without them.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { fromFrame, RecordType } from '../../actors/records/record.ts'
import { type CopiedFrames, framesIn } from '../../storage/copied-frames.ts'
import type { Disk } from '../../storage/disk.ts'
import { blobsDirectory } from '../board-directory.ts'
import { foreignJson } from '../format/foreign-json.ts'
import { type Leader, OutOfReach } from './leader.ts'

/** `<room>/<64 hex>`. */
type BlobName = string

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
    this.#file = join(dataDirectory, 'missing-attachments.json')
    const kept = disk.fileExists(this.#file) ? foreignJson(disk.readWhole(this.#file).toString('utf8')) : []
    this.#missing = new Set(Array.isArray(kept) ? kept.filter((each) => typeof each === 'string') : [])
  }

  /** Has the files that these frames name, or has noted them. `shards`: of the shards' journals. */
  async fetchFor(shards: readonly CopiedFrames[]): Promise<void> {
    const before = this.#missing.size
    for (const name of shards.flatMap(namedIn)) {
      if (this.#disk.fileExists(join(this.#directory, name))) continue
      if (!(await this.#fetch(name))) this.#missing.add(name)
    }
    if (this.#missing.size > before) this.#keep()
  }

  /** Tries again what was missed, until the leader is out of reach. */
  async fetchMissing(): Promise<void> {
    const before = this.#missing.size
    for (const name of this.#missing) {
      if (!(await this.#fetch(name))) break
      this.#missing.delete(name)
    }
    if (this.#missing.size < before) this.#keep()
  }

  /** False: the leader is out of reach. What it does not have any more is not needed. */
  async #fetch(name: BlobName): Promise<boolean> {
    const [room = '', sha256 = ''] = name.split('/')
    try {
      const bytes = await this.#leader.blob(room, sha256)
      if (bytes === undefined || createHash('sha256').update(bytes).digest('hex') !== sha256) return true
      this.#disk.makeDirectory(join(this.#directory, room))
      await this.#disk.writeAtomicLater(join(this.#directory, name), bytes)
      return true
    } catch (error) {
      if (error instanceof OutOfReach) return false
      throw error
    }
  }

  #keep(): void {
    this.#disk.writeAtomic(this.#file, Buffer.from(`${JSON.stringify([...this.#missing])}\n`))
  }
}

function namedIn(copied: CopiedFrames): BlobName[] {
  return framesIn(copied).flatMap((frame) => {
    if (frame.type !== RecordType.act) return []
    const record = fromFrame(frame)
    if (record.type !== RecordType.act || record.op !== 'blob.put') return []
    const { sha256 } = record.facts
    return sha256 instanceof Uint8Array ? [`${record.room}/${Buffer.from(sha256).toString('hex')}`] : []
  })
}
