/**
 * Explains to the operator why a board cannot start or continue: one sentence that says what is wrong and what to do.
 *
 * Errors from a thread arrive only as name and message, so this uses nothing else, except who owns a file that cannot be opened.
 */
import { statSync } from 'node:fs'
import { dirname } from 'node:path'

/** `stack` only if the sentence may not explain everything. `thread`: the one that failed. */
type Failure = { readonly problem: string; readonly thread?: string; readonly stack?: string }

type Caught = { readonly name: string; readonly message: string; readonly stack?: string; readonly thread?: string }

/** Errors whose messages name the fix themselves. */
const complete = new Set([
  'BadConfig',
  'Deposed',
  'Diverged',
  'Halted',
  'Locked',
  'LogRotated',
  'OutOfReach',
  'StreamAway',
  'UnfitServers',
  'UnusableDirectory',
  'UnusableMark',
  'UnusableWallet',
])

/** The remaining option if synced bytes are lost. */
export const restoreBackup = 'restore the newest backup of the whole data directory'

/** Often one file from a backup is enough, which loses nothing. */
const runFsck = `Run broadside fsck --explain, which says what to do about each damaged file. Only if it says so, ${restoreBackup}`

/** The same if the disk cannot read them. */
const readFix = `The disk cannot read data that was written to it: see the kernel log. ${runFsck} on a sound disk`

const fixes: Readonly<Record<string, string>> = {
  Damage: `Bytes that were synced have changed, and nothing was repaired. ${runFsck}`,
  FailedRead: readFix,
  RootMismatch: runFsck,
  RolledBack:
    'Either files of the data directory are damaged or missing, or an older copy of it was restored: to continue signing would publish two roots for one size, and anybody could prove it. Run broadside fsck --explain, which says what to do about each damaged file, often without any loss. If it is an older copy, restore the newest data directory. Only if nothing newer is left, this log cannot continue: broadside restored --lost ends it here and begins a new one',
  NewerFormat:
    'A newer release of Broadside wrote it, and nothing was changed. Install that release or a newer one (written_by in board.json names it), or restore a backup from before the upgrade',
  EngineMissing: "Set HTTP_ENGINE=node to use Node's own HTTP server, or leave HTTP_ENGINE out",
  SyncFailed: 'The disk does not keep what is written to it: see the kernel log, and start again on a sound disk',
  DiskFull: 'Free space on the disk of the data directory and start again',
}

const noPermission =
  'The user of this process must be able to read and write the data directory: grant it permission, or name another DATA_DIR'
const noDirectory = 'DATA_DIR must name a directory that exists or can be created'
const systemFixes: Readonly<Record<string, string>> = {
  EPERM: noPermission,
  EROFS: noPermission,
  ENOENT: noDirectory,
  ENOTDIR: noDirectory,
  EEXIST: noDirectory,
  EISDIR: 'The data directory has a directory where a file should be: move it away, or name another DATA_DIR',
  ELOOP: noDirectory,
  ENAMETOOLONG: noDirectory,
  EIO: fixes.SyncFailed!,
  ENOSPC: fixes.DiskFull!,
  EDQUOT: fixes.DiskFull!,
  EMFILE: 'Raise the number of files that this process may open (ulimit -n)',
  ENFILE: 'Raise the number of files that this machine may open (fs.file-max)',
}

/** The disk cannot read a file. */
const cannotRead = /^EIO: [^,]+, (read|open|stat|fstat|scandir)\b/
const cannotListen = /^(cannot listen|listen E|getaddrinfo E)/

/** Whether the message is a complete sentence for the operator. */
export function isComplete(error: unknown): error is Error {
  return error instanceof Error && complete.has(error.name)
}

/** Whether there was no space for a write to a file of the board or the system. */
export function isDiskFull(error: unknown): boolean {
  const { name, code } = Object(error) as { readonly name?: unknown; readonly code?: unknown }
  return name === 'DiskFull' || code === 'ENOSPC' || code === 'EDQUOT'
}

/** Explains an error, or the last message of a thread. */
export function explainFailure(error: unknown): Failure {
  const { name, message, stack, thread }: Caught =
    error !== null && typeof error === 'object' && 'message' in error ? (error as Caught) : new Error(String(error))
  const where = thread === undefined ? {} : { thread }
  const fix = fixOf(name, message)
  if (fix !== undefined) return { problem: fix === '' ? message : `${message}. ${fix}.`, ...where }
  return {
    problem: `${name}: ${message}. This is a bug in Broadside: report it with this line.`,
    ...where,
    ...(stack === undefined ? {} : { stack }),
  }
}

/** Undefined if unknown. */
function fixOf(name: string, message: string): string | undefined {
  if (complete.has(name)) return ''
  if (cannotRead.test(message)) return readFix
  if (cannotListen.test(message)) return 'Set HOST to an address of this machine and PORT to a port that is free'
  if (message.startsWith('EACCES: ')) return ownerFix(/'([^']+)'/.exec(message)?.[1] ?? '')
  return fixes[name] ?? systemFixes[/^(E[A-Z]+): /.exec(message)?.[1] ?? '']
}

/** A command that was run as root leaves files that the board's user cannot open: then another DATA_DIR would be another board. */
function ownerFix(path: string): string {
  const own = process.geteuid?.()
  const found = ownerOf(path) ?? ownerOf(dirname(path))
  if (found === undefined || own === undefined || found.owner === own) return noPermission
  const owner = found.owner === 0 ? 'root' : `user ${found.owner}`
  const chown = `If a command of the board was run as that user, make its files yours again, as root: chown -R ${own} DATA_DIR DATA_DIR.mark`
  const elsewhere = found.path === path ? '' : '. Otherwise let DATA_DIR and MARK_FILE name places where it may write'
  return `${found.path} belongs to ${owner}, and this process runs as user ${own}. ${chown}${elsewhere}`
}

function ownerOf(path: string): { readonly path: string; readonly owner: number } | undefined {
  try {
    return { path, owner: statSync(path).uid }
  } catch {
    // It does not exist, or its directory is closed to this process.
    return undefined
  }
}
