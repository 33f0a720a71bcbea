/** `broadside bench`: runs the project's benches in a separate process, so that they measure only themselves. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { packageDirectory } from '../program.ts'
import { type Command, CommandFailed, exitCodes } from './command-line.ts'

export const benchCommand: Command = {
  name: 'bench',
  summary: 'Runs the benches and prints their tables. Give names to run only those.',
  usage: 'bench [--quick] [--keep] [--against DIRECTORY] [--warm POSTS] [--rounds COUNT] [NAME…]',
  optionHelp: [
    ['--quick', 'a short run, under a minute'],
    ['--keep', 'also write the result to a file named after this machine, to be committed'],
    ['--against DIRECTORY', 'for posts: compare with a built checkout in this directory'],
    ['--warm POSTS', 'for posts and profile: number of warm-up posts before the measurement'],
    ['--rounds COUNT', 'for posts: how many times each load is measured'],
  ],
  example: 'broadside bench --quick posts',
  options: {
    quick: { type: 'boolean' },
    keep: { type: 'boolean' },
    against: { type: 'string' },
    warm: { type: 'string' },
    rounds: { type: 'string' },
  },
  positionals: { min: 0, max: 16 },
  async run(args) {
    const program = join(packageDirectory, 'bench/run.ts')
    if (!existsSync(program))
      throw new CommandFailed('This installation has no bench directory. Run it from the source tree.')
    const options = ['quick', 'keep', 'json'].filter((name) => args.flag(name)).map((name) => `--${name}`)
    for (const name of ['against', 'warm', 'rounds']) {
      const value = args.text(name)
      if (value !== undefined) options.push(`--${name}=${value}`)
    }
    const child = spawn(process.execPath, [program, ...options, ...args.positionals], { stdio: 'inherit' })
    const [code] = (await once(child, 'exit')) as [number | null]
    if (code === exitCodes.usage) return exitCodes.usage
    return code === 0 ? exitCodes.ok : exitCodes.failed
  },
}
