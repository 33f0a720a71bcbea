/**
 * Rotation: the log of a stopped board is closed forever, and the next one begins under a new key.
 *
 * In this order, each step durable before the next; a crash between any two is finished by the same command or by the next
 * start of the board:
 *
 *   0  the log covers all of the journals
 *   1  witnesses are asked, and the mark is compared: an old copy of the directory is not rotated
 *   2  the key file of the next log
 *   3  the last frame of the old log, whose entry names the next log and its key, and the first frame of the new one, whose
 *      entry names the end of the old one: one write, one sync each
 *   4  the old key is removed, so that a closed log is never signed again
 *   5  the mark names both logs, and witnesses sign both heads
 */

import { nameOf } from '../../actors/log/book.ts'
import { JournalReader } from '../../storage/journal.ts'
import { openWhole } from '../../storage/whole-decisions.ts'
import { logKeyFile, readFacts, refuseUndeclared, shardDirectory, UnusableDirectory } from '../board-directory.ts'
import type { Config } from '../config.ts'
import type { Platform } from '../platform.ts'
import { durableOf } from './covered.ts'
import { Heads } from './heads.ts'
import { MarkKeeper, readMarks } from './mark.ts'
import { type LogIdentity, nextOrigin, SignedLog } from './signed-log.ts'

type Rotated = { readonly closed: LogIdentity & { readonly size: number }; readonly next: LogIdentity }

type RotationOptions = Pick<Config, 'dataDirectory' | 'markFile' | 'witnessPolicy' | 'segmentBytesMax'> & {
  readonly platform: Pick<Platform, 'clock' | 'random' | 'disk'>
  /** Unix seconds. */
  readonly now: number
  readonly report: (level: 'info' | 'warn', event: string, facts: Readonly<Record<string, unknown>>) => void
}

/** The caller holds the lock of the directory. Throws UnusableDirectory, RolledBack, and what SignedLog.open throws. */
export async function rotateLog(options: RotationOptions): Promise<Rotated> {
  const { dataDirectory, now, report } = options
  const { disk, random } = options.platform
  refuseUndeclared(disk, dataDirectory)
  const facts = readFacts(disk, dataDirectory)
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
    const old = { origin: log.origin, vkey: log.vkey }
    const next = nextOrigin(old.origin, now)
    if (next === undefined)
      throw new UnusableDirectory(`The log names of this year are used up: ${old.origin} can be closed next year.`)
    await agreed(options, log)
    const keyFile = logKeyFile(dataDirectory, nameOf(next))
    if (!disk.fileExists(keyFile)) disk.writeAtomic(keyFile, Buffer.from(`${random(32).toString('hex')}\n`), 0o600)
    log.rotate(next, now)
    await agreed(options, log)
    const { size } = log.closed.at(-1)!
    return { closed: { ...old, size }, next: { origin: log.origin, vkey: log.vkey } }
  } finally {
    log.close()
  }
}

/**
 * A power cut may have taken the newest frames of the log, whose heads were handed out. They are made again, the same, before anything
 * else is a leaf of it.
 */
function coverJournals(log: SignedLog, shards: number, options: RotationOptions): void {
  const { dataDirectory, segmentBytesMax, platform } = options
  const { disk } = platform
  const directories = Array.from({ length: shards }, (_, shard) => shardDirectory(dataDirectory, shard))
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

/** Witnesses have seen the newest head of each log and know of no other, and the mark has it. Throws RolledBack. */
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
    // What is offered is the newest head of each log.
    consistency: async (origin, from) => log.consistency(origin, from),
    onRollback: () => {},
  })
  await heads.begin(head)
  await heads.close(head)
  await mark.close()
}
