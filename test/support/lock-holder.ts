/** A process that locks the directory in argv[2], reports that, and holds the lock until it is killed. */
import { lockDirectory } from '../../storage/lock.ts'

try {
  await lockDirectory(process.argv[2]!)
  process.stdout.write('locked\n')
  setInterval(() => {}, 1000)
} catch (error) {
  process.stdout.write(`${(error as Error).message}\n`)
}
