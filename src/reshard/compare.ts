/**
 * Proves that nothing was lost or changed: reads the new journals as any reader does, alongside the old ones. Every record of the old ones
 * must be in its place with the same bytes, with nothing else there, and every frame of the log must say the same about the same records in
 * the same order.
 */

import { closedBefore, decodeLogFrame, type LogFrame, openFrameType } from '../../actors/log/frame.ts'
import { publicRecords } from '../../actors/log/public-records.ts'
import { leavesOf, PUBLIC } from '../../actors/records/record.ts'
import type { Disk } from '../../storage/disk.ts'
import type { Frame, JournalReader } from '../../storage/journal.ts'
import { logDirectory, shardDirectory } from '../board-directory.ts'
import { moved } from './moved.ts'
import { type OldJournals, openThrough } from './old-journals.ts'
import type { PlaceInShard, Places } from './places.ts'

/** What was built differs from its source. */
export class Differs extends Error {
  override name = 'Differs'
}

type Compared = {
  readonly disk: Disk
  readonly old: OldJournals
  readonly places: Places
  /** The new directory. */
  readonly target: string
  readonly onProgress: (records: number) => void
}

/** Throws Differs, and Damage. */
export function compareJournals({ disk, old, places, target, onProgress }: Compared): void {
  const open = () => places.counts.map((_, shard) => openThrough(disk, shardDirectory(target, shard)))
  const [all, covered] = [open(), open()]
  const log = openThrough(disk, logDirectory(target))
  const following = all.map((reader) => reader.scan(1))
  const heads = log.scan(1)
  try {
    let published: PublicPlace[] = []
    let change = 1
    let done = 0
    for (const step of old.inOrder()) {
      if ('head' in step) {
        compareHeads(step.head, step.log, nextOf(heads, 'the log'))
        comparePublic(log, covered, step.head.seq, published)
        published = []
        continue
      }
      const { shard, frame } = step
      const place = places.of(shard, frame.seq)
      compareRecords(place, moved(frame, places), nextOf(following[place.shard]!, `shard ${place.shard}`))
      if ((frame.flags & PUBLIC) !== 0) published.push({ ...place, change: change++, leaves: leavesOf(frame) })
      onProgress(++done)
    }
    // One more, without anything new.
    nextOf(heads, 'the log')
    for (const [n, rest] of [...following, heads].entries())
      if (rest.next().done !== true) throw new Differs(`journal ${n} has more records than were written to it`)
  } finally {
    for (const reader of [...all, ...covered, log]) reader.close()
  }
}

type PublicPlace = PlaceInShard & { readonly change: number; readonly leaves: number }

function nextOf(frames: Generator<Frame>, what: string): Frame {
  const next = frames.next()
  if (next.done === true) throw new Differs(`the journal of ${what} ends too early`)
  return next.value
}

function compareRecords(
  place: PlaceInShard,
  expected: Omit<Frame, 'seq' | 'payload'> & { payload: Uint8Array },
  found: Frame,
) {
  const isSame =
    found.seq === place.seq &&
    found.type === expected.type &&
    found.flags === expected.flags &&
    found.payload.equals(expected.payload)
  if (!isSame) throw new Differs(`frame ${place.seq} of shard ${place.shard} is not the record that was written there`)
}

function compareHeads(head: Frame, old: LogFrame, found: Frame): void {
  const log = decodeLogFrame(found)
  const closed = (frame: Frame) => (frame.type === openFrameType ? JSON.stringify(closedBefore(frame)) : '')
  const isSame =
    found.seq === head.seq &&
    log.type === old.type &&
    log.firstLeaf === old.firstLeaf &&
    log.firstChange === old.firstChange &&
    log.size === old.size &&
    log.root.equals(old.root) &&
    log.entries === old.entries &&
    log.bundle.equals(old.bundle) &&
    log.checkpoint === old.checkpoint &&
    closed(found) === closed(head)
  if (!isSame) throw new Differs(`frame ${head.seq} of the log has changed`)
}

/** Reads them as followers of the log do. */
function comparePublic(
  log: JournalReader,
  shards: readonly JournalReader[],
  seq: number,
  expected: PublicPlace[],
): void {
  const found: PublicPlace[] = []
  for (const { frame, shard, change } of publicRecords(log.read(seq)!, shards))
    found.push({ shard, seq: frame.seq, change, leaves: leavesOf(frame) })
  const isSame = (a: PublicPlace, b: PublicPlace | undefined) =>
    a.shard === b?.shard && a.seq === b.seq && a.change === b.change && a.leaves === b.leaves
  if (found.length !== expected.length || !expected.every((each, n) => isSame(each, found[n])))
    throw new Differs(`frame ${seq} of the log does not cover the same records in the same order`)
}
