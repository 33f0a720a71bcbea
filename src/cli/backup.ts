/** `broadside backup`: a checked copy of a board, running or stopped. */
import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync, realpathSync, rmSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { DiskFull } from '../../storage/disk.ts'
import { isDiskFull } from '../failure.ts'
import { machine } from '../platform.ts'
import { release } from '../release.ts'
import { boardSettings, settingsHelp, settingsOptions } from './board-settings.ts'
import { type Command, CommandFailed, commandError, exitCodes, print, UsageError } from './command-line.ts'
import { grouped, inertLine } from './terminal.ts'

export const backupCommand: Command = {
  name: 'backup',
  summary:
    'Copies a board, running or stopped, into a directory or a .tar file, and checks the copy. A directory that contains the last backup is updated: sealed segments and attachments that did not change are linked, not copied. It is replaced only when the new backup is complete and sound.',
  usage: 'backup DIR|FILE.tar [--data DIR] [--with-keys]',
  optionHelp: [
    ...settingsHelp,
    [
      '--with-keys',
      'include the keys directory. Without it keep keys/ elsewhere: a board cannot continue without its keys',
    ],
  ],
  example: 'broadside backup /backup/board --data /var/lib/broadside',
  notes: [
    'Left out: sign-in.keys (users sign in again), search indexes and snapshots (rebuilt by the next start).',
    'Files have mode 0600. Anyone who can read a backup can read private rooms.',
  ],
  options: { ...settingsOptions, 'with-keys': { type: 'boolean' } },
  positionals: { min: 1, max: 1 },
  async run(args, terminal) {
    const { dataDirectory } = await boardSettings(args)
    const [{ keysWouldGo, takeBackup }, { readFacts }] = await Promise.all([
      import('./backup-copy.ts'),
      import('../board-directory.ts'),
    ])
    const target = withoutLinks(resolve(args.positionals[0]!))
    try {
      const source = withoutLinks(resolve(dataDirectory))
      readFacts(machine.disk, source)
      if (`${target}/`.startsWith(`${source}/`))
        throw new UsageError(`${target} is inside the data directory. Name a place outside of it.`)
      const hold = await holdIfStopped(source)
      try {
        const withKeys = args.flag('with-keys')
        const isTar = target.endsWith('.tar')
        if (isTar && !withKeys && hasKeys(target)) throw keysWouldGo(target, target)
        const { manifest, copiedBytes, linkedBytes } = await takeBackup({
          disk: machine.disk,
          source,
          target,
          isRunning: hold === undefined,
          withKeys,
          now: terminal.clock.wallSeconds(),
          release,
          pack: isTar ? (directory) => pack(directory, target) : undefined,
        })
        const [origin = '', size = '0'] = manifest.head.split('\n')
        const files = Object.keys(manifest.files).length
        const facts = { backup: target, files, copied_bytes: copiedBytes, linked_bytes: linkedBytes }
        print(
          terminal,
          { ...facts, log: origin, size: Number(size), has_keys: withKeys },
          `${grouped(files)} files: ${grouped(copiedBytes)} bytes copied, ${grouped(linkedBytes)} linked.\n` +
            `The backup has ${origin} up to entry ${grouped(Number(size))}, and was checked.\n` +
            (withKeys
              ? ''
              : 'It contains no keys. Keep a copy of keys/ elsewhere and pass it to restore with --keys DIR.\n'),
        )
        return exitCodes.ok
      } finally {
        hold?.release()
      }
    } catch (error) {
      if (isDiskFull(error))
        throw new CommandFailed(
          `The disk of ${target} is full. Free space there, or name another place. The last backup is unchanged.`,
        )
      throw commandError(error)
    }
  },
}

/** Takes the lock of a stopped board, so that it stays stopped; undefined if the board is running. */
async function holdIfStopped(directory: string): Promise<{ release(): void } | undefined> {
  const { lockDirectory, Locked } = await import('../../storage/lock.ts')
  try {
    return await lockDirectory(directory, { reader: true })
  } catch (error) {
    if (error instanceof Locked) return undefined
    throw error
  }
}

/** Resolves links: a backup that was renamed over a link could end up on another disk than the host intended. */
function withoutLinks(path: string): string {
  if (existsSync(path)) return realpathSync(path)
  return existsSync(dirname(path)) ? join(realpathSync(dirname(path)), basename(path)) : path
}

/** Whether a tar file contains a backup with keys. */
function hasKeys(file: string): boolean {
  return existsSync(file) && spawnSync('tar', ['-tf', file, './keys'], { stdio: 'ignore' }).status === 0
}

/** Packs a directory into a tar file, which replaces an older one. A failure leaves no file behind. Throws DiskFull, CommandFailed. */
function pack(directory: string, file: string): void {
  const temporary = `${file}.tmp`
  try {
    rmSync(temporary, { force: true })
    // Create the file with its mode before the first byte is written.
    closeSync(openSync(temporary, 'wx', 0o600))
    const { status, stderr, error } = spawnSync('tar', ['-cf', temporary, '-C', directory, '.'], { encoding: 'utf8' })
    if (/No space left|quota exceeded/i.test(stderr)) throw new DiskFull(file)
    if (error !== undefined || status !== 0)
      throw new CommandFailed(`${file} could not be written with tar: ${inertLine(error?.message ?? stderr.trim())}.`)
    machine.disk.renameDurable(temporary, file)
  } finally {
    rmSync(temporary, { force: true })
  }
}
