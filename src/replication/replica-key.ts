/** The shared secret that identifies a board's followers: a file on both machines. */
import { hash, timingSafeEqual } from 'node:crypto'
import type { Disk } from '../../storage/disk.ts'
import { readSecret } from '../board-directory.ts'

/** The key as it is sent: 64 hex digits. Throws UnusableDirectory. */
export function replicaKeyIn(disk: Disk, file: string): string {
  return readSecret(disk, file).toString('hex')
}

/** Whether a request carries this secret. */
export function bears(authorization: string | undefined, key: string): boolean {
  const [given, wanted] = [authorization ?? '', `Bearer ${key}`].map((text) => hash('sha256', text, 'buffer'))
  return timingSafeEqual(given!, wanted!)
}
