/** `broadside import`: posts a corpus of threaded messages, one derived key per author, resumable. */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { BoardClient, type Capabilities } from './client.ts'
import { CommandBatches } from './command-batches.ts'
import { type Command, CommandFailed, exitCodes, type Terminal } from './command-line.ts'
import { importForecast } from './import-forecast.ts'
import { ImportState } from './import-state.ts'
import { type Dropped, Importer, type ImportReport } from './importer.ts'
import { importSeedOf } from './key-file.ts'
import { openLines } from './lines.ts'
import { urlOf, urlOption, urlOptionHelp } from './shared-options.ts'
import { durationText, grouped } from './terminal.ts'

export const importCommand: Command = {
  name: 'import',
  summary:
    'Posts a corpus (JSON lines: id, room, author, parent, title, text) or a board’s export, each signed by its author.',
  usage: 'import FILE.jsonl[.gz] [options]',
  optionHelp: [
    urlOptionHelp,
    ['--seed TEXT', 'authors’ keys derive from it; 64 hex digits or any text (default: random, saved in FILE.seed)'],
    ['--state FILE', 'progress, so that an interrupted import can resume (default: next to the input, FILE.import)'],
    ['--in-flight N', 'posts in flight at once (default 512 in batches; 128, a connection each, on an older board)'],
    ['--list', 'list every message that was not posted, not only the first ten of each kind'],
  ],
  example: 'broadside import board-corpus.jsonl.gz --url http://127.0.0.1:8787',
  options: {
    ...urlOption,
    seed: { type: 'string' },
    state: { type: 'string' },
    'in-flight': { type: 'string' },
    list: { type: 'boolean' },
  },
  positionals: { min: 1, max: 1 },
  async run(args, terminal) {
    const path = args.positionals[0]!
    const inFlight = args.integer('in-flight', { fallback: 0, min: 1, max: 4096 })
    const source = openLines(path)
    const client = new BoardClient({ url: urlOf(args), connections: inFlight || inFlightAlone })
    try {
      const capabilities = await client.capabilities()
      const { serviceId } = capabilities
      const seed = seedFor(args.text('seed'), `${path}.seed`)
      const state = ImportState.open(args.text('state') ?? `${path}.import`, { serviceId, seed })
      const forecast = await importForecast({ client, capabilities, source, state })
      if (forecast !== undefined) terminal.err(`${forecast}\n`)
      const batches = batchesOf(client, capabilities)
      if (batches === undefined) terminal.err(`${noBatches}\n`)
      const sender = batches ?? client
      const inFlightMax = inFlight || (batches === undefined ? inFlightAlone : inFlightInBatches)
      const importer = new Importer({ client, sender, serviceId, source, state, seed, inFlightMax, terminal })
      try {
        await importer.run()
      } finally {
        printReport(importer.report, terminal, args.flag('list'))
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

/** Undefined: a board of an older release, which takes no batches. */
function batchesOf(client: BoardClient, { all }: Capabilities): CommandBatches | undefined {
  const { batch_lines, body_bytes } = Object(all.limits) as { batch_lines?: unknown; body_bytes?: unknown }
  if (typeof batch_lines !== 'number' || typeof body_bytes !== 'number') return undefined
  return new CommandBatches({ client, linesMax: batch_lines, bytesMax: body_bytes })
}

/** A seed that was not given is made once and kept: a resumed import must sign as the same people. */
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

/** Everything that happened, for a person; what was not posted by name. */
export function printReport(report: ImportReport, terminal: Terminal, listAll: boolean): void {
  const { posted, seconds, before, latencies } = report
  const lines = [
    `${grouped(posted)} posted in ${durationText(seconds)} (${grouped(posted / Math.max(seconds, 0.001))} posts/s), ` +
      `p50 ${latencies.percentileMs(0.5).toFixed(1)} ms, p99 ${latencies.percentileMs(0.99).toFixed(1)} ms.`,
  ]
  if (before > 0) lines.push(`${grouped(before)} were posted by an earlier run of this import.`)
  if (report.duplicates > 0) lines.push(`${grouped(report.duplicates)} of them were already on the board.`)
  lines.push(...namesOf(report.tooLong, 'too long (over 32,768 bytes), not posted', true))
  lines.push(...namesOf(report.refused, 'refused by the board', listAll))
  lines.push(...namesOf(report.badLines, 'lines that are not messages', listAll))
  if (report.others > 0) lines.push(`${grouped(report.others)} lines of an export that contain no text were skipped.`)
  if (report.reattached > 0) {
    lines.push(
      `${grouped(report.reattached)} replies were attached to the nearest posted ancestor: their parent was not posted.`,
    )
  }
  if (report.rootless > 0) {
    lines.push(
      `${grouped(report.rootless)} replies start a thread: none of their ancestors was posted or is in the file.`,
    )
  }
  if (report.handlesNotApplied > 0) {
    lines.push(`${grouped(report.handlesNotApplied)} authors post without a handle: the board could not assign it.`)
  }
  if (report.pausedSeconds > 0)
    lines.push(`${durationText(report.pausedSeconds)} were spent waiting as the board asked.`)
  terminal.out(`${lines.join('\n')}\n`)
}

function namesOf({ count, names }: Dropped, what: string, listAll: boolean): string[] {
  if (count === 0) return []
  const shown = listAll ? names : names.slice(0, namesShown)
  const rest = count - shown.length
  const more = rest === 0 ? [] : [`  and ${grouped(rest)} more${listAll ? '' : ' (--list shows them)'}`]
  return [`${grouped(count)} ${what}:`, ...shown.map((name) => `  ${name}`), ...more]
}
