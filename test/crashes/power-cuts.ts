/** Power cuts: the file system of a board under load loses what was not synced (a loop device that is shut down). */
import { spawnSync } from 'node:child_process'
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { missingProgram } from '../peers/peers.ts'
import { type CrashOptions, crashRounds } from './rounds.ts'

/** Why power cuts cannot be simulated on this machine, or undefined. */
export function missingForPowerCuts(): string | undefined {
  const program = ['losetup', 'xfs_io', 'mkfs.ext4', 'mount'].map(missingProgram).find((each) => each !== undefined)
  return program ?? (process.getuid?.() === 0 ? undefined : 'a loop device needs root')
}

function run(program: string, ...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${error ?? stderr}`)
  return stdout.trim()
}

/** Runs the rounds on its own disk below `directory`; returns a summary, or throws a Finding. */
export async function runPowerCuts(options: CrashOptions): Promise<string> {
  const image = join(options.directory, 'disk.img')
  const mount = join(options.directory, 'mount')
  writeFileSync(image, '')
  truncateSync(image, 1024 * 1024 * 1024)
  run('mkfs.ext4', '-q', '-F', image)
  mkdirSync(mount)
  const device = run('losetup', '-f', '--show', image)
  const release = (): void => {
    spawnSync('umount', ['-l', mount])
    spawnSync('losetup', ['-d', device])
  }
  process.once('exit', release)
  try {
    return await crashRounds(
      { ...options, directory: join(mount, 'board') },
      {
        name: 'power cuts',
        before: () => run('mount', device, mount),
        strike: (board) => {
          run('xfs_io', '-x', '-c', 'shutdown', mount)
          board.signal('SIGKILL')
        },
        after: () => run('umount', mount),
        // The board may notice that its disk is gone before it is killed.
        mayRefuse: /^50[37] /,
        env: { DISK_RESERVE_BYTES: '0' },
      },
    )
  } finally {
    process.off('exit', release)
    release()
  }
}
