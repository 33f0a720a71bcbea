/**
 * Reads the public records that a frame of the log covers from the shards' journals, in the order of everything public.
 * Followers of the log (the feed, the search index) use it.
 */
import { isUnreadable } from '../../storage/disk.ts'
import { Damage, type Frame, type JournalReader } from '../../storage/journal.ts'
import { leafHash } from '../../storage/merkle.ts'
import { frameEntries, leavesOf, PUBLIC } from '../records/record.ts'
import { decodeLogFrame, type LogFrame, type Range } from './frame.ts'

/** `leaf`: for a record with several leaves the first; 0xffff_ffff if it has none. */
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
    const reader = readerThrough(last, shards, shard)
    for (const frame of reader.scan(first, last)) {
      if (!isPublic(frame)) continue
      const leaves = leavesOf(frame)
      yield { frame, shard, change, leaf: leaves > 0 ? leaf : noLeaf }
      change++
      leaf += leaves
    }
  }
}

/**
 * The records that frame `seq` of the log covers. They are read as they are consumed; their frames are views that the
 * next one overwrites.
 */
export type ReadableBatch = {
  readonly seq: number
  readonly records: Iterable<Omit<PublicRecord, 'leaf'>>
}

type Readable = {
  readonly log: JournalReader
  readonly shards: readonly JournalReader[]
  /** Frames of the log, both inclusive. */
  readonly from: number
  readonly through: number
  /** Called with damage each time it is found. */
  readonly onDamage: (damage: Damage) => void
}

/**
 * The public records that the log covers, for readers that can do without damaged ones (the search index, the tools
 * directory). Damage in a sealed segment loses only the frames that it affects; all others keep their numbers. Throws
 * Damage if more than that is unreadable.
 */
export function* readableRecords({
  log,
  shards,
  from,
  through,
  onDamage,
}: Readable): Generator<ReadableBatch, void, void> {
  let seq = from
  while (seq <= through) {
    try {
      for (const frame of log.scan(seq, through)) {
        yield { seq, records: wholeRecords(decodeLogFrame(frame), shards, onDamage) }
        seq++
      }
      return
    } catch (error) {
      if (!isOfFrame(error, seq)) throw error
      const covered = coveredBetween(log, seq)
      if (covered === undefined) throw error
      onDamage(error)
      yield { seq, records: wholeRecords(covered, shards, onDamage) }
      seq++
    }
  }
}

function* wholeRecords(
  covered: Covered,
  shards: readonly JournalReader[],
  onDamage: Readable['onDamage'],
): Generator<Omit<PublicRecord, 'leaf'>, void, void> {
  for (const record of coveredRecords(covered, shards)) {
    if (record.damage !== undefined) onDamage(record.damage)
    else if (!Number.isNaN(record.change)) yield record
  }
}

/**
 * The records that frame `seq` of the log covers, for readers that show all of them: damage in a sealed segment, or a failed
 * read of it, stands in the place of each record that it affects. Throws Damage if more than that is unreadable.
 */
export function recordsOrDamage(
  seq: number,
  log: JournalReader,
  shards: readonly JournalReader[],
): Generator<CoveredRecord, void, void> {
  return coveredRecords(covered(seq, log), shards, isAtFrame)
}

function covered(seq: number, log: JournalReader): Covered {
  try {
    return decodeLogFrame(log.read(seq)!)
  } catch (error) {
    if (!isAtFrame(error, seq)) throw error
    const around = coveredAround(log, seq)
    if (around === undefined) throw error
    return around
  }
}

/** `changes` of a range: unknown if the frame of the log is damaged. */
type Covered = Pick<LogFrame, 'firstChange'> & {
  readonly ranges: readonly (Omit<Range, 'changes' | 'leaves'> & { readonly changes?: number })[]
}

/** What frame `seq` of the log covers, inferred from the frames before and after it; undefined if none follows. Throws Damage. */
function coveredBetween(log: JournalReader, seq: number): Covered | undefined {
  const after = log.read(seq + 1)
  return after && inferred(seq === 1 ? undefined : log.read(seq - 1)!, after)
}

