/** The secret by which a board knows its followers: a file on both machines. */
import { hash, timingSafeEqual } from 'node:crypto'
import type { Disk } from '../../storage/disk.ts'
import { readSecret } from '../board-directory.ts'

/** As it is sent: 64 hex digits. Throws UnusableDirectory. */
export function replicaKeyIn(disk: Disk, file: string): string {
  return readSecret(disk, file).toString('hex')
}

/** Whether a request bears this secret. */
export function bears(authorization: string | undefined, key: string): boolean {
  const [given, wanted] = [authorization ?? '', `Bearer ${key}`].map((text) => hash('sha256', text, 'buffer'))
  return timingSafeEqual(given!, wanted!)
}
