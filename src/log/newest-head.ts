/** The newest signed head of a log, read from its journal alone: for commands that have no key of it. */
import { decodeLogFrame } from '../../actors/log/frame.ts'
import type { Disk } from '../../storage/disk.ts'
import { JournalReader } from '../../storage/journal.ts'

/** Origin, size and root on a line each, as a checkpoint has them. `through`: the last frame. */
export function newestHead(disk: Disk, directory: string, through: number): string {
  const journal = JournalReader.open(disk, directory)
  try {
    journal.advance(through)
    const frame = journal.read(through)
    return frame === undefined ? '' : decodeLogFrame(frame).checkpoint.split('\n').slice(0, 3).join('\n')
  } finally {
    journal.close()
  }
}
