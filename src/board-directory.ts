/**
 * The data directory: what is fixed when it is created, and where everything is in it.
 *
 *   board.json        format, service id, log origin, shards, generation, fingerprints of the keys, and a checksum over all of it.
 *                     Only these may change: the generation and delegations_ended (`broadside restored`), shards and layout
 *                     (`broadside reshard`), and written_by (the first start of a newer release)
 *   keys/board.key    seed of the board's own identity (hex)      0600
 *   keys/log.key      seed of the log's key (hex), read only by the log's thread   0600; after a rotation log-2026b.key
 *   keys/cursor.key   key that seals cursors (hex)   0600
 *   shard-00/ …       one journal per shard: <first seq>.log and its .idx
 *   blobs/<room>/…    files of attachments
 *   search/           index of full-text search (derived)
 *   log/              the journal of the log and of its successors, and nodes.bin (derived: node hashes of the tree)
 *   delivery/         progress of webhook deliveries (without it, each delivery begins again where its webhook was created)
 */

import { hash } from 'node:crypto'
import { basename, join } from 'node:path'
import { isOrigin } from '../storage/checkpoint.ts'
import type { Disk } from '../storage/disk.ts'
import { privateKeyOf, rawPublicKeyOf } from '../storage/ed25519.ts'
import { listSegments } from '../storage/segment.ts'
import { readKeyOf, type SealingKeys } from './format/cursor.ts'
import { foreignJson } from './format/foreign-json.ts'
import { identityId } from './format/signing.ts'
import type { Random } from './platform.ts'
import { release } from './release.ts'

export type BoardFacts = {
  readonly format: 1
  readonly service_id: string
  readonly origin: string
  readonly shards: number
  /** The recovery epoch: changes only when a backup is restored. */
  readonly generation: string
  /** Changes with the number of shards: cursors with positions in shards are valid for one layout. Absent if it never changed. */
  readonly layout?: string
  /** Unix seconds. */
  readonly created_at: number
  /** Unix seconds: delegations created up to then have ended, because a backup replaced a lost board. */
  readonly delegations_ended?: number
  /** Fingerprints of the board's own keys; absent on boards of older releases. The log stores its own. */
  readonly prints?: { readonly board: string; readonly cursor: string }
  /** The newest release that has opened this directory for writing. Absent if that release did not record it. */
  readonly written_by?: string
}

type Identity = { readonly id: string; readonly publicKey: string }

/** The board's own identity, which can sign. */
export type BoardIdentity = Identity & { readonly seed: Buffer }

export type BoardDirectory = {
  readonly path: string
  readonly facts: BoardFacts
  readonly identity: BoardIdentity
  /** Includes the keys that `broadside rekey` has replaced; on a follower, the read key from its leader. */
  readonly cursorKey: SealingKeys
}

/** Why a data directory cannot be used, in a sentence that names the fix. */
export class UnusableDirectory extends Error {
  override name = 'UnusableDirectory'
}

export const shardDirectory = (path: string, shard: number) => join(path, `shard-${String(shard).padStart(2, '0')}`)
/** The directories of all shards, by number. */
export const shardDirectories = (path: string, shards: number) =>
  Array.from({ length: shards }, (_, shard) => shardDirectory(path, shard))
/** Snapshots (derived) of the state of the shard in this directory: storage/snapshot.ts. */
export const shardSnapshotsDirectory = (shard: string) => join(shard, 'snapshots')
export const feedSnapshotsDirectory = (path: string) => join(logDirectory(path), 'feed-snapshots')
export const toolsDirectory = (path: string) => join(path, 'tools')

/** The directories of the snapshots made from this journal. */
export const snapshotDirectories = (path: string, journal: string): readonly string[] =>
  journal === logDirectory(path)
    ? [feedSnapshotsDirectory(path), toolsDirectory(path)]
    : [shardSnapshotsDirectory(journal)]
