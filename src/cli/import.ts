/** `broadside import`: posts messages of other systems in their threads, with one derived key per author; resumable. */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { configHelp, settingsOptions } from './board-settings.ts'
import { BoardClient, type Capabilities } from './client.ts'
import { CommandBatches } from './command-batches.ts'
import {
  type Arguments,
  type Command,
  CommandFailed,
  exitCodes,
  print,
  type Terminal,
  UsageError,
} from './command-line.ts'
import { roomName } from './corpus.ts'
import { importAsItWas } from './import-as-it-was.ts'
import { importForecast } from './import-forecast.ts'
import { formats, openSource } from './import-formats.ts'
import { ImportState } from './import-state.ts'
import { type Dropped, Importer, type ImportReport } from './importer.ts'
import { importSeedOf } from './key-file.ts'
import { capabilitiesToSign } from './known-boards.ts'
import { fieldsOf, listIn } from './message-source.ts'
import { urlOf, urlOption, urlOptionHelp } from './shared-options.ts'
import { durationText, grouped, inertLine } from './terminal.ts'

export const importCommand: Command = {
  name: 'import',
  summary:
    'Posts messages of other systems in their threads, each signed with a key derived for its author: JSON lines (id, room, author, parent, title, text), a board’s export, mail (mbox), Discourse, Slack, Hacker News.',
  usage: 'import FILE|DIRECTORY [options]\n       broadside import FILE --as-it-was [--data DIR] [--keys DIR]',
  optionHelp: [
    urlOptionHelp,
    ['--format FORMAT', `${formats.join(', ')} (default: recognized by content)`],
    ['--room ROOM', 'room for all posts: needed for mbox, discourse and hackernews; slack makes each channel a room'],
    [
      '--system NAME',
      'name of the system in the source of each post, a slug, for example our-forum (default: the format)',
    ],
    ['--seed TEXT', 'authors’ keys derive from it; 64 hex digits or any text (default: random, saved in FILE.seed)'],
    ['--state FILE', 'progress, so that an interrupted import can resume (default: next to the input, FILE.import)'],
    ['--in-flight N', 'posts in flight at once (default 512 in batches; 128, a connection each, on an older board)'],
    [
      '--as-it-was',
      'the file is a whole-board export (/v1/export?stream=board): create a new data directory from it, with the same ids, authors, signatures, times and threads',
    ],
    ['--data DIR', 'with --as-it-was: the directory to create (default DATA_DIR or ./data)'],
    ['--keys DIR', 'with --as-it-was: keys of the old board; with its board.key the board keeps its service id'],
    configHelp,
    ['--list', 'list every message that was not posted, not only the first ten of each kind'],
  ],
  example: 'broadside import archive.mbox --room mailing-list --url http://127.0.0.1:8787',
  notes: [
    'A file may be compressed with gzip, a Slack export may be a zip. Run the same command again to resume.',
    'Formats, and what is not imported: /docs/import of any board, for example http://127.0.0.1:8787/docs/import',
  ],
  options: {
    ...urlOption,
    ...settingsOptions,
    'as-it-was': { type: 'boolean' },
    keys: { type: 'string' },
    format: { type: 'string' },
    room: { type: 'string' },
    system: { type: 'string' },
    seed: { type: 'string' },
    state: { type: 'string' },
    'in-flight': { type: 'string' },
    list: { type: 'boolean' },
  },
  positionals: { min: 1, max: 1 },
  async run(args, terminal) {
    const path = args.positionals[0]!.replace(/(?<=.)\/+$/, '')
    if (args.flag('as-it-was')) return importAsItWas(path, args, terminal)
    const ofNewBoard = (['data', 'keys', 'config'] as const).find((option) => args.text(option) !== undefined)
    if (ofNewBoard !== undefined) throw new UsageError(`--${ofNewBoard} requires --as-it-was.`)
    const inFlight = args.integer('in-flight', { fallback: 0, min: 1, max: 4096 })
    const source = await openSource(path, sourceOptionsOf(args))
    const client = new BoardClient({ url: urlOf(args), connections: inFlight || inFlightAlone })
    try {
      const capabilities = await capabilitiesToSign(client, terminal)
      const { serviceId } = capabilities
      const seed = seedFor(args.text('seed'), `${path}.seed`)
      const state = ImportState.open(args.text('state') ?? `${path}.import`, { serviceId, seed })
      const takesSources = hasSources(capabilities)
      const forecast = await importForecast({ client, capabilities, source, state })
      if (forecast !== undefined) terminal.err(`${forecast}\n`)
      const batches = batchesOf(client, capabilities)
      if (batches === undefined) terminal.err(`${noBatches}\n`)
      const sender = batches ?? client
      const inFlightMax = inFlight || (batches === undefined ? inFlightAlone : inFlightInBatches)
      const options = { client, sender, serviceId, source, takesSources, state, seed, inFlightMax, terminal }
      const importer = new Importer(options)
      try {
        await importer.run()
      } finally {
        printReport(importer.report, terminal, {
          listAll: args.flag('list'),
          entriesName: source.entriesName,
          takesSources,
        })
      }
      const { refused, badLines } = importer.report
      return refused.count + badLines.count > 0 ? exitCodes.failed : exitCodes.ok
    } finally {
      client.close()
    }
  },
}

const inFlightAlone = 128
const inFlightInBatches = 512
const noBatches = 'This board takes one command at a time (it has no /v1/commands), so the import is slower.'

