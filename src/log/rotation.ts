/**
 * Rotation: permanently closes the log of a stopped board, and begins the next one under a new key.
 *
 * The steps, in order, each durable before the next. After a crash between any two, the same command or the board's next start finishes the
 * rotation:
 *
 *   0  the log covers all of the journals
 *   1  witnesses are queried and the mark is compared, so that an old copy of the directory is not rotated
 *   2  the key file of the next log is written
 *   3  the last frame of the old log, whose entry names the next log and its key, and the first frame of the new one, whose
 *      entry names the end of the old one: one write and one sync each
 *   4  the old key is removed, so that a closed log is never signed again
 *   5  the mark names both logs, and witnesses sign both heads
 */

import { basename, join } from 'node:path'
import { nameOf } from '../../actors/log/book.ts'
import { type ClosedLog, type LogFrame, openFrameType } from '../../actors/log/frame.ts'
import { JournalReader } from '../../storage/journal.ts'
import { openWhole } from '../../storage/whole-decisions.ts'
import { logKeyFile, readFacts, refuseIncomplete, shardDirectories, UnusableDirectory } from '../board-directory.ts'
import type { Config } from '../config.ts'
import type { Platform } from '../platform.ts'
import { missingLogProblem } from './beginning.ts'
import { checkProofs, durableOf, shardEnds } from './covered.ts'
import { Heads } from './heads.ts'
import { MarkKeeper, readMarks } from './mark.ts'
import { type LogIdentity, nextOrigin, SignedLog } from './signed-log.ts'

type Rotated = { readonly closed: LogIdentity & { readonly size: number }; readonly next: LogIdentity }

export type LossOptions = Omit<RotationOptions, 'witnessPolicy'> & {
  /** The verifier key of the log that ends, if the user gave it. */
  readonly vkey: string | undefined
}

export type CoverOptions = Pick<Config, 'dataDirectory' | 'markFile' | 'segmentBytesMax'> & {
  readonly platform: Pick<Platform, 'clock' | 'random' | 'disk'>
  readonly report: (level: 'info' | 'warn', event: string, facts: Readonly<Record<string, unknown>>) => void
}

type RotationOptions = CoverOptions &
  Pick<Config, 'baseUrl' | 'witnessPolicy'> & {
    /** Unix seconds. */
    readonly now: number
  }

/**
 * Opens the log of a stopped board and makes it cover the journals, as a start would. The caller holds the lock of the directory. Throws
 * UnusableDirectory, RolledBack, and the errors of SignedLog.open.
 */
export function openCovered(options: CoverOptions): SignedLog {
  const { dataDirectory, report } = options
  const { disk } = options.platform
  refuseIncomplete(disk, dataDirectory)
  const facts = readFacts(disk, dataDirectory)
  checkProofs(disk, dataDirectory, facts.shards)
  const log = SignedLog.open({
    disk,
    dataDirectory,
    origin: facts.origin,
    segmentBytesMax: options.segmentBytesMax,
    marks: readMarks(disk, options),
    begin: () => {
      throw new UnusableDirectory(`${dataDirectory} contains no signed log yet: start the board once.`)
    },
    report,
  })
  try {
    coverJournals(log, facts.shards, options)
    return log
  } catch (error) {
    log.close()
    throw error
  }
}

/** The caller holds the lock of the directory. Throws the same errors as `openCovered`. */
export async function rotateLog(options: RotationOptions): Promise<Rotated> {
  const { now } = options
  const log = openCovered(options)
  try {
    const old = { origin: log.origin, vkey: log.vkey }
    const next = originAfter(old.origin, options)
    await agreed(options, log)
    makeLogKey(options, next)
    log.rotate(next, now)
    await agreed(options, log)
    const { size } = log.closed.at(-1)!
    return { closed: { ...old, size }, next: { origin: log.origin, vkey: log.vkey } }
  } finally {
    log.close()
  }
}

/** How a lost board's log ends and the next one begins. Chosen once, so that an interrupted call is completed by the next one. */
export type LossPlan = {
  /** Origin of the next log. */
  readonly next: string
  /** Unix seconds. */
  readonly at: number
}

/** What `restored --lost` finds: the log as it is in the backup, or as an earlier call left it. */
export type FoundLog = {
  readonly newest: LogIdentity & Pick<LogFrame, 'size' | 'checkpoint'>
  /** The previous log, if it has no last entry because a backup replaced a lost board. */
  readonly lost: ClosedLog | undefined
  /** Whether the key that signed it is here. */
  readonly hasKey: boolean
  /** Whether nothing has been added to the log since it was begun. */
  readonly isNew: boolean
  /** Where the journals ended, according to its newest frame. */
  readonly ranges: LogFrame['ranges']
}

/** The caller holds the lock of the directory. Throws UnusableDirectory, UnusableMark, and the errors of SignedLog.open. */
export function findLog(options: LossOptions): FoundLog {
  const log = openUnmarked(options)
  try {
    const { origin, vkey, newest, closed, hasKey } = log
    const last = closed.at(-1)
    return {
      newest: { origin, vkey, size: newest.size, checkpoint: newest.checkpoint },
      lost: last?.isLost === true ? last : undefined,
      hasKey,
      isNew: newest.type === openFrameType,
      ranges: newest.ranges,
    }
  } finally {
    log.close()
  }
}

