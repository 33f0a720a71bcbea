/**
 * A backup of a board, running or stopped: a new directory that is complete and checked before it replaces the last one.
 *
 * The order makes it consistent. Files that may be older than the journals, but not newer, come first: delivery positions, cosignatures,
 * attachments. Then the ends of all shards are noted at one moment, so that no shard has the consequence of something that another lacks.
 * Then the newest log frame that covers nothing after those ends is found; the shards refer to no later one. The segments are copied up to
 * there. Attachments are copied once more, since records may name new ones. If a file was deleted in the meantime, the check reports it as
 * missing, and the backup is taken again.
 *
 * A sealed segment of the last backup is hard-linked instead of copied, unless compaction has replaced the file.
 */
import { createHash } from 'node:crypto'
import { existsSync, linkSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { decodeLogFrame } from '../../actors/log/frame.ts'
import type { Disk } from '../../storage/disk.ts'
import { JournalReader } from '../../storage/journal.ts'
import { consistentEnds, copyFile, copySegment, JournalEnd, segmentsThrough } from '../../storage/journal-copy.ts'
import { Locked, lockDirectory } from '../../storage/lock.ts'
import { segmentPath } from '../../storage/segment.ts'
import {
  blobsDirectory,
  deliveryDirectory,
  followerFile,
  logDirectory,
  readFacts,
  restoredFile,
  shardDirectories,
} from '../board-directory.ts'
import { checkCopy } from '../fsck/fsck.ts'
import { lostActsFile } from '../lost-acts-file.ts'
import { copyDatabase } from '../sqlite.ts'
import { adoptLeaderPositions } from '../webhooks/leader-positions.ts'
import { storeFile } from '../webhooks/store.ts'
import { type BackedUpFile, type Manifest, manifestName, readManifest, writeManifest } from './backup-manifest.ts'
import { CommandFailed, Unverified } from './command-line.ts'

export type BackupOptions = {
  readonly disk: Disk
  /** The data directory. */
  readonly source: string
  readonly target: string
  readonly isRunning: boolean
  readonly withKeys: boolean
  /** Unix seconds. */
  readonly now: number
  readonly release: string
  /** Makes one file of the complete copy; omitted if the target is a directory. */
  readonly pack: ((directory: string) => void) | undefined
}

export type BackupTaken = { readonly manifest: Manifest; readonly copiedBytes: number; readonly linkedBytes: number }

/** On a running board, an attachment may be deleted between two steps. After this many failures in a row, something else is wrong. */
const triesMax = 3

/** Takes the backup, checks it, and replaces the last one with it. Throws CommandFailed, Unverified, and disk errors. */
export async function takeBackup(options: BackupOptions): Promise<BackupTaken> {
  const { disk, target, pack } = options
  const directory = unfinishedDirectory(target)
  disk.makeDirectory(directory)
  const lock = await lockUnfinished(directory, target)
  try {
    const taken = await soundCopy(options, directory, pack === undefined ? lastBackup(options) : undefined)
    if (pack === undefined) replaceDirectory(disk, directory, target)
    else {
      pack(directory)
      rmSync(directory, { recursive: true })
    }
    return taken
  } catch (error) {
    rmSync(directory, { recursive: true, force: true })
    throw error
  } finally {
    lock.release()
  }
}

/** Held until the backup is in place, so that no other backup changes its files. Throws CommandFailed. */
async function lockUnfinished(directory: string, target: string): Promise<{ release(): void }> {
  try {
    return await lockDirectory(directory)
  } catch (error) {
    if (!(error instanceof Locked)) throw error
    throw new CommandFailed(
      `Another backup to ${target} is not complete yet${error.pid === undefined ? '' : ` (process ${error.pid})`}. Wait for it, or name another place.`,
    )
  }
}

async function soundCopy(options: BackupOptions, directory: string, last: Manifest | undefined): Promise<BackupTaken> {
  const { disk, source, isRunning } = options
  for (let tries = 1; ; tries++) {
    for (const name of readdirSync(directory)) rmSync(join(directory, name), { recursive: true })
    const taken = await new BackupCopy(options, directory, last).take()
    const { problems } = checkCopy({ disk, path: directory, keysIn: source })
    if (problems.length === 0) return taken
    if (isRunning && tries < triesMax) continue
    throw new Unverified(
      `The copy of ${source} is not sound, and was removed: ${problems[0]}${problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''}. Stop the board and run broadside fsck.`,
    )
  }
}

/** Where a new backup is made, and where the last one goes while it is replaced. Users give these names to nothing of their own. */
const unfinishedDirectory = (target: string): string => `${target}.unfinished`
const replacedDirectory = (target: string): string => `${target}.replaced`

/** The backup at the target; undefined if there is none. Throws CommandFailed if anything else is there. */
function lastBackup({ disk, source, target, withKeys }: BackupOptions): Manifest | undefined {
  const old = replacedDirectory(target)
  // The process was killed between the two renames.
  if (!existsSync(target) && existsSync(join(old, manifestName))) disk.renameDurable(old, target)
  if (!existsSync(target)) return undefined
  if (!disk.stat(target).isFile && disk.listFiles(target).length + disk.listDirectories(target).length === 0)
    return undefined
  if (disk.stat(target).isFile || !existsSync(join(target, manifestName)))
    throw new CommandFailed(`${target} exists and is not a backup. Name a new directory, or that of the last backup.`)
  const last = readManifest(target)
  const { service_id } = readFacts(disk, source)
  if (last.service_id !== service_id)
    throw new CommandFailed(
      `${target} holds a backup of another board, ${last.service_id}; this one is ${service_id}. Name another directory.`,
    )
  const [other] = otherFiles(target, last)
  if (other !== undefined)
    throw new CommandFailed(
      `${join(target, other)} is not part of the last backup, and the next one would remove it. Move it out of ${target}, or name another directory.`,
    )
  if (!withKeys && existsSync(join(target, 'keys'))) throw keysWouldGo(target, join(target, 'keys'))
  return last
}

/** Nothing else may have these keys. `holder`: what to move to retain them. */
export function keysWouldGo(target: string, holder: string): CommandFailed {
  return new CommandFailed(
    `The last backup in ${target} has the keys of the board, and this one would remove them. Add --with-keys; or, if the keys are to be kept elsewhere, move ${holder} there first.`,
  )
}

/** Files in a backup that it did not write: copies of keys, or a board that was restored into it. */
function otherFiles(directory: string, { files }: Manifest): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)))
    .filter((path) => path !== manifestName && !Object.hasOwn(files, path))
}

