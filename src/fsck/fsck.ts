/**
 * The full check of a data directory: recomputes from the files everything that the log has signed.
 *
 * It checks each segment's bytes, chain and index; each log frame's entries against the records from which they were made; every record
 * against the bytes its author signed; every root and checkpoint; every node hash; and the checksum of every snapshot. A damaged frame
 * hides only what depends on it: everything else is still read and recomputed.
 *
 * Nothing is changed, unless the caller wants repair and nothing is damaged. Then derived data that differs is rebuilt, or removed if a
 * start rebuilds it. If there is damage, nothing is touched: it may show how the damage came about.
 */

import { createHash } from 'node:crypto'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { BlobFacts, DeletedFacts } from '../../actors/attachments/attachments.ts'
import { nameOf } from '../../actors/log/book.ts'
import { closedBefore, decodeLogFrame, hasSigned, type LogFrame, openFrameType } from '../../actors/log/frame.ts'
import { rebuildTree } from '../../actors/log/tree.ts'
import type { RedactFacts } from '../../actors/posts/marks.ts'
import { parseEntry } from '../../actors/records/entry.ts'
import {
  ActsOf,
  type BoardRecord,
  commandSha,
  frameEntries,
  frameEntry,
  frameKey,
  fromFrame,
  isStub,
  joined,
  LEAF,
  type PostRecord,
  PUBLIC,
  RecordType,
} from '../../actors/records/record.ts'
import { ReadableFrames } from '../../storage/around-damage.ts'
import { readBlob } from '../../storage/blob-files.ts'
import { Damage, type Disk, isUnreadable, unlessUnreadable } from '../../storage/disk.ts'
import { type Durable, durableMarkFile, isMarkUnusable, newestDurable } from '../../storage/durable-mark.ts'
import {
  type JournalCheck,
  type JournalProblem,
  rebuildSegmentIndex,
  verifyJournal,
} from '../../storage/fsck-journal.ts'
import { type Frame, JournalReader } from '../../storage/journal.ts'
import { areIntact, markEnding, markOf } from '../../storage/shelved-rows.ts'
import { badSnapshots, loadNewest, reachOf } from '../../storage/snapshot.ts'
import {
  blobsDirectory,
  deliveryDirectory,
  followerFile,
  logDirectory,
  logKeyFile,
  oldEventsSuffix,
  readFacts,
  searchDirectory,
  shardDirectories,
  snapshotDirectories,
} from '../board-directory.ts'
import { areEntriesOf } from '../export-check/act-entries.ts'
import type { Verify } from '../export-check/signed-record.ts'
import { missingLogProblem } from '../log/beginning.ts'
import { durableOf, logBehind, missingJournalProblem } from '../log/covered.ts'
import { type LogIdentity, otherKey } from '../log/signed-log.ts'
import { BadPage, checkPages } from '../search/page-sums.ts'
import { wipe } from '../search/search-index.ts'
import { damageIn, setAside, storeFile } from '../webhooks/store.ts'
import { CreditCheck } from './credits.ts'
import { type Finding, LogChainCheck, type NodesOf } from './log.ts'
import { SignerCheck } from './signers.ts'
import { checkSmallFiles } from './small-files.ts'
import { checkKeys, checkMarks, vkeyIn } from './start.ts'

const nothing = Buffer.alloc(0)
const otherEntry = 'its log entry does not match the record'

export type { Finding } from './log.ts'

type FsckOptions = {
  readonly disk: Disk
  readonly path: string
  readonly onFinding: (finding: Finding) => void
  readonly onProgress: (leaves: number, total: number) => void
  /** Checks a signature; if omitted, signatures are not checked. */
  readonly verify: Verify | undefined
  /** Called with each finding that was repaired; if omitted, nothing is repaired. */
  readonly onRepaired?: (finding: Finding) => void
  /** Where the high-water mark is; if omitted, it is not checked. */
  readonly markFile?: string
  /** The data directory whose keys sign for this one; its own by default. */
  readonly keysIn?: string
  /** The data directory with the attachments of this one; its own by default. */
  readonly blobsIn?: string
}

