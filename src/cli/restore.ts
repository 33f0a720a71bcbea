/** `broadside restore`: creates a data directory from a backup, and says how the board may continue. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { copyFile } from '../../storage/journal-copy.ts'
import { restoredFile } from '../board-directory.ts'
import { isDiskFull } from '../failure.ts'
import { machine } from '../platform.ts'
import { checkFiles, type Manifest, readManifest } from './backup-manifest.ts'
import { boardSettings, configHelp, settingsOptions } from './board-settings.ts'
import {
  type Command,
  CommandFailed,
  commandError,
  exitCodes,
  print,
  type Terminal,
  Unverified,
  UsageError,
} from './command-line.ts'
import { checkGivenKeys } from './restore-keys.ts'
import { grouped, inertLine } from './terminal.ts'

export const restoreCommand: Command = {
  name: 'restore',
  summary:
    'Creates a data directory from a backup and checks it. The directory must be new or empty. A backup that was taken of a running board does not start until "broadside restored" says whether anything was written later.',
  usage: 'restore BACKUP [--data DIR] [--keys DIR] [--dry-run]',
  optionHelp: [
    ['--data DIR', 'the directory to create (default DATA_DIR or ./data)'],
    configHelp,
    ['--keys DIR', 'the board’s keys directory, for a backup that was taken without keys'],
    ['--dry-run', 'check the backup and the keys, and say what would be done; write nothing'],
  ],
  example: 'broadside restore /backup/board --data /var/lib/broadside --keys /safe/keys',
  options: { ...settingsOptions, keys: { type: 'string' }, 'dry-run': { type: 'boolean' } },
  positionals: { min: 1, max: 1 },
  async run(args, terminal) {
    const { dataDirectory: target } = await boardSettings(args)
    try {
      const given = resolve(args.positionals[0]!)
      if (!existsSync(given)) throw new CommandFailed(`There is no backup ${given}.`)
      refuseUnlessEmpty(target)
      if (`${resolve(target)}/`.startsWith(`${given}/`))
        throw new UsageError(`${target} is inside the backup. Name a place outside of it.`)
      const isTar = machine.disk.stat(given).isFile
      const backup = isTar ? `${target}.unpacked` : given
      try {
        if (isTar) unpack(given, backup)
        const [config, keys] = [args.text('config'), args.text('keys')]
        return await restore({ given, backup, target, config, keys, isDry: args.flag('dry-run') }, terminal)
      } finally {
        if (isTar) rmSync(backup, { recursive: true, force: true })
      }
    } catch (error) {
      if (isDiskFull(error))
        throw new CommandFailed(
          `The disk of ${target} is full, and the restoration is not complete. Free space there, remove that directory, and restore again.`,
        )
      throw commandError(error)
    }
  },
}

type Restoration = {
  /** The backup that was named. */
  readonly given: string
  /** The directory that contains it: the same, or that of an unpacked tar file. */
  readonly backup: string
  readonly target: string
  /** The settings file that was named. */
  readonly config: string | undefined
  readonly keys: string | undefined
  readonly isDry: boolean
}

