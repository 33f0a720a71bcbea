/** `backup.json`: what a backup contains, and what it was taken from. It is written last, so a backup without it is incomplete. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Disk } from '../../storage/disk.ts'
import { foreignJson } from '../format/foreign-json.ts'
import { release } from '../release.ts'
import { CommandFailed, Unverified } from './command-line.ts'

export const manifestName = 'backup.json'

export type BackedUpFile = {
  readonly bytes: number
  readonly sha256: string
  /** Distinguishes a sealed segment in the board's directory from one that replaced it in a compaction. */
  readonly revision?: string
}

export type Manifest = {
  readonly broadside_backup: 1
  readonly release: string
  readonly service_id: string
  /** Unix seconds. */
  readonly taken_at: number
  /** The board kept running: later writes are not in the backup. */
  readonly is_of_running: boolean
  readonly has_keys: boolean
  /** The newest signed head: origin, size and root, as the first lines of a checkpoint. */
  readonly head: string
  /** Last frame of each shard. */
  readonly shards: readonly number[]
  /** By path inside the backup. */
  readonly files: Readonly<Record<string, BackedUpFile>>
}

export function writeManifest(disk: Disk, directory: string, manifest: Manifest): void {
  disk.writeAtomic(join(directory, manifestName), Buffer.from(`${JSON.stringify(manifest, null, 1)}\n`))
}

/** The manifest of a backup. Throws CommandFailed. */
export function readManifest(directory: string): Manifest {
  const file = join(directory, manifestName)
  if (!existsSync(file))
    throw new CommandFailed(
      `There is no backup in ${directory}: it has no ${manifestName}. Name the directory or .tar file that "broadside backup" was given.`,
    )
  const found: unknown = foreignJson(readFileSync(file, 'utf8'))
  if (isManifest(found)) return found
  const { broadside_backup: form, release: writer } = Object(found) as Record<string, unknown>
  if (typeof form === 'number' && form > 1)
    throw new CommandFailed(
      `${file} is a backup in format ${form}, written by Broadside ${writer}. This is Broadside ${release}. Install ${writer} or newer to restore it.`,
    )
  throw new CommandFailed(`${file} is not what "broadside backup" writes. Take another backup.`)
}

function isManifest(value: unknown): value is Manifest {
  const { broadside_backup, service_id, files, shards, head } = Object(value) as Record<string, unknown>
  const isComplete = typeof service_id === 'string' && typeof head === 'string' && Array.isArray(shards)
  if (broadside_backup !== 1 || !isComplete || typeof files !== 'object' || files === null) return false
  return Object.keys(files).every((path) => !path.startsWith('/') && !path.split('/').includes('..'))
}

/** Checks that every file is the one that was backed up. Throws Unverified. */
export function checkFiles(directory: string, { files }: Manifest): void {
  for (const [path, { bytes, sha256 }] of Object.entries(files)) {
    const file = join(directory, path)
    if (!existsSync(file)) throw new Unverified(`${file} is missing in this backup. Use another backup.`)
    const found = readFileSync(file)
    if (found.length !== bytes || createHash('sha256').update(found).digest('hex') !== sha256)
      throw new Unverified(`${file} is not the file that was backed up. Use another backup.`)
  }
}