type FsckResult = {
  readonly frames: number
  readonly bytes: number
  readonly leaves: number
  readonly damages: number
  /** Findings that lose no data, but with which a start is refused. */
  readonly refusals: number
}

/** Checks a copy of a board, except for derived data, which a copy leaves out. */
export function checkCopy(
  copy: Pick<FsckOptions, 'disk' | 'path' | 'keysIn' | 'blobsIn'> & Partial<Pick<FsckOptions, 'onProgress'>>,
): {
  /** What is damaged. */
  readonly damages: readonly string[]
  /** The same, and what a start would be refused for. */
  readonly problems: readonly string[]
} {
  const damages: string[] = []
  const problems: string[] = []
  checkBoard({
    onProgress: () => {},
    ...copy,
    verify: undefined,
    onFinding: ({ kind, where, what }) => {
      if (kind !== 'derived') problems.push(`${where}: ${what}`)
      if (kind === 'damage') damages.push(`${where}: ${what}`)
    },
  })
  return { damages, problems }
}

export function checkBoard(options: FsckOptions): FsckResult {
  const derived: Finding[] = []
  let damages = 0
  let refusals = 0
  const onFinding = (finding: Finding): void => {
    if (finding.kind === 'damage') damages++
    else if (finding.kind === 'start') refusals++
    else derived.push(finding)
    options.onFinding(finding)
  }
  const checked = checkFiles(options, onFinding)
  const { onRepaired } = options
  for (const finding of damages > 0 || onRepaired === undefined ? [] : derived) {
    if (finding.rebuild === undefined) continue
    finding.rebuild()
    onRepaired?.(finding)
  }
  return { ...checked, damages, refusals }
}

type Checked = Omit<FsckResult, 'damages' | 'refusals'>

function checkFiles(options: FsckOptions, onFinding: (finding: Finding) => void): Checked {
  const facts = readFacts(options.disk, options.path)
  checkKeys(options.disk, options.keysIn ?? options.path, facts, onFinding)
  const directories = [...shardDirectories(options.path, facts.shards), logDirectory(options.path)]
  let frames = 0
  let bytes = 0
  const ends: number[] = []
  let isLogSound = true
  const records: Damaged[] = []
  const missing = new Set<number>()
  for (const [shard, directory] of directories.entries()) {
    const problem = shard < facts.shards ? missingProblem(options, shard) : undefined
    if (problem !== undefined) {
      missing.add(shard)
      ends.push(0)
      onFinding({ kind: 'damage', where: directory, what: problem })
      continue
    }
    const snapshots = snapshotDirectories(options.path, directory)
    const damaged: number[] = []
    const check = verifyJournal(
      options.disk,
      directory,
      (problem) => {
        if (problem.kind === 'damage') damaged.push(problem.through)
        onFinding(journalFinding(options.disk, directory, problem))
      },
      (journalId) =>
        newestDurable(
          shard < facts.shards ? knownDurable(options, shard, journalId) : nothingDurable,
          ...snapshots.map((each) => ({ seq: reachOf(options.disk, each, journalId), by: 'a snapshot' })),
        ),
    )
    frames += check.frames
    bytes += check.bytes
    ends.push(check.nextSeq - 1)
    // The last of them is the log.
    isLogSound = check.damages === 0
    checkSnapshots(options.disk, snapshots, check, onFinding)
    checkOldEvents(options.disk, snapshots[0]!, onFinding)
    checkDurableMark(options.disk, directory, check, onFinding)
    if (shard < facts.shards) records.push(...damaged.map((through) => ({ shard, through })))
    const isOfFeed = shard === facts.shards
    // When the feed starts, it reads the records of all shards again.
    if (damaged.length > 0 || (isOfFeed && records.length > 0))
      checkReplay(options.disk, snapshots[0]!, check, onFinding, (reach) => {
        if (damaged.some((through) => through > reach)) return false
        const covered = isOfFeed ? coveredAt(options.disk, directory, reach) : undefined
        return covered === undefined || records.every(({ shard: of, through }) => through <= (covered.get(of) ?? 0))
      })
  }
  checkSmallFiles({ disk: options.disk, path: options.path, keysIn: options.keysIn ?? options.path, onFinding })
  checkDelivery(options.disk, deliveryDirectory(options.path), onFinding)
  checkSearch(options.disk, searchDirectory(options.path), onFinding)
  const log = logDirectory(options.path)
  const lost = isLogSound && ends.at(-1) === 0 ? missingLogProblem(options.path, ends.slice(0, -1)) : undefined
  if (lost !== undefined) onFinding({ kind: 'damage', where: log, what: lost })
  const isThere = isLogSound && lost === undefined
  const behind = isThere ? unlessUnreadable(() => logBehind(options.disk, options.path, facts.shards)) : undefined
  if (behind !== undefined) onFinding({ kind: 'damage', where: log, what: behind })
  const setting = { ends, missing, isLogSound, isLogLost: lost !== undefined, origin: facts.origin, onFinding }
  const leaves = new LogCheck(options, setting).run()
  return { frames, bytes, leaves }
}