const noSources = 'The posts do not name their source: this board runs a release that does not record it.'

/** Whether `post` of this board declares `source` in `data`. */
function hasSources({ all }: Capabilities): boolean {
  const operations = listIn(all.operations).map(fieldsOf)
  const post = operations.find(({ name }) => name === 'post')
  return fieldsOf(fieldsOf(post?.data).properties).source !== undefined
}

function sourceOptionsOf(args: Arguments) {
  const [format, room, system] = [args.text('format'), args.text('room'), args.text('system')]
  const known = formats.find((each) => each === format)
  if (format !== undefined && known === undefined)
    throw new UsageError(`--format must be one of ${formats.join(', ')}, not "${inertLine(format)}".`)
  for (const [option, name] of [
    ['--room', room],
    ['--system', system],
  ] as const)
    if (name !== undefined && !roomName.test(name))
      throw new UsageError(`${option} must be a name of a-z 0-9 _ -, at most 64 characters, not "${inertLine(name)}".`)
  return { format: known, room, system }
}

/** Undefined for a board of an older release, which accepts no batches. */
function batchesOf(client: BoardClient, { all }: Capabilities): CommandBatches | undefined {
  const { batch_lines, body_bytes } = Object(all.limits) as { batch_lines?: unknown; body_bytes?: unknown }
  if (typeof batch_lines !== 'number' || typeof body_bytes !== 'number') return undefined
  return new CommandBatches({ client, linesMax: batch_lines, bytesMax: body_bytes })
}

/** A seed that was not given is generated once and stored: a resumed import must sign as the same people. */
function seedFor(given: string | undefined, path: string): Buffer {
  if (given !== undefined) return importSeedOf(given)
  try {
    if (existsSync(path)) return importSeedOf(readFileSync(path, 'utf8').trim())
    const seed = randomBytes(32)
    writeFileSync(path, `${seed.toString('hex')}\n`, { flag: 'wx', mode: 0o600 })
    return seed
  } catch (error) {
    throw new CommandFailed(`The seed file cannot be used (${(error as Error).message}). Give one with --seed TEXT.`)
  }
}

const namesShown = 10

/** Everything that happened, for a person; messages that were not posted are named. */
type ReportOptions = { readonly listAll: boolean; readonly entriesName: string; readonly takesSources: boolean }

export function printReport(
  report: ImportReport,
  terminal: Terminal,
  { listAll, entriesName, takesSources }: ReportOptions,
): void {
  const { posted, seconds, before, latencies } = report
  const lines = [
    `${grouped(posted)} posted in ${durationText(seconds)} (${grouped(posted / Math.max(seconds, 0.001))} posts/s), ` +
      `p50 ${latencies.percentileMs(0.5).toFixed(1)} ms, p99 ${latencies.percentileMs(0.99).toFixed(1)} ms.`,
  ]
  const count = (found: number, one: string, more: string) => {
    if (found > 0) lines.push(found === 1 ? one : `${grouped(found)} ${more}`)
  }
  count(before, '1 was posted by an earlier run of this import.', 'were posted by an earlier run of this import.')
  count(report.duplicates, '1 of them was already on the board.', 'of them were already on the board.')
  lines.push(...namesOf(report.tooLong, 'too long (over 32,768 bytes), not posted', true))
  lines.push(...namesOf(report.refused, 'refused by the board', listAll))
  lines.push(...namesOf(report.badLines, `${entriesName} that are not messages`, listAll))
  count(
    report.others,
    '1 line of an export that contains no text was skipped.',
    'lines of an export that contain no text were skipped.',
  )
  if (!takesSources && posted > 0) lines.push(noSources)
  for (const [what, found] of report.notes) lines.push(`${grouped(found)} ${what}.`)
  count(
    report.reattached,
    '1 reply was attached to the nearest posted ancestor: its parent was not posted.',
    'replies were attached to the nearest posted ancestor: their parent was not posted.',
  )
  count(
    report.rootless,
    '1 reply starts a thread: none of its ancestors was posted or is in the file.',
    'replies start a thread: none of their ancestors was posted or is in the file.',
  )
  count(
    report.handlesNotApplied,
    '1 author posts without a handle: the board could not assign it.',
    'authors post without a handle: the board could not assign it.',
  )
  if (report.pausedSeconds > 0)
    lines.push(`${durationText(report.pausedSeconds)} were spent waiting as the board asked.`)
  print(terminal, factsOf(report, takesSources), `${lines.join('\n')}\n`)
}

function factsOf(report: ImportReport, takesSources: boolean): object {
  const { latencies, lastEventId: _, tooLong, badLines, handlesNotApplied, pausedSeconds, notes, ...rest } = report
  return {
    ...rest,
    p50_ms: latencies.percentileMs(0.5),
    p99_ms: latencies.percentileMs(0.99),
    too_long: tooLong,
    bad_lines: badLines,
    handles_not_applied: handlesNotApplied,
    paused_seconds: pausedSeconds,
    notes: Object.fromEntries(notes),
    names_sources: takesSources,
  }
}

function namesOf({ count, names }: Dropped, what: string, listAll: boolean): string[] {
  if (count === 0) return []
  const shown = listAll ? names : names.slice(0, namesShown)
  const rest = count - shown.length
  const more = rest === 0 ? [] : [`  and ${grouped(rest)} more${listAll ? '' : ' (--list shows them)'}`]
  return [`${grouped(count)} ${what}:`, ...shown.map((name) => `  ${name}`), ...more]
}
