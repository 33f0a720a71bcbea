/** What a board remembers of the stream that it writes to: `replication.json` in the data directory. */
import { join } from 'node:path'
import type { Disk } from '../../storage/disk.ts'
import { foreignJson } from '../format/foreign-json.ts'
import type { Random } from '../platform.ts'
import { Halted } from './halted.ts'

type Kept = {
  /** This data directory, 32 hex: a copy of it that runs as well is another writer only by what it publishes. */
  readonly leader: string
  readonly epoch: number
  /** When the stream was made, as its servers say; absent: it was never seen. */
  readonly created?: string
}

export class StreamWriter {
  readonly #disk: Disk
  readonly #file: string
  #kept: Kept

  /** Throws Halted where the file is not what a board wrote. */
  constructor(disk: Disk, dataDirectory: string, random: Random) {
    this.#disk = disk
    this.#file = join(dataDirectory, 'replication.json')
    const found = disk.fileExists(this.#file) ? foreignJson(disk.readWhole(this.#file).toString('utf8')) : undefined
    if (found === undefined && !disk.fileExists(this.#file))
      this.#kept = { leader: random(16).toString('hex'), epoch: 1 }
    else if (isKept(found)) this.#kept = found
    else
      throw new Halted(
        `${this.#file} is not what this board wrote. Stop the board, delete the stream, remove this file, and start it again.`,
      )
  }

  get leader(): string {
    return this.#kept.leader
  }

  get epoch(): number {
    return this.#kept.epoch
  }

  /** Why a stream that was made then may not be written to; undefined: it may, and is the only one from now on. */
  problemOf(created: string): string | undefined {
    if (this.#kept.created === created) return undefined
    if (this.#kept.created !== undefined)
      return `The stream was made anew at ${created}: what followers had to read in the old one is lost. If that was meant, stop the board and remove ${this.#file}.`
    this.#kept = { ...this.#kept, created }
    this.#disk.writeAtomic(this.#file, Buffer.from(`${JSON.stringify(this.#kept, null, 2)}\n`))
    return undefined
  }
}

function isKept(value: unknown): value is Kept {
  const { leader, epoch, created = '' }: Readonly<Record<string, unknown>> = Object(value)
  return typeof leader === 'string' && /^[0-9a-f]{32}$/.test(leader) && epoch === 1 && typeof created === 'string'
}