/** Set if the journal of this shard is gone. Damage that prevents this is reported separately. */
function missingProblem({ disk, path }: Pick<FsckOptions, 'disk' | 'path'>, shard: number): string | undefined {
  return unlessUnreadable(() => missingJournalProblem(disk, path, shard))
}

const nothingDurable: Durable = { seq: 0, by: '' }

/** Damage that prevents this is reported separately. */
function knownDurable({ disk, path }: Pick<FsckOptions, 'disk' | 'path'>, shard: number, journalId: Buffer): Durable {
  return unlessUnreadable(() => durableOf(disk, path, shard, journalId)) ?? nothingDurable
}

const findingKinds: Readonly<Partial<Record<JournalProblem['kind'], Finding['kind']>>> = {
  damage: 'damage',
  'no-file': 'start',
}

function journalFinding(disk: Disk, directory: string, problem: JournalProblem): Finding {
  const { kind, path, offset, expected, found, firstSeq } = problem
  return {
    kind: findingKinds[kind] ?? 'derived',
    where: `${path} at byte ${offset}`,
    what: `${kind}: expected ${expected}, found ${found}`,
    // An unconfirmed tail is not derived from anything: the next start saves it and cuts it off.
    ...(kind === 'index' ? { rebuild: () => rebuildSegmentIndex(disk, directory, firstSeq) } : {}),
  }
}

function checkSnapshots(
  disk: Disk,
  directories: readonly string[],
  check: JournalCheck,
  onFinding: (finding: Finding) => void,
): void {
  if (check.journalId === undefined) return
  for (const directory of directories)
    for (const { path, problem, isDamage } of badSnapshots(disk, directory, check.journalId, check.nextSeq - 1)) {
      if (isDamage) onFinding({ kind: 'damage', where: path, what: problem })
      else
        onFinding({
          kind: 'derived',
          where: path,
          what: `a snapshot that no start can use: ${problem}`,
          rebuild: () => disk.removeFile(path),
        })
    }
}

/** A journal works without its mark, and writes it again once it is idle. */
function checkDurableMark(
  disk: Disk,
  directory: string,
  { journalId }: Pick<JournalCheck, 'journalId'>,
  onFinding: (finding: Finding) => void,
): void {
  if (journalId === undefined || !isMarkUnusable(disk, directory, journalId)) return
  const where = durableMarkFile(directory)
  const what = 'it differs from what was written: without it, damage to the newest record could look like a torn write'
  onFinding({ kind: 'derived', where, what, rebuild: () => disk.removeFile(where) })
}

