/**
 * The public records that a frame of the log covers, in the order of everything public, read from the journals of the shards.
 * Who follows the log (the feed, the search index) reads them here.
 */
import type { Frame, JournalReader } from '../../storage/journal.ts'
import { frameEntries, leavesOf, PUBLIC } from '../records/record.ts'
import { decodeLogFrame, type LogFrame } from './frame.ts'

/** `leaf`: of a record with several leaves the first, 0xffff_ffff where it has none. */
export type PublicRecord = {
  readonly frame: Frame
  readonly shard: number
  readonly change: number
  readonly leaf: number
}

export const noLeaf = 0xffff_ffff

/** `shards`: readers by shard number. */
export function* publicRecords(logFrame: Frame, shards: readonly JournalReader[]): Generator<PublicRecord, void, void> {
  const { ranges, firstChange, firstLeaf } = decodeLogFrame(logFrame)
  let change = firstChange
  let leaf = firstLeaf
  for (const { shard, first, last } of ranges) {
    if (last < first) continue
    const reader = shards[shard]
    if (reader === undefined) throw new Error(`the log covers shard ${shard}, which this board does not have`)
    reader.advance(last)
    for (const frame of reader.scan(first, last)) {
      if ((frame.flags & PUBLIC) === 0) continue
      const leaves = leavesOf(frame)
      yield { frame, shard, change, leaf: leaves > 0 ? leaf : noLeaf }
      change++
      leaf += leaves
    }
  }
}

/** The texts of the entries of a frame of the log, and the leaf that the first of them is. */
type FramedEntries = { readonly firstLeaf: number; readonly entries: readonly Buffer[] }

/**
 * The entries of the one frame between two others, from the records that it covers: between the end of the one and the beginning of
 * the other. Undefined: they are not as many as it had, so it covered no records, or more frames are missing. Throws Damage.
 */
export function entriesBetween(
  before: LogFrame,
  after: LogFrame,
  shards: readonly JournalReader[],
): FramedEntries | undefined {
  const entries: Buffer[] = []
  for (const { shard, first } of after.ranges) {
    const last = before.ranges.find((range) => range.shard === shard)?.last ?? 0
    for (const frame of shards[shard]!.scan(last + 1, first - 1))
      if ((frame.flags & PUBLIC) !== 0) entries.push(...frameEntries(frame))
  }
  return entries.length === after.firstLeaf - before.size ? { firstLeaf: before.size, entries } : undefined
}

/** Lets the readers see what the log's frame `seq` speaks of: every frame names the position of every shard. */
export function advanceTo(seq: number, log: JournalReader, shards: readonly JournalReader[]): void {
  log.advance(seq)
  const frame = log.read(seq)
  if (frame === undefined) throw new Error(`the log has no frame ${seq}, though it was followed to there`)
  for (const { shard, last } of decodeLogFrame(frame).ranges) shards[shard]?.advance(last)
}