/**
 * The same if frames next to it are lost too: the first of them covers what all of them did, with unknown numbers of the
 * changes.
 */
function coveredAround(log: JournalReader, seq: number): Covered | undefined {
  const nothing = { firstChange: Number.NaN, ranges: [] }
  const before = seq === 1 ? undefined : frameOrDamage(log, seq - 1, isAtFrame)
  if (before instanceof Damage) return nothing
  for (let next = seq + 1; ; next++) {
    const after = frameOrDamage(log, next, isAtFrame)
    if (after === undefined) return undefined
    if (after instanceof Damage) continue
    const covered = inferred(before, after)
    return next === seq + 1 ? covered : { ...nothing, ranges: covered.ranges }
  }
}

function inferred(before: Frame | undefined, after: Frame): Covered {
  const known = before && decodeLogFrame(before)
  const changes = known?.ranges.reduce((sum, range) => sum + range.changes, known.firstChange)
  return { firstChange: changes ?? 1, ranges: rangesBetween(known, decodeLogFrame(after)) }
}

/** Whether a frame is passed over because of this error. Any other error is thrown. */
type IsLost = (error: unknown, seq: number) => error is Damage

/** A record, or damage in its place. `change`: NaN if the damage leaves it unknown. */
export type CoveredRecord =
  | (Omit<PublicRecord, 'leaf'> & { readonly damage?: undefined })
  | { readonly damage: Damage; readonly shard: number; readonly change: number }

function* coveredRecords(
  { firstChange, ranges }: Covered,
  shards: readonly JournalReader[],
  isLost: IsLost = isOfFrame,
): Generator<CoveredRecord, void, void> {
  let change = firstChange
  for (const { shard, first, last, changes = Number.NaN } of ranges) {
    if (last < first) continue
    const reader = readerThrough(last, shards, shard)
    const end = change + changes
    let seq = first
    try {
      for (const frame of reader.scan(first, last)) {
        seq = frame.seq + 1
        if (isPublic(frame)) yield { frame, shard, change: change++ }
      }
    } catch (error) {
      if (!isLost(error, seq)) throw error
      const frames = Array.from({ length: last - seq + 1 }, (_, n) => frameOrDamage(reader, seq + n, isLost)!)
      const whole = frames.filter((frame): frame is Frame => !(frame instanceof Damage))
      const damaged = frames.length - whole.length
      // The changes that were not read are in the damaged frames: one in each of them, or none at all. If neither fits,
      // the numbers of the other frames are unknown.
      const changesEach = damaged === 0 ? 0 : (end - change - whole.filter(isPublic).length) / damaged
      if (!Number.isInteger(changesEach)) change = Number.NaN
      for (const frame of frames) {
        if (!(frame instanceof Damage)) {
          if (isPublic(frame)) yield { frame, shard, change: change++ }
          continue
        }
        // If the damaged frames have no changes, their records are private.
        if (changesEach !== 0) yield { damage: frame, shard, change }
        change += changesEach
      }
      change = end
    }
  }
}

/** Undefined if the journal has no such frame. */
function frameOrDamage(reader: JournalReader, seq: number, isLost: IsLost): Frame | Damage | undefined {
  try {
    return reader.read(seq)
  } catch (error) {
    if (!isLost(error, seq)) throw error
    return error
  }
}

/**
 * Whether only frame `seq` is damaged, and not the file as a whole or a segment that still grows. A failed read does
 * not count: a later one may succeed.
 */
function isOfFrame(error: unknown, seq: number): error is Damage {
  return isAtFrame(error, seq) && !isUnreadable(error)
}

function isAtFrame(error: unknown, seq: number): error is Damage {
  return error instanceof Damage && error.frame === seq
}

function isPublic({ flags }: Frame): boolean {
  return (flags & PUBLIC) !== 0
}

/** The reader of this shard, advanced through frame `last`. */
function readerThrough(last: number, shards: readonly JournalReader[], shard: number): JournalReader {
  const reader = shards[shard]
  if (reader === undefined) throw new Error(`the log covers shard ${shard}, which this board does not have`)
  reader.advance(last)
  return reader
}

