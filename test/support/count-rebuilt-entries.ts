/** Entries of log frames that are rebuilt from their records, compared with those frames. */
import { decodeLogFrame, entriesOf, logFrameType } from '../../actors/log/frame.ts'
import { entriesBetween } from '../../actors/log/public-records.ts'
import type { JournalReader } from '../../storage/journal.ts'
import { leafHash } from '../../storage/merkle.ts'

/**
 * For each frame of the log, and up to four adjacent ones: how often they were rebuilt correctly, differently, and not at all. `through`:
 * the newest frame. The readers may read everything.
 */
export function countRebuiltEntries(log: JournalReader, through: number, shards: readonly JournalReader[]) {
  const frames = Array.from({ length: through }, (_, n) => decodeLogFrame(log.read(n + 1)!))
  const counts = { same: 0, other: 0, none: 0 }
  for (let damaged = 1; damaged <= 4; damaged++)
    for (let at = 0; at + damaged + 1 < frames.length; at++) {
      const [before, ...between] = frames.slice(at, at + damaged + 2)
      const after = between.pop()!
      if ([...between, after].some(({ type }) => type !== logFrameType)) continue
      const was = between.flatMap((frame) => [...entriesOf(frame)])
      const leaf = (index: number) => leafHash(was[index - before!.size]!)
      const found = entriesBetween({ before: before!, after, leaf }, shards)
      if (found === undefined) counts.none++
      else if (found.firstLeaf === before!.size && Buffer.concat(found.entries).equals(Buffer.concat(was)))
        counts.same++
      else counts.other++
    }
  return counts
}