/** Suffix of the files next to a shard's snapshots that hold what is known of old events. */
export const oldEventsSuffix = '.events'
/** The index of full-text search: derived, rebuilt if it is missing. */
export const searchDirectory = (path: string) => join(path, 'search')
/** Progress of webhook deliveries: src/webhooks/store.ts. */
export const deliveryDirectory = (path: string) => join(path, 'delivery')
export const logDirectory = (path: string) => join(path, 'log')
/** Files of attachments: storage/blob-files.ts. */
export const blobsDirectory = (path: string) => join(path, 'blobs')
/**
 * Node hashes of a log's tree, in tlog order; rebuilt from the log's frames if missing. `name`: of a log after the first, such as 2026b.
 */
export const nodesFile = (directory: string, name = '') =>
  join(directory, name === '' ? 'nodes.bin' : `nodes-${name}.bin`)
/** Keys created for OAuth sign-ins. */
export const signInKeysFile = (path: string) => join(path, 'sign-in.keys')
export const boardKeyFile = (path: string) => join(path, 'keys', 'board.key')
export const cursorKeyFile = (path: string) => join(path, 'keys', 'cursor.key')
/** Marks a directory that was restored from a backup of a board that kept running; it must not be continued without confirmation. */
export const restoredFile = (path: string) => join(path, 'restored.json')
/** Marks a directory into which a board is being imported. */
export const importFile = (path: string) => join(path, 'import.json')
/** What a follower knows of its leader; only a follower's directory has it. */
export const followerFile = (path: string) => join(path, 'follower.json')
/** What a board stores about the stream that it writes to: src/replication/writer.ts. */
export const replicationFile = (path: string) => join(path, 'replication.json')
/** The key that signs a log; `name` as in `nodesFile`. */
export const logKeyFile = (path: string, name = '') => join(path, 'keys', name === '' ? 'log.key' : `log-${name}.key`)

type OpenOptions = {
  readonly disk: Disk
  readonly path: string
  /** Empty: derived from the board's key. */
  readonly serviceId: string
  /** `host[:port]` of the public address. */
  readonly publicHost: string
  /** Name of the first log. Absent: derived from the public address and the year. */
  readonly origin?: string
  readonly shards: number
  /** Unix seconds. */
  readonly now: number
  readonly random: Random
  /** Called before a new board is created, and throws if it must not be. */
  readonly beforeCreating?: () => void
}

/** Opens the data directory, or creates it. The caller must hold its lock. */
export function openBoardDirectory(options: OpenOptions): BoardDirectory {
  const { disk } = options
  disk.makeDirectory(options.path)
  refuseIncomplete(disk, options.path)
  if (disk.fileExists(followerFile(options.path)))
    throw new UnusableDirectory(
      `${options.path} is the directory of a follower, which signs nothing. Start it with broadside follow, or choose another DATA_DIR.`,
    )
  const file = join(options.path, 'board.json')
  const facts = disk.fileExists(file) ? stampRelease(disk, options.path) : makeBoard(options)
  if (options.serviceId !== '' && options.serviceId !== facts.service_id) {
    throw new UnusableDirectory(
      `SERVICE_ID is ${options.serviceId}, but this board was created as ${facts.service_id}, and every signature names it. Unset SERVICE_ID, or choose another DATA_DIR.`,
    )
  }
  makeJournalDirectories(disk, options.path, facts)
  return {
    path: options.path,
    facts,
    identity: identityOf(readSecret(disk, boardKeyFile(options.path), { print: facts.prints?.board })),
    cursorKey: cursorKeys(disk, options.path, { print: facts.prints?.cursor }),
  }
}

function makeJournalDirectories(disk: Disk, path: string, { shards }: BoardFacts): void {
  for (const directory of shardDirectories(path, shards)) disk.makeDirectory(directory)
  disk.makeDirectory(logDirectory(path))
}

/** Opens the directory of a follower. The caller must hold its lock; board.json and the journals must exist. */
export function openFollowerDirectory(
  { disk, path, random }: Pick<OpenOptions, 'disk' | 'path' | 'random'>,
  { identity, readKey }: { readonly identity: Identity; readonly readKey: Uint8Array },
): BoardDirectory {
  const facts = stampRelease(disk, path)
  makeJournalDirectories(disk, path, facts)
  disk.makeDirectory(join(path, 'keys'))
  // The board's key is on the leader. Names that others cannot compute are derived from a secret of this run.
  return { path, facts, identity: { ...identity, seed: random(32) }, cursorKey: { readKey } }
}

