/** Reads a log's newest signed head from its journal alone, for commands that do not have its key. */
import { decodeLogFrame } from '../../actors/log/frame.ts'
import type { Disk } from '../../storage/disk.ts'
import { JournalReader } from '../../storage/journal.ts'

/** Origin, size and root, one per line as in a checkpoint. `through`: the last frame. */
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
