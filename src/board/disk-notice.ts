/**
 * Watches the free space of the disks that the board writes to. While one has less than DISK_RESERVE_BYTES, its shards refuse every write,
 * and /healthz and /metrics say so, even if nobody is writing.
 */
import type { Cancel } from '../../actors/kernel/timers.ts'
import type { Disk } from '../../storage/disk.ts'
import type { Clock } from '../clock.ts'
import type { Notices } from '../notices.ts'

const checkEveryMs = 1_000

type DiskWatchOptions = {
  readonly disk: Pick<Disk, 'freeBytes'>
  readonly clock: Pick<Clock, 'every'>
  /** Of every journal: each may be on a disk of its own. */
  readonly directories: readonly string[]
  readonly reserveBytes: number
  readonly notices: Notices
}

/** Checks now and every second. Returns a function that ends this. */
export function watchDisk({ disk, clock, directories, reserveBytes, notices }: DiskWatchOptions): Cancel {
  /** A disk that cannot be queried is not known to be full. Whatever uses it reports the failure. */
  const freeBytes = (directory: string): number => {
    try {
      return disk.freeBytes(directory)
    } catch {
      return Number.POSITIVE_INFINITY
    }
  }
  const check = (): void => {
    // A disk without a reserve is full when nothing is left.
    if (!directories.some((directory) => freeBytes(directory) < Math.max(reserveBytes, 1))) return notices.end('disk')
    const left = reserveBytes === 0 ? 'no space' : `less than DISK_RESERVE_BYTES (${reserveBytes} bytes)`
    notices.set('disk', `the disk of the data directory has ${left} left, so writes are refused: free space on it`)
  }
  check()
  return clock.every(check, checkEveryMs)
}