/** Files with old events, which the snapshots in this directory name. */
function checkOldEvents(disk: Disk, directory: string, onFinding: (finding: Finding) => void): void {
  for (const name of disk.fileExists(directory) ? disk.listFiles(directory) : []) {
    const path = join(directory, name)
    if (!name.endsWith(oldEventsSuffix)) continue
    let what = 'its old events differ from what was written'
    const bytes = unlessUnreadable(
      () => disk.readWhole(path),
      (problem) => {
        what = `its old events cannot be read: ${problem}`
      },
    )
    const isSound =
      bytes !== undefined && areIntact(bytes) && name.endsWith(`${markEnding(markOf(bytes))}${oldEventsSuffix}`)
    if (!isSound) onFinding({ kind: 'derived', where: path, what, rebuild: () => disk.removeFile(path) })
  }
}

/** A shard has a record up to `through`, the newest, that cannot be read. */
type Damaged = { readonly shard: number; readonly through: number }

/** The newest frame of each shard covered by frame `reach` of the log; empty if that cannot be read, or does not exist. */
function coveredAt(disk: Disk, directory: string, reach: number): ReadonlyMap<number, number> {
  if (reach === 0) return new Map()
  const log = JournalReader.open(disk, directory)
  try {
    log.advance(reach)
    return new Map(decodeLogFrame(log.read(reach)!).ranges.map(({ shard, last }) => [shard, last]))
  } catch (error) {
    if (!(error instanceof Damage || isUnreadable(error))) throw error
    return new Map()
  } finally {
    log.close()
  }
}

/**
 * A start reads all records after its snapshot, and stops at a damaged one. `isPassed`: whether a snapshot at `reach` is newer than all
 * damaged records.
 */
function checkReplay(
  disk: Disk,
  directory: string,
  { journalId }: Pick<JournalCheck, 'journalId'>,
  onFinding: (finding: Finding) => void,
  isPassed: (reach: number) => boolean,
): void {
  if (journalId === undefined) return
  const reach = disk.fileExists(directory) ? (loadNewest(disk, directory, journalId)?.seq ?? 0) : 0
  if (isPassed(reach)) return
  const what =
    'no complete snapshot in it is newer than the damaged records: a start would have to replay them, and is refused. Restore the damaged files from a backup that has them'
  onFinding({ kind: 'start', where: directory, what })
}

type Setting = {
  readonly ends: readonly number[]
  /** Shards whose journals are gone, which has been reported. */
  readonly missing: ReadonlySet<number>
  /** Whether every segment of the log's journal is as it was written. */
  readonly isLogSound: boolean
  /** The log is gone, which has been reported: its name and key are unknown. */
  readonly isLogLost: boolean
  /** Origin of the first log, from board.json. */
  readonly origin: string
  readonly onFinding: (finding: Finding) => void
}

class LogCheck {
  readonly #options: FsckOptions
  readonly #setting: Setting
  readonly #shards: ReadableFrames[]
  readonly #covered: number[]
  /** Shards with frames that cannot be read: anything that depends on all of their records together is unknown. */
  readonly #isDamaged: boolean[]
  readonly #blobs: BlobCheck
  readonly #credits: CreditCheck
  /** Undefined if signatures are not checked. */
  readonly #signers: SignerCheck | undefined

