/**
 * Watches the free space of the disks that the board writes to. While one has less than DISK_RESERVE_BYTES, its shards refuse every write,
 * and /healthz and /metrics show it, also if nobody is writing.
 */
import type { Cancel } from '../../actors/kernel/timers.ts'
import type { Disk } from '../../storage/disk.ts'
import type { Clock } from '../clock.ts'
import type { Notices } from '../notices.ts'

const checkEveryMs = 1_000

type DiskNoticeOptions = {
  readonly disk: Pick<Disk, 'freeBytes'>
  readonly clock: Pick<Clock, 'every'>
  /** Of every journal: each may be on a disk of its own. */
  readonly directories: readonly string[]
  readonly reserveBytes: number
  readonly notices: Notices
}

export class DiskNotice {
  readonly #options: DiskNoticeOptions
  readonly #cancel: Cancel

  constructor(options: DiskNoticeOptions) {
    this.#options = options
    this.#check()
    this.#cancel = options.clock.every(() => this.#check(), checkEveryMs)
  }

  stop(): void {
    this.#cancel()
  }

  #check(): void {
    const { directories, reserveBytes, notices } = this.#options
    // A disk without a reserve is full when nothing is left.
    if (!directories.some((directory) => this.#freeBytes(directory) < Math.max(reserveBytes, 1)))
      return notices.end('disk')
    const left = reserveBytes === 0 ? 'no space' : `less than DISK_RESERVE_BYTES (${reserveBytes} bytes)`
    notices.set('disk', `the disk of the data directory has ${left} left, so writes are refused: free space on it`)
  }

  /** A disk that cannot be queried is not known to be full; whoever reads it reports the failure. */
  #freeBytes(directory: string): number {
    try {
      return this.#options.disk.freeBytes(directory)
    } catch {
      return Number.POSITIVE_INFINITY
    }
  }
}
