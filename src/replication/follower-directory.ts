/** The data directory of a follower: created from its leader's answers, and reopened without them. */
import { join } from 'node:path'
import { nameOf } from '../../actors/log/book.ts'
import { appendCopied, type CopiedFrames, type JournalPlace, placeOf } from '../../storage/copied-frames.ts'
import type { Disk } from '../../storage/disk.ts'
import { FRAME_BYTES_LIMIT } from '../../storage/frame.ts'
import { type Journal, journalIdIn } from '../../storage/journal.ts'
import { createNoteKey } from '../../storage/note-signer.ts'
import { openWhole } from '../../storage/whole-decisions.ts'
import {
  type BoardDirectory,
  checkKeys,
  copyKeysAgain,
  followerFile,
  knownKeys,
  logDirectory,
  logKeyFile,
  openFollowerDirectory,
  readFacts,
  readSecret,
  shardDirectories,
  UnusableDirectory,
  writeBoardFacts,
} from '../board-directory.ts'
import { foreignJson } from '../format/foreign-json.ts'
import type { LogIdentity } from '../log/signed-log.ts'
import type { Random } from '../platform.ts'
import { Attachments } from './attachments.ts'
import { openPayload } from './batch.ts'
import { isFacts, type Leader, OutOfReach, RefusedFollower } from './leader.ts'
import type { LeaderFacts } from './leader-answers.ts'

type Wanted = {
  readonly disk: Disk
  readonly path: string
  readonly random: Random
  readonly segmentBytesMax: number
  readonly leader: Leader
  /** The directory must then have the keys of the board. */
  readonly mayLead?: boolean
}

export type FollowerDirectory = {
  readonly directory: BoardDirectory
  /** The logs of the leader, as far as it has named them. */
  readonly logs: readonly LogIdentity[]
}

/**
 * Opens it, or creates it if the leader can be reached. The caller holds its lock. Throws UnusableDirectory; its cause is OutOfReach if
 * a new follower could not copy from its leader.
 */
export async function openFollower(wanted: Wanted): Promise<FollowerDirectory> {
  const { disk, path, leader } = wanted
  const kept = knownOf(disk, path)
  const { known, log } =
    kept === undefined ? await begin(disk, path, leader).catch(refuseAway) : await renewed(disk, path, kept, leader)
  const { identity, readKey } = known
  const keys = { identity, readKey: Buffer.from(readKey, 'hex') }
  if (wanted.mayLead) {
    // Check now, not when the leader is gone.
    checkKeys(disk, path, keys)
    if (log !== undefined) checkLogKey(disk, path, log, known.facts.origin)
  }
  // This file is written last: if it is missing, an earlier start was interrupted.
  if (!disk.fileExists(join(path, 'board.json'))) await copyFirst(wanted, known).catch(refuseAway)
  const directory = openFollowerDirectory(wanted, keys)
  return { directory, logs: logsOf(known) }
}

/** Names the fix for a new follower whose leader is out of reach. */
function refuseAway(error: unknown): never {
  if (!(error instanceof OutOfReach)) throw error
  // A refusal names its own fix.
  const fix = error instanceof RefusedFollower ? '' : ': start the leader, or correct FOLLOW'
  throw new UnusableDirectory(`${error.message}. A new follower begins with a copy from its leader${fix}.`, {
    cause: error,
  })
}

/** What a follower knows about its leader; undefined if this is not a follower's directory. Throws UnusableDirectory. */
export function knownOf(disk: Disk, path: string): LeaderFacts | undefined {
  const file = followerFile(path)
  if (!disk.fileExists(file)) return undefined
  const found = foreignJson(disk.readWhole(file).toString('utf8'))
  if (isFacts(found)) return found
  throw new UnusableDirectory(
    `${file} was not written by a follower, or is damaged. Create a new follower in an empty directory.`,
  )
}

/** `log`: the growing one, according to the leader now; undefined if it is out of reach, in which case another log may have begun. */
type Known = { readonly known: LeaderFacts; readonly log: LogIdentity | undefined }

