/** What a number depends on besides our code: processor, kernel, Node, commit, load; and the resources that a process has used. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const projectDirectory = fileURLToPath(new URL('..', import.meta.url))

export type Machine = {
  readonly processor: string
  readonly cores: number
  readonly memory_gib: number
  readonly kernel: string
  readonly node: string
  readonly commit: string
  readonly file_system: string
}

export function machineFacts(): Machine {
  return {
    processor: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memory_gib: Math.round(totalmem() / 2 ** 30),
    kernel: `${process.platform} ${release()} ${process.arch}`,
    node: process.versions.node,
    commit: commitNow(),
    file_system: `type 0x${statfsSync(realDisk()).type.toString(16)}`,
  }
}

/** The commit, with a plus if files of the program differ from it. */
function commitNow(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: projectDirectory, encoding: 'utf8' }).trim()
  try {
    const changed = git('status', '--porcelain', '--untracked-files=no', '--', 'src', 'actors', 'storage', 'bench')
    return git('rev-parse', '--short', 'HEAD') + (changed === '' ? '' : '+')
  } catch {
    return 'unknown'
  }
}

/** Average number of runnable processes in the last minute: above the number of cores, measured rates are too low. */
export function loadNow(): number {
  return Math.round((loadavg()[0] ?? 0) * 100) / 100
}

const tmpfs = 0x01021994

/** A directory on a disk with real syncs: a memory file system would answer every sync immediately. */
function realDisk(): string {
  const found = [tmpdir(), projectDirectory].find((directory) => statfsSync(directory).type !== tmpfs)
  if (found === undefined) throw new Error(`${tmpdir()} is in memory: set TMPDIR to a directory on a disk`)
  return found
}

/** Runs `use` with a fresh directory on a real disk, and removes it. */
export async function withDirectory<Result>(use: (directory: string) => Promise<Result> | Result): Promise<Result> {
  const directory = mkdtempSync(join(realDisk(), 'broadside-bench-'))
  try {
    return await use(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** One thread of a process: microseconds on a processor, and microseconds it was ready to run and had to wait for one. */
export type ThreadTime = {
  readonly id: number
  /** Its role on a board that counting.ts was loaded into; `V8 helpers` and `libuv pool` are not distinguished. */
  readonly name: string
  readonly cpuUs: number
  readonly waitUs: number
  /** How often it gave up its processor because it had nothing to do. */
  readonly switches: number
}

const unnamed: Readonly<Record<string, string>> = {
  node: 'V8 helpers',
  DelayedTaskSche: 'V8 helpers',
  'libuv-worker': 'libuv pool',
}

/** Every thread of a process in order of their start. Empty without /proc. */
export function threadTimes(pid: number): ThreadTime[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .map(Number)
      .sort((a, b) => a - b)
      .map((id) => {
        const of = (file: string) => readFileSync(`/proc/${pid}/task/${id}/${file}`, 'utf8')
        const [onCpu = 0, waiting = 0] = of('schedstat').split(' ').map(Number)
        const name = of('comm').trim()
        const switches = Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(of('status'))?.[1])
        return { id, name: unnamed[name] ?? name, cpuUs: onCpu / 1000, waitUs: waiting / 1000, switches }
      })
  } catch {
    return []
  }
}

/** Time of all processors of the machine since its start, and the idle part of it. Units cancel out. */
export function processorTime(): { readonly all: number; readonly idle: number } {
  try {
    const fields = readFileSync('/proc/stat', 'utf8').split('\n')[0]!.trim().split(/ +/).slice(1, 9).map(Number)
    return { all: fields.reduce((sum, ticks) => sum + ticks, 0), idle: fields[3]! + fields[4]! }
  } catch {
    return { all: Number.NaN, idle: Number.NaN }
  }
}

/** System calls of a process that read or write, files and pipes; sockets of uWebSockets.js use others. */
export function readWriteCalls(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/io`, 'utf8')
    return Number(/syscr: (\d+)/.exec(text)?.[1]) + Number(/syscw: (\d+)/.exec(text)?.[1])
  } catch {
    return Number.NaN
  }
}

/** User and system time of a whole process in microseconds (proc_pid_stat(5) fields 14 and 15, 100 ticks a second). */
export function processTime(pid: number): { readonly userUs: number; readonly systemUs: number } {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
    return { userUs: Number(fields[11]) * 10_000, systemUs: Number(fields[12]) * 10_000 }
  } catch {
    return { userUs: Number.NaN, systemUs: Number.NaN }
  }
}

/** VmRSS of a process, MiB. */
export function residentMib(pid: number): number {
  return Math.round(residentKib(pid) / 1024)
}

/** VmHWM of a process, MiB: the most it ever had. */
export function peakMib(pid: number): number {
  return Math.round(statusKib(pid, 'VmHWM') / 1024)
}

export function residentKib(pid: number): number {
  return statusKib(pid, 'VmRSS')
}

function statusKib(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1])
  } catch {
    return Number.NaN
  }
}