/** Whether this directory contains a board that decides: neither a follower nor empty. */
export function isLeaderDirectory(disk: Disk, path: string): boolean {
  return disk.fileExists(join(path, 'board.json')) && !disk.fileExists(followerFile(path))
}

/** What a follower knows of its board's keys; its own copies of the keys must match. */
export type KnownKeys = { readonly identity: Identity; readonly readKey: Uint8Array }

/** What followers of this board know of its keys. Throws UnusableDirectory. */
export function knownKeys(disk: Disk, path: string): KnownKeys {
  const { prints } = readFacts(disk, path)
  const { id, publicKey } = identityOf(readSecret(disk, boardKeyFile(path), { print: prints?.board }))
  return { identity: { id, publicKey }, readKey: readKeyOf(cursorKeys(disk, path, { print: prints?.cursor })) }
}

/** What to do about a key on a follower that may lead. */
export const copyKeysAgain = 'Copy the keys directory of the leader here again, mode 0600.'

/** Throws UnusableDirectory unless this follower's directory contains the keys of the board; it does only if the follower may lead. */
export function checkKeys(disk: Disk, path: string, { identity, readKey }: KnownKeys): void {
  const missing = [boardKeyFile(path), cursorKeyFile(path)].find((file) => !disk.fileExists(file))
  if (missing !== undefined)
    throw new UnusableDirectory(
      `The key file ${missing} is missing, and a box that may lead needs the keys of the board. Copy the keys directory of the leader to ${join(path, 'keys')}, mode 0600.`,
    )
  const wanted = { fix: copyKeysAgain }
  if (identityOf(readSecret(disk, boardKeyFile(path), wanted)).id !== identity.id)
    throw new UnusableDirectory(`${boardKeyFile(path)} is the key of another board. ${copyKeysAgain}`)
  if (Buffer.compare(readKeyOf(cursorKeys(disk, path, wanted)), readKey) !== 0)
    throw new UnusableDirectory(`${cursorKeyFile(path)} differs from the one on the leader. ${copyKeysAgain}`)
}

/** Turns a follower's directory into that of the deciding board. The caller must hold its lock, and have checked its keys. */
export function becomeLeader(disk: Disk, path: string): void {
  const board = fingerprintOf(readSecret(disk, boardKeyFile(path)))
  const cursor = fingerprintOf(readSecret(disk, cursorKeyFile(path)))
  const { written_by = release, ...facts } = readFacts(disk, path)
  writeFacts(disk, path, { ...facts, prints: { board, cursor }, written_by })
  disk.removeFile(followerFile(path))
  disk.syncDirectory(path)
}

/** The sealing key, followed by the keys that it has replaced, newest first. */
function cursorKeys(disk: Disk, path: string, { print, fix }: WantedSecret): Buffer {
  const current = readSecret(disk, cursorKeyFile(path), { print, fix })
  const replaced = replacedKeys(disk, path).map((number) => readSecret(disk, replacedKeyFile(path, number), { fix }))
  return Buffer.concat([current, ...replaced])
}

/** Numbers of the replaced keys, newest first. */
function replacedKeys(disk: Disk, path: string): number[] {
  const numbers = disk.listFiles(join(path, 'keys')).flatMap((name) => /^cursor-(\d{1,4})\.key$/.exec(name)?.[1] ?? [])
  return numbers.map(Number).sort((a, b) => b - a)
}

const replacedKeyFile = (path: string, number: number) => join(path, 'keys', `cursor-${number}.key`)

/**
 * Gives a stopped board a new sealing key, because the current one was stolen (`isLost`: is missing, or is another one). Data already sealed
 * in the journals stays readable with the old key, which is retained. An interrupted call is completed by the next one. The caller must hold
 * the lock. Throws UnusableDirectory.
 */