  constructor(options: FsckOptions, setting: Setting) {
    this.#options = options
    this.#setting = setting
    const { disk, path, blobsIn = path, verify } = options
    const shards = setting.ends.length - 1
    this.#covered = Array<number>(shards).fill(0)
    this.#isDamaged = Array<boolean>(shards).fill(false)
    this.#credits = new CreditCheck((where, what) => this.#damage(where, what))
    this.#signers =
      verify === undefined ? undefined : new SignerCheck(verify, (where, what) => this.#damage(where, what))
    this.#blobs = new BlobCheck(disk, blobsDirectory(blobsIn), (where, what) => this.#damage(where, what))
    this.#shards = shardDirectories(path, shards).map((directory) => new ReadableFrames(disk, directory))
  }

  /** Returns the number of leaves checked. */
  run(): number {
    const leaves = this.#log()
    for (const [shard, last] of this.#setting.ends.slice(0, this.#shards.length).entries()) this.#private(shard, last)
    // Otherwise a post or file removed by a lost record would be reported as missing, and so would a move to another key.
    if (!this.#isDamaged.includes(true)) {
      this.#blobs.end()
      this.#signers?.end()
    }
    for (const shard of this.#shards) shard.close()
    return leaves
  }

  /** Checks the log's frames up to the first that cannot be read: everything after it depends on it. */
  #log(): number {
    const { disk, path, markFile, keysIn = path, onProgress } = this.#options
    const { ends, isLogSound, isLogLost, origin, onFinding } = this.#setting
    if (isLogLost) return 0
    const through = ends.at(-1)!
    const directory = logDirectory(path)
    const logs = identitiesOf({ disk, path, keysIn }, origin, through, onFinding)
    if (logs === undefined) return 0
    const chain = new LogChainCheck({
      disk,
      directory,
      logs,
      onFinding,
      rebuildNodes: (nodes) => rebuildNodes(disk, path, nodes),
    })
    const frames = new ReadableFrames(disk, directory)
    let expected = 1
    for (const frame of frames.through(through)) {
      if (frame.seq !== expected++) break
      const decoded = decodeLogFrame(frame)
      chain.take(frame, decoded, this.#entriesFromShards(decoded, `log frame ${frame.seq}`))
      onProgress(frame.seq, through)
    }
    frames.close()
    if (markFile !== undefined && isLogSound && expected > through)
      unlessUnreadable(() => checkMarks(disk, { dataDirectory: path, markFile }, logs, through, onFinding))
    return chain.end()
  }

  /** Records through `last` that no frame of the log covers: a turn with only private records advances without a frame. */
  #private(shard: number, last: number): void {
    const first = this.#covered[shard]! + 1
    for (const frame of this.#frames(shard, first, last)) this.#record(frame, shard)
  }

  /** The readable frames from `first` to `last` of a shard; notes whether any cannot be read. */
  *#frames(shard: number, first: number, last: number): Generator<Frame, void, undefined> {
    if (last < first) return
    this.#covered[shard] = last
    let next = first
    for (const frame of this.#shards[shard]!.through(last)) {
      if (frame.seq !== next) this.#isDamaged[shard] = true
      next = frame.seq + 1
      yield frame
    }
    if (next <= last) this.#isDamaged[shard] = true
  }

  /** Undefined if some of the records cannot be read. */
  #entriesFromShards(log: LogFrame, where: string): Buffer[] | undefined {
    const entries: Buffer[] = []
    let isWhole = true
    for (const { shard, first, last, changes } of log.ranges) {
      if (this.#setting.missing.has(shard)) {
        isWhole = false
        continue
      }
      const reader = this.#shards[shard]
      if (reader === undefined || last > this.#setting.ends[shard]!) {
        this.#damage(
          where,
          `it covers frame ${last} of shard ${shard}, whose journal ends at ${this.#setting.ends[shard] ?? 0}`,
        )
        continue
      }
      this.#private(shard, first - 1)
      let found = 0
      let read = 0
      for (const frame of this.#frames(shard, first, last)) {
        this.#record(frame, shard)
        read++
        if ((frame.flags & PUBLIC) !== 0) found++
        entries.push(...frameEntries(frame))
      }
      if (read <= last - first) isWhole = false
      else if (found !== changes)
        this.#damage(where, `it counts ${changes} changes of shard ${shard}, the journal has ${found}`)
    }
    return isWhole ? entries : undefined
  }

