/** `broadside top`: shows what a board is doing, polling its /metrics. */
import { setTimeout as wait } from 'node:timers/promises'
import { type Command, CommandFailed, exitCodes, print, UsageError } from './command-line.ts'
import { urlOf, urlOption, urlOptionHelp } from './shared-options.ts'
import { bytesText, durationText, grouped, inertLine } from './terminal.ts'

export const topCommand: Command = {
  name: 'top',
  summary:
    'Shows what a board is doing: posts per second and how long they take, its threads, readers, memory and disk. Stop it with Ctrl-C.',
  usage: 'top [options]',
  optionHelp: [
    urlOptionHelp,
    ['--metrics URL', 'where its metrics are, if the board has a METRICS_PORT (default: /metrics of --url)'],
    ['--every SECONDS', 'time between two samples, 1 to 3600 (default 2)'],
    ['--times N', 'end after N samples'],
  ],
  example: 'broadside top --metrics http://127.0.0.1:9100/metrics',
  options: {
    ...urlOption,
    metrics: { type: 'string' },
    every: { type: 'string' },
    times: { type: 'string' },
  },
  positionals: { min: 0, max: 0 },
  async run(args, terminal) {
    const address = args.text('metrics') ?? new URL('/metrics', urlOf(args)).href
    if (!URL.canParse(address)) throw new UsageError(`--metrics takes an address, not "${address}".`)
    const every = args.integer('every', { fallback: 2, min: 1, max: 3_600 })
    const times = args.integer('times', { fallback: Number.MAX_SAFE_INTEGER, min: 1, max: 1_000_000 })
    const ending = new AbortController()
    const end = (): void => ending.abort()
    process.once('SIGINT', end)
    process.once('SIGTERM', end)
    try {
      let before = await fetchSample(address, terminal.clock.monotonicMs())
      for (let n = 0; n < times; n++) {
        await wait(every * 1_000, undefined, { signal: ending.signal })
        const now = await fetchSample(address, terminal.clock.monotonicMs())
        const view = topView(before, now)
        print(terminal, view, `${terminal.isColored === true ? '\x1b[2J\x1b[H' : ''}${topText(view)}\n`)
        before = now
      }
      return exitCodes.ok
    } catch (error) {
      if (ending.signal.aborted) return exitCodes.ok
      throw error
    } finally {
      process.off('SIGINT', end)
      process.off('SIGTERM', end)
    }
  },
}

/** The metrics at one moment: by name and labels, as written. */
export type MetricsSample = { readonly atMs: number; readonly figures: ReadonlyMap<string, number> }

async function fetchSample(address: string, atMs: number): Promise<MetricsSample> {
  const answer = await fetch(address).catch((error: Error) => {
    throw new CommandFailed(
      `${address} does not answer (${String(error.cause ?? error.message)}). Is the board running?`,
    )
  })
  const text = await answer.text()
  if (answer.status !== 200)
    throw new CommandFailed(
      `${address} answers ${answer.status}. The metrics of a board with METRICS_PORT are at that port: name it with --metrics.`,
    )
  return { atMs, figures: parseSamples(text) }
}

/** The samples of a Prometheus text (format 0.0.4). */
export function parseSamples(text: string): ReadonlyMap<string, number> {
  const figures = new Map<string, number>()
  for (const line of text.split('\n')) {
    const space = line.lastIndexOf(' ')
    if (!line.startsWith('#') && space > 0) figures.set(line.slice(0, space), Number(line.slice(space + 1)))
  }
  return figures
}

export type TopView = {
  readonly release: string
  readonly uptime_seconds: number
  readonly posts_per_second: number
  /**
   * Upper bound in seconds of the histogram bucket that contains the 99th percentile; absent without posts, Infinity beyond the last
   * bucket.
   */
  readonly posts_p99_seconds?: number
  readonly commands_per_second: number
  readonly refused_per_second: number
  readonly faults_per_second: number
  readonly events: number
  readonly log_size: number
  readonly tails: number
  readonly connections: number
  readonly waiting: number
  readonly resident_bytes: number
  readonly disk_free_bytes: number
  readonly cores: number
  /** Share of the time between the two samples in which each thread was busy, 0 to 1. */
  readonly threads: Readonly<Record<string, number>>
}

