/** The shared secret that identifies a board's followers: a file on both machines. */
import { hash, timingSafeEqual } from 'node:crypto'
import type { Disk } from '../../storage/disk.ts'
import { readSecret, UnusableDirectory } from '../board-directory.ts'

const copyOrCreate =
  'Copy the file of REPLICA_KEY_FILE here from another machine of this board. If none has it, remove it, create it again with broadside keygen --replica, copy it to every machine of this board, and restart them.'

/** The key as it is sent: 64 hex digits. Throws UnusableDirectory. */
export function replicaKeyIn(disk: Disk, file: string): string {
  if (!disk.fileExists(file))
    throw new UnusableDirectory(
      `REPLICA_KEY_FILE names ${file}, but there is no such file. Create it once with broadside keygen --replica, and copy it to every machine of this board.`,
    )
  try {
    return readSecret(disk, file, { fix: copyOrCreate }).toString('hex')
  } catch (error) {
    const { code }: { readonly code?: unknown } = Object(error)
    if (code !== 'EACCES') throw error
    throw new UnusableDirectory(
      `The user of this process may not read ${file}, the file of REPLICA_KEY_FILE. Make that user its owner, mode 0600, on every machine of this board.`,
    )
  }
}

/** Whether a request carries this secret. */
export function bears(authorization: string | undefined, key: string): boolean {
  const [given, wanted] = [authorization ?? '', `Bearer ${key}`].map((text) => hash('sha256', text, 'buffer'))
  return timingSafeEqual(given!, wanted!)
}