/**
 * Returns an origin that no log of this board has had: none known to its directory or its marks, and none of `used`, which are known from
 * elsewhere. Throws UnusableDirectory.
 */
export function unusedOrigin(options: LossOptions, newest: string, used: readonly string[]): string {
  const { dataDirectory } = options
  const { disk } = options.platform
  const keys = disk.listFiles(join(dataDirectory, 'keys')).flatMap((file) => /^log-(.+)\.key$/.exec(file)?.[1] ?? [])
  const marked = readMarks(disk, options).flatMap(({ vkey, closed }) => [vkey, ...closed])
  const names = [...keys, ...[...used, ...marked.map((vkey) => vkey.slice(0, vkey.indexOf('+')))].map(nameOf)]
  const last = names.filter((name) => /^\d{4}[a-z]$/.test(name)).reduce((a, b) => (b > a ? b : a), nameOf(newest))
  return originAfter(`${newest.slice(0, -nameOf(newest).length)}${last}`, options)
}

/**
 * Ends the log of a board that was restored from a backup and may have signed more since. The log ends where the backup does. Its key is
 * removed if it is there, along with those of logs that only the lost board had. The first entry of the next log records this. A second call
 * with the same plan changes nothing. The caller holds the lock of the directory.
 */
export function endLostLog(options: LossOptions, { next, at }: LossPlan): void {
  const { dataDirectory } = options
  const { disk } = options.platform
  const log = openUnmarked(options)
  try {
    if (log.origin !== next) {
      makeLogKey(options, next)
      log.lose(next, at, shardEnds(disk, dataDirectory, log.newest.ranges.length))
    }
  } finally {
    log.close()
  }
  const keys = join(dataDirectory, 'keys')
  const own = basename(logKeyFile(dataDirectory, nameOf(next)))
  for (const file of disk.listFiles(keys))
    if (/^log(-.+)?\.key$/.test(file) && file !== own) disk.removeFile(join(keys, file))
}

/** Does not compare the marks: they know more than the log, which is why it ends. They may name its key, if that is lost. */
function openUnmarked(options: LossOptions): SignedLog {
  const { dataDirectory, segmentBytesMax, platform, report, vkey } = options
  const { disk } = platform
  const marked = readMarks(disk, options).flatMap((mark) => [mark.vkey, ...mark.closed])
  const { origin, shards } = readFacts(disk, dataDirectory)
  const none = new UnusableDirectory(
    missingLogProblem(dataDirectory, shardEnds(disk, dataDirectory, shards)) ??
      `The log in ${dataDirectory} has no entry, so nothing was published: start a new board in another DATA_DIR.`,
  )
  const log = SignedLog.open({
    disk,
    dataDirectory,
    origin,
    segmentBytesMax,
    begin: () => {
      throw none
    },
    report,
    knownKeys: vkey === undefined ? marked : [vkey, ...marked],
  })
  if (log.newest.size > 0) return log
  log.close()
  throw none
}

function originAfter(origin: string, { now, baseUrl }: Pick<RotationOptions, 'now' | 'baseUrl'>): string {
  const next = nextOrigin(origin, now, baseUrl)
  if (next === undefined)
    throw new UnusableDirectory(`The log names of this year are used up: ${origin} can be closed next year.`)
  return next
}

function makeLogKey(
  { dataDirectory, platform: { disk, random } }: Pick<CoverOptions, 'dataDirectory' | 'platform'>,
  origin: string,
): void {
  const keyFile = logKeyFile(dataDirectory, nameOf(origin))
  if (!disk.fileExists(keyFile)) disk.writeAtomic(keyFile, Buffer.from(`${random(32).toString('hex')}\n`), 0o600)
}

/**
 * A power cut may have lost the log's newest frames, whose heads were already published. They are rebuilt identically before the log gets
 * any other leaf.
 */
function coverJournals(log: SignedLog, shards: number, options: CoverOptions): void {
  const { dataDirectory, segmentBytesMax, platform } = options
  const { disk } = platform
  const directories = shardDirectories(dataDirectory, shards)
  const ends = directories.map((directory, shard) => {
    const journal = openWhole({
      disk,
      directory,
      segmentBytesMax,
      knownDurable: (journalId) => durableOf(disk, dataDirectory, shard, journalId),
    })
    const end = journal.nextSeq - 1
    journal.close()
    return end
  })
  const readers = directories.map((directory) => JournalReader.open(disk, directory))
  log.cover(readers, ends, platform.clock)
  for (const reader of readers) reader.close()
}

/** Checks that witnesses have seen the newest head of each log and know no other, and that the mark has it. Throws RolledBack. */
async function agreed(
  { platform, dataDirectory, markFile, witnessPolicy }: RotationOptions,
  log: SignedLog,
): Promise<void> {
  const head = { size: log.newest.size, checkpoint: log.newest.checkpoint }
  const mark = new MarkKeeper({ dataDirectory, markFile }, platform)
  const heads = new Heads({
    witnessPolicy,
    witnessLogs: '',
    dataDirectory,
    mark,
    ...platform,
    logs: log.identities,
    closed: log.closed,
    publicHost: '',
    // Only the newest head of each log is offered.
    consistency: async (origin, from) => log.consistency(origin, from),
    onRollback: () => {},
  })
  await heads.begin(head)
  await heads.close(head)
  await mark.close()
}