/** The rates between two samples. */
export function topView(before: MetricsSample, now: MetricsSample): TopView {
  const seconds = Math.max(0.001, (now.atMs - before.atMs) / 1_000)
  const value = (name: string): number => now.figures.get(`broadside_${name}`) ?? 0
  const grown = (key: string): number => Math.max(0, (now.figures.get(key) ?? 0) - (before.figures.get(key) ?? 0))
  const keysOf = (name: string): string[] =>
    [...now.figures.keys()].filter((key) => key.startsWith(`broadside_${name}{`))
  const rate = (keys: readonly string[]): number => keys.reduce((sum, key) => sum + grown(key), 0) / seconds
  const replies = (digit: string): string[] => keysOf(`replies_total`).filter((key) => key.includes(`status="${digit}`))
  const posts = `broadside_command_duration_seconds_count{operation="post"}`
  const p99 = percentile(
    keysOf('command_duration_seconds_bucket').filter((key) => key.includes('operation="post"')),
    grown,
  )
  return {
    release: /version="([^"]*)"/.exec(keysOf('build_info')[0] ?? '')?.[1] ?? '',
    uptime_seconds: value('uptime_seconds'),
    posts_per_second: grown(posts) / seconds,
    ...(p99 === undefined ? {} : { posts_p99_seconds: p99 }),
    commands_per_second: rate(keysOf('command_duration_seconds_count')),
    refused_per_second: rate(replies('4')),
    faults_per_second: rate(replies('5')),
    events: value('events'),
    log_size: value('log_size'),
    tails: value('streams_open'),
    connections: value('connections_open'),
    waiting: value('letters_open') + value('signatures_waiting'),
    resident_bytes: value('resident_bytes'),
    disk_free_bytes: value('disk_free_bytes'),
    cores: grown('broadside_processor_seconds_total') / seconds,
    threads: Object.fromEntries(
      keysOf('thread_active_seconds_total').map((key) => [
        /"([^"]*)"/.exec(key)![1]!,
        Math.min(1, grown(key) / seconds),
      ]),
    ),
  }
}

/** The bound of the first bucket that covers 99%; `keys` in the order of their bounds. */
function percentile(keys: readonly string[], grown: (key: string) => number): number | undefined {
  const all = keys.length === 0 ? 0 : grown(keys.at(-1)!)
  const key = all === 0 ? undefined : keys.find((each) => grown(each) >= all * 0.99)
  const bound = key === undefined ? undefined : /le="([^"]*)"/.exec(key)![1]!
  return bound === undefined ? undefined : bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound)
}

/** Renders it for people. */
export function topText(view: TopView): string {
  const { posts_p99_seconds: p99 } = view
  const latency = p99 === undefined ? '' : Number.isFinite(p99) ? `, p99 at most ${p99 * 1_000} ms` : ', p99 over 10 s'
  const threads = Object.entries(view.threads).map(([name, share]) => `${inertLine(name)} ${Math.round(share * 100)}%`)
  const rows: readonly (readonly [string, string])[] = [
    ['release', `${inertLine(view.release)}, up ${durationText(view.uptime_seconds)}`],
    ['posts', `${view.posts_per_second.toFixed(1)}/s${latency}`],
    [
      'commands',
      `${view.commands_per_second.toFixed(1)}/s; refused ${view.refused_per_second.toFixed(1)}/s, failed ${view.faults_per_second.toFixed(1)}/s`,
    ],
    ['board', `${grouped(view.events)} events, ${grouped(view.log_size)} log entries`],
    ['readers', `${grouped(view.tails)} tails, ${grouped(view.connections)} connections`],
    ['waiting', `${grouped(view.waiting)} messages and signatures`],
    ['threads', threads.join(', ')],
    [
      'machine',
      `${view.cores.toFixed(2)} cores, ${bytesText(view.resident_bytes)} memory, ${bytesText(view.disk_free_bytes)} disk free`,
    ],
  ]
  return rows.map(([name, words]) => `${name.padEnd(10)}${words}\n`).join('')
}