export function replaceCursorKey(disk: Disk, path: string, isLost: boolean, random: Random): void {
  refuseIncomplete(disk, path)
  const facts = readFacts(disk, path)
  const file = cursorKeyFile(path)
  const known = facts.prints?.cursor
  const current = isLost && !disk.fileExists(file) ? undefined : readSecret(disk, file)
  const print = current === undefined ? '' : fingerprintOf(current)
  const replaced = replacedKeys(disk, path)
  const prints = replaced.map((number) => fingerprintOf(readSecret(disk, replacedKeyFile(path, number))))
  // Interrupted before board.json was written: the new key is in place, with the old one next to it.
  const isStarted = current !== undefined && known !== undefined && print !== known && prints.includes(known)
  if (!isStarted) {
    if (current !== undefined && isLost && print === (known ?? print))
      throw new UnusableDirectory(
        `${file} is here: leave out --lost. Then the key is replaced and kept, so that what it sealed stays readable. Nothing was changed.`,
      )
    if (!isLost) readSecret(disk, file, { print: known })
    // A key that is not this board's current one may be an earlier one, or the only copy of another board's.
    if (current !== undefined && !prints.includes(print))
      disk.writeAtomic(
        replacedKeyFile(path, (replaced[0] ?? 0) + 1),
        Buffer.from(`${current.toString('hex')}\n`),
        0o600,
      )
    disk.writeAtomic(file, Buffer.from(`${random(32).toString('hex')}\n`), 0o600)
  }
  const board = fingerprintOf(readSecret(disk, boardKeyFile(path), { print: facts.prints?.board }))
  writeFacts(disk, path, { ...facts, prints: { board, cursor: fingerprintOf(readSecret(disk, file)) } })
}

/**
 * Refuses a restored backup of a board that kept running, because that board has signed entries that this directory lacks, and an
 * incomplete import. Throws UnusableDirectory.
 */
export function refuseIncomplete(disk: Disk, path: string): void {
  const problem = incompleteProblem(disk, path)
  if (problem !== undefined) throw new UnusableDirectory(problem)
}

/** The command that has to be run before a start, in a sentence; undefined if there is none. */
export function incompleteProblem(disk: Disk, path: string): string | undefined {
  if (disk.fileExists(importFile(path)))
    return `An import into ${path} was interrupted. Run the same broadside import --as-it-was again; it resumes where it stopped.`
  if (!disk.fileExists(restoredFile(path))) return undefined
  const { cut } = Object(foreignJson(disk.readWhole(restoredFile(path)).toString('utf8'))) as { readonly cut?: unknown }
  if (cut !== undefined)
    return `broadside restored --lost --cut-damage was begun in ${path}: run it again, with --yes, to complete it.`
  return `${path} was restored from a backup of a board that was running. If that board stopped right after the backup and wrote nothing more, run broadside restored. If what it wrote later is lost, run broadside restored --lost: its log ends where the backup does, and a new one begins.`
}

type WantedSecret = {
  /** The fingerprint that the key must have. */
  readonly print?: string | undefined
  /** What to do about a missing or damaged key, as a sentence; by default, for a key of the board. */
  readonly fix?: string | undefined
}

/** A backup has them only if it was made with --with-keys. */
const restoreKey = 'Restore it from your copy of the keys directory'

/** What a key file contains, unchecked: 32 bytes if it is one. */
export function uncheckedSecret(disk: Disk, file: string): Buffer {
  return Buffer.from(disk.readWhole(file).toString('latin1').trim(), 'hex')
}

/** The 32 bytes of a key file. Refuses a file that others may read, and a key whose fingerprint has changed. */
export function readSecret(disk: Disk, file: string, { print, fix }: WantedSecret = {}): Buffer {
  if (!disk.fileExists(file))
    throw new UnusableDirectory(
      `The key file ${file} is missing, but the board it belongs to exists. ${fix ?? `${restoreKey}${withoutKey(file)}`}`,
    )
  if ((disk.stat(file).mode & 0o077) !== 0)
    throw new UnusableDirectory(`The key file ${file} can be read by others. Run: chmod 600 ${file}`)
  const secret = uncheckedSecret(disk, file)
  if (secret.length !== 32)
    throw new UnusableDirectory(
      `The key file ${file} does not contain 32 bytes in hex. ${fix ?? `${restoreKey}${withoutKey(file)}`}`,
    )
  if (print !== undefined && print !== fingerprintOf(secret))
    throw new UnusableDirectory(
      `The key file ${file} does not contain the key that this board has. ${fix ?? `${restoreKey}${withoutKey(file)}`}`,
    )
  return secret
}

