/** Reads nkey seeds: the keys with which a board authenticates to NATS servers. */
import type { Disk } from '../../storage/disk.ts'
import { Halted } from './halted.ts'

/** The seed of a user, such as `SUAF…`, from a file that nobody else may read. Throws Halted. */
export function seedIn(disk: Disk, file: string): Uint8Array {
  if (!disk.fileExists(file)) throw new Halted(`File ${file} is missing. It must contain an nkey seed.`)
  if ((disk.stat(file).mode & 0o077) !== 0)
    throw new Halted(`The key file ${file} can be read by others. Run: chmod 600 ${file}`)
  const seed = disk.readWhole(file).toString('latin1').trim()
  if (!/^SU[A-Z2-7]{56}$/.test(seed))
    throw new Halted(`${file} does not contain the nkey seed of a user, which begins with SU.`)
  return Buffer.from(seed)
}
