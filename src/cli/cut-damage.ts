/**
 * `broadside restored --lost --cut-damage`: the end of a journal is damaged, and no copy has it. Everything before the damage stays.
 *
 * A journal is cut before its damage, and the log before the first frame that covers a record that is cut: its heads beyond that are never
 * signed again, because the log ends there (restored-lost.ts), and the next one begins with what stays. The result is what a backup taken
 * at that moment would be. So it is offered if the only shard is damaged, or only the log: records of several shards depend on each other,
 * and a cut through one of them would leave consequences of what is lost.
 *
 * The steps, in this order; an interrupted call is completed by the same command:
 *
 *   1  restored.json: where the journals are cut; until it is removed, no board starts
 *   2  the cut bytes are saved in `lost+tail`, and cut off; what was derived from them is removed
 *   3  as for `broadside restored --lost`
 */
import { decodeLogFrame, entriesOf, type LogFrame } from '../../actors/log/frame.ts'
import { parseEntry } from '../../actors/records/entry.ts'
import { frameEntries, PUBLIC } from '../../actors/records/record.ts'
import { ReadableFrames } from '../../storage/around-damage.ts'
import { cutJournal } from '../../storage/cut-journal.ts'
import type { Damage, Disk } from '../../storage/disk.ts'
import { endingOf } from '../../storage/recovery.ts'
import {
  deliveryDirectory,
  logDirectory,
  readFacts,
  restoredFile,
  shardDirectories,
  UnusableDirectory,
} from '../board-directory.ts'
import { forgetDerived } from '../derived-files.ts'
import { foreignJson } from '../format/foreign-json.ts'
import { remadeLog } from '../fsck/explain.ts'
import { durableOf, durableOfLog } from '../log/covered.ts'
import { damageIn, replaceDeliveries, storeFile } from '../webhooks/store.ts'
import type { Terminal } from './command-line.ts'
import { pendingLoss } from './restored-lost.ts'
import { grouped, inertLine } from './terminal.ts'

/** The newest frame that each journal keeps, and the positions in updates after them: the feed's, and those of the shards. */
type Cut = { readonly shards: readonly number[]; readonly log: number; readonly marks: readonly number[] }

type DamagedEnds = {
  readonly cut: Cut
  readonly damages: readonly Damage[]
  /** The newest record of each shard that is known to have been acknowledged. */
  readonly known: readonly number[]
  /** The newest log frame that stays. */
  readonly newest: LogFrame
  /** Entries of the log, as far as it can be read, whose records are cut. */
  readonly entries: readonly ReadonlyMap<string, string>[]
}

/** More lines than this would tell a person nothing new. */
const entriesShownMax = 50

/**
 * Cuts the damaged ends if that is confirmed, or completes an interrupted cut. Returns false if it is not confirmed: then it has said what
 * would be lost. The caller must hold the lock of the directory. Throws UnusableDirectory, and what reading a journal throws.
 */
export function cutDamage(disk: Disk, path: string, isConfirmed: boolean, terminal: Terminal): boolean {
  // Everything is cut, and the log has yet to end.
  if (pendingLoss(disk, path) !== undefined) return true
  const begun = pendingCut(disk, path)
  if (begun !== undefined) {
    if (isConfirmed) carryOut(disk, path, begun)
    else terminal.err('This was begun and not completed. Add --yes to complete it.\n')
    return isConfirmed
  }
  if (disk.fileExists(restoredFile(path)))
    throw new UnusableDirectory(
      `${path} contains a restored backup: run broadside restored or broadside restored --lost, without --cut-damage.`,
    )
  const found = damagedEnds(disk, path)
  terminal.out(words(found))
  if (!isConfirmed) {
    terminal.out('\nAll delegations and sign-ins end now.\n')
    terminal.err('Nothing was changed. Add --yes to continue.\n')
    return false
  }
  disk.writeAtomic(restoredFile(path), Buffer.from(`${JSON.stringify({ cut: found.cut })}\n`))
  carryOut(disk, path, found.cut)
  return true
}