/** The end of a sentence: how the board goes on if no backup has this key. */
function withoutKey(file: string): string {
  const name = basename(file)
  if (/^log(-.+)?\.key$/.test(name))
    return '. If it is lost, this log cannot continue: broadside restored --lost ends it here and begins a new one, under a new key.'
  if (name === 'cursor.key')
    return '. If it is lost, broadside rekey --lost creates a new one: cursors and read tokens expire, and webhooks send nothing until their owners set new secrets.'
  return name === 'board.key' ? ': with a new key, it would be a different board.' : '.'
}

/** Identifies a key without revealing anything about it, since the key is a random number of 256 bits. */
export function fingerprintOf(secret: Uint8Array): string {
  return hash('sha256', secret).slice(0, 16)
}

/** Journals exist only with a board.json: if it is lost, a new one would not match them. */
function holdsJournals(disk: Disk, path: string): boolean {
  const parts = disk.listDirectories(path).filter((name) => /^(log|shard-\d+)$/.test(name))
  return parts.some((part) => listSegments(disk, join(path, part), 'log').length > 0)
}

const missingFacts = (path: string) =>
  new UnusableDirectory(
    `${join(path, 'board.json')} is missing, but the journals of a board are there. Restore it from a backup: it is written once, and a new one would name a different log, number of shards and epoch.`,
  )

/** Creates the keys and board.json of a new board. */
export function makeBoard(options: OpenOptions): BoardFacts {
  const { disk } = options
  if (holdsJournals(disk, options.path)) throw missingFacts(options.path)
  options.beforeCreating?.()
  const { origin = `${options.publicHost}/log/${new Date(options.now * 1000).getUTCFullYear()}a` } = options
  if (!isOrigin(origin))
    throw new UnusableDirectory(
      `The log of a new board is named after its public address, and "${origin}" cannot be the name of a log. Set HOST, or set BASE_URL to another address.`,
    )
  disk.makeDirectory(join(options.path, 'keys'))
  for (const file of [boardKeyFile(options.path), logKeyFile(options.path), cursorKeyFile(options.path)]) {
    // A crash between the keys and board.json leaves keys that have signed nothing; they are used.
    if (!disk.fileExists(file)) disk.writeAtomic(file, Buffer.from(`${options.random(32).toString('hex')}\n`), 0o600)
  }
  const seed = readSecret(disk, boardKeyFile(options.path))
  const identity = identityOf(seed)
  const facts: BoardFacts = {
    format: 1,
    service_id: options.serviceId === '' ? `bs-${identity.id.slice(0, 16)}` : options.serviceId,
    origin,
    shards: options.shards,
    generation: options.random(16).toString('hex'),
    created_at: options.now,
    prints: { board: fingerprintOf(seed), cursor: fingerprintOf(readSecret(disk, cursorKeyFile(options.path))) },
    written_by: release,
  }
  writeFacts(disk, options.path, facts)
  return facts
}

/** The facts of an existing board. */
export function readFacts(disk: Disk, path: string): BoardFacts {
  const file = join(path, 'board.json')
  if (!disk.fileExists(file)) {
    if (disk.fileExists(path) && holdsJournals(disk, path)) throw missingFacts(path)
    throw new UnusableDirectory(`There is no board in ${path}: it has no board.json. Name the DATA_DIR of one.`)
  }
  const facts = parseFacts(disk.readWhole(file).toString('utf8'))
  if (facts === undefined)
    throw new UnusableDirectory(`${file} is not what was written when the board was created. Restore it from a backup.`)
  if (isExchanging(facts)) {
    throw new UnusableDirectory(
      `A reshard of ${path} was interrupted while it was moving the new journals into place. Run broadside reshard again, or start the board: both complete it.`,
    )
  }
  refuseNewer(path, facts)
  return facts
}

/**
 * Refuses data of a newer release, which an older one may misread, and would drop what it does not know. Releases that differ only in the
 * last number use the same format, so hosts can go back to them.
 */
function refuseNewer(path: string, { format, written_by }: BoardFacts): void {
  if (format === 1 && (written_by === undefined || !isLater(written_by))) return
  const [by, use] =
    written_by === undefined
      ? ['by a newer release of Broadside', 'the release that wrote it']
      : [`by Broadside ${written_by}`, `${written_by} or newer`]
  throw new UnusableDirectory(
    `${path} was written ${by}, in format ${format}. This is Broadside ${release}, which reads format 1 of releases up to its own. Nothing was changed. Install ${use}, or restore a backup from before the upgrade into a new directory.`,
  )
}

