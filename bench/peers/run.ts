/**
 * Broadside compared with what a user could pick instead: the same client, disk, cores and minutes. `npm run bench:peers -- [--quick] [PART
 * ...]`
 *
 * Parts: posts, fanout, reads. Tables as Markdown and plots as SVG go to bench/results/peers/. bench/README.md says what is unfair about
 * each peer.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type BoardRun, withBoard } from '../board.ts'
import { loadNow, machineFacts, projectDirectory, withDirectory } from '../machine.ts'
import { plotSvg } from '../plot.ts'
import { type Row, type Table, tableMarkdown, tableText } from '../report.ts'
import { measureFanout } from './fanout.ts'
import { measurePosts, postLoads } from './posts.ts'
import { measureReads } from './reads.ts'
import {
  type Contestant,
  hasNchan,
  installPeers,
  isInstalled,
  type Peer,
  startNchan,
  startNostr,
  startRedis,
  startStack,
} from './servers.ts'

const parts = ['posts', 'fanout', 'reads'] as const
const results = join(projectDirectory, 'bench', 'results', 'peers')

type Options = { readonly isQuick: boolean }
type Context = { readonly board: BoardRun; readonly directory: string }

/** An empty board, and a directory for the peers. */
function withFresh<Result>(use: (context: Context) => Promise<Result>): Promise<Result> {
  return withDirectory((directory) => withBoard((board) => use({ board, directory })))
}

const own = ({ port, pid, post }: BoardRun): Contestant => ({
  name: 'Broadside',
  target: { port, pid },
  warmup: 60_000,
  slower: 1,
  post,
})

/** Starts the peers one after the other, passes them to `use`, and ends them whatever happens. */
async function withPeers<Result>(
  starts: readonly (() => Promise<Peer>)[],
  use: (peers: readonly Peer[]) => Promise<Result>,
): Promise<Result> {
  const peers: Peer[] = []
  try {
    for (const start of starts) peers.push(await start())
    return await use(peers)
  } finally {
    for (const peer of peers) await peer.stop()
  }
}

function posts({ isQuick }: Options): Promise<Table> {
  const hasRedis = isInstalled('redis-server')
  if (!hasRedis) say('redis-server is missing (Debian: apt-get install redis-server): left out')
  const starts = ({ directory }: Context) => [
    () => startStack(directory, 'turn'),
    () => startStack(directory, 'request'),
    () => startNostr(directory),
    ...(hasRedis ? [() => startRedis(directory)] : []),
  ]
  return withFresh((context) => postsTo(context.board, starts(context), isQuick))
}

function postsTo(board: BoardRun, starts: readonly (() => Promise<Peer>)[], isQuick: boolean): Promise<Table> {
  return withPeers(starts, async (peers) => {
    const { rows, rates } = await measurePosts([own(board), ...peers], isQuick ? 1 : 4, isQuick ? 5_000 : 60_000)
    const series = [...rates].map(([name, values]) => ({ name, values }))
    plot('posts', 'Durable posts a second', 'posts/s by posts in flight', postLoads, series, true)
    return { title: 'posts', rows }
  })
}

async function fanout({ isQuick }: Options): Promise<Table> {
  if (!hasNchan()) say('nginx with nchan is missing (Debian: apt-get install libnginx-mod-nchan): left out')
  const counts = isQuick ? [100, 1_000] : [100, 1_000, 8_000]
  const rows: Row[] = []
  for (const readers of counts)
    rows.push(...(await withFresh((context) => fanoutTo(readers, isQuick ? 1 : 3, context))))
  const series = [...new Set(rows.map(({ server }) => String(server)))].map((name) => {
    const own = rows.filter(({ server, posts }) => server === name && posts !== 'one by one')
    return { name, values: own.map((row) => Number(row['deliveries/s'])) }
  })
  plot('fanout', 'Deliveries a second, 16 posts in flight', 'deliveries/s by readers', counts.map(String), series)
  return { title: 'fan-out', rows }
}

function fanoutTo(readers: number, rounds: number, { board, directory }: Context): Promise<Row[]> {
  return withPeers([() => startStack(directory, 'turn')], async ([stack]) => {
    const nchan = hasNchan() ? await startNchan(directory) : undefined
    try {
      for (const each of [board, stack!]) await each.post(64, 5_000)
      const all = [
        { name: 'Broadside', target: board, serviceId: board.serviceId },
        { name: stack!.name, target: stack!.target, serviceId: 'peers' },
        ...(nchan === undefined ? [] : [{ name: 'nginx + nchan, unsigned', target: nchan, serviceId: 'peers' }]),
      ]
      return await measureFanout(all, readers, rounds)
    } finally {
      await nchan?.stop()
    }
  })
}

function reads({ isQuick }: Options): Promise<Table> {
  return withFresh(({ board, directory }) =>
    withPeers([() => startStack(directory, 'turn')], async ([stack]) => {
      const rows = await measureReads(board, stack!, isQuick)
      return { title: 'reads and export', rows }
    }),
  )
}

function plot(
  name: string,
  title: string,
  unit: string,
  groups: readonly string[],
  series: readonly { name: string; values: readonly number[] }[],
  isLogarithmic = false,
): void {
  writeFileSync(join(results, `${name}.svg`), plotSvg({ title, unit, groups, series, isLogarithmic }))
}

function say(line: string): void {
  console.log(line)
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { quick: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  const unknown = positionals.find((name) => !parts.some((part) => part === name))
  if (unknown !== undefined) throw new Error(`there is no part ${unknown}: name some of ${parts.join(', ')}`)
  installPeers()
  mkdirSync(results, { recursive: true })
  const facts = Object.entries(machineFacts()).map(([fact, value]) => `${fact}: ${value}`)
  say(facts.join('; '))
  for (const [name, run] of Object.entries({ posts, fanout, reads })) {
    if (positionals.length > 0 && !positionals.includes(name)) continue
    const before = loadNow()
    const table = await run({ isQuick: values.quick })
    const load = `load average ${before} before, ${loadNow()} after`
    say(tableText({ ...table, notes: [...(table.notes ?? []), load] }))
    writeFileSync(
      join(results, `${name}.md`),
      `${tableMarkdown(table)}\n${facts.join('; ')}; ${load}; ${new Date().toISOString().slice(0, 10)}\n`,
    )
  }
  say(`written to ${results}`)
}

await main()