  /** Checks that a record is what its author signed. */
  #record(frame: Frame, shard: number): void {
    const record = fromFrame(frame)
    const where = `shard ${shard} frame ${frame.seq}`
    // A balance is known only if every earlier posting is.
    if (!this.#isDamaged[shard]) this.#credits.take(frame, record, where)
    // Including records without a signature: a takedown uses them to mark files as gone.
    const file = this.#blobs.take(record, frameKey(frame).toString('hex'), where)
    if (record.type === RecordType.act && (frame.flags & LEAF) !== 0) {
      const given = { key: frameKey(frame), entries: frameEntries(frame) }
      if (!areEntriesOf(record, given)) this.#damage(where, otherEntry)
    }
    const { by } = record
    if (by === undefined) return
    // Of a command whose text or file is gone, only the hash remains.
    const isGone = isStub(frame) || (by.cut !== undefined && file === undefined)
    const bytes = isGone ? undefined : joined(by, file ?? nothing)
    const sha = bytes === undefined ? commandSha(by) : createHash('sha256').update(bytes).digest()
    if (!sha.subarray(0, 16).equals(frameKey(frame))) this.#damage(where, 'its id is not the hash of its signed bytes')
    if (record.type === RecordType.event && (frame.flags & LEAF) !== 0) {
      const entry = parseEntry(frameEntry(frame))
      const agrees =
        entry?.get('command') === sha.toString('hex') &&
        entry.get('room') === record.room &&
        entry.get('seq') === String(record.seq) &&
        entry.get('time') === String(record.at)
      if (!agrees) this.#damage(where, otherEntry)
    }
    this.#signers?.take(record, by, bytes, where)
  }

  #damage(where: string, what: string): void {
    this.#setting.onFinding({ kind: 'damage', where, what })
  }
}

function rebuildNodes(disk: Disk, path: string, { path: file, first, last }: NodesOf): void {
  const log = JournalReader.open(disk, logDirectory(path))
  log.advance(last)
  try {
    const tree = rebuildTree({ disk, path: file, journal: log, first, last, report: () => {} })
    tree.sync()
    tree.close()
  } finally {
    log.close()
  }
}

/**
 * Every log of the board, oldest first: the closed ones as listed in the newest one's first frame, and the one that the key signs for.
 * Undefined if damage hides them.
 */
function identitiesOf(
  { disk, path, keysIn }: { readonly disk: Disk; readonly path: string; readonly keysIn: string },
  first: string,
  through: number,
  onFinding: (finding: Finding) => void,
): LogIdentity[] | undefined {
  let closed: LogIdentity[] = []
  let origin = first
  let read = 0
  /** The first and the newest frame of the log that grows. */
  let ends: LogFrame[] = []
  const log = new ReadableFrames(disk, logDirectory(path))
  for (const frame of log.through(through)) {
    read++
    const decoded = decodeLogFrame(frame)
    ends = [frame.type === openFrameType ? decoded : (ends[0] ?? decoded), decoded]
    if (frame.type !== openFrameType) continue
    const { checkpoint } = decoded
    origin = checkpoint.slice(0, checkpoint.indexOf('\n'))
    closed = closedBefore(frame).map((each) => ({ origin: each.origin, vkey: each.vkey }))
  }
  log.close()
  const isWhole = read === through
  // The frame of a newer log may be among the damaged ones. Then a missing key for the one found is not a finding.
  const named = { name: closed.length === 0 ? '' : nameOf(origin), origin }
  const own = vkeyIn(disk, keysIn, named, isWhole ? onFinding : () => {})
  const isOwn = isWhole && through > 0 && !disk.fileExists(followerFile(keysIn))
  const isOther = own !== '' && isOwn && !ends.some((frame) => hasSigned(own, frame))
  const where = logKeyFile(keysIn, named.name)
  if (isOther) onFinding({ kind: 'start', where, what: otherKey(own, where) })
  const vkey = isOther ? '' : own
  return vkey === '' && !isWhole ? undefined : [...closed, { origin, vkey }]
}

type Put = {
  readonly where: string
  readonly room: string
  readonly sha256: string
  /** Ids of the original posts that name it. */
  readonly events: string[]
  isMissing: boolean
}

const put = new ActsOf<BlobFacts>('blob.put')
const deleted = new ActsOf<DeletedFacts>('blob.delete', 'blob.remove')
const redacted = new ActsOf<RedactFacts>('event.redact')

