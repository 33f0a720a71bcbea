/**
 * Locks a data directory: two processes on one journal would destroy it.
 *
 * On Linux the lock is an abstract Unix socket named after the device and inode of the directory. The kernel frees it
 * when the process dies, however it dies, so it cannot be stale, and renaming or linking the directory does not defeat
 * it. It reaches only one network namespace: containers that share a volume but not the network must be kept apart by
 * other means. On other systems the LOCK file is the lock. It names a pid, the boot and the start time of that process,
 * which together uniquely identify a process. A holder that no longer exists, or whose pid belongs to another process
 * by now, is ignored.
 */

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'

type DirectoryLock = { release(): void }

/** Another process holds the data directory. The message names it and says what to do. */
export class Locked extends Error {
  readonly directory: string
  /** The process that holds it, if known. */
  readonly pid: number | undefined
  constructor(directory: string, pid: number | undefined) {
    const holder = pid === undefined ? 'another process' : `process ${pid}`
    super(`${directory} is in use by ${holder}; stop that process, or choose another data directory.`)
    this.name = 'Locked'
    this.directory = directory
    this.pid = pid
  }
}

/** `reader`: changes nothing in the directory, so a read-only directory is fine. */
type LockOptions = { readonly reader?: boolean }

/** Locks an existing directory until `release` or the end of the process. Throws Locked, or a system error. */
export async function lockDirectory(directory: string, options: LockOptions = {}): Promise<DirectoryLock> {
  return process.platform === 'linux' ? lockBySocket(directory, options) : lockByFile(directory, options)
}

/** The lock on Linux. The LOCK file only tells users, and a second process, who holds it. */
async function lockBySocket(directory: string, { reader = false }: LockOptions = {}): Promise<DirectoryLock> {
  const { dev, ino } = statSync(directory)
  const server = await bindSocket(`\0broadside-${dev}-${ino}`)
  if (!server) throw new Locked(directory, readHolder(directory)?.pid)
  // The lock alone must not keep the process alive.
  server.unref()
  let isWritten = true
  try {
    writeFileSync(lockPath(directory), describeProcess(process.pid), { mode: 0o600 })
  } catch (error) {
    // The socket is the lock. On a full or read-only disk the LOCK file is not written, and reads still work.
    isWritten = isDiskFull(error)
    if (!isWritten && !(reader && isUnwritable(error))) {
      server.close()
      throw error
    }
  }
  return {
    release() {
      if (isWritten) removeLockFile(directory)
      server.close()
    },
  }
}

function isUnwritable(error: unknown): boolean {
  return ['EROFS', 'EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')
}

function isDiskFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')
}

function bindSocket(name: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined)
      else reject(error)
    })
    server.listen({ path: name, exclusive: true }, () => resolve(server))
  })
}

/** The lock on other systems: creates a file that must not exist, after removing that of a dead holder. */
export async function lockByFile(directory: string, { reader = false }: LockOptions = {}): Promise<DirectoryLock> {
  const holder = readHolder(directory)
  if (holder && isAlive(holder)) throw new Locked(directory, holder.pid)
  try {
    removeLockFile(directory)
    writeFileSync(lockPath(directory), describeProcess(process.pid), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    // A reader writes nothing. On a read-only directory, such as a backup, a LOCK file is old, and nothing changes while it is read.
    if (reader && isUnwritable(error)) return { release() {} }
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    throw new Locked(directory, readHolder(directory)?.pid)
  }
  return { release: () => removeLockFile(directory) }
}

type Holder = { readonly pid: number; readonly boot: string; readonly started: string }

function lockPath(directory: string): string {
  return join(directory, 'LOCK')
}

function removeLockFile(directory: string): void {
  try {
    unlinkSync(lockPath(directory))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** Three lines: pid, boot id, start time of the process. */
function describeProcess(pid: number): string {
  return `${pid}\n${bootId()}\n${startOf(pid)}\n`
}

function readHolder(directory: string): Holder | undefined {
  if (!existsSync(lockPath(directory))) return undefined
  const [pid = '', boot = '', started = ''] = readFileSync(lockPath(directory), 'latin1').split('\n')
  return /^[1-9]\d{0,9}$/.test(pid) ? { pid: Number(pid), boot, started } : undefined
}

function isAlive(holder: Holder): boolean {
  if (holder.boot !== bootId()) return false
  const started = startOf(holder.pid)
  return started !== '' && started === holder.started
}

function bootId(): string {
  const path = '/proc/sys/kernel/random/boot_id'
  return existsSync(path) ? readFileSync(path, 'latin1').trim() : 'unknown'
}

/** When a process started, as reported by the operating system; empty if there is no such process. */
function startOf(pid: number): string {
  try {
    if (process.platform !== 'linux') {
      return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'latin1' }).trim()
    }
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // Field 22; the name in field 2 may contain anything, so count from after its last parenthesis.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  } catch {
    // No such process: ps fails, and /proc has no such file.
    return ''
  }
}