async function begin(disk: Disk, path: string, leader: Leader): Promise<Known> {
  if (disk.fileExists(join(path, 'board.json')))
    throw new UnusableDirectory(
      `${path} contains a board of its own, and a follower needs an empty directory: choose another DATA_DIR.`,
    )
  const known = await leader.facts()
  keep(disk, path, known)
  return { known, log: known.log }
}

/**
 * Updates the read key from the leader if it can be reached: `broadside rekey` replaces it. Another board's is not taken; once started,
 * this follower reports that FOLLOW names the wrong one.
 */
async function renewed(disk: Disk, path: string, kept: LeaderFacts, leader: Leader): Promise<Known> {
  try {
    const { facts, readKey, log } = await leader.facts()
    if (facts.service_id !== kept.facts.service_id) return { known: kept, log: undefined }
    if (readKey === kept.readKey) return { known: kept, log }
    const known = { ...kept, readKey }
    keep(disk, path, known)
    return { known, log }
  } catch (error) {
    if (error instanceof OutOfReach) return { known: kept, log: undefined }
    throw error
  }
}

/** Throws UnusableDirectory unless the key of this log is here. `first`: origin of the first log of the board. */
export function checkLogKey(disk: Disk, path: string, { origin, vkey }: LogIdentity, first: string): void {
  const file = logKeyFile(path, origin === first ? '' : nameOf(origin))
  if (!disk.fileExists(file) || createNoteKey(origin, readSecret(disk, file, { fix: copyKeysAgain })).vkey !== vkey)
    throw new UnusableDirectory(`${file} is missing, or is not the key of the log ${origin}. ${copyKeysAgain}`)
}

/** Turns the directory of a leading board into a follower's. `logs`: of the board, oldest first. */
export function becomeFollower(disk: Disk, path: string, logs: readonly LogIdentity[]): void {
  const { identity, readKey } = knownKeys(disk, path)
  const known = { facts: readFacts(disk, path), identity, readKey: Buffer.from(readKey).toString('hex') }
  keep(disk, path, { ...known, log: logs.at(-1)!, logs })
}

/** The logs of a known leader. */
export function logsOf({ log, logs = [log] }: LeaderFacts): readonly LogIdentity[] {
  return logs
}

function keep(disk: Disk, path: string, { settings: _, ...known }: LeaderFacts): void {
  disk.writeAtomic(followerFile(path), Buffer.from(`${JSON.stringify(known, null, 2)}\n`), 0o600)
}

/** Copies the beginning of every journal: the log can be opened once it has its first frame. */
async function copyFirst({ disk, path, segmentBytesMax, leader }: Wanted, { facts }: LeaderFacts): Promise<void> {
  const shards = shardDirectories(path, facts.shards)
  const directories = [...shards, logDirectory(path)]
  for (const directory of directories) disk.makeDirectory(directory)
  const open = (directory: string, id: string): Journal =>
    openWhole({
      disk,
      directory,
      segmentBytesMax,
      frameBytesMax: FRAME_BYTES_LIMIT,
      isCopy: true,
      random: () => Buffer.from(id, 'hex'),
    })
  const take = (directory: string, copied: CopiedFrames): JournalPlace => {
    const journal = open(directory, copied.id)
    try {
      appendCopied(journal, copied)
      return placeOf(journal)
    } finally {
      journal.close()
    }
  }
  let places = directories.map((directory): JournalPlace => {
    const id = journalIdIn(disk, directory)
    if (id === undefined) return { id: '0'.repeat(32), last: 0, chain: '0'.repeat(64) }
    const journal = open(directory, id.toString('hex'))
    const place = placeOf(journal)
    journal.close()
    return place
  })
  const attachments = new Attachments(disk, path, leader)
  while (places.at(-1)!.last === 0) {
    const found = await leader.frames(places)
    if (found === undefined) throw new UnusableDirectory(`${leader.address} sent no frames of its log.`)
    const { shares: copied, files } = openPayload(found, found.payload)
    await attachments.fetchFor(copied.slice(0, -1), files)
    places = directories.map((directory, index) => take(directory, copied[index]!))
  }
  // The log keys are not here, so their fingerprints are left out.
  const { prints: _, ...told } = facts
  writeBoardFacts(disk, path, told)
}
