/** `broadside reshard`: changes the number of shards of a stopped board. */
import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { machine } from '../platform.ts'
import { boardSettings, settingsHelp, settingsOptions } from './board-settings.ts'
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
import { Progress } from './progress.ts'
import { counted, grouped, inertLine } from './terminal.ts'

const shardsMax = 64

/** What each stage counts, and its past participle. */
const stages = {
  read: ['records', 'read (1 of 4)'],
  write: ['records', 'written (2 of 4)'],
  compare: ['records', 'compared (3 of 4)'],
  check: ['log frames', 'checked (4 of 4)'],
} as const
type Stage = keyof typeof stages

export const reshardCommand: Command = {
  name: 'reshard',
  summary:
    'Changes the number of shards of a stopped board. All ids, signatures, times, balances, permissions and proofs stay the same. The new journals are built next to the old ones, compared with them record by record, and moved into place together; a kill at any moment leaves the old board or the new one. It needs as much free space as the journals take. Make a backup first.',
  usage: 'reshard --shards N [--data DIR] [--dry-run]',
  optionHelp: [
    ['--shards N', `the new number of shards, 1 to ${shardsMax}`],
    ...settingsHelp,
    ['--dry-run', 'read everything and say what would be done; change nothing'],
  ],
  example: 'broadside reshard --shards 4 --data ./data',
  options: { ...settingsOptions, shards: { type: 'string' }, 'dry-run': { type: 'boolean' } },
  positionals: { min: 0, max: 0 },
  async run(args, terminal) {
    if (args.text('shards') === undefined)
      throw new UsageError('Name the number of shards. Usage: broadside reshard --shards N [--data DIR] [--dry-run]')
    const shards = args.integer('shards', { fallback: 1, min: 1, max: shardsMax })
    const config = await boardSettings(args)
    const { dataDirectory } = config
    const [
      { planReshard, reshard },
      { Differs },
      { completeReshard },
      { readFacts },
      { lockDirectory },
      { refuseUnlessAlone },
    ] = await Promise.all([
      import('../reshard/reshard.ts'),
      import('../reshard/compare.ts'),
      import('../exchange.ts'),
      import('../board-directory.ts'),
      import('../../storage/lock.ts'),
      import('../replication/writer.ts'),
    ])
    const isDry = args.flag('dry-run')
    const progress = new Stages(terminal)
    const options = {
      ...config,
      shards,
      platform: machine,
      report: () => {},
      onProgress: (stage: Stage, done: number, total: number) => progress.update(stage, done, total),
    }
    try {
      if (!machine.disk.fileExists(join(dataDirectory, 'board.json'))) readFacts(machine.disk, dataDirectory)
      const lock = await lockDirectory(dataDirectory, { reader: isDry })
      try {
        if (!isDry && completeReshard(machine.disk, dataDirectory))
          terminal.err('An earlier reshard was interrupted at its end, and was completed.\n')
        const { shards: now } = readFacts(machine.disk, dataDirectory)
        if (now === shards) return already(terminal, shards)
        refuseUnlessAlone(machine.disk, dataDirectory, { canStart: true })
        refuseLinks(dataDirectory)
        const made = isDry ? planReshard(options) : await reshard(options)
        progress.clear()
        print(terminal, { ...factsOf(made), done: !isDry }, isDry ? planned(made) : done(made))
        return exitCodes.ok
      } finally {
        lock.release()
      }
    } catch (error) {
      progress.clear()
      if (error instanceof Differs)
        throw new Unverified(
          `The new journals differ from the old ones, and were removed: ${inertLine(error.message)}. The board is unchanged. Run broadside fsck; if it finds nothing, report this line.`,
        )
      throw commandError(error, 'The number of shards is unchanged.')
    }
  },
}

/** Shows the progress of the stages; each has its own rate. */
class Stages {
  readonly #terminal: Terminal
  #stage: Stage | undefined
  #progress: Progress | undefined

  constructor(terminal: Terminal) {
    this.#terminal = terminal
  }

  update(stage: Stage, done: number, total: number): void {
    const [unit, note] = stages[stage]
    if (stage !== this.#stage) {
      this.clear()
      this.#stage = stage
      this.#progress = new Progress({ terminal: this.#terminal, unit })
    }
    this.#progress!.update(done, total, note)
  }

  clear(): void {
    this.#progress?.clear()
  }
}

type Made = {
  readonly from: number
  readonly to: number
  readonly records: readonly number[]
  readonly bytes: number
  readonly freeBytes: number
}

function factsOf({ from, to, records, bytes, freeBytes }: Made) {
  return { from, to, records, bytes, free_bytes: freeBytes }
}

function already(terminal: Terminal, shards: number): 0 {
  const facts = { from: shards, to: shards, records: [], bytes: 0, done: false }
  print(terminal, facts, `This board has ${shardsText(shards)} already: nothing was changed.\n`)
  return exitCodes.ok
}

function planned(made: Made): string {
  return (
    `${described(made)}\nThe new journals need ${grouped(made.bytes)} bytes until the old ones are removed; ${grouped(made.freeBytes)} are free.\n` +
    'Nothing was changed. Make a backup, then run it without --dry-run.\n'
  )
}

function done(made: Made): string {
  return (
    `${described(made)}\nEvery record was compared, and the log was recomputed from the new journals: it is the same.\n` +
    'The next start reads all journals once. Signed readers of updates.get and pages of private lists start over, because their cursors have expired.\n' +
    'Earlier backups have the old number of shards.\n'
  )
}

function described({ from, to, records }: Made): string {
  const each = records.map((count, shard) => `shard ${shard}: ${counted(count, 'record')}`).join(', ')
  return `From ${shardsText(from)} to ${shardsText(to)}. ${each}.`
}

const shardsText = (count: number) => (count === 1 ? '1 shard' : `${count} shards`)

/** The target of a link would be left behind with the old journals in it. */
function refuseLinks(path: string): void {
  for (const name of readdirSync(path).filter((each) => /^(log|delivery|shard-\d+)$/.test(each)))
    if (lstatSync(join(path, name)).isSymbolicLink())
      throw new CommandFailed(
        `${join(path, name)} is a link. Put the directory itself in its place, and run reshard again.`,
      )
}