/** Compares the first two numbers: 1.10.0 is later than 1.9.3. */
function isLater(other: string): boolean {
  const [[major, minor], [ownMajor, ownMinor]] = [numbersOf(other), numbersOf(release)]
  return major === ownMajor ? minor > ownMinor : major > ownMajor
}

function numbersOf(version: string): readonly [major: number, minor: number] {
  const [major, minor] = version.split('.').map(Number)
  return [major ?? Number.NaN, minor ?? Number.NaN]
}

/** The facts, after recording in them that this release has written here. */
function stampRelease(disk: Disk, path: string): BoardFacts {
  const facts = readFacts(disk, path)
  if (facts.written_by === release) return facts
  const own: BoardFacts = { ...facts, written_by: release }
  writeFacts(disk, path, own)
  return own
}

/** Begins a new recovery epoch after a restoration from a backup. The caller must hold the lock. */
export function beginEpoch(
  disk: Disk,
  path: string,
  epoch: Pick<BoardFacts, 'generation' | 'delegations_ended'>,
): BoardFacts {
  const facts: BoardFacts = { ...readFacts(disk, path), ...epoch }
  writeFacts(disk, path, facts)
  return facts
}

/**
 * Format of board.json while new journals replace old ones. No other program may open such a directory; older releases refuse it because of
 * this number.
 */
const exchangingFormat = 2

/** From here on, the journals of these facts belong to the board, wherever they are. The caller must hold the lock. */
export function beginExchange(disk: Disk, path: string, facts: BoardFacts): void {
  writeFacts(disk, path, { ...facts, format: exchangingFormat })
}

/** For a board whose journals are in place. */
export function writeBoardFacts(disk: Disk, path: string, facts: BoardFacts): void {
  writeFacts(disk, path, facts)
}

/** The facts of a board whose journals are being exchanged; undefined if none are. */
export function pendingExchange(disk: Disk, path: string): BoardFacts | undefined {
  const file = join(path, 'board.json')
  const facts = disk.fileExists(file) ? parseFacts(disk.readWhole(file).toString('utf8')) : undefined
  return facts !== undefined && isExchanging(facts) ? { ...facts, format: 1 } : undefined
}

function isExchanging({ format }: { readonly format: number }): boolean {
  return format === exchangingFormat
}

type WrittenFacts = Omit<BoardFacts, 'format'> & { readonly format: number }

function writeFacts(disk: Disk, path: string, facts: WrittenFacts): void {
  const text = JSON.stringify({ ...facts, check: checkOf(facts) }, null, 2)
  disk.writeAtomic(join(path, 'board.json'), Buffer.from(`${text}\n`))
}

/** The checksum over the facts, in the order in which they are written. */
function checkOf(facts: Partial<WrittenFacts>): string {
  return hash('sha256', JSON.stringify(facts)).slice(0, 16)
}

/** Undefined if this is not a valid board.json. */
function parseFacts(text: string): BoardFacts | undefined {
  let facts: Partial<BoardFacts>
  try {
    const { check, ...kept } = (JSON.parse(text) ?? {}) as Partial<BoardFacts> & { readonly check?: string }
    facts = kept
    // Boards of older releases have no checksum. What it covers in newer formats, only newer releases know.
    if ([1, exchangingFormat].includes(Number(facts.format)) && check !== undefined && check !== checkOf(facts))
      return undefined
  } catch {
    return undefined
  }
  const { format, service_id, origin, shards, generation, created_at, written_by = release } = facts
  const numbers = [format, shards, created_at].every((each) => Number.isSafeInteger(each) && Number(each) > 0)
  const texts = [service_id, origin, generation].every((each) => typeof each === 'string' && each !== '')
  return numbers && texts && /^\d+\.\d+\.\d+/.test(String(written_by)) ? (facts as BoardFacts) : undefined
}

function identityOf(seed: Buffer): BoardIdentity {
  const raw = rawPublicKeyOf(privateKeyOf(seed))
  return { id: identityId(raw), publicKey: raw.toString('base64url'), seed }
}