/**
 * Checks attachments: every file must match its record, and every file that is still needed must exist. A file may be missing if its blob
 * was deleted, or if every post that named it was redacted. A redaction names the original, and covers all of its versions.
 */
export class BlobCheck {
  readonly #disk: Disk
  readonly #directory: string
  readonly #damage: (where: string, what: string) => void
  readonly #puts = new Map<string, Put>()
  readonly #redacted = new Set<string>()

  constructor(disk: Disk, directory: string, damage: (where: string, what: string) => void) {
    this.#disk = disk
    this.#directory = directory
    this.#damage = damage
  }

  /** Takes a record with the id (32 hex) of its command. Returns the file that was cut out of it, if it has one and the file exists. */
  take(record: BoardRecord, id: string, where: string): Buffer | undefined {
    if (record.type === RecordType.event) this.#attached(record, id)
    if (deleted.is(record)) this.#puts.delete(record.facts.target)
    if (redacted.is(record)) this.#redacted.add(Buffer.from(record.facts.id).toString('hex'))
    if (!put.is(record)) return undefined
    const sha256 = Buffer.from(record.facts.sha256).toString('hex')
    let problem: string | undefined
    const file = unlessUnreadable(
      () => readBlob(this.#disk, this.#directory, record.room, sha256),
      (unreadable) => (problem = unreadable),
    )
    const isMissing = file === undefined && problem === undefined
    this.#puts.set(id, { where, room: record.room, sha256, events: [], isMissing })
    if (problem !== undefined)
      this.#damage(where, `its file ${record.room}/${sha256} has other content, or none that can be read: ${problem}`)
    if (file === undefined || createHash('sha256').update(file).digest('hex') === sha256) return file
    this.#damage(where, `its file ${record.room}/${sha256} has other content`)
    return undefined
  }

  /** Blobs belong to the original, whichever version names them. */
  #attached({ blobs = [], original }: PostRecord, id: string): void {
    const event = original === undefined ? id : Buffer.from(original).toString('hex')
    for (const blob of blobs) this.#puts.get(Buffer.from(blob).toString('hex'))?.events.push(event)
  }

  /** Call after the last record. */
  end(): void {
    for (const { where, room, sha256, events, isMissing } of this.#puts.values()) {
      const isRedacted = events.length > 0 && events.every((id) => this.#redacted.has(id))
      if (isMissing && !isRedacted) this.#damage(where, `its file ${room}/${sha256} is missing`)
    }
  }
}

/** Checks the pages of the search index against their checksums. */
function checkSearch(disk: Disk, directory: string, onFinding: (finding: Finding) => void): void {
  try {
    for (const _ of checkPages(disk, directory)) void _
  } catch (error) {
    if (!(error instanceof BadPage) && !isUnreadable(error)) throw error
    const what = `a damaged search index, which may return wrong results: ${error.message}`
    onFinding({ kind: 'derived', where: directory, what, rebuild: () => wipe(directory) })
  }
}

/**
 * Checks the stored progress of deliveries. Only the integrity of its file can be checked, which is done in a copy. `directory`: of the
 * deliveries.
 */
export function checkDelivery(disk: Disk, directory: string, onFinding: (finding: Finding) => void): void {
  const file = storeFile(directory)
  if (!disk.fileExists(file)) return
  const copy = mkdtempSync(join(tmpdir(), 'broadside-fsck-'))
  try {
    // Opening the file itself would write to it: SQLite would checkpoint what a kill left in its log.
    let problem: string | undefined
    unlessUnreadable(
      () => {
        for (const each of [file, `${file}-wal`])
          if (disk.fileExists(each)) copyFileSync(each, join(copy, basename(each)))
        problem = damageIn(copy)
      },
      (unreadable) => (problem = unreadable),
    )
    if (problem === undefined) return
    const what = `${problem}: without it every webhook restarts from where it was created`
    onFinding({ kind: 'derived', where: file, what, rebuild: () => setAside(directory) })
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}