/** What the frames between two others cover, by shard: from the end of one to the beginning of the other. */
function rangesBetween(before: LogFrame | undefined, after: LogFrame): Pick<Range, 'shard' | 'first' | 'last'>[] {
  return [...Map.groupBy(after.ranges, ({ shard }) => shard)]
    .map(([shard, [next]]) => {
      const last = before?.ranges.findLast((range) => range.shard === shard)?.last ?? 0
      return { shard, first: last + 1, last: next!.first - 1 }
    })
    .toSorted((one, other) => one.shard - other.shard)
}

/** The texts of the entries of a log frame, and the leaf index of the first. */
type FramedEntries = { readonly firstLeaf: number; readonly entries: readonly Buffer[] }

type Between = {
  readonly before: LogFrame
  readonly after: LogFrame
  /** The hash of a leaf of their log, from its tree file. It may throw, or return a wrong hash. */
  readonly leaf: (index: number) => Uint8Array
}

/**
 * The entries of the frames between two others of one log, rebuilt from the records that they cover. Entries of several
 * shards are put in the order of their hashes in the tree. Undefined if their number differs from that of the frames,
 * because one of the frames covered no records, or if the hashes differ from those in the tree. Throws Damage, and
 * whatever `leaf` throws.
 */
export function entriesBetween(
  { before, after, leaf }: Between,
  shards: readonly JournalReader[],
): FramedEntries | undefined {
  const firstLeaf = before.size
  const ofShards = rangesBetween(before, after)
    .filter(({ first, last }) => first <= last)
    .map(({ shard, first, last }) => entriesFrom(shards[shard]!, first, last))
    .filter((entries) => entries.length > 0)
  const count = ofShards.reduce((sum, { length }) => sum + length, 0)
  if (count !== after.firstLeaf - firstLeaf) return undefined
  const entries = ofShards.length > 1 ? merged(ofShards, count, (n) => leaf(firstLeaf + n)) : ofShards.flat()
  return entries && { firstLeaf, entries }
}

function entriesFrom(shard: JournalReader, first: number, last: number): Buffer[] {
  const entries: Buffer[] = []
  for (const frame of shard.scan(first, last)) if (isPublic(frame)) entries.push(...frameEntries(frame))
  return entries
}

/** Merges lists with `count` entries in total into one, in which entry n has the hash `hashOf(n)`; undefined if that is impossible. */
function merged(
  lists: readonly (readonly Buffer[])[],
  count: number,
  hashOf: (n: number) => Uint8Array,
): Buffer[] | undefined {
  const heads = lists.map((entries) => ({ entries, next: 0, hash: leafHash(entries[0]!) }))
  const all: Buffer[] = []
  for (let n = 0; n < count; n++) {
    const wanted = hashOf(n)
    const head = heads.find(({ entries, next, hash }) => next < entries.length && hash.equals(wanted))
    if (head === undefined) return undefined
    all.push(head.entries[head.next++]!)
    const following = head.entries[head.next]
    if (following !== undefined) head.hash = leafHash(following)
  }
  return all
}

/**
 * Allows the readers to read everything that the log's frame `seq` refers to; every frame names the position of every
 * shard. If it is damaged, uses the frame before it: the records that the damaged one covers become readable with the
 * next frame.
 */
export function advanceTo(seq: number, log: JournalReader, shards: readonly JournalReader[]): void {
  log.advance(seq)
  const frame = newestReadable(seq, log)
  if (frame === undefined) throw new Error(`the log has no frame ${seq}, although it was followed up to it`)
  for (const { shard, last } of decodeLogFrame(frame).ranges) shards[shard]?.advance(last)
}

function newestReadable(seq: number, log: JournalReader): Frame | undefined {
  try {
    return log.read(seq)
  } catch (error) {
    if (!(error instanceof Damage) || seq === 1) throw error
    return log.read(seq - 1)
  }
}