/** The cut that an interrupted call has begun. */
export function pendingCut(disk: Disk, path: string): Cut | undefined {
  const file = restoredFile(path)
  if (!disk.fileExists(file)) return undefined
  const { cut } = Object(foreignJson(disk.readWhole(file).toString('utf8'))) as { readonly cut?: Cut }
  return cut !== undefined && Array.isArray(cut.shards) && Number.isSafeInteger(cut.log) ? cut : undefined
}

function carryOut(disk: Disk, path: string, { shards, log, marks }: Cut): void {
  const directories = shardDirectories(path, shards.length)
  forgetDerived(disk, path, [...directories, logDirectory(path)])
  for (const [shard, directory] of directories.entries())
    cutJournal(disk, directory, { last: shards[shard]!, isSealed: false, isKept: true })
  cutJournal(disk, logDirectory(path), { last: log, isSealed: false, isKept: true })
  const deliveries = deliveryDirectory(path)
  if (!disk.fileExists(storeFile(deliveries)) || damageIn(deliveries) !== undefined) return
  // Otherwise webhooks would skip what is written from now on, under the numbers of what is lost.
  const within = (source: number, position: number) => Math.min(position, marks[source] ?? position)
  replaceDeliveries(deliveries, {
    marks: (before) => before.map((position, source) => within(source, position)),
    place: (source, position) => ({ source, position }),
    epoch: (_hook, epoch) => epoch,
  })
}

function damagedEnds(disk: Disk, path: string): DamagedEnds {
  const { shards } = readFacts(disk, path)
  const directories = shardDirectories(path, shards)
  const ends = directories.map((directory, shard) =>
    endingOf(disk, directory, (journalId) => durableOf(disk, path, shard, journalId)),
  )
  const logEnd = endingOf(disk, logDirectory(path), (journalId) => durableOfLog(disk, path, journalId))
  const damages = [...ends, logEnd].flatMap(({ damage }) => damage ?? [])
  if (damages.length === 0)
    throw new UnusableDirectory(
      `The journals in ${path} are not damaged at their ends, so there is nothing to cut. Run broadside fsck --explain.`,
    )
  if (shards > 1 && ends.some(({ damage }) => damage !== undefined))
    throw new UnusableDirectory(
      `${damages[0]!.message}. This board has ${shards} shards, whose records depend on each other, so one of them cannot be cut alone. Restore the newest backup of the whole data directory.`,
    )
  if (shards === 1 && ends[0]!.damage === undefined)
    throw new UnusableDirectory(
      `${damages[0]!.message}. The only shard of this board has every record, so the log need not end: ${remadeLog}`,
    )
  const kept = ends.map(({ last }) => last)
  for (const [shard, directory] of directories.entries()) refuseOlderDamage(disk, directory, kept[shard]!)
  refuseOlderDamage(disk, logDirectory(path), logEnd.last)
  let newest: { readonly seq: number; readonly frame: LogFrame } | undefined
  const beyond: LogFrame[] = []
  const log = new ReadableFrames(disk, logDirectory(path))
  for (const frame of log.through(Number.MAX_SAFE_INTEGER)) {
    const decoded = decodeLogFrame({ ...frame, payload: Buffer.from(frame.payload) })
    const isKept = frame.seq <= logEnd.last && decoded.ranges.every(({ shard, last }) => last <= (kept[shard] ?? 0))
    if (isKept && beyond.length === 0) newest = { seq: frame.seq, frame: decoded }
    else beyond.push(decoded)
  }
  log.close()
  if (newest === undefined)
    throw new UnusableDirectory(
      `${damages[0]!.message}. Nothing that was published stays before that. Restore the newest backup of the whole data directory.`,
    )
  const { firstChange, ranges } = newest.frame
  const nextChange = firstChange + ranges.reduce((sum, { changes }) => sum + changes, 0)
  return {
    cut: { shards: kept, log: newest.seq, marks: [nextChange, ...kept.map((last) => last + 1)] },
    damages,
    known: ends.map(({ known }, shard) =>
      Math.max(
        known,
        ...beyond.flatMap((each) => each.ranges.filter((range) => range.shard === shard)).map((range) => range.last),
      ),
    ),
    newest: newest.frame,
    entries: lostEntries(disk, directories, kept, beyond),
  }
}