/** At any moment either the old or the new directory is in place, or the old one is next to it. */
function replaceDirectory(disk: Disk, from: string, to: string): void {
  const old = replacedDirectory(to)
  rmSync(old, { recursive: true, force: true })
  if (existsSync(to)) disk.renameDurable(to, old)
  disk.renameDurable(from, to)
  rmSync(old, { recursive: true, force: true })
}

class BackupCopy {
  readonly directory: string
  readonly #options: BackupOptions
  readonly #last: Manifest | undefined
  readonly #files: Record<string, BackedUpFile> = {}
  #copiedBytes = 0
  #linkedBytes = 0

  /** `directory`: an empty one. */
  constructor(options: BackupOptions, directory: string, last: Manifest | undefined) {
    this.#options = options
    this.directory = directory
    this.#last = last
  }

  async take(): Promise<BackupTaken> {
    const { disk, source, isRunning, withKeys, now, release } = this.#options
    const facts = readFacts(disk, source)
    await this.#smallFiles(withKeys)
    this.#attachments()
    const directories = shardDirectories(source, facts.shards)
    const { log, shards } = this.#ends(directories)
    this.#journal(logDirectory(source), log)
    for (const [shard, directory] of directories.entries()) this.#journal(directory, shards[shard]!)
    this.#attachments()
    const manifest: Manifest = {
      broadside_backup: 1,
      release,
      service_id: facts.service_id,
      taken_at: now,
      is_of_running: isRunning,
      has_keys: withKeys,
      head: newestHead(disk, logDirectory(this.directory), log),
      shards,
      files: this.#files,
    }
    writeManifest(disk, this.directory, manifest)
    return { manifest, copiedBytes: this.#copiedBytes, linkedBytes: this.#linkedBytes }
  }

  /**
   * Notes the ends of the shards first: their frames refer to no log frame that does not exist yet, and the log is cut to what they
   * contain.
   */
  #ends(directories: readonly string[]): { readonly log: number; readonly shards: readonly number[] } {
    const { disk, source } = this.#options
    const journals = directories.map((directory) => new JournalEnd(disk, directory))
    const shards = consistentEnds(journals)
    for (const journal of journals) journal.close()
    if (shards === undefined)
      throw new CommandFailed('The shards were too busy for a consistent copy. Try again when the board is less busy.')
    return { log: newestWithin(disk, logDirectory(source), shards), shards }
  }