async function restore(restoration: Restoration, terminal: Terminal): Promise<0 | 1> {
  const { given, backup, target, isDry } = restoration
  const manifest = readManifest(backup)
  checkFiles(backup, manifest)
  const keys = keyFilesOf(restoration, manifest)
  const [origin = '', size = '0'] = manifest.head.split('\n')
  terminal.out(
    `${inertLine(given)} was taken at ${new Date(manifest.taken_at * 1000).toISOString()} by release ${inertLine(manifest.release)}.\n` +
      `It has ${grouped(Object.keys(manifest.files).length)} files, and ${inertLine(origin)} up to entry ${grouped(Number(size))}. Every file is the one that was backed up.\n`,
  )
  const { taken_at, release, is_of_running, has_keys } = manifest
  const facts = { backup: given, taken_at, release, is_of_running, has_keys, log: origin, size: Number(size) }
  if (isDry) {
    const without = has_keys || keys.length > 0 ? '' : 'It contains no keys: give them with --keys.\n'
    print(terminal, facts, `${without}Nothing was written. Without --dry-run it is restored to ${target}.\n`)
    return exitCodes.ok
  }
  const { disk } = machine
  // Written before the first file, so that an interrupted restoration cannot be started as a board either.
  const marker = Buffer.from(`${JSON.stringify({ taken_at: manifest.taken_at, head: manifest.head })}\n`)
  disk.makeDirectory(target)
  disk.writeAtomic(restoredFile(target), marker)
  const copies = [...Object.keys(manifest.files).map((path) => [join(backup, path), path] as const), ...keys]
  for (const [from, path] of copies) {
    const to = join(target, path)
    disk.makeDirectory(dirname(to))
    disk.removeFile(to)
    copyFile(disk, from, to)
    disk.syncDirectory(dirname(to))
  }
  const { checkCopy } = await import('../fsck/fsck.ts')
  const { damages, problems } = checkCopy({ disk, path: target })
  if (damages.length > 0) throw new Unverified(`${damages[0]}. Use another backup.`)
  const wasMarked = manifest.files['restored.json'] !== undefined
  if (!manifest.is_of_running && !wasMarked) disk.removeFile(restoredFile(target))
  print(terminal, { ...facts, data: target, problems }, nextSteps(restoration, manifest, problems))
  return problems.length === 0 ? exitCodes.ok : exitCodes.failed
}

function nextSteps({ target, config }: Restoration, manifest: Manifest, problems: readonly string[]): string {
  const found = problems.map((problem) => `${inertLine(problem)}\n`).join('')
  const missing =
    found === ''
      ? ''
      : `${found}The board will not start until this is fixed. Put the keys from the time of the backup in ${join(target, 'keys')}.\n`
  if (!manifest.is_of_running)
    return `${missing}The board is in ${target}. It was stopped when the backup was taken: if it was not started since, start it here.\n`
  // The settings may name the mark, which tells whether the board wrote anything after the backup.
  const place = config === undefined ? `--data ${target}` : `--config ${config} --data ${target}`
  return (
    `${missing}The board is in ${target}. It was running when the backup was taken, so first run one of these:\n` +
    `  broadside restored ${place}    only if it wrote nothing after the backup: its log continues\n` +
    `  broadside restored --lost ${place}    if what it wrote later is lost: its log ends here, and a new one begins\n`
  )
}

/** The key files to copy, and their destinations. Throws CommandFailed if they are those of another board or time. */
function keyFilesOf({ backup, keys }: Restoration, manifest: Manifest): (readonly [from: string, path: string])[] {
  if (keys === undefined) return []
  if (manifest.has_keys) throw new CommandFailed('This backup contains the keys: leave out --keys.')
  const names = checkGivenKeys(machine.disk, backup, keys)
  return names.map((name) => [join(keys, name), join('keys', name)] as const)
}

function refuseUnlessEmpty(target: string): void {
  if (!existsSync(target)) return
  const found = machine.disk.stat(target).isFile ? [target] : readdirSync(target)
  const isUnfinished = found.includes('restored.json') && !found.includes('LOCK') && !existsSync(join(target, 'search'))
  if (found.length === 0) return
  throw new CommandFailed(
    `${target} is not empty, and restore overwrites nothing. Name a new directory${isUnfinished ? ', or remove this one if an interrupted restore left it' : ''}.`,
  )
}

function unpack(file: string, into: string): void {
  rmSync(into, { recursive: true, force: true })
  mkdirSync(into, { recursive: true, mode: 0o700 })
  const { status, stderr, error } = spawnSync('tar', ['-xf', file, '-C', into, '--no-same-owner'], { encoding: 'utf8' })
  if (error === undefined && status === 0) return
  throw new CommandFailed(
    `${file} cannot be unpacked with tar: ${inertLine(error?.message ?? stderr.trim().split('\n')[0]!)}.`,
  )
}