/** The next start has no snapshot, and replays everything that stays. */
function refuseOlderDamage(disk: Disk, directory: string, last: number): void {
  const frames = new ReadableFrames(disk, directory)
  let next = 1
  for (const { seq } of frames.through(last)) if (seq === next) next++
  frames.close()
  if (next > last) return
  throw new UnusableDirectory(
    `Frame ${next} of ${directory} cannot be read either, and a start would have to replay it. Restore its file from a backup, or the newest backup of the whole data directory.`,
  )
}

/** The entries in these frames of the log, except those of records that stay, which the next log has. */
function lostEntries(
  disk: Disk,
  directories: readonly string[],
  kept: readonly number[],
  beyond: readonly LogFrame[],
): ReadonlyMap<string, string>[] {
  const found: ReadonlyMap<string, string>[] = []
  const shards = directories.map((directory) => new ReadableFrames(disk, directory))
  for (const frame of beyond) {
    const entries = [...entriesOf(frame)]
    let at = 0
    for (const { shard, first, last, leaves } of frame.ranges) {
      let stays = 0
      if (last >= first)
        for (const record of shards[shard]!.through(Math.min(last, kept[shard]!)))
          if (record.seq >= first && (record.flags & PUBLIC) !== 0) stays += frameEntries(record).length
      found.push(...entries.slice(at + stays, at + leaves).flatMap((entry) => parseEntry(entry) ?? []))
      at += leaves
    }
  }
  for (const shard of shards) shard.close()
  return found
}

const unnamed = 'they are private, were not published, or are in a damaged part of the log'

function words({ cut, damages, known, newest, entries }: DamagedEnds): string {
  const lost = cut.shards.flatMap((last, shard) =>
    known[shard]! > last
      ? [`Lost: ${recordsText(last + 1, known[shard]!)} of shard ${shard}, which is what is damaged and all after it.`]
      : [],
  )
  const none = 'No record is lost: the next log has the entries of those that this one does not cover.'
  const shown = entries.slice(0, entriesShownMax).map((entry) => `  ${entryLine(entry)}\n`)
  const more = entries.length > shown.length ? `  and ${grouped(entries.length - shown.length)} more\n` : ''
  const named =
    lost.length === 0
      ? ''
      : entries.length === 0
        ? `The log names none of them: ${unnamed}.\n`
        : `The log names these of them; as to the others, ${unnamed}:\n${shown.join('')}${more}`
  const origin = newest.checkpoint.slice(0, newest.checkpoint.indexOf('\n'))
  return (
    `${damages.map((damage) => `${inertLine(damage.message)}.\n`).join('')}` +
    `If any backup has this file, stop here and restore it: then nothing is lost.\n\n` +
    `${lost.length === 0 ? none : lost.join('\n')}\n${named}` +
    `${inertLine(origin)} ends at size ${grouped(newest.size)}. What is cut off is saved in the directories lost+tail.\n`
  )
}

function recordsText(first: number, last: number): string {
  return first === last ? `record ${grouped(first)}` : `records ${grouped(first)} to ${grouped(last)}`
}

function entryLine(entry: ReadonlyMap<string, string>): string {
  const [kind, event, room, seq, time] = ['kind', 'event', 'room', 'seq', 'time'].map((name) => entry.get(name) ?? '-')
  const place = room === '-' ? '' : ` in ${room}${seq === '-' ? '' : `, number ${seq}`}`
  return inertLine(`${kind} ${event}${place}, ${new Date(Number(time) * 1000).toISOString()}`)
}