  async #smallFiles(withKeys: boolean): Promise<void> {
    const { disk, source } = this.#options
    this.#copy('board.json')
    for (const file of [restoredFile(source), lostActsFile(source)]) if (existsSync(file)) this.#copy(basename(file))
    const within = (directory: string, wanted: RegExp): string[] =>
      existsSync(join(source, directory))
        ? disk
            .listFiles(join(source, directory))
            .filter((name) => wanted.test(name))
            .map((name) => join(directory, name))
        : []
    for (const path of within('log', /^cosigned-[^.]+$/)) this.#copy(path)
    for (const path of within('witness', /^(?!.*\.tmp$)/)) this.#copy(path)
    for (const path of withKeys ? within('keys', /\.key$/) : []) this.#copy(path)
    await this.#deliveryPositions()
  }

  /** Of a follower: those of its leader, so that a board restored from this backup continues its leader's deliveries. */
  async #deliveryPositions(): Promise<void> {
    const { disk, source } = this.#options
    const store = storeFile(deliveryDirectory(source))
    const path = store.slice(source.length + 1)
    if (existsSync(followerFile(source))) adoptLeaderPositions(disk, source, this.directory)
    else if (existsSync(store)) await copyDatabase(store, this.#place(path))
    if (existsSync(join(this.directory, path))) this.#note(path, undefined)
  }

  #journal(directory: string, through: number): void {
    const { disk, source } = this.#options
    for (const firstSeq of segmentsThrough(disk, directory, through)) {
      const from = segmentPath(directory, firstSeq)
      const path = from.slice(source.length + 1)
      const revision = revisionOf(from)
      if (this.#link(path, revision)) continue
      const to = this.#place(path)
      const isWhole = copySegment({ disk, from, to, through })
      // Compaction may have replaced the file in the meantime; then the next backup copies it again.
      this.#note(path, isWhole && revisionOf(from) === revision ? revision : undefined)
    }
  }

  #attachments(): void {
    const { disk, source } = this.#options
    const blobs = blobsDirectory(source)
    for (const room of existsSync(blobs) ? disk.listDirectories(blobs) : [])
      for (const name of disk.listFiles(join(blobs, room))) {
        const path = join('blobs', room, name)
        if (!/^[0-9a-f]{64}$/.test(name) || this.#files[path] !== undefined) continue
        // Attachments are named by their hash, so a file with this name never changes.
        if (!this.#link(path, name)) this.#copyIfPresent(path, name)
      }
  }

  #copyIfPresent(path: string, revision: string): void {
    try {
      this.#copy(path, revision)
    } catch (error) {
      // Deleted a moment ago. If a record still names it, the check reports that.
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    }
  }

  #copy(path: string, revision?: string): void {
    const { disk, source } = this.#options
    copyFile(disk, join(source, path), this.#place(path))
    this.#note(path, revision)
  }

  /** True if the last backup has this very file, which is then linked into this one. */
  #link(path: string, revision: string): boolean {
    const known = this.#last?.files[path]
    const file = join(this.#options.target, path)
    if (known?.revision !== revision || !existsSync(file) || statSync(file).size !== known.bytes) return false
    try {
      linkSync(file, this.#place(path))
    } catch {
      // The file system has no hard links, so copy the file.
      return false
    }
    this.#files[path] = known
    this.#linkedBytes += known.bytes
    return true
  }

  /** The path of a file in the backup; creates its directory. */
  #place(path: string): string {
    const file = join(this.directory, path)
    this.#options.disk.makeDirectory(dirname(file))
    return file
  }

  #note(path: string, revision: string | undefined): void {
    const file = join(this.directory, path)
    this.#options.disk.syncDirectory(dirname(file))
    const bytes = readFileSync(file)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    this.#files[path] = { bytes: bytes.length, sha256, ...(revision !== undefined && { revision }) }
    this.#copiedBytes += bytes.length
  }
}

/** The newest log frame that covers no record after these ends. */
function newestWithin(disk: Disk, directory: string, ends: readonly number[]): number {
  const end = new JournalEnd(disk, directory)
  end.advance()
  end.close()
  if (end.seq === 0) return 0
  const log = JournalReader.open(disk, directory)
  try {
    log.advance(end.seq)
    let seq = end.seq
    const covers = (): boolean =>
      decodeLogFrame(log.read(seq)!).ranges.every(({ shard, last }) => last <= (ends[shard] ?? 0))
    while (seq > 1 && !covers()) seq--
    return seq
  } finally {
    log.close()
  }
}

/**
 * Origin, size and root of a log's newest signed head, one per line as in a checkpoint. `through`: its last frame. Read from the journal
 * alone, because this command does not have the key of the log.
 */
function newestHead(disk: Disk, directory: string, through: number): string {
  const log = JournalReader.open(disk, directory)
  try {
    log.advance(through)
    const frame = log.read(through)
    return frame === undefined ? '' : decodeLogFrame(frame).checkpoint.split('\n').slice(0, 3).join('\n')
  } finally {
    log.close()
  }
}

/** Changes when the file is replaced by another. */
function revisionOf(file: string): string {
  const { ino, size, mtimeNs } = statSync(file, { bigint: true })
  return `${ino}-${size}-${mtimeNs}`
}
